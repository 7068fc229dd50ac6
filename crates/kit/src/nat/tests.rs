//! Tests of rewriters, with hand-made packets and against a naive model.

mod plain;
mod properties;

use super::*;
use crate::classify::NoNames;
use castanet_wire::{Ipv4Header, ip_proto, sketch};
use std::collections::HashMap;

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_000_000_000 * SECOND;

struct TestNames;

impl NameResolver for TestNames {
    fn names(&self) -> &dyn crate::classify::Names {
        &NoNames
    }
    fn pattern(&self, name: &str) -> Option<Pattern> {
        (name == "known").then(|| Pattern::parse(&["1.0.0.1", "-"], &NoNames).unwrap())
    }
    fn mapper(&self, name: &str) -> Option<NamedElement> {
        let entries =
            vec![parse_pattern_outputs(&["-", "-", "9.9.9.9", "-", "0", "7"], self).unwrap()];
        let mapper = Mapper::RoundRobin(entries, RoundRobinCursor::default());
        match name {
            "mapper" => Some(NamedElement::Mapper(mapper, "mapper :: M".into())),
            "other" => Some(NamedElement::Other),
            _ => None,
        }
    }
}

fn timeouts() -> Timeouts {
    Timeouts { idle: 300 * SECOND, data: 3600 * SECOND, done: 10 * SECOND, guarantee: 5 * SECOND }
}

fn table(kind: RewriterKind, inputs: &[&str], capacity: u32) -> (Table, u16) {
    let parse = |text: &&str| InputSpec::parse(text, kind, 2, &TestNames).unwrap();
    let inputs = inputs.iter().map(parse).collect();
    let mut table = Table::default();
    table.set_capacity(capacity);
    let zone = table.add_member(
        "rw",
        RewriterConfig { kind, timeouts: [timeouts(); 2], inputs, references: Vec::new() },
        2,
    );
    (table, zone)
}

/// Translates a packet and returns its output and its sketch.
fn translate(
    it: &mut (Table, u16),
    input: usize,
    packet: &str,
    now: u64,
) -> Result<String, Refusal> {
    let mut bytes = sketch::build(packet).unwrap().bytes;
    let translation = translate_bytes(it, input, &mut bytes, now)?;
    let (Translation::Untouched(output) | Translation::Rewritten { output, .. }) = translation;
    Ok(format!("{output} {}", sketch::print(&bytes, sketch::Layer::Network)))
}

/// The expected result of [`translate`]: the packet's canonical sketch with every field.
fn expected(output: u8, packet: &str) -> String {
    let bytes = sketch::build(packet).unwrap().bytes;
    format!("{output} {}", sketch::print(&bytes, sketch::Layer::Network))
}

fn translate_bytes(
    (table, zone): &mut (Table, u16),
    input: usize,
    bytes: &mut [u8],
    now: u64,
) -> Result<Translation, Refusal> {
    table.expire(now, 100);
    let Some((ip, rest)) = Ipv4Header::from_prefix(bytes) else { return Err(Refusal::Unmapped) };
    let kind = table.members[usize::from(*zone)].config.kind;
    let segment = ip.split_options(rest).map_or(&[][..], |(_, segment)| segment);
    let Some((key, may_open)) = kind.key(ip, segment) else {
        return table.translate_unmapped(*zone, input);
    };
    let key = key.in_zone(*zone);
    let slot = table.find_one(&key);
    let packet = PacketInfo { input, key, may_open, slot, anno: 0, now };
    let mut context =
        ChoiceContext { worker: 0, random: &mut |last| 12345 % last.saturating_add(1) };
    table.translate(*zone, packet, bytes, &mut context)
}

fn parse_and_print(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Pattern::parse(&words, &NoNames).map(|pattern| pattern.to_string()).map_err(str::to_owned)
}

