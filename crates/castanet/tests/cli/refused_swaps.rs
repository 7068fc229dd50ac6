//! A configuration that is refused leaves sockets and files of the running one as they are.

use crate::control::{PATIENCE, socket};
use crate::hot_swap::{SwapRouter, run};
use crate::program::folder;
use rustix::net::{AddressFamily, SocketType};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::{Duration, Instant};

/// Ends of configurations whose last element is refused, after all others have been initialized:
/// its file cannot be written, it names a handler that no element has, or its program cannot start.
const WRONG: [(&str, &str); 3] = [
    ("; Idle -> ToDump(/no/such/folder/file)", "/no/such/folder/file"),
    ("; Idle -> Counter(COUNT_CALL 7 nobody.reset) -> Discard", "no element named 'nobody'"),
    ("; ControlSocket(UNIX, /no/such/folder/socket)", "/no/such/folder/socket"),
];

/// Refuses `named` as it is, under another name, with other arguments (`other`), without it, each
/// for every reason, and `check`s each time. `named` has the element `x`.
fn refuse(it: &mut SwapRouter, named: &str, other: &str, mut check: impl FnMut(&mut SwapRouter)) {
    check(it);
    let renamed = |text: &str| text.replace("x ::", "y ::").replace("-> x", "-> y");
    for config in [
        named.to_owned(),
        renamed(named),
        other.to_owned(),
        renamed(other),
        format!("{named}; {}", renamed(other)),
        "Idle -> Discard".to_owned(),
    ] {
        for (wrong, why) in WRONG {
            let answer = it.swap(&format!("{config}{wrong}")).unwrap_err();
            let words = [why, "Address already in use"];
            assert!(words.iter().any(|word| answer.contains(word)), "{config}: {answer}");
            check(it);
        }
    }
}

/// A port that nobody has.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A stream with a time limit.
trait TimeLimit: Read + Write + Sized {
    fn timed(self) -> Self;
}

impl TimeLimit for TcpStream {
    fn timed(self) -> Self {
        self.set_read_timeout(Some(PATIENCE)).unwrap();
        self
    }
}

impl TimeLimit for UnixStream {
    fn timed(self) -> Self {
        self.set_read_timeout(Some(PATIENCE)).unwrap();
        self
    }
}

/// A line that a stream says.
fn line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Whether a client of a `ControlSocket` is answered.
fn is_answered(stream: &mut BufReader<impl Read + Write>) {
    stream.get_mut().write_all(b"CHECKREAD x.class\n").unwrap();
    assert_eq!(line(stream), "200 Read handler 'x.class' OK");
}

#[test]
fn control_sockets_keep_port_file_and_clients() {
    let port = free_port();
    let named = format!("x :: ControlSocket(TCP, {port}, LOCALHOST true)");
    let other = format!("x :: ControlSocket(TCP, {port}, LOCALHOST true, VERBOSE true)");
    let mut it = run("rs-tcp", &[], &named);
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap().timed();
        let mut stream = BufReader::new(stream);
        assert_eq!(line(&mut stream), "Click::ControlSocket/1.3");
        stream
    };
    let mut old = connect();
    refuse(&mut it, &named, &other, |_| {
        is_answered(&mut old);
        is_answered(&mut connect());
    });
    it.end();

    let file = socket("rs-file");
    let named = format!("x :: ControlSocket(UNIX, {})", file.display());
    let other = format!("x :: ControlSocket(UNIX, {}, READONLY true)", file.display());
    let mut it = run("rs-unix", &[], &named);
    let inode = file.metadata().unwrap().ino();
    let connect = || {
        let mut stream = BufReader::new(UnixStream::connect(&file).unwrap().timed());
        assert_eq!(line(&mut stream), "Click::ControlSocket/1.3");
        stream
    };
    let mut old = connect();
    refuse(&mut it, &named, &other, |_| {
        assert_eq!(file.metadata().unwrap().ino(), inode);
        is_answered(&mut old);
        is_answered(&mut connect());
    });
    it.end();
}

/// Elements that say a line at times.
const TICKS: &str = "; RatedSource(RATE 200) -> Print(tick, 0) -> Discard";

/// A client of a `ChatterSocket` that has been greeted.
fn greeted<S: Read>(stream: S) -> BufReader<S> {
    let mut stream = BufReader::new(stream);
    assert_eq!(line(&mut stream), "Click::ChatterSocket/1.0");
    stream
}

/// Waits until a client hears as many ticks.
fn hears(stream: &mut impl BufRead, ticks: usize) {
    (0..ticks).for_each(|_| while !line(stream).starts_with("tick:") {});
}

