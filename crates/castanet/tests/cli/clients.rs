//! Hostile clients of a control socket.

use crate::control::{PATIENCE, connect, socket, start, talk, tcp};
use crate::program::wait_until;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

/// Requests that a web page can have a browser send to any port of its machine.
const REQUESTS: &[&str] = &[
    "POST / HTTP/1.1\r\nHost: localhost:41900\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\n\
     WRITE c.reset\r\n",
    "POST / HTTP/1.1\r\n\r\nWRITE c.active false\nWRITE stop\n",
    "GET /c.count HTTP/1.1\r\nHost: localhost\r\n\r\nWRITE c.reset\r\n",
    "OPTIONS * HTTP/1.0\r\n\r\nWRITE c.reset\r\n",
    "Accept: */*\r\nWRITE c.reset\r\n",
    "{\"a\": 1}\nWRITE c.reset\n",
    "\u{16}\u{3}\u{1}\nWRITE c.reset\n",
];

#[test]
fn http_requests_of_a_browser_are_refused() {
    let config =
        "cs :: ControlSocket(TCP, 41900+, LOCALHOST true); Script(print \"at $(cs.port).\");
                  InfiniteSource(LIMIT 5) -> c :: Counter -> Discard";
    let (port, process) = tcp(config);
    let ask = |output: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(output.as_bytes()).unwrap();
        let mut answer = String::new();
        // The end may come with a reset, for what was not read.
        _ = stream.read_to_string(&mut answer);
        answer
    };
    let all_counted = |answer: &str| answer.contains("DATA 1\r\n5");
    wait_until("packets are missing", || all_counted(&ask("READ c.count\nQUIT\n")));
    for request in REQUESTS {
        let answer = ask(request);
        assert!(!answer.contains("Write handler"), "{request}\n{answer}");
    }
    let answer = ask("READ c.count\nQUIT\n");
    assert!(all_counted(&answer), "{answer}");
    // A user who types the protocol may mistype.
    let answer = ask("READ c.class\nRAED c.class\nREAD c.class\nQUIT\n");
    assert_eq!(answer.matches("DATA 7\r\nCounter").count(), 2, "{answer}");
    assert!(answer.contains("501 Command 'RAED' unimplemented\r\n"), "{answer}");
    assert!(!process.stderr().contains("warning"), "{}", process.stderr());
    process.kill();
}

#[test]
fn a_port_that_others_reach_is_warned_of() {
    let config = "cs :: ControlSocket(TCP, 41950+); Script(print \"at $(cs.port).\")";
    let (_, mut process) = tcp(config);
    process.wait_for("LOCALHOST true", PATIENCE).unwrap();
    let output = process.stderr();
    assert!(output.contains("cs: warning: everybody who reaches TCP port 41950"), "{output}");
}

#[test]
fn there_are_only_so_many_clients() {
    let path = socket("clients");
    let _process = start(&format!("cs :: ControlSocket(UNIX, {})", path.display()));
    let mut clients: Vec<_> = (0..256).map(|_| connect(&path)).collect();
    for client in &mut clients {
        let mut greeting = [0; 26];
        client.read_exact(&mut greeting).unwrap();
    }
    assert_eq!(talk(&path, ""), "590 Too many clients: there may be 256\r\n");
    // Connected clients are served, and make room when they leave.
    let mut one = clients.pop().unwrap();
    one.write_all(b"READ cs.class\nQUIT\n").unwrap();
    let mut answer = String::new();
    one.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("DATA 13\r\nControlSocket"), "{answer}");
    drop(clients);
    assert!(talk(&path, "READ cs.class\n").contains("DATA 13\r\nControlSocket"));
}

#[test]
fn commands_of_all_clients_have_a_bound() {
    let path = socket("input");
    let _process = start(&format!("cs :: ControlSocket(UNIX, {})", path.display()));
    let part = vec![b'x'; 15 << 20];
    let mut clients: Vec<_> = (0..4).map(|_| connect(&path)).collect();
    for client in &mut clients {
        client.write_all(b"WRITEDATA cs.frob 16000000\n").unwrap();
        client.write_all(&part).unwrap();
    }
    // Of those that do not come to an end, one makes room for one that does.
    let mut fifth = connect(&path);
    fifth.write_all(b"WRITEDATA cs.frob 16000000\n").unwrap();
    fifth.write_all(&vec![b'x'; 16_000_000]).unwrap();
    fifth.write_all(b"QUIT\n").unwrap();
    let mut answer = String::new();
    fifth.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("511 No handler named 'cs.frob'"), "{answer}");
    let refused = |client: &mut UnixStream| {
        client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut answer = String::new();
        _ = client.read_to_string(&mut answer);
        answer.contains("521 Command too long while those of other clients are")
    };
    assert_eq!(clients.iter_mut().filter_map(|client| refused(client).then_some(())).count(), 1);
    // Short ones are served all the same.
    assert!(talk(&path, "READ cs.class\n").contains("DATA 13\r\nControlSocket"));
}

