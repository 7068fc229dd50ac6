//! Packets by sockets, over loopback and the file system, with the standard library at the other
//! end.

use crate::control::socket;
use crate::program::{click, root};
use castanet_lab::{Command, Process};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(config: &str) -> Process {
    let program = Command::on_host(env!("CARGO_BIN_EXE_castanet")).current_dir(root());
    let command = program.args(["run", "-e", config]).timeout(PATIENCE);
    let mut process = command.spawn().unwrap();
    process.wait_for("castanet: running", PATIENCE).unwrap();
    process
}

/// A router whose element `s` has a socket at a free port: the router, and the port.
fn at_port(config: &str) -> (Process, u16) {
    let mut process = start(&format!("{config}; Script(print \"at $(s.port).\")"));
    process.wait_for(".\n", PATIENCE).unwrap();
    let output = process.stdout();
    let port = output.split("at ").nth(1).and_then(|rest| rest.split('.').next());
    (process, port.unwrap().parse().unwrap_or_else(|_| panic!("{output}")))
}

fn received(stream: &mut impl Read, bytes: usize) -> String {
    let mut received = vec![0; bytes];
    stream.read_exact(&mut received).unwrap();
    String::from_utf8(received).unwrap()
}

#[test]
fn a_tcp_server_has_one_client_after_the_other() {
    let (mut process, port) =
        at_port("s :: Socket(TCP, 127.0.0.1, 0, VERBOSE true) -> c :: Counter -> s");
    for word in ["hello", "again"] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(word.as_bytes()).unwrap();
        assert_eq!(received(&mut stream, 5), word);
        // The next one waits until this one has gone.
        let mut next = TcpStream::connect(("127.0.0.1", port)).unwrap();
        next.set_read_timeout(Some(PATIENCE)).unwrap();
        next.write_all(b"next").unwrap();
        next.set_nonblocking(true).unwrap();
        assert!(next.read(&mut [0; 4]).is_err());
        next.set_nonblocking(false).unwrap();
        drop(stream);
        assert_eq!(received(&mut next, 4), "next");
    }
    process.wait_for("closed connection", PATIENCE).unwrap();
    process.interrupt();
    let output = process.finish(PATIENCE).unwrap().printed();
    assert!(output.contains("s :: Socket: listening for connections on 127.0.0.1:0 ("), "{output}");
    assert!(output.matches("s :: Socket: opened connection ").count() == 4, "{output}");
    assert!(output.contains(" from 127.0.0.1:"), "{output}");
}

#[test]
fn a_tcp_client_sends_all_and_receives_the_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Pushed, by the name that only sends.
    let config =
        format!("InfiniteSource(DATA abc, LIMIT 3000) -> ToSocket(TCP, 127.0.0.1, {port})");
    let process = start(&config);
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(received(&mut stream, 9000), "abc".repeat(3000));
    process.interrupt();
    assert!(process.finish(PATIENCE).unwrap().success());
    // Pulled, from a place of its own, and both ways.
    let config = format!(
        "RatedSource(DATA def, LIMIT 2, RATE 1000) -> Queue -> s :: Socket(TCP, 127.0.0.1, {port}, 127.0.0.1)
            -> Print(heard) -> Discard"
    );
    let mut process = start(&config);
    let (mut stream, from) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(from.ip().is_loopback());
    assert_eq!(received(&mut stream, 6), "defdef");
    stream.write_all(b"wxyz").unwrap();
    process.wait_for("heard:    4 | 7778797a", PATIENCE).unwrap();
    // When the other side is gone, what is left is dropped under a name.
    drop(stream);
    process.interrupt();
    assert!(process.finish(PATIENCE).unwrap().success());
}

/// A server of datagrams with these arguments sends each one back to its sender, cut to 5 bytes.
/// Returns the senders.
fn datagrams_are_answered(arguments: &str) -> [UdpSocket; 2] {
    let (process, port) =
        at_port(&format!("s :: Socket(UDP, 127.0.0.1, 0, {arguments}) -> c :: Counter -> s"));
    let clients = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    for (client, (output, echoed)) in clients.iter().zip([("one", "one"), ("longer", "longe")]) {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send_to(output.as_bytes(), ("127.0.0.1", port)).unwrap();
        let mut answer = [0; 64];
        let (len, _) = client.recv_from(&mut answer).unwrap();
        assert_eq!(&answer[..len], echoed.as_bytes());
    }
    process.interrupt();
    assert!(process.finish(PATIENCE).unwrap().success());
    clients
}