#[test]
fn patterns_are_parsed_and_printed() {
    for (text, expected) in [
        ("- -", "- -"),
        ("- - - -", "- - - -"),
        ("1.0.0.1 20 - -", "1.0.0.1 20 - -"),
        ("1.0.0.1 1024-65535# 2.0.0.2 80", "1.0.0.1 1024-65535 2.0.0.2 80"),
        ("1.0.0.1 - 7?", "bad source port"),
        ("1.0.0.1 - 7-9?", "1.0.0.1 7-9 - -"),
        ("1.0.0.1-1.0.0.9# -", "1.0.0.1-1.0.0.9 -"),
        ("1.0.0.77/24 -", "1.0.0.1-1.0.0.254 -"),
        ("1.0.0.77/31? 2.0.0.2", "1.0.0.76-1.0.0.77 2.0.0.2"),
        ("1.0.0.77/255.255.255.252 -", "1.0.0.77-1.0.0.78 -"),
        ("1.0.0.77/32 -", "1.0.0.77 -"),
        ("1.0.0.9-1.0.0.1 -", "bad source address"),
        ("1.0.0.1/0 -", "bad source address"),
        ("1.0.0.1/33 -", "bad source address"),
        ("host 5 - -", "bad source address"),
        ("- 0 - -", "bad source port"),
        ("- 9-8 - -", "bad source port"),
        ("- 9-65536 - -", "bad source port"),
        ("- - 1.0.0 -", "bad destination address"),
        ("- - - 0", "bad destination port"),
        ("- - - 70000", "bad destination port"),
        ("-", "syntax error"),
        ("- - - - -", "syntax error"),
    ] {
        let actual = parse_and_print(text).unwrap_or_else(|e| e);
        assert_eq!(actual, expected, "{text}");
    }
}

#[test]
fn input_specifications_are_parsed_or_refused() {
    for (kind, text, expected) in [
        (RewriterKind::TcpUdp, "drop", "<drop>"),
        (RewriterKind::TcpUdp, "discard", "<drop>"),
        (RewriterKind::TcpUdp, "pass", "<nochange>"),
        (RewriterKind::TcpUdp, "nochange 1", "<nochange>"),
        (RewriterKind::TcpUdp, "keep 0 1", "<keep>"),
        (RewriterKind::TcpUdp, "xpattern known 0 1", "1.0.0.1 -"),
        (RewriterKind::TcpUdp, "", "empty argument"),
        (RewriterKind::TcpUdp, "drop 1", "syntax error, expected 'drop'"),
        (RewriterKind::TcpUdp, "pass x", "syntax error, expected 'nochange [OUTPUT]'"),
        (RewriterKind::TcpUdp, "pass 2", "output port out of range"),
        (RewriterKind::TcpUdp, "pass -1", "output port out of range"),
        (RewriterKind::TcpUdp, "keep 0", "bad forward port"),
        (RewriterKind::TcpUdp, "keep 0 x", "bad reply port"),
        (RewriterKind::TcpUdp, "keep 0 2", "output port out of range"),
        (RewriterKind::TcpUdp, "pattern 0 1", "syntax error"),
        (RewriterKind::TcpUdp, "pattern unknown 0 1", "no such pattern 'unknown'"),
        (RewriterKind::TcpUdp, "pattern 1.0.0.1 5 - - 0 9", "output port out of range"),
        (RewriterKind::TcpUdp, "mapper", "output port out of range in mapper :: M pattern 0"),
        (RewriterKind::TcpUdp, "mapper x", "syntax error, expected element name"),
        (RewriterKind::TcpUdp, "other", "element is not an IPMapper"),
        (RewriterKind::TcpUdp, "nobody", "unknown specification"),
        (
            RewriterKind::SourceAddress,
            "pattern 1.0.0.1 5 - - 0 1",
            "IPAddrRewriter cannot accept IPRewriter patterns",
        ),
        (
            RewriterKind::SourceAddress,
            "pattern 1.0.0.1 2.0.0.2 0 1",
            "IPAddrRewriter pattern destination address must be '-'",
        ),
        (
            RewriterKind::AddressPair,
            "pattern 1.0.0.1 5 - - 0 1",
            "IPAddrPairRewriter cannot accept IPRewriter patterns",
        ),
    ] {
        let input = InputSpec::parse(text, kind, 2, &TestNames);
        assert_eq!(input.map_or_else(|e| e, |input| input.to_string()), expected, "{text}");
    }
}

