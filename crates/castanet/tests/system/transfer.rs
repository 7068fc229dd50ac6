//! Bytes arrive whole, at a rate, and with their checksums right.

use castanet_lab::{Capture, NetworkOptions};

use crate::testbed::{LATER, SOON, TestNetwork, through_all};

through_all! {
    a_large_file_arrives_whole(castanet_lab::NetworkOptions::default());
    iperf3_runs_both_ways(castanet_lab::NetworkOptions::default());
}

fn a_large_file_arrives_whole(testbed: &TestNetwork) {
    let [h1, h2, h3] = testbed.hosts();
    let file = testbed.network.lab().random_file("large", 100).unwrap();
    let _server = h2.namespace.serve(&h2.address, 8000).unwrap();
    let url = format!("http://{}:8000/large", h2.address);
    let got = h1.namespace.fetch(&url, LATER).unwrap();
    assert_eq!((got.bytes, &got.sha256), (100 << 20, &file.sha256));
    // Once more to another host, over bare TCP and the other way round.
    let at = format!("{}:9000", h1.address).parse().unwrap();
    let got = file.send(&h1.namespace, at, &h3.namespace, LATER).unwrap();
    assert_eq!((got.bytes, &got.sha256), (100 << 20, &file.sha256));
}

fn iperf3_runs_both_ways(testbed: &TestNetwork) {
    let [h1, h2, _] = testbed.hosts();
    for (way, megabits) in [("--forceflush", 10.0), ("--reverse", 10.0), ("--udp", 1.0)] {
        let rate = h1.namespace.iperf3(&h2.namespace, &h2.address, &[way]).unwrap();
        assert!(rate >= megabits, "{way}: {rate} Mbit/s");
    }
}

/// Sends all kinds of traffic and returns what tcpdump, on the receivers, makes of it; an error
/// if it lost packets.
fn seen_by_receivers(testbed: &TestNetwork) -> castanet_lab::Result<String> {
    let [h1, h2, h3] = testbed.hosts();
    let at_h2 = h2.namespace.capture_arriving("eth0", "ip").unwrap();
    let at_h1 = h1.namespace.capture_arriving("eth0", "ip").unwrap();
    let file = testbed.network.lab().random_file("small", 1).unwrap();
    let at = format!("{}:9000", h1.address).parse().unwrap();
    let got = file.send(&h1.namespace, at, &h2.namespace, SOON).unwrap();
    assert_eq!(got.sha256, file.sha256);
    for size in [1, 2, 3, 999, 1472] {
        let send = format!("head -c {size} /dev/zero | nc -n -u -q 0 {} 5000", h2.address);
        h3.command("sh").args(["-c", &send]).check().unwrap();
    }
    testbed.ping(h1, &["-c", "2"], &h2.address);
    testbed.ping(h1, &["-c", "1", "-t", "1"], &h2.address);
    Ok(format!("{}{}", at_h2.finish()?, at_h1.finish()?))
}

/// The result of a run in which tcpdump has lost no packet, as it may on a busy machine.
fn all_seen_by_receivers(testbed: &TestNetwork) -> String {
    (0..5).find_map(|_| seen_by_receivers(testbed).ok()).expect("tcpdump keeps up once")
}

fn no_checksum_is_wrong(testbed: &TestNetwork) {
    let seen = all_seen_by_receivers(testbed);
    let wrong = Capture::wrong_checksums(&seen);
    assert!(wrong.is_empty(), "{} wrong, the first: {}", wrong.len(), wrong[0]);
    // Nothing was overlooked: the traffic is there, and tcpdump did look at the sums.
    assert!(seen.contains("(correct)") && seen.contains("[udp sum ok]"), "{seen}");
    assert!(seen.contains("ICMP echo request") && seen.contains("ICMP time exceeded"), "{seen}");
    assert!(seen.matches("length 1448").count() > 100, "{seen}");
}

#[test]
fn castanet_completes_checksums_and_segments() {
    // With offloads on, the hosts leave checksums to "hardware": the router is the first to see
    // them, and nobody tells an XDP program that they are not finished.
    no_checksum_is_wrong(&TestNetwork::castanet("checksums", &NetworkOptions::default()));
}

#[test]
fn packet_sockets_complete_checksums_and_segments() {
    no_checksum_is_wrong(&TestNetwork::packet("checksums", &NetworkOptions::default()));
}

#[test]
fn packet_sockets_leave_complete_checksums_right() {
    let wiring = NetworkOptions { offloads: false, ..NetworkOptions::default() };
    no_checksum_is_wrong(&TestNetwork::packet("checksums", &wiring));
}

#[test]
fn castanet_leaves_complete_checksums_right() {
    let wiring = NetworkOptions { offloads: false, ..NetworkOptions::default() };
    no_checksum_is_wrong(&TestNetwork::castanet("checksums", &wiring));
}

#[test]
fn kernel_leaves_complete_checksums_right() {
    let wiring = NetworkOptions { offloads: false, ..NetworkOptions::default() };
    no_checksum_is_wrong(&TestNetwork::kernel("checksums", &wiring));
}

#[test]
fn a_wrong_checksum_would_be_noticed() {
    // Linux forwards unfinished checksums between veth pairs as they are, and tcpdump says so.
    let testbed = TestNetwork::kernel("unfinished", &NetworkOptions::default());
    assert!(!Capture::wrong_checksums(&all_seen_by_receivers(&testbed)).is_empty());
}
