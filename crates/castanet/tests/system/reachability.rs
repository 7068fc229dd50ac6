//! Hosts reach each other and the router.

use castanet_lab::{NetworkOptions, answered_pings};

use crate::testbed::{TestNetwork, through_all};

through_all! {
    all_pairs_ping(castanet_lab::NetworkOptions::default());
    fragments_pass(castanet_lab::NetworkOptions::default());
    the_router_answers_ping(castanet_lab::NetworkOptions::default());
    the_router_answers_arp(castanet_lab::NetworkOptions::default());
    traceroute_sees_the_router(castanet_lab::NetworkOptions::default());
    the_route_is_recorded(castanet_lab::NetworkOptions::default());
    large_packets_are_fragmented(super::jumbo());
}

/// The first host's link takes packets that the others' do not.
pub(crate) fn jumbo() -> NetworkOptions {
    NetworkOptions { first_mtu: 1800, ..NetworkOptions::default() }
}

fn all_pairs_ping(testbed: &TestNetwork) {
    for from in testbed.hosts() {
        for to in testbed.hosts().iter().filter(|to| to.address != from.address) {
            let output = from.namespace.ping(&["-i", "0.2"], 3, &to.address).unwrap().stdout;
            // Linux begins with 64: one hop, one less.
            assert_eq!(output.matches("ttl=63").count(), answered_pings(&output).len(), "{output}");
        }
    }
}

fn fragments_pass(testbed: &TestNetwork) {
    let [h1, h2, h3] = testbed.hosts();
    for (from, to) in [(h1, h2), (h3, h1)] {
        let options = ["-i", "0.2", "-s", "4000"];
        let output = from.namespace.ping(&options, 3, &to.address).unwrap().stdout;
        assert_eq!(
            output.matches("4008 bytes from").count(),
            answered_pings(&output).len(),
            "{output}"
        );
    }
}

fn the_router_answers_ping(testbed: &TestNetwork) {
    for host in testbed.hosts() {
        // The near side of the router, and a far one.
        for address in [host.gateway.as_str(), "10.0.2.1"] {
            let output = host.namespace.ping(&["-i", "0.2"], 2, address).unwrap().stdout;
            let answers = output.matches(&format!("bytes from {address}:")).count();
            assert_eq!(answers, answered_pings(&output).len(), "{output}");
        }
    }
}

fn the_router_answers_arp(testbed: &TestNetwork) {
    for host in testbed.hosts() {
        let arping = |address: &str| {
            let command = host.command("arping").args(["-I", "eth0", "-c", "2", "-w", "3"]);
            command.arg(address).output().unwrap().printed()
        };
        let output = arping(&host.gateway);
        let reply = format!("reply from {} [{}]", host.gateway, host.gateway_mac.to_uppercase());
        assert_eq!(output.matches(&reply).count(), 2, "{output}");
        let (network, _) = host.address.rsplit_once('.').unwrap();
        let output = arping(&format!("{network}.77"));
        assert!(output.contains("Received 0 response"), "{output}");
    }
}

fn traceroute_sees_the_router(testbed: &TestNetwork) {
    let [h1, h2, h3] = testbed.hosts();
    let hops = |from: &castanet_lab::Host, how: &str, to: &str| {
        from.namespace.traceroute(&[how], to, 4).unwrap()
    };
    // UDP to an unused port, then ICMP echo: two ways to find the end.
    for how in ["-U", "-I"] {
        assert_eq!(hops(h1, how, &h2.address), ["10.0.1.1", "10.0.2.2"], "{how}");
        assert_eq!(hops(h3, how, &h1.address), ["10.0.3.1", "10.0.1.2"], "{how}");
        assert_eq!(hops(h2, how, &h2.gateway), ["10.0.2.1"], "{how}");
    }
}

fn the_route_is_recorded(testbed: &TestNetwork) {
    let [h1, h2, _] = testbed.hosts();
    let output = testbed.ping(h1, &["-c", "1", "-R"], &h2.address);
    assert!(output.contains("1 received"), "{output}");
    // Every router on the way enters the address of the side by which the packet leaves.
    let route = output.split("RR:").nth(1).unwrap_or_else(|| panic!("no route in {output}"));
    let route: Vec<&str> =
        route.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    assert_eq!(route, ["10.0.1.2", "10.0.2.1", "10.0.2.2", "10.0.2.2", "10.0.1.1", "10.0.1.2"]);
}

fn large_packets_are_fragmented(testbed: &TestNetwork) {
    let [h1, h2, _] = testbed.hosts();
    let mut capture = h2.namespace.capture_arriving("eth0", "icmp").unwrap();
    let options = ["-i", "0.2", "-M", "dont", "-s", "1600"];
    h1.namespace.ping(&options, 2, &h2.address).unwrap();
    capture.wait_for("offset 1480", crate::testbed::SOON).unwrap();
    let seen = capture.finish().unwrap();
    // The router cut it: what arrives has two parts, the first as large as the link allows.
    assert_eq!(seen.matches("offset 0, flags [+]").count(), 2, "{seen}");
    assert_eq!(seen.matches("offset 1480, flags [none]").count(), 2, "{seen}");
    assert!(castanet_lab::Capture::wrong_checksums(&seen).is_empty(), "{seen}");
}