#[test]
fn ports_are_kept_if_possible_and_never_given_twice() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 1000-1009 - - 0 1", "drop"], 100);
    let mut seen = HashMap::new();
    for host in 1..=10 {
        let packet = format!("1.0.0.{host}:1003 > 2.0.0.2:80 tcp");
        let to = translate(&mut it, 0, &packet, NOW).unwrap();
        assert!(host > 1 || to == expected(0, "9.9.9.9:1003 > 2.0.0.2:80 tcp"), "{to}");
        assert!(seen.insert(to, host).is_none());
    }
    let eleventh = "1.0.0.11:1003 > 2.0.0.2:80 tcp";
    for _ in 0..3 {
        assert_eq!(translate(&mut it, 0, eleventh, NOW), Err(Refusal::Exhausted));
    }
    // To another server, and by another protocol, the same ports are free.
    assert!(translate(&mut it, 0, "1.0.0.11:1003 > 2.0.0.3:80 tcp", NOW).is_ok());
    assert!(translate(&mut it, 0, "1.0.0.11:1003 > 2.0.0.2:80 udp", NOW).is_ok());
    assert_eq!(it.0.counts(0), (12, 3));
    // An expired mapping leaves its port free.
    let later = NOW + 290 * SECOND;
    for host in 2..=10 {
        let packet = format!("1.0.0.{host}:1003 > 2.0.0.2:80 tcp");
        translate(&mut it, 0, &packet, later).unwrap();
    }
    let to = translate(&mut it, 0, eleventh, NOW + 301 * SECOND).unwrap();
    assert_eq!(to, expected(0, "9.9.9.9:1003 > 2.0.0.2:80 tcp"));
}

