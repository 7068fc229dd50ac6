//! The control socket from outside: bytes in, bytes out.

use crate::program::{castanet, click, folder, root, wait_until};
use castanet_lab::{Command, Process};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than anything here takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const COUNTING: &str = "s :: InfiniteSource(LIMIT 5, DATA abc) -> c :: Counter -> Discard;
     q :: Queue(7); Idle -> q -> Idle; p :: Print(x, ACTIVE false); Idle -> p -> Discard";

/// `castanet run` with this configuration, until it is interrupted.
pub(crate) fn start(config: &str) -> Process {
    let mut process = command(config).spawn().unwrap();
    process.wait_for("castanet: running", PATIENCE).unwrap();
    process
}

pub(crate) fn command(config: &str) -> Command {
    let program = Command::on_host(env!("CARGO_BIN_EXE_castanet")).current_dir(root());
    program.args(["run", "-e", config]).timeout(PATIENCE)
}

/// The path of a socket, removed before and after the test.
pub(crate) struct SocketFile(PathBuf);

/// A path with `name` in it.
pub(crate) fn socket(name: &str) -> SocketFile {
    // Short: a socket's name has room for 107 bytes.
    let path = std::env::temp_dir().join(format!("castanet-{}-{name}", std::process::id()));
    _ = std::fs::remove_file(&path);
    SocketFile(path)
}

impl std::ops::Deref for SocketFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for SocketFile {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(self);
    }
}

pub(crate) fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a text, closes the sending side, and returns the whole answer.
pub(crate) fn talk(path: &Path, said: &str) -> String {
    let mut stream = connect(path);
    stream.write_all(said.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).unwrap();
    received.strip_prefix("Click::ControlSocket/1.3\r\n").unwrap().to_owned()
}

/// A router that listens at a socket.
struct SocketRouter {
    path: SocketFile,
    process: Process,
}

impl SocketRouter {
    fn new(name: &str, arguments: &str) -> SocketRouter {
        let path = socket(name);
        let socket = format!("cs :: ControlSocket(unix, {}{arguments});", path.display());
        let process = start(&format!("{COUNTING}; {socket}"));
        SocketRouter { path, process }
    }

    fn talk(&self, said: &str) -> String {
        talk(&self.path, said)
    }
}

