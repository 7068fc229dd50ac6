//! Tests of devices against the kernel's own network stack, in namespaces; need root.
#![allow(clippy::unwrap_used)] // a test

mod annotations;
mod bridge;
mod elements;
mod for_host;
mod forwarder;
mod numbers;
mod tap;
mod traffic;
mod xdp;

use castanet_lab::{Capture, Lab, Namespace, Port, require};
use std::time::Duration;

/// The programs that the tests run.
const TOOLS: &[&str] = &["ip", "ping", "curl", "tcpdump", "python3", "sha256sum"];

/// A network of two hosts and a machine between them with an interface to each.
struct TestNetwork {
    a: Namespace,
    middle: Namespace,
    b: Namespace,
    // Dropped last, after all processes in the namespaces have ended.
    lab: Lab,
}

/// Builds the network with hosts 10.9.0.1 and 10.9.0.2; offloads are on, Linux's default.
fn test_network(name: &str) -> TestNetwork {
    require(TOOLS).expect("these tests build networks");
    let lab = Lab::new(name).expect("a lab");
    let namespace = |name| lab.namespace(name).expect("a namespace");
    let (a, middle, b) = (namespace("a"), namespace("m"), namespace("b"));
    lab.link(Port::new(&a, "eth0").address("10.9.0.1/24"), Port::new(&middle, "m0"))
        .expect("a link");
    lab.link(Port::new(&b, "eth0").address("10.9.0.2/24"), Port::new(&middle, "m1"))
        .expect("a link");
    TestNetwork { a, middle, b, lab }
}

/// Transfers a file from the second host to the first while `tcpdump` checks
/// every checksum.
fn transfer(net: &TestNetwork) {
    let file = net.lab.random_file("random", 48).unwrap();
    let small = net.lab.random_file("small", 1).unwrap();
    let _server = net.b.serve("10.9.0.2", 8000).unwrap();
    // A small window keeps the rate low enough for `tcpdump`.
    let window = |bytes: &str| net.a.sysctl("net/ipv4/tcp_rmem", bytes).unwrap();
    window("4096 32768 32768");
    let watch = net.a.capture_arriving("eth0", "tcp and greater 100").unwrap();
    let patience = Duration::from_secs(30);
    let fetched = net.a.fetch("http://10.9.0.2:8000/small", patience).unwrap();
    assert_eq!(fetched.sha256, small.sha256);
    let text = watch.finish().unwrap();
    assert!(text.contains("cksum") && text.lines().count() > 500, "{text}");
    assert_eq!(Capture::wrong_checksums(&text), Vec::<&str>::new());
    window("4096 131072 6291456");
    let fetched = net.a.fetch("http://10.9.0.2:8000/random", patience).unwrap();
    assert_eq!((fetched.bytes, fetched.sha256), (file.bytes, file.sha256));
    println!("{:.0} Mb/s", fetched.bytes as f64 * 8e-6 / fetched.elapsed.as_secs_f64());
}