#[test]
fn search_orders_of_port_ranges() {
    let ports = |range: &str| {
        let input = format!("pattern 9.9.9.9 {range} - - 0 1");
        let mut it = table(RewriterKind::TcpUdp, &[&input], 100);
        (0..4)
            .map(|n| {
                let to =
                    translate(&mut it, 0, &format!("1.0.0.1:{} > 2.0.0.2:{n} udp", 1007 - n), NOW);
                let to = to.unwrap();
                to[10..14].parse::<u16>().unwrap()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(ports("1000-1009#"), [1000, 1001, 1002, 1003]);
    assert_eq!(ports("1000-1009"), [1007, 1006, 1005, 1004]);
    // Random order: the port follows from the test's random number.
    assert_eq!(ports("1000-1009?"), [1005; 4]);
}

#[test]
fn tcp_goes_through_its_states() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 1000-1009 - - 0 1", "drop"], 100);
    let left = |it: &(Table, u16)| {
        let text = it.0.listing(0, None, NOW, 0).0;
        text.lines().next().unwrap().rsplit_once("exp").unwrap().1.parse::<u64>().unwrap()
    };
    let (forward, back) = ("1.0.0.1:1000 > 2.0.0.2:80 tcp", "2.0.0.2:80 > 9.9.9.9:1000 tcp");
    for (input, packet, seconds) in [
        (0, format!("{forward} syn"), 300),
        (1, format!("{back} syn ack 1"), 300),
        (0, format!("{forward} ack 1 \"ask\""), 300),
        (1, format!("{back} ack 4 \"say\""), 3600),
        (0, format!("{forward} fin ack 4"), 3600),
        (1, format!("{back} fin ack 5"), 10),
        (0, format!("{forward} ack 5"), 10),
        (0, format!("{forward} syn"), 3600),
        (1, format!("{back} rst"), 10),
    ] {
        translate(&mut it, input, &packet, NOW).unwrap();
        assert_eq!(left(&it), seconds, "{packet}");
    }
    assert!(it.0.expire(NOW + 11 * SECOND, 10) && it.0.is_empty());
}

#[test]
fn udp_streams_get_the_data_timeout() {
    let mut it = table(RewriterKind::Udp, &["keep 0 1"], 100);
    let (forward, back) = ("1.0.0.1:1 > 2.0.0.2:2 udp", "2.0.0.2:2 > 1.0.0.1:1 udp");
    for (packet, output) in [(forward, '0'), (back, '1'), (forward, '0')] {
        assert!(translate(&mut it, 0, packet, NOW).unwrap().starts_with(output));
    }
    it.0.expire(NOW + 301 * SECOND, 10);
    assert_eq!(it.0.len(), 1);
    it.0.expire(NOW + 3601 * SECOND, 10);
    assert!(it.0.is_empty());
}

#[test]
fn eviction_spares_guaranteed_mappings() {
    let mut it = table(RewriterKind::TcpUdp, &["keep 0 1"], 3);
    let packet = |n: u64| format!("1.0.0.1:{n} > 2.0.0.2:80 udp");
    for n in 1..=3 {
        translate(&mut it, 0, &packet(n), NOW + n * SECOND).unwrap();
    }
    assert_eq!(translate(&mut it, 0, &packet(4), NOW + 4 * SECOND), Err(Refusal::Exhausted));
    translate(&mut it, 0, &packet(1), NOW + 5 * SECOND).unwrap();
    // The second mapping expires first, and its guarantee is over.
    translate(&mut it, 0, &packet(4), NOW + 8 * SECOND).unwrap();
    let listing = it.0.listing(0, None, NOW, 0).0;
    assert!(!listing.contains("(1.0.0.1, 2,") && listing.contains("(1.0.0.1, 1,"), "{listing}");
    assert_eq!((it.0.len(), it.0.counts(0)), (3, (3, 1)));
    it.0.set_capacity(1);
    assert_eq!((it.0.len(), it.0.counts(0).0, it.0.capacity()), (1, 1, 1));
    it.0.clear();
    assert_eq!((it.0.len(), it.0.counts(0).0), (0, 0));
}

/// A table with room for `capacity` mappings, which are guaranteed for `guarantee` seconds.
fn guaranteed_table(capacity: u32, guarantee: u64, input: &str) -> (Table, u16) {
    let mut it = table(RewriterKind::TcpUdp, &[input, "drop"], capacity);
    let config = it.0.members[0].config.clone();
    let (guarantee, data, done) = (guarantee * SECOND, 86_400 * SECOND, 240 * SECOND);
    let timeouts = [Timeouts { guarantee, data, done, ..timeouts() }; 2];
    it.0.reconfigure(0, RewriterConfig { timeouts, ..config }, 2);
    it
}

#[test]
fn a_guarantee_ends_at_its_millisecond() {
    let mut it = guaranteed_table(2, 2, "keep 0 1");
    let udp = |n: u32| format!("1.0.0.1:{n} > 2.0.0.2:80 udp");
    let ms = SECOND / 1000;
    for (n, at, passes) in [
        (1, 0, true),
        (2, 40, true),
        (3, 1990, false),
        (3, 1999, false),
        (4, 2010, true),
        (5, 2039, false),
        (5, 2040, true),
        (4, 2050, true),
    ] {
        assert_eq!(translate(&mut it, 0, &udp(n), NOW + at * ms).is_ok(), passes, "{n} at {at}");
    }
    let (listing, _) = it.0.listing(0, None, NOW, 0);
    assert!(listing.contains("(1.0.0.1, 4,") && listing.contains("(1.0.0.1, 5,"), "{listing}");
    assert_eq!(it.0.counts(0), (2, 3));
    // A packet renews the guarantee, to the millisecond.
    translate(&mut it, 0, &udp(4), NOW + 9000 * ms + 999_999).unwrap();
    translate(&mut it, 0, &udp(5), NOW + 9001 * ms).unwrap();
    assert_eq!(translate(&mut it, 0, &udp(6), NOW + 10_999 * ms), Err(Refusal::Exhausted));
    translate(&mut it, 0, &udp(6), NOW + 11_000 * ms).unwrap();
    assert!(!it.0.listing(0, None, NOW, 0).0.contains("(1.0.0.1, 4,"));
}

#[test]
fn a_new_mapping_that_would_expire_first_is_refused() {
    let mut it = guaranteed_table(2, 0, "pattern 9.9.9.9 1000-1009# - - 0 1");
    for n in 1..=2 {
        let (forward, back) = (
            format!("1.0.0.1:{n} > 2.0.0.2:80 tcp ack 1 \"ask\""),
            format!("2.0.0.2:80 > 9.9.9.9:{} tcp ack 4 \"say\"", 999 + n),
        );
        translate(&mut it, 0, &forward, NOW).unwrap();
        translate(&mut it, 1, &back, NOW).unwrap();
    }
    let new = "1.0.0.1:3 > 2.0.0.2:80 tcp syn";
    assert_eq!(translate(&mut it, 0, new, NOW + 2 * SECOND), Err(Refusal::Exhausted));
    assert_eq!((it.0.len(), it.0.counts(0)), (2, (2, 1)));
    // A reset connection expires earlier. The port that the refused flow took stays skipped.
    translate(&mut it, 0, "1.0.0.1:2 > 2.0.0.2:80 tcp rst", NOW + 3 * SECOND).unwrap();
    let to = translate(&mut it, 0, new, NOW + 4 * SECOND).unwrap();
    assert_eq!(to, expected(0, "9.9.9.9:1003 > 2.0.0.2:80 tcp syn"));
    assert_eq!(translate(&mut it, 1, "2.0.0.2:80 > 9.9.9.9:1001 tcp", NOW), Err(Refusal::Unmapped));
}

#[test]
fn a_shorter_timeout_takes_effect_immediately() {
    for ends in [&["rst"][..], &["fin", "back fin"]] {
        let mut it = guaranteed_table(3, 0, "keep 0 1");
        let packet = |n: u32, flags: &str| match flags.strip_prefix("back ") {
            None => format!("1.0.0.1:{n} > 2.0.0.2:80 tcp {flags}"),
            Some(flags) => format!("2.0.0.2:80 > 1.0.0.1:{n} tcp {flags}"),
        };
        for n in 1..=3 {
            translate(&mut it, 0, &packet(n, "syn"), NOW + u64::from(n)).unwrap();
        }
        // The eviction order exists by now, with mapping 1 as its first.
        for end in ends {
            translate(&mut it, 0, &packet(3, end), NOW + SECOND).unwrap();
        }
        translate(&mut it, 0, &packet(4, "syn"), NOW + 2 * SECOND).unwrap();
        let (listing, _) = it.0.listing(0, None, NOW, 0);
        assert!(!listing.contains("(1.0.0.1, 3,") && listing.contains("(1.0.0.1, 1,"), "{listing}");
    }
}

#[test]
fn a_ping_of_zeros_has_no_zero_checksum() {
    let mut it = table(RewriterKind::IcmpEcho, &["pattern 9.9.9.9 1000-1003 - - 0 1", "drop"], 9);
    let request =
        translate(&mut it, 0, "1.0.0.1 > 2.0.0.2 icmp type echo ident 0 seq 0", NOW).unwrap();
    assert_eq!(request, expected(0, "9.9.9.9 > 2.0.0.2 icmp type echo ident 1001 seq 0"));
    let reply = "2.0.0.2 > 9.9.9.9 icmp type echo-reply ident 1001 seq 0";
    let expected_packet = "2.0.0.2 > 1.0.0.1 icmp type echo-reply ident 0 seq 0 check 65535";
    assert_eq!(translate(&mut it, 1, reply, NOW).unwrap(), expected(1, expected_packet));
}

#[test]
fn only_the_first_packet_of_a_self_reply_flow_is_no_reply() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 203.0.113.7 - - - 0 1", "drop"], 9);
    let packet = "203.0.113.7:4000 > 203.0.113.7:4000 udp";
    for (input, output) in [(0, 0), (0, 1), (1, 1), (0, 1)] {
        assert_eq!(translate(&mut it, input, packet, NOW).unwrap(), expected(output, packet));
    }
}

#[test]
fn the_eviction_order_has_a_bounded_number_of_entries() {
    let mut it = guaranteed_table(1000, 1, "keep 0 1");
    for step in 0..300_000u32 {
        let now = NOW + u64::from(step) * SECOND / 400;
        let [_, a, b, c] = (step / 3).to_be_bytes();
        let flags = ["syn", "rst", "\"data\""][step as usize % 3];
        _ = translate(&mut it, 0, &format!("5.{a}.{b}.{c}:9 > 2.0.0.3:80 tcp {flags}"), now);
        assert!(
            it.0.eviction.entries() <= 5 * 1000 + 1024,
            "{} at {step}",
            it.0.eviction.entries()
        );
    }
    // A table that empties discards its eviction order.
    let mut it = guaranteed_table(1000, 1, "keep 0 1");
    for n in 0..700 {
        translate(&mut it, 0, &format!("5.0.0.1:{n} > 2.0.0.3:80 udp"), NOW).unwrap();
    }
    assert!(it.0.eviction.entries() >= 700);
    while !it.0.expire(NOW + 301 * SECOND, 100) {}
    translate(&mut it, 0, "5.0.0.2:1 > 2.0.0.3:80 udp", NOW + 301 * SECOND).unwrap();
    assert_eq!((it.0.len(), it.0.eviction.entries()), (1, 0));
}

#[test]
fn a_flood_fills_the_capacity_and_existing_flows_stay() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 1024-65535 - - 0 1", "drop"], 1000);
    let own = |n: u32| format!("1.0.0.1:{} > 2.0.0.2:80 udp", 2000 + n);
    let to: Vec<String> = (0..100).map(|n| translate(&mut it, 0, &own(n), NOW).unwrap()).collect();
    let mut opened = 0;
    for step in 0..40_000u32 {
        let now = NOW + u64::from(step) * SECOND / 1000;
        let [_, a, b, c] = step.to_be_bytes();
        opened += u32::from(
            translate(&mut it, 0, &format!("5.{a}.{b}.{c}:9 > 2.0.0.3:80 udp"), now).is_ok(),
        );
        if step % 10 == 0 {
            let n = step / 10 % 100;
            assert_eq!(translate(&mut it, 0, &own(n), now).unwrap(), to[n as usize]);
        }
    }
    // Each is guaranteed for five seconds: 900 mappings at a time, eight times.
    assert!((900 * 7..900 * 9).contains(&opened), "{opened}");
    assert_eq!(it.0.len(), 1000);
    assert_eq!(it.0.counts(0), (1000, 40_000 - u64::from(opened)));
}