#[test]
fn handlers_are_read_written_and_looked_for() {
    let it = SocketRouter::new("all", "");
    while it.talk("READ c.count\n") != "200 Read handler 'c.count' OK\r\nDATA 1\r\n5" {}
    let dialogue = [
        ("read c.count\r\n", "200 Read handler 'c.count' OK\r\nDATA 1\r\n5"),
        ("GET q.capacity", "200 Read handler 'q.capacity' OK\r\nDATA 1\r\n7"),
        // By number, and global ones in three ways.
        ("READ 1.class\n", "200 Read handler '1.class' OK\r\nDATA 14\r\nInfiniteSource"),
        ("READ .requirements\n", "200 Read handler '.requirements' OK\r\nDATA 0\r\n"),
        ("READ 0.requirements\n", "200 Read handler '0.requirements' OK\r\nDATA 0\r\n"),
        (
            "WRITE q.capacity 9\nREAD q.capacity\n",
            "200 Write handler 'q.capacity' OK\r\n200 Read handler 'q.capacity' OK\r\nDATA 1\r\n9",
        ),
        (
            "WRITEDATA q.capacity 2\n11READ q.capacity\n",
            "200 Write handler 'q.capacity' OK\r\n200 Read handler 'q.capacity' OK\r\nDATA 2\r\n11",
        ),
        (
            "WRITEUNTIL q.capacity END\n12\nEND\nREADUNTIL q.capacity\n\nREADDATA q.capacity 0\n",
            "200 Write handler 'q.capacity' OK\r\n200 Read handler 'q.capacity' OK\r\nDATA 2\r\n12\
          200 Read handler 'q.capacity' OK\r\nDATA 2\r\n12",
        ),
        ("CHECKREAD q.capacity\n", "200 Read handler 'q.capacity' OK\r\n"),
        ("CHECKWRITE q.capacity\n", "200 Write handler 'q.capacity' OK\r\n"),
        ("CHECKWRITE q.length\n", "511 Handler 'q.length' not writable\r\n"),
        ("CHECKREAD q.reset\n", "511 Handler 'q.reset' not readable\r\n"),
        ("READ x.count\n", "510 No element named 'x'\r\n"),
        ("READ 99.count\n", "510 No element named '99'\r\n"),
        ("READ q.frob\n", "511 No handler named 'q.frob'\r\n"),
        ("READ frob\n", "511 No handler named 'frob'\r\n"),
        ("READ q.reset\n", "530 Handler 'q.reset' write-only\r\n"),
        ("WRITE q.length 1\n", "530 Handler 'q.length' read-only\r\n"),
        ("QUIT\nREAD c.count\n", "200 Goodbye!\r\n"),
        ("CLOSE\n", "200 Goodbye!\r\n"),
        ("QUIT now\n", "500 Bad command syntax\r\n200 Goodbye!\r\n"),
        (
            "SET q.capacity 13\nSETDATA q.capacity 2\n14GET q.capacity\n",
            "200 Write handler 'q.capacity' OK\r\n200 Write handler 'q.capacity' OK\r\n\
          200 Read handler 'q.capacity' OK\r\nDATA 2\r\n14",
        ),
        ("\n\r\n", ""),
        ("EAT c.count\n", "501 Command 'EAT' unimplemented\r\n"),
        ("READDATA c.count 7\nabc", "500 Not enough data\r\n501 Command 'ABC' unimplemented\r\n"),
    ];
    for (said, answer) in dialogue {
        assert_eq!(it.talk(said), answer, "{said:?}");
    }
    let help = it.talk("HELP\n");
    assert!(help.starts_with("200-Commands supported:\r\n200-READ handler"), "{help}");
    let (rest, last) = help.trim_end().rsplit_once("\r\n").unwrap();
    assert!(rest.lines().all(|line| line.starts_with("200-")) && last.starts_with("200 QUIT"));
    let refused = it.talk("WRITE q.capacity many\n");
    assert!(refused.starts_with("520-Write handler 'q.capacity' error:\r\n520 "), "{refused}");
    let list = it.talk("READ list\n");
    assert!(list.contains("\ns\nc\n") && list.contains("\ncs"), "{list}");
}