#[test]
fn chatter_sockets_keep_file_and_listeners() {
    let file = socket("rs-chatter");
    let named = format!("x :: ChatterSocket(UNIX, {}){TICKS}", file.display());
    let other = format!("x :: ChatterSocket(UNIX, {}, GREETING false){TICKS}", file.display());
    let mut it = run("rs-says", &[], &named);
    let inode = file.metadata().unwrap().ino();
    let connect = || greeted(UnixStream::connect(&file).unwrap().timed());
    let mut old = connect();
    refuse(&mut it, &named, &other, |_| {
        assert_eq!(file.metadata().unwrap().ino(), inode);
        // More than was said before.
        hears(&mut old, 20);
        hears(&mut connect(), 1);
    });
    it.end();
}

#[test]
fn chatter_sockets_keep_port_and_clients() {
    let port = free_port();
    let named = format!("x :: ChatterSocket(TCP, {port}){TICKS}");
    let other = format!("x :: ChatterSocket(TCP, {port}, GREETING false){TICKS}");
    let mut it = run("rs-says-tcp", &[], &named);
    let connect = || greeted(TcpStream::connect(("127.0.0.1", port)).unwrap().timed());
    let mut old = connect();
    refuse(&mut it, &named, &other, |_| {
        hears(&mut old, 20);
        hears(&mut connect(), 1);
    });
    it.end();
}

/// A member of a multicast group on this machine.
fn member(group: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(group, port)).unwrap();
    let socket = UdpSocket::from(socket);
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
    socket
}

#[test]
fn members_of_groups_go_on_sending_and_receiving() {
    let group = Ipv4Addr::new(239, 77, 1, 2);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = format!("{group}, {port}, 127.0.0.1");
    let source = "RatedSource(RATE 100, DATA word) -> x ::";
    let named = format!("{source} McastSocket({place}) -> c :: Counter -> Discard");
    let other = format!("{source} McastSocket({place}, SNAPLEN 99) -> Discard");
    let hears = member(group, port);
    let mut it = run("rs-mcast", &[], &named);
    let from = SocketAddr::from((Ipv4Addr::LOCALHOST, it.client.read("x.port").parse().unwrap()));
    let says = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut bytes, mut sent) = ([0; 9], 0);
    refuse(&mut it, &named, &other, |it| {
        says.send_to(b"said", (group, port)).unwrap();
        sent += 1;
        // Nor does it hear what another socket of this process has sent in its place.
        it.client.wait_for("c.count", &sent.to_string());
        // Earlier data does not count.
        hears.set_nonblocking(true).unwrap();
        while hears.recv(&mut bytes).is_ok() {}
        hears.set_nonblocking(false).unwrap();
        hears.set_read_timeout(Some(PATIENCE)).unwrap();
        for _ in 0..2 {
            assert_eq!(hears.recv_from(&mut bytes).unwrap(), (4, from));
            assert_eq!(&bytes[..4], b"word");
        }
    });
    it.end();
}

/// Sends a word and hears it again.
fn echoes(stream: &mut (impl Read + Write)) {
    stream.write_all(b"word").unwrap();
    let mut received = [0; 4];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"word");
}

#[test]
fn servers_of_streams_keep_place_and_client() {
    let file = socket("rs-server");
    let port = free_port();
    let tcp = format!("TCP, 127.0.0.1, {port}");
    let unix = format!("UNIX, {}", file.display());
    for place in [tcp, unix] {
        // No other client came, for as long as the first is there.
        let opened = |it: &SwapRouter| it.process.stderr().matches("opened connection").count();
        let named = format!("x :: Socket({place}, VERBOSE true) -> x");
        let other = format!("x :: Socket({place}, VERBOSE true, SNAPLEN 99) -> x");
        let mut it = run("rs-streams", &[], &named);
        match place.starts_with("TCP") {
            true => {
                let mut old = TcpStream::connect(("127.0.0.1", port)).unwrap().timed();
                refuse(&mut it, &named, &other, |_| echoes(&mut old));
                assert_eq!(opened(&it), 1);
            }
            false => {
                let inode = file.metadata().unwrap().ino();
                let mut old = UnixStream::connect(&file).unwrap().timed();
                // Others wait: who asks whether anybody is there does not wait behind them.
                let _others = [(); 2].map(|()| UnixStream::connect(&file).unwrap());
                refuse(&mut it, &named, &other, |_| {
                    assert_eq!(file.metadata().unwrap().ino(), inode);
                    echoes(&mut old);
                });
                assert_eq!(opened(&it), 1);
            }
        }
        it.end();
    }
}