#[test]
fn members_of_a_table_share_only_its_capacity() {
    let mut first = table(RewriterKind::TcpUdp, &["keep 0 1"], 2);
    let inputs = vec![InputSpec::parse("keep 1 0", RewriterKind::TcpUdp, 2, &TestNames).unwrap()];
    let config = RewriterConfig {
        kind: RewriterKind::TcpUdp,
        timeouts: [timeouts(); 2],
        inputs,
        references: Vec::new(),
    };
    let zone = first.0.add_member("other", config, 2);
    assert_eq!(
        (first.0.zone("rw"), first.0.zone("other"), first.0.zone("x")),
        (Some(0), Some(1), None)
    );
    let packet = "1.0.0.1:1 > 2.0.0.2:80 udp";
    assert!(translate(&mut first, 0, packet, NOW).unwrap().starts_with('0'));
    let config = first.0.members[1].config.clone();
    assert_eq!(first.0.add_member("other", config, 2), zone);
    let mut second = (std::mem::take(&mut first.0), zone);
    assert!(translate(&mut second, 0, packet, NOW).unwrap().starts_with('1'));
    assert_eq!(
        translate(&mut second, 0, "1.0.0.1:2 > 2.0.0.2:80 udp", NOW),
        Err(Refusal::Exhausted)
    );
    assert_eq!((second.0.counts(0), second.0.counts(1)), ((1, 0), (1, 1)));
}