/// A process that is killed when this is dropped.
struct KillOnDrop(std::process::Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A router whose programs stand still until its standard output is read.
fn held_back(path: &std::path::Path) -> KillOnDrop {
    let config = format!(
        "ControlSocket(UNIX, {0}); ControlSocket(UNIX, {0}-2); m :: Idle -> Discard;
         Script(set i 0, wait 100ms, label again, set i $(add $i 1),
             print \"{1}\", goto again $(lt $i 300))",
        path.display(),
        "x".repeat(1000)
    );
    let mut command = crate::program::command();
    command.args(["run", "-q", "-e", &config]).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = KillOnDrop(command.spawn().unwrap());
    wait_until("nobody listens", || UnixStream::connect(path).is_ok());
    // The control thread is blocked once it has filled the pipe: its processor time stands still.
    wait_until_still("the control thread", || processor_time(child.0.id()));
    child
}

/// Waits until a value has not changed for half a second.
fn wait_until_still<T: PartialEq>(name: &str, mut value: impl FnMut() -> T) {
    const STILL: Duration = Duration::from_millis(500);
    let begun = std::time::Instant::now();
    let (mut last, mut since) = (value(), begun);
    while since.elapsed() < STILL {
        assert!(begun.elapsed() < PATIENCE, "{name} does not come to rest");
        std::thread::sleep(Duration::from_millis(20));
        let now = value();
        if now != last {
            (last, since) = (now, std::time::Instant::now());
        }
    }
}

/// Ticks of processor time that a process has had in user mode and in the kernel (proc(5)).
fn processor_time(process: u32) -> [String; 2] {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let mut fields = stat.rsplit(") ").next().unwrap().split(' ').skip(11);
    [(); 2].map(|()| fields.next().unwrap().to_owned())
}

/// The most memory that a process had, in bytes (`VmHWM` of proc(5)).
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Commands that are all there and wait for the control thread.
#[test]
fn commands_that_wait_to_be_answered_have_a_bound() {
    const SIZE: usize = 12_000_000;
    let (path, second) = (socket("at-work"), socket("at-work-2"));
    let mut child = held_back(&path);
    let before = peak(child.0.id());
    let ask = |path: std::path::PathBuf| {
        std::thread::spawn(move || {
            let mut stream = connect(&path);
            stream.write_all(format!("WRITEDATA m.frob {SIZE}\n").as_bytes()).unwrap();
            stream.write_all(&vec![b'x'; SIZE]).unwrap();
            stream.write_all(b"READ m.class\nQUIT\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        })
    };
    let clients: Vec<_> = [&path, &second]
        .into_iter()
        .flat_map(|path| (0..20).map(|_| ask(path.to_path_buf())))
        .collect();
    // The process reads what it may of the commands and then waits for the control thread.
    wait_until_still("the process", || (processor_time(child.0.id()), peak(child.0.id())));
    let mut small = connect(&path);
    small.write_all(b"READ m.class\nQUIT\n").unwrap();
    assert!(clients.iter().all(|client| !client.is_finished()));
    // Once the control thread goes on, all are answered.
    let mut out = child.0.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    let mut answer = String::new();
    small.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("DATA 4\r\nIdle"), "{answer}");
    for client in clients {
        let answer = client.join().unwrap();
        assert!(answer.contains("511 No handler named 'm.frob'"), "{answer}");
        assert!(answer.contains("DATA 4\r\nIdle"), "{answer}");
    }
    let more = peak(child.0.id()) - before;
    assert!(more < 200 << 20, "{} MiB of 480 MB were in memory", more >> 20);
    drop(child);
    _ = reader.join();
}

/// The bytes behind the head of an answer.
fn data(answer: &str) -> &str {
    answer.split_once("DATA ").and_then(|(_, rest)| rest.split_once("\r\n")).unwrap().1
}

#[test]
fn long_tables_are_read_whole() {
    let path = socket("tables");
    let config = format!(
        "define($n 20000);
         FastUDPFlows(RATE 1000000, LIMIT $n, LENGTH 60, SRCETH 0:0:0:0:0:1, SRCIP 1.0.0.1,
             DSTETH 0:0:0:0:0:2, DSTIP 2.0.0.2, FLOWS $n, FLOWSIZE 1)
           -> Strip(14) -> CheckIPHeader -> t :: Tee;
         t[0] -> rw :: IPRewriter(pattern 9.9.9.9 - - - 0 0) -> Discard;
         t[1] -> m :: Middlebox(add-stateful ip-proto udp accept, INTERFACES a) -> c :: Counter
           -> Discard;
         RandomSource(20, $n) -> GetIPAddress(16) -> Queue($n) -> Unqueue
           -> [0]arp :: ARPQuerier(10.0.0.1, 2:0:0:0:0:1) -> Discard; Idle -> [1]arp;
         ControlSocket(UNIX, {})",
        path.display()
    );
    let _process = start(&config);
    wait_until("packets are missing", || talk(&path, "READ c.count\n").ends_with("20000"));
    let count = |handler: &str| -> usize {
        data(&talk(&path, &format!("READ {handler}\n"))).trim().parse().unwrap()
    };
    let lines = |handler: &str| -> Vec<String> {
        let answer = talk(&path, &format!("READ {handler}\n"));
        data(&answer).lines().map(str::to_owned).collect()
    };
    // Neighbours that were asked for, each once, the oldest first.
    wait_until("neighbours are missing", || count("arp.count") >= 15_000);
    wait_until_still("the table of neighbours", || count("arp.count"));
    let neighbours = lines("arp.table");
    assert_eq!(neighbours.len(), count("arp.count"));
    let age = |line: &String| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    assert!(neighbours.is_sorted_by(|a, b| age(a) >= age(b)));
    let mut names: Vec<_> = neighbours.iter().map(|line| line.split(' ').next()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), neighbours.len());
    let connections = lines("m.connections");
    assert_eq!(connections.len(), count("m.connection_count"));
    assert!(connections.len() > 5000 && connections.is_sorted());
    // Both directions of each mapping, each once.
    let mut mappings = lines("rw.udp_table");
    assert_eq!(mappings.len(), 2 * count("rw.table_size"));
    mappings.sort();
    mappings.dedup();
    assert_eq!(mappings.len(), 2 * count("rw.table_size"));
}

/// Numbers that are too large for what they are about: an element, and what is written to it.
const TOO_LARGE: &[(&str, &str)] = &[
    ("CheckNumberPacket(0, 4)", "count 4294967295"),
    ("CheckNumberPacket(0, 4294967295)", ""),
    ("AggregateCounterVector(MASK 268435455)", ""),
    ("RecordTimestamp(N 4294967296)", ""),
    ("RecordTimestamp(DYNAMIC true, OFFSET 0)", ""),
    ("Pad(2147483647)", ""),
    ("Pad(4294967295)", ""),
    ("NumberPacket(2147483640)", ""),
    ("StoreData(2147483647, x, GROW true)", ""),
    ("MoveData(4294967290, 0, 1, true)", ""),
    ("StoreAnno(4294967295, DST_IP, GROW true)", ""),
    ("Resize(HEAD 2147483647)", ""),
    ("Null -> Discard; InfiniteSource(LIMIT 3, LENGTH 2147483647) -> Discard; Idle -> Null", ""),
    ("Null -> Discard; InfiniteSource(LIMIT 3, DATASIZE 2147483647) -> Discard; Idle -> Null", ""),
    ("Null -> Discard; RandomSource(2147483647, 3) -> Discard; Idle -> Null", ""),
    ("Null -> Discard; InfiniteSource(HEADROOM 4294967295, LIMIT 3) -> Discard; Idle -> Null", ""),
    (
        "Null -> Discard; r :: RatedSource -> Discard; Script(write r.length 2147483647); Idle -> Null",
        "",
    ),
];

#[test]
fn numbers_that_are_too_large_end_nothing() {
    for (element, write) in TOO_LARGE {
        let written = if write.is_empty() { String::new() } else { format!("write e.{write},") };
        let (name, rest) = element.split_once(" -> ").unwrap_or((element, ""));
        let arrow = if rest.is_empty() { "" } else { "->" };
        let config = format!(
            "InfiniteSource(LIMIT 100, DATA \\<ffffff7f00000000 0000000000000000>) -> e :: {name}
             -> c :: Counter -> Null {arrow} {rest} -> Discard;
             Script(wait 10ms, {written} wait 10ms, read c.count, stop)"
        );
        let result = crate::program::castanet(&["run", "-q", "-e", &config], b"");
        // Refused with words, or run: neither killed nor a panic (70).
        assert!(
            matches!(result.status, Some(0 | 1)),
            "{config}\n{:?} {}",
            result.status,
            result.err
        );
        assert!(!result.err.contains("panic"), "{config}\n{}", result.err);
        assert!(result.status == Some(0) || !result.err.is_empty(), "{config}");
    }
}
