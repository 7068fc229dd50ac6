//! Tests of an AF_PACKET bridge between two hosts that leave checksums and segmentation to it.

use crate::forwarder::Forwarder;
use crate::{test_network, transfer};
use castanet_io::Device;
use castanet_io::af_packet::{AfPacket, Method, Options};
use castanet_lab::Namespace;

fn open(namespace: &Namespace, name: &'static str, options: Options) -> AfPacket {
    namespace.enter(move || Ok(AfPacket::open(name, options).unwrap())).join().unwrap().unwrap()
}

fn bridge(namespace: &Namespace, method: Method) -> Forwarder {
    let options = Options { method, promiscuous: true, ..Options::default() };
    let device = |name| Box::new(open(namespace, name, options.clone())) as Box<dyn Device>;
    Forwarder::new([device("m0"), device("m1")])
}

/// Returns the average round trip in milliseconds, from the last line of `ping`.
fn average(printed: &str) -> f64 {
    let times = printed.rsplit(" = ").next().unwrap();
    times.split('/').nth(1).unwrap().parse().unwrap()
}

fn ping(method: Method) -> f64 {
    let net = test_network("ping");
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
fn tcp_passes(method: Method) {
    let net = test_network("tcp");
    let bridge = bridge(&net.middle, method);
    transfer(&net);
    let stats = bridge.finish();
    // Without super-frames the test would not test segmentation.
    assert!(stats[1].super_frames > 100, "{stats:?}");
    assert_eq!([stats[0].malformed, stats[1].malformed], [0, 0], "{stats:?}");
    assert_eq!([stats[0].tx_errors, stats[1].tx_errors], [0, 0], "{stats:?}");
}

#[test]
fn tcp_passes_the_ring_with_offloads_on() {
    tcp_passes(Method::Ring);
}

#[test]
fn tcp_passes_the_socket_with_offloads_on() {
    tcp_passes(Method::Socket);
}
