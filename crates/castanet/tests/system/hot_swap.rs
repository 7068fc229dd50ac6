//! Ten other configurations a second while packets come as fast as they are answered: none is
//! lost, and what was learnt and counted stays. In a program that was built of the first, every other
//! configuration is the one that it has compiled chains for. `CASTANET_SOAK_SECONDS=60` makes it a
//! minute.

use castanet_lab::{Command, Lab, Namespace, Port, Process, Router, require};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::testbed::{Form, SOON, program};

/// Number of datagrams in flight: as many as sockets have room for.
const WINDOW: usize = 128;
/// Between two configurations.
const PACE: Duration = Duration::from_millis(100);
/// POLL_TIMEOUT of ARPQuerier, unless it is said.
const POLL: Duration = Duration::from_secs(60);
/// Ethernet addresses of `m0` and `m1`: where programs are built there are no such interfaces.
const ETHERS: [&str; 2] = ["02:00:00:00:01:01", "02:00:00:00:02:01"];
const SERVER: &str = "10.9.2.2:7000";

/// Length of the load.
pub(crate) fn seconds() -> u64 {
    let setting = std::env::var("CASTANET_SOAK_SECONDS").ok();
    setting.map_or(3, |text| text.parse().expect("CASTANET_SOAK_SECONDS is a number"))
}

/// An IPv4 router between `m0` and `m1`. The `n`th has counters, queues and routes that others
/// do not have, and everything else in common with them.
fn router(n: usize, method: &str) -> String {
    let capacity = 1000 + n % 7;
    let route = ["", ", 10.10.0.0/16 10.9.1.7 0"][n % 2];
    let side = |k: usize| {
        let (gateway, ether) = (["10.9.1.1", "10.9.2.1"][k], ETHERS[k]);
        let counter = format!("-> Paint(1) -> extra{k} :: Counter");
        let extra = ["", "-> Null", &counter][n % 3];
        format!(
            "in{k} :: FromDevice(m{k}, METHOD {method})
               -> c{k} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
             q{k} :: Queue({capacity}) -> ToDevice(m{k}, METHOD {method});
             c{k}[0] -> ARPResponder({gateway} {ether}) -> q{k};
             arp{k} :: ARPQuerier({gateway}, {ether}) -> q{k}; c{k}[1] -> [1]arp{k};
             c{k}[2] -> Strip(14) -> CheckIPHeader {extra} -> rx{k} :: Counter -> [0]rt;
             rt[{k}] -> DecIPTTL -> tx{k} :: Counter -> [0]arp{k};"
        )
    };
    let (one, other) = (side(0), side(1));
    format!(
        "ControlSocket(UNIX, $socket);
         rt :: StaticIPLookup(10.9.1.0/24 0, 10.9.2.0/24 1{route}); {one} {other}"
    )
}

/// Answers with the code and the text; of a read, the data.
pub(crate) fn ask(stream: &mut UnixStream, output: &str) -> String {
    stream.write_all(output.as_bytes()).unwrap();
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "the control socket was closed");
        received.extend(&buffer[..n]);
        let text = String::from_utf8_lossy(&received);
        if text.lines().any(|line| line.len() > 3 && line.as_bytes()[3] == b' ') {
            return text.into_owned();
        }
    }
}

pub(crate) fn read(stream: &mut UnixStream, handler: &str) -> String {
    // The data comes in the same piece as the line before it: it is short.
    let output = ask(stream, &format!("READ {handler}\n"));
    let (_, data) = output.split_once("DATA ").unwrap_or_else(|| panic!("{handler}: {output}"));
    data.split_once("\r\n").map_or(String::new(), |(_, data)| data.to_owned())
}

/// Numbered datagrams to a server that sends them back.
pub(crate) struct Datagrams {
    stop: Arc<AtomicBool>,
    stop_echo: Arc<AtomicBool>,
    client: HostThread<ClientCounts>,
    server: HostThread<ServerCounts>,
}

/// A thread in a namespace that may fail.
type HostThread<T> = std::thread::JoinHandle<castanet_lab::Result<Result<T, String>>>;

/// Numbers of datagrams that a client sent, that came back, and of these the ones out of order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientCounts {
    pub(crate) sent: u64,
    pub(crate) back: u64,
    pub(crate) disordered: u64,
}

/// The datagrams that a server sent back, and who they came from.
#[derive(Debug, Default)]
pub(crate) struct ServerCounts {
    pub(crate) count: u64,
    pub(crate) peers: BTreeSet<SocketAddr>,
}