#[test]
fn many_clients_at_once_get_their_own_answers() {
    let it = SocketRouter::new("many", "");
    let clients: Vec<_> = (0..20)
        .map(|n| {
            let path = it.path.to_path_buf();
            std::thread::spawn(move || {
                let mut said = String::new();
                let mut expected = String::new();
                for _ in 0..50 {
                    let name = ["s", "c", "q", "p"][n % 4];
                    said += &format!("READ {name}.name\n");
                    expected += &format!("200 Read handler '{name}.name' OK\r\nDATA 1\r\n{name}");
                }
                assert_eq!(talk(&path, &said), expected);
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn large_values_pass_both_ways_and_too_large_ones_end_the_connection() {
    let it = SocketRouter::new("large", "");
    // More than sockets hold, by a client that does not listen meanwhile.
    let count = 40_000;
    let received = it.talk(&"READ cs.class\n".repeat(count));
    let one = "200 Read handler 'cs.class' OK\r\nDATA 13\r\nControlSocket";
    assert!(received == one.repeat(count), "{} bytes", received.len());
    let value = "9".repeat(3 << 20);
    let received = it.talk(&format!("WRITEDATA q.capacity {}\n{value}READ q.name\n", value.len()));
    assert!(received.starts_with("520-Write handler"), "{:.200}", received);
    assert!(received.ends_with("DATA 1\r\nq"), "{:.200}", received);
    let received = it.talk("WRITEDATA q.capacity 99999999999\nREAD q.name\n");
    assert_eq!(received, "521 Data too large for handler 'q.capacity'\r\n");
}

#[test]
fn a_read_only_socket_writes_nothing() {
    let it = SocketRouter::new("readonly", ", READONLY true");
    assert_eq!(it.talk("WRITE q.capacity 1\n"), "530 Permission denied for 'q.capacity'\r\n");
    assert_eq!(it.talk("CHECKWRITE q.capacity\n"), "530 Permission denied for 'q.capacity'\r\n");
    assert_eq!(it.talk("WRITE stop\n"), "530 Permission denied for 'stop'\r\n");
    assert!(it.talk("READ q.capacity\n").ends_with("DATA 1\r\n7"));
}

#[test]
fn a_stop_is_answered_and_the_socket_goes() {
    let SocketRouter { path, process } = SocketRouter::new("stop", ", VERBOSE true");
    assert!(path.metadata().unwrap().file_type().is_socket());
    // A client that is connected meanwhile is disconnected.
    let mut idle = connect(&path);
    assert_eq!(
        talk(&path, "WRITE stop\nREAD c.count\n").lines().next().unwrap(),
        "200 Write handler 'stop' OK"
    );
    let output = process.finish(PATIENCE).unwrap();
    assert!(output.success(), "{}", output.printed());
    assert!(output.printed().contains("cs: opened connection"), "{}", output.printed());
    assert!(!path.exists());
    let mut received = String::new();
    idle.read_to_string(&mut received).unwrap();
    assert_eq!(received, "Click::ControlSocket/1.3\r\n");
}

#[test]
fn a_killed_process_leaves_a_file_that_the_next_takes_over() {
    let mut first = SocketRouter::new("killed", "");
    let config = format!("ControlSocket(UNIX, {})", first.path.display());
    // While somebody listens there nobody else can.
    let refused = command(&config).output().unwrap();
    assert!(!refused.success());
    let text = refused.printed();
    assert!(
        text.contains("cannot listen at ") && text.contains("Address already in use"),
        "{text}"
    );
    assert!(first.talk("READ c.name\n").ends_with('c'));
    first.process.kill();
    first.process.wait(PATIENCE).unwrap();
    assert!(first.path.exists());
    let second = start(&config);
    assert!(first.talk("READ list\n").contains("ControlSocket@1"));
    second.interrupt();
    assert!(second.finish(PATIENCE).unwrap().success());
    assert!(!first.path.exists());
    // A file that is no socket is left alone.
    std::fs::write(&first.path, "mine").unwrap();
    assert!(!command(&config).output().unwrap().success());
    assert_eq!(std::fs::read(&first.path).unwrap(), b"mine");
    std::fs::remove_file(&first.path).unwrap();
}

/// Starts a router that prints the TCP port at which it listens; returns the port and the process.
pub(crate) fn tcp(config: &str) -> (u16, Process) {
    let mut process = start(config);
    process.wait_for("at 4", PATIENCE).unwrap();
    let said = process.stdout();
    let port = said.split("at ").nth(1).and_then(|rest| rest.split('.').next());
    (port.unwrap().parse().unwrap_or_else(|_| panic!("{said}")), process)
}

#[test]
fn tcp_ports_are_taken_or_the_next_free_one() {
    let ask = |port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"READ cs.port\nQUIT\n").unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).unwrap();
        received
    };
    let at = |port: &str| {
        let socket = format!("cs :: ControlSocket(TCP, {port}, LOCALHOST true)");
        tcp(&format!("{socket}; Script(print \"at $(cs.port).\")"))
    };
    let (first, _one) = at("41900+");
    let (second, _two) = at(&format!("{first}+"));
    assert!(first >= 41900 && second > first, "{first} {second}");
    for port in [first, second] {
        let data = format!("DATA {}\r\n{port}200 Goodbye!\r\n", port.to_string().len());
        assert!(ask(port).ends_with(&data), "{}", ask(port));
    }
    // Exactly that one cannot be had.
    let config = format!("ControlSocket(TCP, {first}, LOCALHOST true)");
    let taken = click(&["-e", &config], b"");
    assert_eq!(taken.status, Some(1));
    assert!(taken.err.contains("  bind: Address already in use\n"), "{}", taken.err);
    // With RETRIES it is waited for.
    let again = command(&format!("cs :: {}, RETRIES 60)", config.trim_end_matches(')')));
    let mut again = again.spawn().unwrap();
    again.wait_for("warning: bind: Address already in use (60 tries left)", PATIENCE).unwrap();
    drop(_one);
    wait_until("nobody listens", || TcpStream::connect(("127.0.0.1", first)).is_ok());
    assert!(ask(first).contains("DATA 5\r\n"));
}

#[test]
fn the_options_of_click_open_sockets() {
    let (path, other) = (socket("option"), socket("other"));
    let by_name = folder("control").join("click");
    _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_castanet"), &by_name);
    let config = "RatedSource(RATE 10) -> c :: Counter -> Discard";
    let words = ["-p", "41950+", "-u", path.to_str().unwrap(), "--unix-socket"];
    let command = Command::on_host(&by_name).args(words).arg(&*other).args(["-e", config]);
    let process = command.timeout(PATIENCE).spawn().unwrap();
    wait_until("nobody listens", || UnixStream::connect(&other).is_ok());
    for path in [&path, &other] {
        let list = talk(path, "READ list\n");
        let names = ["@@ControlSocket\n", "@@ControlSocket@1\n", "@@ControlSocket@2\n"];
        assert!(names.iter().all(|name| list.contains(name)), "{list}");
    }
    let port = talk(&path, "READ click_driver@@ControlSocket.port\n");
    let port: u16 = port.lines().last().unwrap().parse().unwrap();
    assert!(port >= 41950 && TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert!(talk(&path, "WRITE stop\n").contains("200 "));
    assert!(process.finish(PATIENCE).unwrap().success());
    // Errors are written where Click writes them.
    let wrong = click(&["-p", "99999", "-e", config], b"");
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.err.contains("'-p' expects a TCP port number, not '99999'"), "{}", wrong.err);
}

#[test]
fn a_port_is_a_number_or_the_name_of_a_service() {
    // Any free one; and the port of a service, which the test may not have for itself.
    let config =
        "p :: PortInfo(control 0); ControlSocket(TCP, 0); cs :: ControlSocket(TCP, control);
                  DriverManager(print $(ControlSocket@2.port), print $(cs.port),
                    print $(click_driver@@ControlSocket.port), stop)";
    let result = click(&["-p0", "-e", config], b"");
    let ports: Vec<u16> = result.out.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((result.err.as_str(), ports.len()), ("", 3), "{}", result.out);
    assert!(ports.iter().all(|port| *port > 1023), "{ports:?}");
    let http = ["-p", "http", "-e", "ControlSocket(TCP, http); DriverManager(stop)"];
    let result = click(&http, b"");
    // The second one of the two finds the port in use.
    assert!(result.err.contains("bind: "), "{}", result.err);
    let result = castanet(&["explain", "--privileges", "-e", "ControlSocket(TCP, http)"], b"");
    assert!(result.out.contains("TCP 0.0.0.0:80"), "{}{}", result.out, result.err);
}

#[test]
fn lines_of_all_channels_keep_their_order() {
    let file = socket("order-of-channels");
    let config = format!(
        "ChatterSocket(UNIX, {}, CHANNEL verbose, QUIET_CHANNEL false);
         InfiniteSource(LIMIT 2, DATA abcd, STOP true) -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2)
            -> Print(a, 0) -> IPPrint(b, TIMESTAMP false, CHANNEL verbose) -> Print(c, 0)
            -> IPPrint(d, TIMESTAMP false, CHANNEL verbose) -> Discard",
        file.display()
    );
    for words in [&["--simtime"][..], &[]] {
        let result = click(&[words, &["-e", &config]].concat(), b"");
        let letters: String = result.err.lines().filter_map(|line| line.chars().next()).collect();
        assert_eq!(letters, "abcdabcd", "{}", result.err);
    }
}

#[test]
fn wrong_arguments_are_told() {
    for (arguments, words) in [
        ("UDP, 7", "unknown socket type 'UDP'"),
        ("TCP, 0+", "PORT requires TCP port"),
        ("TCP, 65536", "PORT requires TCP port"),
        ("TCP, nosuchservice", "PORT requires TCP port"),
        ("TCP, http+", "PORT requires TCP port"),
        ("TCP, 7++", "PORT requires TCP port"),
        ("TCP", "PORT: required argument missing"),
        ("UNIX", "FILENAME: required argument missing"),
        ("SOCKET", "FD: required argument missing"),
        ("SOCKET, x", "FD: invalid number"),
        ("SOCKET, -1", "FD: invalid number"),
        ("SOCKET, 999", "socket: Bad file descriptor"),
    ] {
        let report = click(&["-e", &format!("ControlSocket({arguments})")], b"");
        assert_eq!(report.status, Some(1));
        assert!(report.err.contains(words), "{arguments}: {}", report.err);
    }
    let long = format!("ControlSocket(UNIX, /tmp/{})", "x".repeat(120));
    assert!(click(&["-e", &long], b"").err.contains("filename too long"));
}

#[test]
fn a_connection_may_be_there_when_the_process_starts() {
    use std::os::fd::OwnedFd;
    let (mut near, far) = UnixStream::pair().unwrap();
    let by_name = folder("control").join("click");
    _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_castanet"), &by_name);
    // Its standard input: the one descriptor that a child surely has under a known number.
    let mut child = std::process::Command::new(&by_name)
        .args(["--socket", "0", "-e", "Idle -> c :: Counter -> Discard"])
        .stdin(OwnedFd::from(far))
        .spawn()
        .unwrap();
    near.set_read_timeout(Some(PATIENCE)).unwrap();
    near.write_all(b"READ c.class\nREAD click_driver@@ControlSocket.config\nWRITE stop\n").unwrap();
    let mut received = String::new();
    near.read_to_string(&mut received).unwrap();
    assert_eq!(
        received,
        "Click::ControlSocket/1.3\r\n200 Read handler 'c.class' OK\r\nDATA 7\r\nCounter\
         200 Read handler 'click_driver@@ControlSocket.config' OK\r\nDATA 9\r\nSOCKET, 0\
         200 Write handler 'stop' OK\r\n"
    );
    assert!(child.wait().unwrap().success());
    // A farewell ends the connection, though the process goes on.
    let (mut near, far) = UnixStream::pair().unwrap();
    let mut child = std::process::Command::new(&by_name)
        .args(["--socket", "0", "-e", "Idle -> Discard"])
        .stdin(OwnedFd::from(far))
        .spawn()
        .unwrap();
    near.set_read_timeout(Some(PATIENCE)).unwrap();
    near.write_all(b"QUIT\n").unwrap();
    let mut received = String::new();
    near.read_to_string(&mut received).unwrap();
    assert_eq!(received, "Click::ControlSocket/1.3\r\n200 Goodbye!\r\n");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_proxy_answers_for_all_elements() {
    let proxy = "all :: Script(TYPE PROXY, goto no $(eq $0 c.none), return \"$0 $args $write\", label no, error none such)";
    let path = socket("proxy");
    let config = format!("{COUNTING}; {proxy}; ControlSocket(UNIX, {}, PROXY all)", path.display());
    let _process = start(&config);
    let dialogue = [
        ("READ c.count 1 2\n", "200 Read handler 'c.count' OK\r\nDATA 19\r\n\"c.count 1 2 false\""),
        ("WRITE x.y z\n", "200 Write handler 'x.y' OK\r\n"),
        ("READ list\n", "200 Read handler 'list' OK\r\nDATA 13\r\n\"list  false\""),
        ("CHECKREAD a.b\n", "200 Read handler 'a.b' OK\r\n"),
        ("READ c.none\n", "590-Read handler 'c.none' error:\r\n590 none such\r\n"),
    ];
    for (said, answer) in dialogue {
        assert_eq!(talk(&path, said), answer, "{said}");
    }
    let none = socket("no-proxy");
    let config = format!("{COUNTING}; ControlSocket(UNIX, {}, PROXY c)", none.display());
    let _other = start(&config);
    let answer = "511 No proxied handler named 'q.length'\r\n";
    assert_eq!(talk(&none, "READ q.length\n"), answer);
    let unknown =
        format!("cs :: ControlSocket(UNIX, {}, PROXY nobody)", socket("nobody").display());
    let report = click(&["-e", &unknown], b"");
    assert_eq!(report.err, "cs: PROXY: no element named 'nobody'\n");
}

#[test]
fn low_level_calls_are_answered_by_elements_that_know_them() {
    let it = SocketRouter::new(
        "llrpc",
        "); w :: Switch(1); Idle -> w -> Discard; w[1] -> Discard; t :: Script(end",
    );
    while !it.talk("READ c.count\n").ends_with('5') {}
    let ok =
        |name: &str, data: &str| format!("200 LLRPC '{name}' OK\r\nDATA {}\r\n{data}", data.len());
    let dialogue = [
        ("LLRPC c#c004c003 4\n\0\0\0\0", ok("c#c004c003", "\u{5}\0\0\0")),
        ("LLRPC w#4004c005\n", ok("w#4004c005", "\u{1}\0\0\0")),
        (
            "LLRPC w#80044006 4\n\0\0\0\0READ w.switch\n",
            ok("w#80044006", "") + "200 Read handler 'w.switch' OK\r\nDATA 1\r\n0",
        ),
        ("LLRPC c#zz\n", "500 Syntax error in LLRPC name 'c#zz'\r\n".into()),
        ("LLRPC c\n", "500 Syntax error in LLRPC name 'c'\r\n".into()),
        ("LLRPC c#1 x\n", "500 Syntax error in 'llrpc'\r\n".into()),
        ("LLRPC x#c004c003\n", "510 No element named 'x'\r\n".into()),
        ("LLRPC c#20000004\n", "501 Cannot call LLRPC 'c#20000004' remotely\r\n".into()),
        ("LLRPC c#c004c003 2\nab", "522 LLRPC 'c#c004c003' requires 4 bytes input data\r\n".into()),
        (
            "LLRPC c#c004c003 4\n\u{1}\0\0\0",
            "522 LLRPC 'c#c004c003' error: Invalid argument\r\n".into(),
        ),
        (
            "LLRPC q#c004c003 4\n\0\0\0\0",
            "522 LLRPC 'q#c004c003' error: Invalid argument\r\n".into(),
        ),
        ("READ t.cat /etc/passwd\n", "511 No handler named 't.cat'\r\n".into()),
        ("READ t.add 1 2\n", "200 Read handler 't.add' OK\r\nDATA 1\r\n3".into()),
    ];
    for (said, answer) in dialogue {
        assert_eq!(it.talk(said), answer, "{said}");
    }
    let file = it.path.display().to_string();
    assert!(it.talk("READ cs.filename\n").ends_with(&format!("\r\n{file}")));
}

#[test]
fn chatter_reaches_every_client() {
    let (greeted, plain, other) = (socket("chatter"), socket("plain"), socket("other-channel"));
    let config = format!(
        "ChatterSocket(UNIX, {}); ChatterSocket(unix, FILENAME {}, GREETING false);
         ChatterSocket(UNIX, {}, CHANNEL verbose);
         TimedSource(0.05, DATA abcd) -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> IPPrint(ip, TIMESTAMP false, CHANNEL verbose)
             -> IPPrint(lost, CHANNEL nobody) -> Discard;
         RatedSource(DATA abcd, RATE 20) -> Print(heard) -> Discard",
        greeted.display(),
        plain.display(),
        other.display(),
    );
    let process = start(&config);
    let hear = |path: &Path, bytes: usize| {
        let mut stream = connect(path);
        // The process does not read its socket.
        stream.write_all(b"READ list\n").unwrap();
        let mut received = vec![0; bytes];
        stream.read_exact(&mut received).unwrap();
        String::from_utf8(received).unwrap()
    };
    let line = "heard:    4 | 61626364\n";
    let twice = line.repeat(2);
    assert_eq!(hear(&greeted, 26 + twice.len()), format!("Click::ChatterSocket/1.0\r\n{twice}"));
    assert_eq!(hear(&plain, twice.len()), twice);
    assert_eq!(hear(&greeted, 26), "Click::ChatterSocket/1.0\r\n");
    let mut silent = connect(&other);
    std::thread::sleep(Duration::from_millis(300));
    process.interrupt();
    assert!(process.finish(PATIENCE).unwrap().success());
    let mut received = String::new();
    silent.read_to_string(&mut received).unwrap();
    let line = "ip: 1.0.0.1.1 > 2.0.0.2.2: udp 12\n";
    let lines = received.strip_prefix("Click::ChatterSocket/1.0\r\n").unwrap();
    assert_eq!(lines, line.repeat(lines.lines().count()));
    assert!(!greeted.exists() && !plain.exists() && !other.exists());
    let given = click(&["-e", "ChatterSocket(SOCKET, 0)"], b"");
    assert!(given.err.contains("unknown socket type 'SOCKET'"), "{}", given.err);
    let taken = TcpListenerAt::any();
    let config = format!("ChatterSocket(TCP, {}, RETRIES 1)", taken.port);
    let report = click(&["-e", &config], b"");
    assert!(
        report.err.contains("warning: bind: Address already in use (1 try left)"),
        "{}",
        report.err
    );
    assert!(report.err.ends_with("bind: Address already in use\n"), "{}", report.err);
}

/// A TCP port that is taken.
struct TcpListenerAt {
    _listener: std::net::TcpListener,
    port: u16,
}

impl TcpListenerAt {
    fn any() -> TcpListenerAt {
        let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpListenerAt { _listener: listener, port }
    }
}
