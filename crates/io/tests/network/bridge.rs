//! An AF_PACKET bridge between two hosts that leave checksums and segmentation to it.

use crate::between;
use crate::forwarder::Forwarder;
use castanet_io::Device;
use castanet_io::af_packet::{AfPacket, Method, Options};
use castanet_lab::{Capture, Namespace};
use std::time::Duration;

fn open(namespace: &Namespace, name: &'static str, options: Options) -> AfPacket {
    namespace.enter(move || Ok(AfPacket::open(name, options).unwrap())).join().unwrap().unwrap()
}

fn bridge(namespace: &Namespace, method: Method) -> Forwarder {
    let options = Options { method, promiscuous: true, ..Options::default() };
    let device = |name| Box::new(open(namespace, name, options.clone())) as Box<dyn Device>;
    Forwarder::new([device("m0"), device("m1")])
}

/// Average round trip in milliseconds, from the last line of `ping`.
fn average(printed: &str) -> f64 {
    let times = printed.rsplit(" = ").next().unwrap();
    times.split('/').nth(1).unwrap().parse().unwrap()
}

fn ping(method: Method) -> f64 {
    let net = between("ping");
    let _bridge = bridge(&net.middle, method);
    let ping = net.a.command("ping").args(["-c", "50", "-i", "0.02", "-q", "10.9.0.2"]);
    let output = ping.check().unwrap();
    assert!(output.stdout.contains("50 received"), "{}", output.stdout);
    average(&output.stdout)
}

#[test]
fn ping_passes_the_ring_within_its_retire_times() {
    // Two passes, each at most a millisecond and some scheduling.
    let average = ping(Method::Ring);
    println!("{average} ms");
    assert!(average < 4.0, "{average} ms");
}

#[test]
fn ping_passes_the_socket_at_once() {
    let average = ping(Method::Socket);
    println!("{average} ms");
    assert!(average < 1.0, "{average} ms");
}

/// Transfers a file through the bridge while `tcpdump` checks every checksum.
fn transfer(method: Method) {
    let net = between("tcp");
    let file = net.lab.random_file("random", 48).unwrap();
    let bridge = bridge(&net.middle, method);
    let _server = net.b.serve("10.9.0.2", 8000).unwrap();
    // A small window, so that `tcpdump` keeps up.
    let window = |bytes: &str| net.a.sysctl("net/ipv4/tcp_rmem", bytes).unwrap();
    window("4096 32768 32768");
    let watch = net.a.capture_arriving("eth0", "tcp and greater 100").unwrap();
    let patience = Duration::from_secs(30);
    let small = net.lab.random_file("small", 1).unwrap();
    let fetched = net.a.fetch("http://10.9.0.2:8000/small", patience).unwrap();
    assert_eq!(fetched.sha256, small.sha256);
    let text = watch.finish().unwrap();
    assert!(text.contains("cksum") && text.lines().count() > 500, "{text}");
    assert_eq!(Capture::wrong_checksums(&text), Vec::<&str>::new());
    window("4096 131072 6291456");
    let fetched = net.a.fetch("http://10.9.0.2:8000/random", patience).unwrap();
    assert_eq!((fetched.bytes, fetched.sha256), (file.bytes, file.sha256));
    println!("{:.0} Mb/s", fetched.bytes as f64 * 8e-6 / fetched.elapsed.as_secs_f64());
    let stats = bridge.finish();
    // Otherwise this test has tested nothing.
    assert!(stats[1].super_frames > 100, "{stats:?}");
    assert_eq!([stats[0].malformed, stats[1].malformed], [0, 0], "{stats:?}");
    assert_eq!([stats[0].tx_errors, stats[1].tx_errors], [0, 0], "{stats:?}");
}

#[test]
fn tcp_passes_the_ring_with_offloads_on() {
    transfer(Method::Ring);
}

#[test]
fn tcp_passes_the_socket_with_offloads_on() {
    transfer(Method::Socket);
}