impl Datagrams {
    /// From one namespace to this address of another.
    pub(crate) fn start(from: &Namespace, to: &Namespace, address: &str) -> Datagrams {
        let address: SocketAddr = address.parse().unwrap();
        let (stop, stop_echo) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let words = |error: std::io::Error| error.to_string();
        let (theirs, ours) = (stop_echo.clone(), stop.clone());
        let bound = Arc::new(AtomicBool::new(false));
        let is_bound = bound.clone();
        let server = to.enter(move || Ok(echo(address, &theirs, &bound).map_err(words)));
        let began = Instant::now();
        while !is_bound.load(Relaxed) {
            assert!(began.elapsed() < SOON, "the echo server has no socket");
            std::thread::sleep(Duration::from_millis(5));
        }
        let client = from.enter(move || Ok(generate(address, &ours).map_err(words)));
        Datagrams { stop, stop_echo, client, server }
    }

    /// Stops the client, and the server when all are back. None must be lost.
    pub(crate) fn end(self) -> (ClientCounts, ServerCounts) {
        self.stop.store(true, Relaxed);
        let sent = self.client.join().unwrap().unwrap().unwrap();
        self.stop_echo.store(true, Relaxed);
        (sent, self.server.join().unwrap().unwrap().unwrap())
    }
}

/// Keeps this thread on one core. Linux queues packets of virtual links by the core that sends them, so
/// those of a thread that moves can overtake each other.
fn stay() {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).unwrap();
    let first = (0..CpuSet::count()).find(|&core| allowed.is_set(core).unwrap()).unwrap();
    let mut one = CpuSet::new();
    one.set(first).unwrap();
    sched_setaffinity(this, &one).unwrap();
}

/// Sends numbered datagrams as fast as answers come until told to stop.
fn generate(to: SocketAddr, stop: &AtomicBool) -> std::io::Result<ClientCounts> {
    stay();
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut it = ClientCounts::default();
    let mut buffer = [0; 64];
    while !stop.load(Relaxed) || it.back < it.sent {
        while !stop.load(Relaxed) && it.sent - it.back < WINDOW as u64 {
            socket.send(&it.sent.to_be_bytes())?;
            it.sent += 1;
        }
        // Lost datagrams are counted here, once no more arrive.
        let Ok(n) = socket.recv(&mut buffer) else { break };
        it.disordered += u64::from(buffer[..n] != it.back.to_be_bytes());
        it.back += 1;
    }
    Ok(it)
}

/// Sends everything back until told to stop.
fn echo(at: SocketAddr, stop: &AtomicBool, bound: &AtomicBool) -> std::io::Result<ServerCounts> {
    stay();
    let socket = UdpSocket::bind(at)?;
    bound.store(true, Relaxed);
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut buffer = [0; 64];
    let mut it = ServerCounts::default();
    while !stop.load(Relaxed) {
        if let Ok((n, peer)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..n], peer)?;
            it.count += 1;
            it.peers.insert(peer);
        }
    }
    Ok(it)
}

/// A router that can be replaced, between two hosts.
struct SwapNetwork {
    lab: Lab,
    a: Namespace,
    b: Namespace,
    middle: Namespace,
    process: Process,
    control: UnixStream,
    socket: PathBuf,
}

impl SwapNetwork {
    /// Runs the configuration that has a control socket there.
    fn new(name: &str, config: impl FnOnce(&Path) -> String) -> SwapNetwork {
        let run = |_: &Lab, middle: &Namespace, socket: &Path| {
            middle.command(program()).args(["run", "-e", &config(socket)])
        };
        SwapNetwork::running(name, run)
    }

