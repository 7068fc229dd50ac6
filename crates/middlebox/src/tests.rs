//! Tests of matching and rewriting.

use crate::field::Layer;
use crate::headers;
use crate::language::rule;
use crate::match_packet::PacketView;
use crate::rewrite::RulePlan;
use crate::rule::Rule;
use crate::verdict::{dropping_rule, rewrite};
use castanet_packet::Packet;
use castanet_wire::checksum::pseudo_v4;
use castanet_wire::sketch::{self, Layer as Start};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, Tcp, Udp};
use proptest::prelude::*;

const MTU: usize = 1500;

pub(crate) fn packet(text: &str) -> (Packet, Start) {
    let built = sketch::build(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut packet = Packet::from_bytes(&built.bytes);
    if built.layer == Start::Network {
        packet.set_network_header(0, 0);
    }
    (packet, built.layer)
}

fn stateless(line: &str) -> Rule {
    rule(line, false).unwrap_or_else(|fault| panic!("{line}: {fault:?}"))
}

fn is_about(matches: &str, text: &str) -> bool {
    let rule = stateless(&format!("{matches} accept"));
    let (packet, _) = packet(text);
    let headers = headers::find(&packet).expect("is IP");
    rule.matches_packet(&PacketView::new(packet.bytes(), &headers, ("eth0", "eth1")))
}

/// Returns the packet that comes out; `None` if it is dropped.
fn out(rules: &[&str], text: &str) -> Option<String> {
    let rules: Vec<Rule> = rules.iter().map(|line| stateless(line)).collect();
    let (mut packet, start) = packet(text);
    pass(&rules, &mut packet).then(|| sketch::print(packet.bytes(), start))
}

/// Whether the packet goes on.
fn pass(rules: &[Rule], packet: &mut Packet) -> bool {
    let Some(headers) = headers::find(packet) else { return true };
    let seen = PacketView::new(packet.bytes(), &headers, ("eth0", "eth1"));
    let plans: Vec<RulePlan> =
        rules.iter().filter(|it| it.matches_packet(&seen)).map(RulePlan::new).collect();
    if dropping_rule(plans.iter(), || 0).is_some() {
        return false;
    }
    rewrite(packet, headers, plans.iter(), None, None, MTU);
    true
}

#[test]
fn rules_are_about_what_they_say() {
    let syn = "10.0.0.1:1000 > 20.0.0.2:80 tcp syn tcpopt mss1460;wscale7 ttl 9 tos 3";
    for matches in [
        "all",
        "in eth0",
        "out eth1",
        "! in eth1",
        "in != eth1",
        "net-proto ip4",
        "ip-ver 4",
        "ip-ihl 5",
        "ip-ecn 3",
        "ip-ce",
        "! ip-ect0",
        "ip-ce 1",
        "ip-ect1 0",
        "ip-ttl < 10",
        "ip-ttl >= 9",
        "ip-proto tcp",
        "ip-proto != udp ip-proto != icmp",
        "ip-saddr 10.0.0.0/8",
        "ip-saddr 0.0.0.0/0",
        "ip-daddr 20.0.0.2",
        "ip-daddr > 10.0.0.0/8",
        "! ip-df",
        "! udp-sport",
        "! icmp-type",
        "! ip6-ver",
        "tcp-dport 80",
        "tcp-sport != 80",
        "tcp-syn",
        "! tcp-ack",
        "tcp-flags 2",
        "tcp-offset 7",
        "tcp-opt",
        "tcp-opt-mss",
        "tcp-opt-mss > 1000",
        "tcp-opt-wscale 7",
        "! tcp-opt-timestamp",
        "! tcp-opt-mss 1400",
        "tcp-opt 2 1460",
        "tcp-opt-mss != 1459",
        "! tcp-opt 22",
        "ip-payload 0x03e8",
        "tcp-payload",
        "tcp-syn 1",
    ] {
        assert!(is_about(matches, syn), "{matches}");
    }
    for matches in [
        "in eth1",
        "net-proto ip6",
        "ip6-ver",
        "ip-ect0",
        "ip-ttl 10",
        "ip-ttl > 9",
        "ip-saddr 10.0.0.0/31 ip-daddr 10.0.0.1",
        "! tcp-sport",
        "udp-sport",
        "! udp-sport 5",
        "udp-sport != 5",
        "! tcp-syn",
        "tcp-ack",
        "! tcp-opt-mss",
        "tcp-opt 22",
        "tcp-opt-timestamp != 0",
        "tcp-opt-mss != 1460",
        "tcp-payload 0x00",
        "ip-df",
    ] {
        assert!(!is_about(matches, syn), "{matches}");
    }
}

#[test]
fn rules_are_about_ipv6_with_extension_headers() {
    let fragment = "1::1 > 2::2 tcp syn frag 0+ id 7 class 0xb9 flow 0x12345 hop 3";
    for matches in [
        "ip6-eh",
        "ip6-eh-fragment",
        "! ip6-eh-routing",
        "ip6-next 44",
        "ip6-proto tcp",
        "ip6-dscp 46",
        "ip6-ecn 1",
        "ip6-traffic-class 0xb9",
        "ip6-flow-label 0x12345",
        "ip6-hop-limit 3",
        "ip6-saddr 1::/16",
        "ip6-daddr 2::2",
        "tcp-syn",
        "net-proto ip6",
        "! ip-ver",
        "ip6-daddr ::/0",
        "ip6-daddr > 1::/16",
    ] {
        assert!(is_about(matches, fragment), "{matches}");
    }
    assert!(!is_about("tcp-sport", "1::1 > 2::2 tcp frag 1480+ id 7"));
    assert!(is_about("icmp6-type 128", "1::1 > 2::2 icmp6 type 128"));
    assert!(!is_about("icmp-type 128", "1::1 > 2::2 icmp6 type 128"));
}

#[test]
fn examples_do_what_they_say() {
    let tcp = "10.0.0.1:1000 > 20.0.0.2:80 tcp";
    let came = |text: &str| out(&[], text).expect("it goes on");
    for (rules, text, wanted) in [
        (
            &["all mod ip-ecn 0"][..],
            "1.0.0.1 > 2.0.0.2 udp tos 7",
            Some("1.0.0.1 > 2.0.0.2 udp tos 4"),
        ),
        (&["all mod ip6-ecn 0"], "1::1 > 2::2 udp class 7", Some("1::1 > 2::2 udp class 4")),
        (&["ip-proto udp drop"], "1.0.0.1 > 2.0.0.2 udp", None),
        (&["ip-proto udp drop"], tcp, Some(tcp)),
        (&["ip-proto != udp ip-proto != tcp drop"], "1.0.0.1 > 2.0.0.2 icmp", None),
        (&["ip-proto != udp ip-proto != tcp drop"], tcp, Some(tcp)),
        (&["tcp-dport 80 mod tcp-dport 443"], tcp, Some("10.0.0.1:1000 > 20.0.0.2:443 tcp")),
        (
            &["tcp-dport 80 mod tcp-dport 443"],
            "[1::1]:9 > [2::2]:80 tcp",
            Some("[1::1]:9 > [2::2]:443 tcp"),
        ),
        (
            &["tcp-opt-mss strip tcp-opt-mss"],
            "1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss1400;sackok",
            Some("1.0.0.1 > 2.0.0.2 tcp syn tcpopt sackok;eol"),
        ),
        (
            &["tcp-opt-mss > 1460 mod tcp-opt-mss 1460"],
            "1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss9000",
            Some("1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss1460"),
        ),
        (
            &["tcp-opt-mss > 1460 mod tcp-opt-mss 1460"],
            "1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss1400",
            Some("1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss1400"),
        ),
        (
            &["tcp-opt strip ! tcp-opt-mss strip ! tcp-opt-wscale"],
            "1::1 > 2::2 tcp syn tcpopt mss1440;sackok;ts1:0;nop;wscale7",
            Some("1::1 > 2::2 tcp syn tcpopt mss1440;wscale7;eol"),
        ),
        (
            &["tcp-opt-timestamp strip all"],
            "1.0.0.1 > 2.0.0.2 tcp ack 7 tcpopt nop;nop;ts1:2 \"payload\"",
            Some("1.0.0.1 > 2.0.0.2 tcp ack 7 \"payload\""),
        ),
        (&["! tcp-opt-mss ! tcp-opt-wscale drop"], "1.0.0.1 > 2.0.0.2 tcp tcpopt sackok", None),
        (
            &["! tcp-opt-mss ! tcp-opt-wscale drop"],
            "1.0.0.1 > 2.0.0.2 udp",
            Some("1.0.0.1 > 2.0.0.2 udp"),
        ),
        (&["tcp-opt 22 drop"], "1.0.0.1 > 2.0.0.2 tcp tcpopt 22=5", None),
        (
            &["tcp-syn ! tcp-opt-mss add tcp-opt-mss 1460"],
            "1::1 > 2::2 tcp syn \"data\"",
            Some("1::1 > 2::2 tcp syn tcpopt mss1460 \"data\""),
        ),
        (
            &["tcp-syn ! tcp-opt-mss add tcp-opt-mss 1460"],
            "1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss5",
            Some("1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss5"),
        ),
        (&["all drop 0.1"], tcp, None),
    ] {
        assert_eq!(out(rules, text), wanted.map(came), "{rules:?} of {text}");
    }
}

#[test]
fn every_matching_rule_applies() {
    let came = |text: &str| out(&[], text);
    let udp = "1.0.0.1:5 > 2.0.0.2:6 udp";
    let rules = ["all mod ip-ttl 3", "udp-dport 6 mod udp-dport 7 mod ip-ttl 4"];
    assert_eq!(out(&rules, udp), came("1.0.0.1:5 > 2.0.0.2:7 udp ttl 4"));
    assert_eq!(
        out(&["all drop", "all accept", "all mod ip-ttl 3"], udp),
        came("1.0.0.1:5 > 2.0.0.2:6 udp ttl 3")
    );
    assert_eq!(out(&["all mod ip-ttl 3", "all drop"], udp), None);
    // All matches are about the packet as it came.
    let rules = ["udp-dport 6 mod udp-dport 7", "udp-dport 7 drop"];
    assert_eq!(out(&rules, udp), came("1.0.0.1:5 > 2.0.0.2:7 udp"));
    let rules = ["all mod ip-saddr 9.9.0.0/16", "all mod ip-daddr 3.3.3.3"];
    assert_eq!(out(&rules, udp), came("9.9.0.1:5 > 3.3.3.3:6 udp"));
    let rules = ["all mod tcp-payload 0x4142", "all mod icmp-payload 0x41"];
    assert_eq!(out(&rules, "1.0.0.1 > 2.0.0.2 tcp \"xyz\""), came("1.0.0.1 > 2.0.0.2 tcp \"ABz\""));
    assert_eq!(
        out(&rules, "1.0.0.1 > 2.0.0.2 icmp \"xyz\""),
        came("1.0.0.1 > 2.0.0.2 icmp \"Ayz\"")
    );
    assert_eq!(out(&rules, "1.0.0.1 > 2.0.0.2 icmp"), came("1.0.0.1 > 2.0.0.2 icmp"));
    assert_eq!(
        out(&["all mod ip-ce 1"], "1.0.0.1 > 2.0.0.2 udp tos 2"),
        came("1.0.0.1 > 2.0.0.2 udp tos 3")
    );
    assert_eq!(
        out(&["all mod ip-ce 0"], "1.0.0.1 > 2.0.0.2 udp tos 2"),
        came("1.0.0.1 > 2.0.0.2 udp tos 2")
    );
}

#[test]
fn packets_go_to_next_hops_of_their_version() {
    let rules = [stateless("all lb 9.9.9.1 9.9.9.2 9::1")];
    let mut next = std::collections::HashSet::new();
    for port in 1..50 {
        let (mut four, _) = packet(&format!("1.0.0.1:{port} > 2.0.0.2:80 tcp"));
        let (mut six, _) = packet(&format!("[1::1]:{port} > [2::2]:80 tcp"));
        assert!(pass(&rules, &mut four) && pass(&rules, &mut six));
        next.insert(four.dst().to_string());
        assert_eq!(six.dst6().to_string(), "9::1");
    }
    assert!(next.len() == 2 && next.iter().all(|it| it.starts_with("9.9.9.")), "{next:?}");
}

#[test]
fn options_keep_within_header_and_mtu() {
    let add = ["all add tcp-opt-mss 1460 add tcp-opt 99 0x0102030405"];
    let long = format!("1.0.0.1 > 2.0.0.2 tcp data {}", "61".repeat(1460));
    let room = format!("1.0.0.1 > 2.0.0.2 tcp data {}", "61".repeat(1455));
    assert_eq!(out(&add, &long), out(&[], &long));
    let wanted = format!("1.0.0.1 > 2.0.0.2 tcp tcpopt mss1460 data {}", "61".repeat(1455));
    assert_eq!(out(&add, &room), out(&[], &wanted));
    let padded = "1.0.0.1 > 2.0.0.2 tcp tcpopt mss5;ts1:2;sack1-2,sack3-4,sack5-6 \"x\"";
    assert_eq!(out(&add, padded), out(&[], padded), "40 bytes are full");
}

#[test]
fn an_icmp_message_that_becomes_all_zeros_has_the_checksum_ffff() {
    let (mut ping, _) = packet("1.0.0.1 > 2.0.0.2 icmp echo");
    pass(&[stateless("icmp-type 8 mod icmp-type 0")], &mut ping);
    assert_eq!(ping.bytes()[20..28], [0, 0, 0xff, 0xff, 0, 0, 0, 0]);
}

#[test]
fn payload_padding_and_shared_packets_stay_whole() {
    let text =
        "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 5 1.0.0.1 > 2.0.0.2 tcp tcpopt nop;nop;ts1:2 \"hi\"";
    let rules = [stateless("all strip all mod ip-ttl 3")];
    let (mut first, start) = packet(&format!("{text} pad 7"));
    let mut second = first.share();
    assert!(pass(&rules, &mut second));
    assert_eq!(
        sketch::print(first.bytes(), start),
        out(&[], &format!("{text} pad 7")).expect("goes on")
    );
    let wanted = "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 5 1.0.0.1 > 2.0.0.2 tcp ttl 3 \"hi\" pad 7";
    assert_eq!(Some(sketch::print(second.bytes(), start)), out(&[], wanted));
    assert!(pass(&rules, &mut first));
    assert_eq!(first.bytes(), second.bytes());
}

#[test]
fn fragments_keep_their_lengths() {
    let text = "1.0.0.1 > 2.0.0.2 tcp frag 0+ tcpopt nop;nop;ts1:2 \"12345678\"";
    assert_eq!(
        out(&["all strip all mod tcp-dport 5"], text),
        out(&[], "1.0.0.1:0 > 2.0.0.2:5 tcp frag 0+ tcpopt nop;nop;ts1:2 \"12345678\"")
    );
    let later = "1.0.0.1 > 2.0.0.2 tcp frag 1480 \"12345678\"";
    assert_eq!(out(&["all mod tcp-dport 5 strip all"], later), out(&[], later));
}

#[test]
fn addresses_are_in_the_checksum_of_dccp_but_not_of_its_later_fragments() {
    // RFC 4340, 9.1: a checksum of zero is a checksum.
    let header = "data 000500060300000011223344";
    let mapped = ["all mod ip-saddr 1.0.0.2 mod ip-dscp 1"];
    let sum_of = |text: &str| {
        let (mut packet, _) = packet(text);
        pass(&[stateless(mapped[0])], &mut packet);
        packet.bytes()[26..28].to_vec()
    };
    assert_eq!(sum_of(&format!("1.0.0.1 > 2.0.0.2 proto 33 {header}")), [0xff, 0xfe]);
    assert_eq!(sum_of(&format!("1.0.0.1 > 2.0.0.2 proto 33 frag 16 {header}")), [0, 0]);
    assert_eq!(sum_of("1.0.0.1 > 2.0.0.2 proto 33 data 000500060300 pad 2"), [0, 0]);
}

/// Whether all checksums of a packet are right.
fn sums_are_right(packet: &Packet) -> bool {
    let headers = headers::find(packet).expect("is IP");
    let bytes = &packet.bytes()[..headers.end];
    let (header, rest) = bytes[headers.network..].split_at(headers.transport - headers.network);
    let (pseudo, ip) = if headers.is_ip6 {
        let (ip, _) = Ipv6Header::from_prefix(header).expect("is whole");
        (ip.pseudo(headers.protocol, rest.len()), true)
    } else {
        let (ip, options) = Ipv4Header::from_prefix(header).expect("is whole");
        (pseudo_v4(ip.src(), ip.dst(), ip.protocol(), rest.len()), ip.checksum_ok(options))
    };
    ip && match headers.upper {
        Layer::Tcp => Tcp::from_prefix(rest).is_some_and(|(it, rest)| it.checksum_ok(pseudo, rest)),
        Layer::Udp => Udp::from_prefix(rest).is_some_and(|(it, rest)| it.checksum_ok(pseudo, rest)),
        Layer::Icmp => Icmp::from_prefix(rest).is_some_and(|(it, rest)| it.checksum_ok(rest)),
        Layer::Icmp6 => pseudo.slice(rest).checksum() == 0,
        _ => true,
    }
}

/// A packet whose checksums are right.
pub(crate) fn sound() -> impl Strategy<Value = String> {
    let ends = prop_oneof![
        Just(("1.2.3.4", "5.6.7.8")),
        Just(("10.0.0.1", "10.255.255.254")),
        Just(("2001:db8::1", "fe80::2")),
    ];
    let upper = prop_oneof![
        "tcp( syn)?( tcpopt (mss[1-9][0-9]{2}|ts[1-9][0-9]{2}:7;sackok|nop;sack1-2))?",
        Just("udp".to_owned()),
        Just("icmp".to_owned()),
    ];
    let payload = proptest::collection::vec(any::<u8>(), 0..50);
    (ends, any::<(u16, u16)>(), upper, payload).prop_map(|((src, dst), (a, b), upper, payload)| {
        let is_ip6 = src.contains(':');
        let ported = upper != "icmp";
        let end = |ip: &str, port: u16| match (ported, is_ip6) {
            (false, _) => ip.to_owned(),
            (true, false) => format!("{ip}:{port}"),
            (true, true) => format!("[{ip}]:{port}"),
        };
        let upper = if is_ip6 && upper == "icmp" { "icmp6".into() } else { upper };
        let payload: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let data = if payload.is_empty() { String::new() } else { format!(" data {payload}") };
        format!("{} > {} {upper}{data}", end(src, a), end(dst, b))
    })
}

/// A target that leaves checksums right: all but those that set lengths, versions,
/// protocols or checksums themselves, or what lies where.
fn honest() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u8>().prop_map(|n| format!("mod ip-ttl {n}")),
        any::<u8>().prop_map(|n| format!("mod ip-dscp {}", n >> 2)),
        any::<u16>().prop_map(|n| format!("mod ip-id {n}")),
        any::<u32>().prop_map(|n| format!("mod ip-saddr {}", std::net::Ipv4Addr::from(n))),
        (any::<u32>(), 0u8..=32)
            .prop_map(|(n, l)| format!("mod ip-daddr {}/{l}", std::net::Ipv4Addr::from(n))),
        (any::<u128>(), 0u8..=128)
            .prop_map(|(n, l)| format!("mod ip6-daddr {}/{l}", std::net::Ipv6Addr::from(n))),
        any::<u32>().prop_map(|n| format!("mod ip6-flow-label {}", n >> 12)),
        any::<u16>().prop_map(|n| format!("mod tcp-sport {n} mod udp-dport {n}")),
        any::<u32>().prop_map(|n| format!("mod tcp-seq-num {n} mod tcp-ack-num {n}")),
        any::<u8>().prop_map(|n| format!("mod tcp-flags {n} mod icmp-code {n} mod icmp6-type {n}")),
        any::<u8>().prop_map(|n| format!("mod tcp-reserved {}", n & 15)),
        "[0-9a-f]{2,12}".prop_map(|it| format!(
            "mod tcp-payload 0x{it} mod udp-payload 0x{it} mod icmp-payload 0x{it}"
        )),
        any::<u16>().prop_map(|n| format!("mod tcp-opt-mss {n}")),
        any::<u16>().prop_map(|n| format!("add tcp-opt-mss {n} add tcp-opt 77 0x010203")),
        Just("strip tcp-opt-mss".to_owned()),
        Just("strip all".to_owned()),
        Just("strip tcp-opt-sack add tcp-opt-wscale 3".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn checksums_stay_right(text in sound(), targets in proptest::collection::vec(honest(), 1..4)) {
        let (mut packet, _) = packet(&text);
        prop_assert!(sums_are_right(&packet), "{}", text);
        let rules = [stateless(&format!("all {}", targets.join(" ")))];
        prop_assert!(pass(&rules, &mut packet));
        prop_assert!(sums_are_right(&packet), "{} {:?}", text, targets);
    }

    #[test]
    fn hostile_packets_do_not_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0usize..6,
    ) {
        // Mostly something that can be taken for a packet.
        let heads: [&[u8]; 6] = [&[0x45], &[0x46], &[0x60], &[0x4f], &[], &[0x45]];
        for (at, byte) in heads[kind].iter().enumerate().take(bytes.len()) {
            bytes[at] = *byte;
        }
        let proto = if bytes.first() == Some(&0x60) { 6 } else { 9 };
        if kind != 5 && bytes.len() > proto {
            bytes[proto] = [6, 17, 1, 58, 0, 44][usize::from(bytes[proto]) % 6];
        }
        let mut packet = Packet::from_bytes(&bytes);
        packet.set_network_header(0, 0);
        let rules = [
            "all mod ip-ttl 3 mod ip-payload 0x0102030405 mod ip6-payload 0x01020304 mod ip-ihl 15",
            "! tcp-opt-mss add tcp-opt-mss 3 strip ! tcp-opt-sack mod tcp-flags 3 mod tcp-offset 1",
            "tcp-opt-mss > 3 mod tcp-opt-mss 1",
            "ip6-eh mod ip6-daddr 1::1", "all lb 1.2.3.4 1::1", "tcp-opt 99 0x0102 strip all",
            "all mod icmp-payload 0x0102 mod icmp6-payload 0x01 mod udp-checksum 0 mod ip-len 0",
            "all mod udp-payload 0x0102030405060708",
        ].map(stateless);
        pass(&rules, &mut packet);
    }

    #[test]
    fn random_rules_and_packets_do_not_panic(
        rules in proptest::collection::vec(0usize..12, 1..6),
        packets in proptest::collection::vec(
            (0usize..5, proptest::collection::vec(any::<u8>(), 20..100)), 1..12),
    ) {
        let lines = [
            "add-stateful all map ip-saddr 9.9.9.9 shuffle tcp-sport shuffle udp-dport",
            "add-stateful tcp-syn shuffle tcp-seq-num shuffle tcp-ack-num shuffle tcp-opt-sack",
            "add-stateful ip-proto icmp map ip-daddr 8.8.0.0/16 shuffle ip-id",
            "add-stateful all map ip6-saddr 1::/64 shuffle ip6-flow-label strip tcp-opt-mss",
            "add-stateful icmp-type 3 accept", "add all mod ip-payload 0x0102030405060708090a",
            "add tcp-opt strip ! tcp-opt-mss", "add all add tcp-opt-mss 1 add tcp-opt 77",
            "add all mod tcp-opt-sack 0x01020304 mod tcp-offset 15", "delete 1",
            "add all lb 1.1.1.1 2::2 00:00:00:00:00:01", "add-stateful all drop 1",
        ];
        let text: Vec<&str> = rules.iter().map(|&at| lines[at]).collect();
        let mut input = text.join("\n").into_bytes();
        input.push(0);
        for (kind, mut bytes) in packets {
            let head: &[u8] = [&[0x45][..], &[0x46], &[0x60], &[0x45, 0, 0, 60, 0, 7, 0x20], &[0]][kind];
            bytes[..head.len()].copy_from_slice(head);
            let proto = if head[0] == 0x60 { 6 } else { 9 };
            bytes[proto] = [6, 17, 1, 58, 44, 0][usize::from(bytes[proto]) % 6];
            // Few ends, so that connections and their errors meet.
            bytes[12..20].iter_mut().for_each(|byte| *byte &= 1);
            input.extend(bytes);
            input.extend(b"\xff\xfe\xfd");
        }
        crate::fuzz_entry(&input);
    }
}