#[test]
fn datagrams_go_to_the_last_sender_or_where_their_annotation_says() {
    // With a local address the element is a client, unless it waits to learn the remote one.
    datagrams_are_answered("192.0.2.1, SNAPLEN 5, WAIT_LEARN true");
    let clients = datagrams_are_answered("SNAPLEN 5");
    let to = clients[0].local_addr().unwrap().port();
    let config = format!(
        "RatedSource(DATA xyz, LIMIT 1) -> SetIPAddress(127.0.0.1)
            -> Socket(UDP, 0.0.0.0, {to}, CLIENT true)"
    );
    let process = start(&config);
    let mut answer = [0; 64];
    let (len, from) = clients[0].recv_from(&mut answer).unwrap();
    assert_eq!(&answer[..len], b"xyz");
    assert!(from.ip().is_loopback());
    process.interrupt();
    assert!(process.finish(PATIENCE).unwrap().success());
}

#[test]
fn files_are_sockets_too() {
    let (server, client) = (socket("stream"), socket("listening"));
    let listener = UnixListener::bind(&client).unwrap();
    let config =
        format!("FromSocket(unix, {}) -> ToSocket(UNIX, {})", server.display(), client.display());
    let process = start(&config);
    let (mut out, _) = listener.accept().unwrap();
    out.set_read_timeout(Some(PATIENCE)).unwrap();
    UnixStream::connect(&server).unwrap().write_all(b"through").unwrap();
    assert_eq!(received(&mut out, 7), "through");
    process.kill();
    drop(process);
    // A file that was left by a process that was killed is in nobody's way.
    assert!(server.exists());
    let (near, mine) = (socket("datagrams"), socket("mine"));
    let config = format!(
        "FromSocket(UNIX, {}) -> Discard;
         s :: Socket(UNIX_DGRAM, {}) -> Print(heard) -> s;
         RatedSource(DATA pq, RATE 20) -> Socket(UNIX_DGRAM, {}, {}.from) -> Discard",
        server.display(),
        near.display(),
        mine.display(),
        mine.display()
    );
    let socket = UnixDatagram::bind(&mine).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut process = start(&config);
    let mut answer = [0; 16];
    let (len, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!(&answer[..len], b"pq");
    assert_eq!(
        from.as_pathname().unwrap().display().to_string(),
        format!("{}.from", mine.display())
    );
    socket.send_to(b"echo", &near).unwrap();
    process.wait_for("heard:    4 | 6563686f", PATIENCE).unwrap();
    while socket.recv(&mut answer).unwrap() != 4 {}
    assert_eq!(&answer[..4], b"echo");
    process.interrupt();
    assert!(process.finish(PATIENCE).unwrap().success());
    assert!(!near.exists() && !server.exists());
    for file in [mine, client] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn packets_without_a_peer_are_dropped_with_a_reason() {
    let config = "InfiniteSource(LIMIT 7, STOP true) -> s :: Socket(TCP, 127.0.0.1, 0) -> Discard";
    let result = click(&["-e", config, "-h", "s.drops", "-h", "s.sent"], b"");
    assert_eq!(result.out, "s.drops:\nno_peer 7\n\ns.sent:\n0\n\n", "{}", result.err);
}

#[test]
fn allow_and_deny_tables_filter_clients() {
    let tables = "allow :: RadixIPLookup(127.0.0.1 0); deny :: StaticIPLookup(0/0 0);
                  Idle -> allow -> Discard; Idle -> deny -> Discard;";
    let echo = |kind: &str| {
        format!(
            "{tables} s :: Socket({kind}, 0.0.0.0, 0, ALLOW allow, DENY deny, VERBOSE true) -> c :: Counter -> s"
        )
    };
    // Loopback has a whole network of addresses to come from.
    let from = |address: &str| {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let (mut process, port) = at_port(&echo("UDP"));
    let (friend, stranger) = (from("127.0.0.1"), from("127.0.0.2"));
    stranger.send_to(b"stranger", ("127.0.0.1", port)).unwrap();
    process.wait_for("s :: Socket: dropped datagram from 127.0.0.2:", PATIENCE).unwrap();
    for word in ["hello", "there"] {
        friend.send_to(word.as_bytes(), ("127.0.0.1", port)).unwrap();
        let mut answer = [0; 64];
        let (len, _) = friend.recv_from(&mut answer).unwrap();
        assert_eq!(&answer[..len], word.as_bytes());
    }
    // TCP: the system takes a connection before anybody is asked, and then closes it.
    let gate = socket("gate");
    let deny = "deny :: RadixIPLookup(127.0.0.0/8 0); Idle -> deny -> Discard;";
    let (mut process, port) = at_port(&format!(
        "{deny} s :: Socket(TCP, 127.0.0.1, 0, DENY deny, VERBOSE true) -> c :: Counter -> s;
         ControlSocket(UNIX, {}, RETRIES 0)",
        gate.display()
    ));
    let mut refused = TcpStream::connect(("127.0.0.1", port)).unwrap();
    refused.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(refused.read(&mut [0; 8]).unwrap_or(0), 0);
    process.wait_for("s :: Socket: denied connection ", PATIENCE).unwrap();
    // Tables may change while the router runs.
    let mut control = UnixStream::connect(&gate).unwrap();
    control.set_read_timeout(Some(PATIENCE)).unwrap();
    control.write_all(b"WRITE deny.remove 127.0.0.0/8\n").unwrap();
    let greeting_and_answer = 26 + "200 Write handler 'deny.remove' OK\r\n".len();
    assert!(received(&mut control, greeting_and_answer).ends_with("OK\r\n"));
    let mut welcome = TcpStream::connect(("127.0.0.1", port)).unwrap();
    welcome.set_read_timeout(Some(PATIENCE)).unwrap();
    welcome.write_all(b"hello").unwrap();
    assert_eq!(received(&mut welcome, 5), "hello");
    let report =
        click(&["-e", "Socket(UDP, 127.0.0.1, 0, ALLOW c) -> c :: Counter -> Discard"], b"");
    assert_eq!(report.err, "Socket@1 :: Socket: c is not an IPRouteTable\n");
}

#[test]
fn a_worker_without_traffic_sleeps() {
    let (mut process, port) = at_port("s :: Socket(UDP, 127.0.0.1, 0) -> Print(heard) -> Discard");
    // The test is about processor time in a period, so it sleeps: first while the router starts.
    std::thread::sleep(Duration::from_millis(500));
    let before = process.cpu_time();
    std::thread::sleep(Duration::from_millis(500));
    let spent = process.cpu_time() - before;
    assert!(spent < Duration::from_millis(100), "{spent:?}");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.send_to(b"up", ("127.0.0.1", port)).unwrap();
    process.wait_for("heard:    2 | 7570", PATIENCE).unwrap();
}

#[test]
fn wrong_arguments_and_places_are_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let long = format!("UNIX, /tmp/{}", "x".repeat(120));
    for (arguments, words) in [
        ("Socket(SCTP, 1)", "unknown socket type `SCTP'"),
        ("Socket(TCP)", "ADDR: required argument missing"),
        ("Socket(UDP, 1.2.3.4)", "PORT: required argument missing"),
        ("Socket(UDP, nowhere.invalid, 5)", "ADDR: "),
        ("Socket(UDP, 1.2.3.4, 99999)", "PORT: "),
        ("Socket(UDP, 1.2.3.4, 5, 0.0.0.0, 6, true, 7)", "too many arguments"),
        ("Socket(UNIX)", "FILENAME: required argument missing"),
        (&format!("Socket({long})"), "remote filename '/tmp/xxx"),
        (&format!("Socket(TCP, 127.0.0.1, {port})"), "bind: Address already in use"),
        ("Socket(TCP, 127.0.0.1, 1, CLIENT true)", "connect: Connection refused"),
        ("Socket(UNIX, /no/such/place)", "bind: No such file or directory"),
        ("RawSocket(CARRIER)", "TYPE: `CARRIER` is no IP protocol"),
        ("McastSocket(10.0.0.1, 5)", "MCASTIP: 10.0.0.1 is no multicast address"),
        ("McastSocket(239.0.0.1)", "MCASTPORT: required argument missing"),
    ] {
        let report = click(&["-e", &format!("{arguments} -> Discard")], b"");
        assert_eq!(report.status, Some(1), "{arguments}");
        assert!(report.err.contains(words), "{arguments}: {}", report.err);
    }
}
