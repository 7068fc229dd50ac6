//! Clients that mean harm to an instance.

use super::{COUNTING, RuntimeFolder, ends_well};
use crate::control::{PATIENCE, connect, talk};
use crate::program::wait_until;
use castanet_lab::Process;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// An instance under attack.
struct Target {
    it: RuntimeFolder,
    process: Process,
    socket: PathBuf,
}

impl Target {
    fn new(name: &str) -> Target {
        let it = RuntimeFolder::new(name);
        let process = it.instance("one", COUNTING);
        let socket = it.socket("one");
        Target { it, process, socket }
    }

    /// Insists that clients are answered, and that packets are counted.
    fn goes_on(&self) {
        let before = self.it.number("one", "c.count");
        wait_until("the source has stopped", || self.it.number("one", "c.count") > before);
    }

    /// Insists that it ends as if nothing had happened.
    fn ends(self) {
        self.goes_on();
        self.it.output(&["ctl", "one", "stop"]);
        let said = ends_well(self.process);
        assert!(!said.contains("panic"), "{said}");
    }
}

/// Sends bytes until the other side does not accept them any more.
fn send(stream: &mut UnixStream, bytes: &[u8], times: usize) -> usize {
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    (0..times).take_while(|_| stream.write_all(bytes).is_ok()).count()
}

/// Receives until the other side closes.
fn is_closed(stream: &mut UnixStream) -> String {
    let mut received = Vec::new();
    let ended = stream.read_to_end(&mut received);
    // A reset closes, too.
    assert!(!matches!(ended, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock));
    String::from_utf8_lossy(&received).into_owned()
}

#[test]
fn garbage_and_half_commands_are_for_their_sender_alone() {
    let target = Target::new("garbage");
    // Bytes of all values, in an order that repeats late.
    let garbage: Vec<u8> =
        (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for start in [0, 1, 17, 1000] {
        let mut stream = connect(&target.socket);
        send(&mut stream, &garbage[start..], 1);
        _ = stream.shutdown(std::net::Shutdown::Write);
        is_closed(&mut stream);
    }
    // Garbage behind a command that shows that the client knows the protocol.
    let mut stream = connect(&target.socket);
    send(&mut stream, b"READ c.class\n", 1);
    send(&mut stream, &garbage, 1);
    _ = stream.shutdown(std::net::Shutdown::Write);
    assert!(is_closed(&mut stream).contains("DATA 7\r\nCounter"));
    let halves: [&[u8]; 7] = [
        b"READ c.cou",
        b"WRITEDATA reload 100\n/tmp",
        b"WRITEUNTIL reload END\nmore\n",
        b"WRITEDATA q.capacity 18446744073709551615\n1",
        b"READ \xff\xfe\n",
        b"\0\0\0",
        b"WRITEDATA reload 3\n\xff\xfe\xfd",
    ];
    for half in halves {
        let mut stream = connect(&target.socket);
        send(&mut stream, half, 1);
        drop(stream);
        let said = connect(&target.socket);
        said.shutdown(std::net::Shutdown::Both).unwrap();
    }
    assert_eq!(target.it.read("one", "q.capacity"), "7");
    target.ends();
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let target = Target::new("line");
    let piece = vec![b'x'; 1 << 20];
    for start in [&b"READ "[..], b"WRITEDATA reload 104857600\n", b"WRITEUNTIL reload END\n"] {
        let mut stream = connect(&target.socket);
        stream.write_all(start).unwrap();
        let accepted = send(&mut stream, &piece, 100);
        assert!(accepted < 64, "{accepted} MB were accepted");
        is_closed(&mut stream);
        target.goes_on();
    }
    let memory = target.process.memory() >> 20;
    assert!(memory < 1000, "{memory} MB");
    target.ends();
}

#[test]
fn of_many_connections_at_once_as_many_are_served_as_there_may_be() {
    let target = Target::new("many");
    let mut idle: Vec<UnixStream> = (0..300).map(|_| connect(&target.socket)).collect();
    // All of them ask; those beyond the bound are told that there are too many.
    for stream in &mut idle {
        _ = stream.write_all(b"READ instance\nREAD snapshot sample\nQUIT\n");
    }
    let answers: Vec<String> = idle.iter_mut().map(is_closed).collect();
    let served = answers
        .iter()
        .filter(|said| said.contains("\"name\":\"one\"") && said.ends_with("200 Goodbye!\r\n"));
    assert!(served.count() >= 256, "{answers:?}");
    assert!(answers.iter().any(|said| said.contains("590 Too many clients")), "{answers:?}");
    target.goes_on();
    // Connections that say nothing and go.
    let idle: Vec<UnixStream> = (0..100).map(|_| connect(&target.socket)).collect();
    drop(idle);
    target.ends();
}

#[test]
fn a_client_that_never_reads_holds_nobody_up() {
    let target = Target::new("deaf");
    let before = target.process.memory();
    let mut deaf = connect(&target.socket);
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let said = b"READ snapshot sample\nREAD drop_report\nREAD log\nREAD flatconfig\n".repeat(100);
    // Until neither its commands nor their answers find room.
    let accepted = (0..500).take_while(|_| deaf.write_all(&said).is_ok()).count();
    assert!(accepted < 500, "all commands of a client that does not read were accepted");
    // It is still connected, and others are served.
    target.goes_on();
    let answer = talk(&target.socket, "READ c.class\n");
    assert!(answer.ends_with("DATA 7\r\nCounter"), "{answer}");
    let more = target.process.memory().saturating_sub(before) >> 20;
    assert!(more < 100, "{more} MB wait for a client that does not read");
    drop(deaf);
    target.ends();
}

#[test]
fn reloads_of_many_clients_are_all_answered() {
    let target = Target::new("reloads");
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let socket = target.socket.clone();
            std::thread::spawn(move || talk(&socket, &"WRITE reload\n".repeat(5)))
        })
        .collect();
    for client in clients {
        let answer = client.join().unwrap();
        assert_eq!(answer, "200 Write handler 'reload' OK\r\n".repeat(5));
    }
    assert_eq!(target.it.json(&["ctl", "one", "info", "--json"])["replaced"], 40);
    // One asks and goes before the answer.
    for _ in 0..5 {
        let mut stream = connect(&target.socket);
        stream.write_all(b"WRITE reload\n").unwrap();
        drop(stream);
    }
    target.ends();
}
