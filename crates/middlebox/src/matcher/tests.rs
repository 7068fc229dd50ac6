//! A table finds what looking at one rule after the other finds.

use super::{Matcher, Matches};
use crate::Rules;
use crate::headers::Headers;
use crate::holds::Seen;
use crate::language::rule;
use castanet_packet::Packet;
use castanet_wire::sketch::{self, Layer};
use proptest::prelude::*;

/// Matches of every kind, with values that few packets share.
const PARTS: [&str; 58] = [
    "in a",
    "! in a",
    "out b",
    "net-proto ip4",
    "net-proto ip6",
    "net-proto != ip4",
    "ip-ver",
    "! ip-ver",
    "ip-saddr 10.0.0.1",
    "ip-saddr 10.0.0.0/8",
    "ip-saddr != 10.0.0.1",
    "! ip-saddr 10.0.0.0/31",
    "! ip-saddr != 10.0.0.1",
    "ip-daddr > 10.0.0.1",
    "ip-daddr 0.0.0.0/0",
    "ip6-saddr 1::1",
    "ip6-saddr 1::/16",
    "! ip6-daddr 2::/15",
    "ip6-daddr 2::/127",
    "ip-proto tcp",
    "ip-proto != udp",
    "! ip-proto udp",
    "ip6-proto udp",
    "ip6-next 44",
    "ip-ttl 64",
    "ip-ttl < 64",
    "ip6-hop-limit 64",
    "ip-dscp 1",
    "ip-ecn 1",
    "ip-ce",
    "! ip-ect0",
    "ip6-traffic-class 5",
    "icmp-type 8",
    "icmp-code 0",
    "icmp6-type 128",
    "! icmp-type",
    "tcp-sport 5",
    "udp-sport 5",
    "tcp-dport 6",
    "udp-dport != 6",
    "! udp-sport",
    "tcp-syn",
    "! tcp-syn",
    "tcp-ack 1",
    "tcp-ack 0",
    "! tcp-ack 0",
    "tcp-flags 2",
    "tcp-flags > 2",
    "tcp-opt",
    "! tcp-opt",
    "tcp-opt-mss",
    "! tcp-opt-mss",
    "tcp-opt-mss 1460",
    "tcp-opt-mss != 1460",
    "! tcp-opt-mss 1460",
    "tcp-opt 99",
    "! tcp-opt 99",
    "tcp-payload 0x61",
];

const PACKETS: [&str; 18] = [
    "10.0.0.1:5 > 20.0.0.2:6 tcp syn tcpopt mss1460",
    "10.0.0.1:5 > 20.0.0.2:7 tcp ack 1 \"a\"",
    "10.0.0.0:5 > 20.0.0.2:6 udp",
    "11.0.0.1:6 > 20.0.0.2:6 udp ttl 3 tos 5",
    "10.0.0.1 > 20.0.0.2 icmp type 8",
    "10.0.0.1 > 20.0.0.2 icmp type 0 tos 3",
    "10.0.0.1 > 20.0.0.2 proto 99",
    "[1::1]:5 > [2::2]:6 tcp syn tcpopt mss1400;99=5",
    "[1::1]:5 > [2::1]:6 udp class 5",
    "[1:1::1]:5 > [3::2]:6 udp hop 3",
    "1::1 > 2::2 icmp6 type 128",
    "1::1 > 2::2 icmp6 type 129",
    "[1::1]:5 > [2::2]:6 tcp frag 0+ id 9",
    "1::1 > 2::2 udp frag 1480 id 9",
    "10.0.0.1 > 20.0.0.2 tcp frag 1480 id 9",
    "10.0.0.1:5 > 20.0.0.2:6 tcp syn ack 3 tcpopt sackok;99=5",
    "9.0.0.1:5 > 20.0.0.2:6 tcp rst",
    "10.0.0.1:5 > 0.0.0.0:6 tcp fin tcpopt nop;nop;nop;nop",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_table_finds_what_a_list_finds(
        parts in proptest::collection::vec(
            proptest::collection::vec(0..PARTS.len(), 1..4), 1..40),
    ) {
        let rules = parts.iter().map(|parts| {
            let text: Vec<&str> = parts.iter().map(|&at| PARTS[at]).collect();
            rule(&format!("{} accept", text.join(" ")), false).expect("is a rule")
        });
        let rules = Rules::new(rules);
        let list = Matcher::with_few(rules.entries(), usize::MAX);
        let table = Matcher::with_few(rules.entries(), 0);
        let (mut wanted, mut found) = (Matches::default(), Matches::default());
        for text in PACKETS {
            let built = sketch::build(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let mut packet = Packet::from_bytes(&built.bytes);
            prop_assert!(built.layer == Layer::Network);
            packet.set_network_header(0, 0);
            let headers = Headers::find(&packet).expect("is IP");
            let seen =
                Seen { bytes: packet.bytes(), headers: &headers, input: "a", output: "b" };
            list.matching(&seen, &mut wanted);
            table.matching(&seen, &mut found);
            prop_assert_eq!(&found.rules, &wanted.rules, "{} {}", text, rules.text());
        }
    }
}

#[test]
fn tables_say_what_is_in_them() {
    let lines = ["tcp-dport 1 drop", "tcp-dport 2 drop", "ip-saddr 1.0.0.0/8 drop", "all accept"];
    let rules = Rules::new(lines.iter().map(|line| rule(line, false).expect("is a rule")));
    let table = Matcher::with_few(rules.entries(), 0);
    assert!(table.tables(false).starts_with("table of 4 rules, 4 keys, 3 masks, "));
    let verbose = table.tables(true);
    assert!(verbose.contains("mask 20 0 0 0 0 ffff0000 0 0 keys 2\n"), "{verbose}");
}
