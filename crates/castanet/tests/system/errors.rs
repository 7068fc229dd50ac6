//! Packets that cannot be forwarded are answered with the ICMP error that RFC 1812 asks for.

use castanet_lab::NetworkOptions;

use crate::testbed::{SOON, TestNetwork, through_all};

through_all! {
    an_expired_packet_is_reported(castanet_lab::NetworkOptions::default());
    packets_with_dont_fragment_are_refused(crate::reachability::jumbo());
    a_detour_is_redirected(super::with_neighbour());
    an_unknown_network_is_unreachable(castanet_lab::NetworkOptions::default());
    a_closed_port_of_the_router_is_unreachable(super::without_offloads());
}

fn with_neighbour() -> NetworkOptions {
    NetworkOptions { neighbour: true, ..NetworkOptions::default() }
}

/// The error quotes the packet, whose checksum Linux leaves unfinished where "hardware" is to do it.
fn without_offloads() -> NetworkOptions {
    NetworkOptions { offloads: false, ..NetworkOptions::default() }
}

fn an_expired_packet_is_reported(testbed: &TestNetwork) {
    let [h1, h2, _] = testbed.hosts();
    let output = testbed.ping(h1, &["-c", "2", "-t", "1"], &h2.address);
    assert!(output.contains("0 received"), "{output}");
    assert!(output.contains("From 10.0.1.1 icmp_seq=1 Time to live exceeded"), "{output}");
}

fn packets_with_dont_fragment_are_refused(testbed: &TestNetwork) {
    let [h1, h2, _] = testbed.hosts();
    let output = testbed.ping(h1, &["-c", "1", "-M", "do", "-s", "1600"], &h2.address);
    assert!(
        output.contains("From 10.0.1.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)"),
        "{output}"
    );
    // The sender has learnt how much fits, and keeps to it.
    let route = h1.namespace.ip(&format!("route get {}", h2.address)).unwrap();
    assert!(route.contains("mtu 1500"), "{route}");
    let output = testbed.ping(h1, &["-c", "1", "-M", "do", "-s", "1472"], &h2.address);
    assert!(output.contains("1 received"), "{output}");
}

fn a_detour_is_redirected(testbed: &TestNetwork) {
    let [h1, ..] = testbed.hosts();
    // The neighbour is on the same network, but the host believes it behind the router.
    h1.namespace.sysctl("net/ipv4/conf/all/accept_redirects", "0").unwrap();
    h1.namespace.sysctl("net/ipv4/conf/eth0/accept_redirects", "0").unwrap();
    h1.namespace.ip("route add 10.0.1.3/32 via 10.0.1.1").unwrap();
    let mut capture = h1.namespace.capture_arriving("eth0", "icmp").unwrap();
    h1.namespace.ping(&["-i", "0.2"], 2, "10.0.1.3").unwrap();
    capture.wait_for("ICMP redirect 10.0.1.3 to host 10.0.1.3", SOON).unwrap();
    let seen = capture.finish().unwrap();
    assert!(seen.contains("10.0.1.1 > 10.0.1.2: ICMP redirect 10.0.1.3 to host"), "{seen}");
    assert!(castanet_lab::Capture::wrong_checksums(&seen).is_empty(), "{seen}");
}

fn an_unknown_network_is_unreachable(testbed: &TestNetwork) {
    let [h1, ..] = testbed.hosts();
    let output = testbed.ping(h1, &["-c", "1"], "192.0.2.1");
    assert!(output.contains("From 10.0.1.1 icmp_seq=1 Destination Net Unreachable"), "{output}");
}

fn a_closed_port_of_the_router_is_unreachable(testbed: &TestNetwork) {
    let [h1, ..] = testbed.hosts();
    let mut capture = h1.namespace.capture_arriving("eth0", "icmp").unwrap();
    // Versions of nc treat the answer differently; the packets must be the same.
    h1.command("sh").args(["-c", "echo anybody | nc -n -u -w 1 10.0.1.1 9"]).output().unwrap();
    capture.wait_for("10.0.1.1 udp port 9 unreachable", SOON).unwrap();
    let seen = capture.finish().unwrap();
    assert!(castanet_lab::Capture::wrong_checksums(&seen).is_empty(), "{seen}");
}