#[test]
fn servers_of_datagrams_keep_their_place() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let named = format!("x :: Socket(UDP, 127.0.0.1, {port}) -> x");
    let other = format!("x :: Socket(UDP, 127.0.0.1, {port}, SNAPLEN 99) -> x");
    let mut it = run("rs-udp", &[], &named);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    refuse(&mut it, &named, &other, |_| {
        client.send_to(b"word", ("127.0.0.1", port)).unwrap();
        assert_eq!(client.recv(&mut [0; 9]).unwrap(), 4);
    });
    it.end();

    let (file, mine) = (socket("rs-dgram"), socket("rs-dgram-mine"));
    let named = format!("x :: Socket(UNIX_DGRAM, {}) -> x", file.display());
    let other = format!("x :: Socket(UNIX_DGRAM, {}, SNAPLEN 99) -> x", file.display());
    let mut it = run("rs-datagrams", &[], &named);
    let client = UnixDatagram::bind(&mine).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    refuse(&mut it, &named, &other, |_| {
        client.send_to(b"word", &file).unwrap();
        assert_eq!(client.recv(&mut [0; 9]).unwrap(), 4);
    });
    it.end();
}

#[test]
fn clients_keep_their_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let named = format!("x :: Socket(TCP, 127.0.0.1, {port}, CLIENT true) -> x");
    let other = format!("x :: Socket(TCP, 127.0.0.1, {port}, CLIENT true, SNAPLEN 99) -> x");
    let mut it = run("rs-client", &[], &named);
    let mut old = listener.accept().unwrap().0.timed();
    refuse(&mut it, &named, &other, |_| echoes(&mut old));
    it.end();
}

#[test]
fn a_client_without_a_server_leaves_no_file() {
    let (nobody, mine) = (socket("rs-nobody"), socket("rs-mine"));
    let mut it = run("rs-left", &[], "Idle -> Discard");
    for _ in 0..2 {
        let config = format!("Socket(UNIX, {}, {}) -> Discard", nobody.display(), mine.display());
        let answer = it.swap(&config).unwrap_err();
        assert!(answer.contains("connect: No such file"), "{answer}");
        assert!(!mine.exists());
    }
    it.end();
}

#[test]
fn raw_sockets_go_on_receiving() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let named = format!(
        "x :: RawSocket(UDP, {port}) -> IPClassifier(dst port {port}) -> c :: Counter -> Discard"
    );
    let other = format!("x :: RawSocket(UDP, {port}, SNAPLEN 99) -> Discard");
    let mut it = run("rs-raw", &[], &named);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 0;
    refuse(&mut it, &named, &other, |it| {
        client.send_to(b"word", ("127.0.0.1", port)).unwrap();
        sent += 1;
        it.client.wait_for("c.count", &sent.to_string());
    });
    it.end();
}

#[test]
fn files_that_are_read_go_on_where_they_are() {
    let folder = folder("refused-swaps");
    let (input, output) = (folder.join("in.pcap"), folder.join("out.pcap"));
    let make = format!(
        "RatedSource(RATE 100, LIMIT 400, LENGTH 64, STOP true) -> NumberPacket(0) -> ToDump({}, ENCAP ETHER)",
        input.display()
    );
    let made = crate::program::castanet(&["run", "-q", "--simtime", "-e", &make], b"");
    assert_eq!(made.status, Some(0), "{}", made.err);
    let (from, to) = (input.display(), output.display());
    let named = format!(
        "x :: FromDump({from}, TIMING true) -> c :: Counter -> d :: ToDump({to}, ENCAP ETHER)"
    );
    let other = format!("x :: FromDump({from}) -> Discard");
    let mut it = run("rs-dump", &[], &named);
    refuse(&mut it, &named, &other, |it| {
        let before: u64 = it.client.read("c.count").parse().unwrap();
        let began = Instant::now();
        let now = loop {
            let now: u64 = it.client.read("c.count").parse().unwrap();
            if now > before {
                break now;
            }
            assert!(began.elapsed() < PATIENCE, "the count stays at {before}");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(now < 400, "{before} {now}");
    });
    it.client.wait_for("c.count", "400");
    it.end();
    // All packets, each once; the times may differ.
    let packets = |file: &std::path::Path| {
        let bytes = std::fs::read(file).unwrap();
        let records: Vec<_> = bytes[24..].chunks(80).map(|it| it[16..].to_vec()).collect();
        records
    };
    assert_eq!(packets(&input).len(), 400);
    assert_eq!(packets(&input), packets(&output));
}