#[test]
fn reconfiguring_keeps_mappings_with_existing_ports() {
    let mut it = table(RewriterKind::TcpUdp, &["keep 0 1", "keep 1 1"], 100);
    translate(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).unwrap();
    translate(&mut it, 1, "1.0.0.1:2 > 2.0.0.2:80 udp", NOW).unwrap();
    let inputs = vec![InputSpec::parse("drop", RewriterKind::TcpUdp, 2, &TestNames).unwrap()];
    it.0.reconfigure(
        0,
        RewriterConfig {
            kind: RewriterKind::TcpUdp,
            timeouts: [timeouts(); 2],
            inputs,
            references: Vec::new(),
        },
        2,
    );
    assert_eq!(it.0.counts(0).0, 1);
    assert!(translate(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).is_ok());
    assert_eq!(translate(&mut it, 0, "1.0.0.1:2 > 2.0.0.2:80 udp", NOW), Err(Refusal::Unmapped));
    it.0.set_input(0, 0, InputSpec::Pass(1));
    assert_eq!(it.0.counts(0).0, 0);
    assert!(translate(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).unwrap().starts_with('1'));
}

#[test]
fn a_mapping_with_the_same_reply_key_replaces_the_older() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 77 - - 0 1", "drop"], 100);
    translate(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).unwrap();
    translate(&mut it, 0, "1.0.0.2:1 > 2.0.0.2:80 udp", NOW).unwrap();
    let reply = translate(&mut it, 1, "2.0.0.2:80 > 9.9.9.9:77 udp", NOW).unwrap();
    assert_eq!((reply, it.0.len()), (expected(1, "2.0.0.2:80 > 1.0.0.2:1 udp"), 1));
    // A flow whose replies have the flow's own key.
    let mut it = table(RewriterKind::TcpUdp, &["keep 0 1"], 100);
    translate(&mut it, 0, "1.0.0.1:1 > 1.0.0.1:1 udp", NOW).unwrap();
    translate(&mut it, 0, "1.0.0.1:1 > 1.0.0.1:1 udp", NOW).unwrap();
    it.0.clear();
    assert!(it.0.is_empty() && it.0.flows.find(&Tuple4::default()).is_none());
}