    /// Runs what this command does, which takes the place of the control socket.
    fn running(
        name: &str,
        command: impl FnOnce(&Lab, &Namespace, &Path) -> Command,
    ) -> SwapNetwork {
        require(&["ethtool", "ip"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [a, middle, b] = ["a", "m", "b"].map(|it| lab.namespace(it).unwrap());
        for (n, host, device) in [(1, &a, "m0"), (2, &b, "m1")] {
            let port = Port::new(host, "eth0").address(&format!("10.9.{n}.2/24"));
            let port = port.route(&format!("10.9.0.0/16 via 10.9.{n}.1"));
            lab.link(port, Port::new(&middle, device).mac(ETHERS[n - 1])).unwrap();
        }
        let socket = lab.directory().join("control");
        let mut process = command(&lab, &middle, &socket).arg("-R").spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        let mut control = UnixStream::connect(&socket).unwrap();
        control.set_read_timeout(Some(SOON)).unwrap();
        assert!(control.read(&mut [0; 64]).is_ok(), "it greets");
        SwapNetwork { lab, a, b, middle, process, control, socket }
    }
}

fn with_control(socket: &Path, rest: &str) -> String {
    format!("ControlSocket(UNIX, {});{rest}", socket.display())
}

/// Writes another configuration to `hotconfig`, with a control socket beside `rest`; the answer.
fn swap(control: &mut UnixStream, socket: &Path, rest: &str) -> String {
    let next = with_control(socket, rest);
    ask(control, &format!("WRITEDATA hotconfig {}\n{next}", next.len()))
}

#[test]
fn a_refused_configuration_leaves_the_hosts_side_of_a_tap_alone() {
    let first = "KernelTap(10.20.0.1/24, DEVNAME t0) -> Discard";
    let SwapNetwork { lab: _lab, middle, mut process, mut control, socket, .. } =
        SwapNetwork::new("swap-tap", |socket| with_control(socket, first));
    let addresses = || middle.ip("-4 -o address show dev t0").unwrap();
    assert!(addresses().contains("10.20.0.1/24"), "{}", addresses());
    let other = "other :: KernelTap(10.30.0.1/24, DEVNAME t0) -> Discard";
    let wrong = "new :: KernelTap(10.40.0.1/24, DEVNAME t1) -> Discard;
                 Idle -> ToDump(/no/such/folder/file)";
    let output = swap(&mut control, &socket, &format!("{other}; {wrong}"));
    assert!(output.contains("No such file"), "{output}");
    assert!(addresses().contains("10.20.0.1/24"), "{}", addresses());
    assert!(!addresses().contains("10.30.0.1"), "{}", addresses());
    assert!(middle.ip("link show dev t1").is_err());
    // The device is the other's once the first element goes.
    let output = swap(&mut control, &socket, other);
    assert!(output.starts_with("200 "), "{output}");
    assert_eq!(read(&mut control, "other.dev_name"), "t0");
    assert!(addresses().contains("10.30.0.1/24"), "{}", addresses());
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

#[test]
fn a_refused_configuration_leaves_the_hosts_devices_working() {
    let config = |name: &str, more: &str| {
        format!(
            "{name}tun :: KernelTun(10.20.0.1/24, DEVNAME t0{more}) -> c :: Counter -> Discard;
             {name}host :: FromHost(f0, 10.21.0.1/24{more}) -> d :: Counter -> Discard"
        )
    };
    let first = config("", "");
    let SwapNetwork { lab: _lab, middle, mut process, mut control, socket, .. } =
        SwapNetwork::new("swap-host", |socket| with_control(socket, &first));
    let works = |control: &mut UnixStream| {
        for (counter, place) in [("c", "10.20.0.9"), ("d", "10.21.0.255")] {
            let count = |control: &mut UnixStream| read(control, &format!("{counter}.count"));
            let (before, began) = (count(control), Instant::now());
            while count(control) == before {
                assert!(began.elapsed() < SOON, "nothing comes from {place}");
                let send = move || {
                    let socket = UdpSocket::bind("0.0.0.0:0")?;
                    socket.set_broadcast(true)?;
                    socket.send_to(b"all", (place, 9))
                };
                middle.enter(move || Ok(send().unwrap())).join().unwrap().unwrap();
            }
        }
    };
    works(&mut control);
    for rest in [
        config("", ""),
        config("new_", ""),
        config("", ", MTU 1000"),
        config("new_", ", MTU 1000"),
        "Idle -> Discard".to_owned(),
    ] {
        let wrong = format!("{rest}; Idle -> ToDump(/no/such/folder/file)");
        let output = swap(&mut control, &socket, &wrong);
        assert!(output.contains("No such file"), "{output}");
        works(&mut control);
        assert!(middle.ip("link show dev t0").unwrap().contains("mtu 1500"));
        assert!(middle.ip("link show dev f0").unwrap().contains("mtu 1500"));
    }
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

/// Sends a frame to all on a host's link.
fn broadcast(host: &Namespace, link: u8) {
    let send = move || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_broadcast(true).unwrap();
        Ok(socket.send_to(b"all", (Ipv4Addr::new(10, 9, link, 255), 9)).unwrap())
    };
    host.enter(send).join().unwrap().unwrap();
}

#[test]
fn a_queue_goes_to_another_element_where_the_one_that_has_it_ends() {
    let xdp = "METHOD AF_XDP";
    let first = format!(
        "FromDevice(m0, {xdp}) -> ToDevice(m1, {xdp}); FromDevice(m1, {xdp}) -> ToDevice(m0, {xdp})"
    );
    let SwapNetwork { lab: _lab, a, b, mut process, mut control, socket, .. } =
        SwapNetwork::new("swap-taken", |socket| with_control(socket, &first));
    // Another target, another name, another choice of what the host receives.
    for rest in [
        format!(
            "FromDevice(m0, {xdp}) -> x :: Counter -> Discard; FromDevice(m1, {xdp}) -> y :: Counter -> Discard"
        ),
        format!(
            "i :: FromDevice(m0, {xdp}) -> x :: Counter -> Discard; j :: FromDevice(m1, {xdp}) -> y :: Counter -> ToDevice(m0, {xdp})"
        ),
        format!(
            "k :: FromDevice(m0, {xdp}, HOST_FRAMES 12/88a8) -> x :: Counter -> Discard; l :: FromDevice(m1, {xdp}, PROMISC true) -> y :: Counter -> Discard"
        ),
        format!(
            "k :: FromDevice(m0, {xdp}) -> x :: Counter -> Discard; l :: FromDevice(m1, {xdp}) -> y :: Counter -> Discard"
        ),
    ] {
        let output = swap(&mut control, &socket, &rest);
        assert!(output.starts_with("200 "), "{rest}: {output}");
        for (host, link, counter) in [(&a, 1, "x"), (&b, 2, "y")] {
            let count = |control: &mut UnixStream| read(control, &format!("{counter}.count"));
            let (before, began) = (count(&mut control), Instant::now());
            while count(&mut control) == before {
                assert!(began.elapsed() < SOON, "nothing is received by {rest}");
                broadcast(host, link);
            }
        }
        // Two of one configuration cannot have it; nothing changes, and it can be had after.
        let twice = format!("{rest}; n :: FromDevice(m0, {xdp}) -> Discard");
        let output = swap(&mut control, &socket, &twice);
        assert!(output.contains("another element of this configuration"), "{output}");
        let (before, began) = (read(&mut control, "x.count"), Instant::now());
        while read(&mut control, "x.count") == before {
            assert!(began.elapsed() < SOON, "nothing is received after a refusal of {twice}");
            broadcast(&a, 1);
        }
    }
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

fn swaps(name: &str, method: &str, form: Form) {
    let first = router(0, method);
    let run = |lab: &Lab, middle: &Namespace, socket: &Path| {
        let socket = format!("socket={}", socket.display());
        form.run(lab, middle, "swap", &first).arg("--pin").arg(socket)
    };
    let SwapNetwork { lab: _lab, a, b, mut process, mut control, .. } =
        SwapNetwork::running(name, run);
    let opened = Instant::now();
    let datagrams = Datagrams::start(&a, &b, SERVER);
    let began = Instant::now();
    let mut swaps = 0;
    while began.elapsed() < Duration::from_secs(seconds()) {
        swaps += 1;
        let next = match form {
            Form::Built if swaps % 2 == 0 => first.clone(),
            _ => router(swaps, method),
        };
        let output = ask(&mut control, &format!("WRITEDATA hotconfig {}\n{next}", next.len()));
        assert!(output.starts_with("200 "), "{output}");
        std::thread::sleep((began + PACE * swaps as u32).saturating_duration_since(Instant::now()));
    }
    let (outcome, echoed) = datagrams.end();
    let sent = outcome.sent;
    println!(
        "{swaps} swaps, {sent} datagrams, {:.0} a second",
        sent as f64 / began.elapsed().as_secs_f64()
    );
    assert_eq!(outcome, ClientCounts { sent, back: sent, disordered: 0 }, "in {swaps} swaps");
    assert_eq!((echoed.count, echoed.peers.len()), (sent, 1), "in {swaps} swaps");
    for counter in ["rx0", "tx0", "rx1", "tx1"] {
        let count: u64 = read(&mut control, &format!("{counter}.count")).parse().unwrap();
        assert_eq!(count, sent, "{counter}");
    }
    // A resolved neighbour stays known, and is asked again only to confirm that it is reachable.
    let most = 1 + opened.elapsed().as_secs() / POLL.as_secs();
    for side in ["arp0", "arp1"] {
        let queries: u64 = read(&mut control, &format!("{side}.queries")).parse().unwrap();
        assert!((1..=most).contains(&queries), "{queries} queries by {side}");
        assert!(read(&mut control, &format!("{side}.table")).contains("10.9."));
    }
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

#[test]
fn by_af_xdp_no_packet_is_lost_when_configurations_replace_one_another() {
    swaps("swap-xdp", "AF_XDP", Form::Plain);
}

#[test]
fn by_packet_sockets_no_packet_is_lost_when_configurations_replace_one_another() {
    swaps("swap-packet", "AF_PACKET", Form::Plain);
}

#[test]
fn no_packet_is_lost_when_a_built_configuration_and_others_replace_one_another() {
    swaps("swap-built", "AF_XDP", Form::Built);
}