/// A fragment for a fuzzer: of one of two packets, from an offset on in eights of bytes.
fn fuzzed(is_ip6: bool, id: u8, offset: u8, more: bool, kind: u8, body: &[u8]) -> Vec<u8> {
    let word = u16::from(offset) << if is_ip6 { 3 } else { 0 };
    let more = match (is_ip6, more) {
        (_, false) => 0,
        (true, true) => 1,
        (false, true) => Ipv4Header::MORE_FRAGMENTS,
    };
    let [high, low] = (word | more).to_be_bytes();
    let proto = [6, 17, 1, 58, 60, 44][usize::from(kind)];
    let length = |more: usize| ((body.len() + more) as u16).to_be_bytes();
    let mut all = match is_ip6 {
        false => [
            &[0x45, 0][..],
            &length(20),
            &[0, id, high, low, 9, proto, 0, 0, 1, 0, 0, 1, 2, 0, 0, 2],
        ]
        .concat(),
        true => {
            let mut all = [&[0x60, 0, 0, 0][..], &length(8), &[44, 9]].concat();
            all.resize(40, 1);
            all.extend([proto, 0, high, low, 0, 0, 0, id]);
            all
        }
    };
    all.extend(body);
    all
}

proptest! {
    #[test]
    fn random_fragments_do_not_panic(
        rules in prop::collection::vec(0usize..8, 0..5),
        pieces in prop::collection::vec(
            (any::<bool>(), 0u8..2, 0u8..5, any::<bool>(), 0u8..6, prop::collection::vec(any::<u8>(), 0..6), 0u8..12),
            0..60,
        ),
    ) {
        let lines = [
            "add tcp-dport 5000 drop", "add-stateful all map ip-saddr 9.9.9.9 shuffle udp-sport",
            "add-stateful ip6-saddr ::/0 map ip6-saddr 9::9", "add ip6-eh-destopt drop", "add udp-payload 0x01 drop",
            "add-stateful icmp-type 3 map ip-daddr 8.8.8.8", "add tcp-opt-mss mod tcp-dport 7", "other drop",
        ];
        let mut input = rules.iter().map(|&at| lines[at]).collect::<Vec<_>>().join("\n").into_bytes();
        input.push(0);
        for (is_ip6, id, offset, more, kind, units, gap) in pieces {
            let body: Vec<u8> = units.iter().flat_map(|&unit| [unit; 8]).collect();
            input.extend(fuzzed(is_ip6, id, offset, more, kind, &body));
            input.extend(b"\xff\xfe\xfd");
            // Nothing at all lets time pass.
            input.extend(if gap == 0 { &b"\xff\xfe\xfd"[..] } else { &[] });
        }
        crate::fuzz_entry(&input);
    }
}