#[test]
fn errors_quote_the_original_packet() {
    let mut it =
        table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 1000-1009 3.0.0.3 99 0 1", "drop"], 100);
    translate(&mut it, 0, "1.0.0.1:1000 > 2.0.0.2:80 tcp syn seq 7", NOW).unwrap();
    let flow = Tuple4::new(([1, 0, 0, 1].into(), 1000), ([2, 0, 0, 2].into(), 80), ip_proto::TCP);
    assert!(it.0.mapping(0, flow).unwrap().0.shifts().add(false, 100, 5));
    let rewritten = |packet: &str| {
        let mut bytes = sketch::build(packet).unwrap().bytes;
        let (ip, rest) = Ipv4Header::from_prefix(&bytes).unwrap();
        let quote = parse_quote(ip.split_options(rest).unwrap().1)?;
        let original = it.0.original(0, &quote)?;
        rewrite_error(&mut bytes, &original);
        Some(format!("{} {}", original.output, sketch::print(&bytes, sketch::Layer::Network)))
    };
    let error = "icmp type unreachable code 4";
    assert_eq!(
        rewritten(&format!("4.0.0.4 > 9.9.9.9 {error} [9.9.9.9:1000 > 3.0.0.3:99 tcp seq 205]"))
            .unwrap(),
        expected(1, &format!("4.0.0.4 > 1.0.0.1 {error} [1.0.0.1:1000 > 2.0.0.2:80 tcp seq 200]"))
    );
    // An error from the receiver itself, which the sender knows by another address.
    assert_eq!(
        rewritten(&format!("3.0.0.3 > 9.9.9.9 {error} [9.9.9.9:1000 > 3.0.0.3:99 tcp seq 50]"))
            .unwrap(),
        expected(1, &format!("2.0.0.2 > 1.0.0.1 {error} [1.0.0.1:1000 > 2.0.0.2:80 tcp seq 50]"))
    );
    // An error about a reply.
    assert_eq!(
        rewritten(&format!("1.0.0.1 > 2.0.0.2 {error} [2.0.0.2:80 > 1.0.0.1:1000 tcp seq 9]"))
            .unwrap(),
        expected(0, &format!("9.9.9.9 > 3.0.0.3 {error} [3.0.0.3:99 > 9.9.9.9:1000 tcp seq 9]"))
    );
    assert_eq!(
        rewritten(&format!("4.0.0.4 > 9.9.9.9 {error} [9.9.9.9:1001 > 3.0.0.3:99 tcp]")),
        None
    );
    assert_eq!(rewritten("4.0.0.4 > 9.9.9.9 icmp type echo [9.9.9.9:1000 > 3.0.0.3:99 tcp]"), None);
}

#[test]
fn errors_about_other_addresses_leave_ports_and_identifiers() {
    for (kind, input) in [
        (RewriterKind::SourceAddress, "pattern 9.9.9.9 - 0 1"),
        (RewriterKind::AddressPair, "pattern 9.9.9.9 3.0.0.3 0 1"),
    ] {
        let mut it = table(kind, &[input, "drop"], 100);
        for inside in ["tcp seq 7", "udp \"data\"", "icmp type echo ident 5 seq 6", "proto 99"] {
            let ports = matches!(&inside[..3], "tcp" | "udp");
            let ends = |src: &str, dst: &str| match ports {
                true => format!("{src}:5 > {dst}:6 {inside}"),
                false => format!("{src} > {dst} {inside}"),
            };
            translate(&mut it, 0, &ends("1.0.0.1", "2.0.0.2"), NOW).unwrap();
            let outer = if kind == RewriterKind::AddressPair { "3.0.0.3" } else { "2.0.0.2" };
            let error =
                format!("4.0.0.4 > 9.9.9.9 icmp type timeexceeded [{}]", ends("9.9.9.9", outer));
            let mut bytes = sketch::build(&error).unwrap().bytes;
            let quote = parse_quote(&bytes[20..]).unwrap();
            let original = it.0.original(0, &quote).unwrap();
            assert_eq!(rewrite_error(&mut bytes, &original), Some([1, 0, 0, 1].into()));
            let expected_packet = format!(
                "4.0.0.4 > 1.0.0.1 icmp type timeexceeded [{}]",
                ends("1.0.0.1", "2.0.0.2")
            );
            let shown = format!("0 {}", sketch::print(&bytes, sketch::Layer::Network));
            assert_eq!(shown, expected(0, &expected_packet), "{kind:?}");
        }
    }
}

#[test]
fn opened_mappings_translate_their_first_packets() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 1000-1009# - - 0 1", "drop"], 100);
    let flow = Tuple4::new(([1, 0, 0, 1].into(), 777), ([2, 0, 0, 2].into(), 20), ip_proto::TCP);
    for _ in 0..2 {
        let to = it
            .0
            .get_or_open(0, 0, flow, 0, NOW, &mut ChoiceContext { worker: 0, random: &mut |_| 0 })
            .unwrap();
        assert_eq!((to.src().1, it.0.len()), (1000, 1));
        assert_eq!(it.0.lookup(0, flow), Some(to));
        assert_eq!(it.0.lookup(0, to.reversed()), Some(flow.reversed()));
    }
    assert_eq!(
        it.0.get_or_open(
            0,
            1,
            flow.reversed(),
            0,
            NOW,
            &mut ChoiceContext { worker: 0, random: &mut |_| 0 }
        ),
        None
    );
    let reply = translate(&mut it, 1, "2.0.0.2:20 > 9.9.9.9:1000 tcp syn", NOW).unwrap();
    assert_eq!(reply, expected(1, "2.0.0.2:20 > 1.0.0.1:777 tcp syn"));
}
