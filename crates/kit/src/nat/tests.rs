//! Rewriters against packets made by hand, and against a map that does all the slow way.

use super::*;
use crate::classify::NoNames;
use castanet_wire::{Ipv4Header, ip_proto, sketch};
use proptest::prelude::*;
use std::collections::HashMap;

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_000_000_000 * SECOND;

struct Nobody;

impl Named for Nobody {
    fn names(&self) -> &dyn crate::classify::Names {
        &NoNames
    }
    fn pattern(&self, name: &str) -> Option<Pattern> {
        (name == "known").then(|| Pattern::parse(&["1.0.0.1", "-"], &NoNames).unwrap())
    }
    fn mapper(&self, name: &str) -> Option<Element> {
        let ways = vec![way(&["-", "-", "9.9.9.9", "-", "0", "7"], self).unwrap()];
        let mapper = Mapper::RoundRobin(ways, Turn::default());
        match name {
            "mapper" => Some(Element::Mapper(mapper, "mapper :: M".into())),
            "other" => Some(Element::Other),
            _ => None,
        }
    }
}

fn lives() -> Lives {
    Lives { idle: 300 * SECOND, data: 3600 * SECOND, done: 10 * SECOND, guarantee: 5 * SECOND }
}

fn table(by: By, inputs: &[&str], capacity: u32) -> (Table, u16) {
    let parse = |text: &&str| Input::parse(text, by, 2, &Nobody).unwrap();
    let inputs = inputs.iter().map(parse).collect();
    let mut table = Table::default();
    table.set_capacity(capacity);
    let zone =
        table.join("rw", Rules { by, lives: [lives(); 2], inputs, named: Vec::new() }, 2, NOW);
    (table, zone)
}

/// What becomes of a packet: its output and its sketch.
fn pass(it: &mut (Table, u16), input: usize, packet: &str, now: u64) -> Result<String, Refusal> {
    let mut bytes = sketch::build(packet).unwrap().bytes;
    let passed = pass_bytes(it, input, &mut bytes, now)?;
    let (Passed::Untouched(output) | Passed::Rewritten { output, .. }) = passed;
    Ok(format!("{output} {}", sketch::print(&bytes, sketch::Layer::Network)))
}

/// The same for a packet that is expected: nothing is left out.
fn shown(output: u8, packet: &str) -> String {
    let bytes = sketch::build(packet).unwrap().bytes;
    format!("{output} {}", sketch::print(&bytes, sketch::Layer::Network))
}

fn pass_bytes(
    (table, zone): &mut (Table, u16),
    input: usize,
    bytes: &mut [u8],
    now: u64,
) -> Result<Passed, Refusal> {
    table.expire(now, 100);
    let Some((ip, rest)) = Ipv4Header::from_prefix(bytes) else { return Err(Refusal::Unmapped) };
    let by = table.members[usize::from(*zone)].rules.by;
    let segment = ip.split_options(rest).map_or(&[][..], |(_, segment)| segment);
    let Some((key, begins)) = by.key(ip, segment) else { return table.unmapped(*zone, input) };
    let key = key.in_zone(*zone);
    let found = table.at(&key);
    let arrival = Arrival { input, key, begins, found, anno: 0, now };
    table.pass(*zone, arrival, bytes, &mut || 12345)
}

fn words(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Pattern::parse(&words, &NoNames).map(|pattern| pattern.to_string()).map_err(str::to_owned)
}

#[test]
fn patterns_are_read_and_shown() {
    for (text, shown) in [
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
        let said = words(text).unwrap_or_else(|e| e);
        assert_eq!(said, shown, "{text}");
    }
}

#[test]
fn inputs_are_read_and_refused() {
    for (by, text, said) in [
        (By::Both, "drop", "<drop>"),
        (By::Both, "discard", "<drop>"),
        (By::Both, "pass", "<nochange>"),
        (By::Both, "nochange 1", "<nochange>"),
        (By::Both, "keep 0 1", "<keep>"),
        (By::Both, "xpattern known 0 1", "1.0.0.1 -"),
        (By::Both, "", "empty argument"),
        (By::Both, "drop 1", "syntax error, expected 'drop'"),
        (By::Both, "pass x", "syntax error, expected 'nochange [OUTPUT]'"),
        (By::Both, "pass 2", "output port out of range"),
        (By::Both, "pass -1", "output port out of range"),
        (By::Both, "keep 0", "bad forward port"),
        (By::Both, "keep 0 x", "bad reply port"),
        (By::Both, "keep 0 2", "output port out of range"),
        (By::Both, "pattern 0 1", "syntax error"),
        (By::Both, "pattern unknown 0 1", "no such pattern 'unknown'"),
        (By::Both, "pattern 1.0.0.1 5 - - 0 9", "output port out of range"),
        (By::Both, "mapper", "output port out of range in mapper :: M pattern 0"),
        (By::Both, "mapper x", "syntax error, expected element name"),
        (By::Both, "other", "element is not an IPMapper"),
        (By::Both, "nobody", "unknown specification"),
        (
            By::Source,
            "pattern 1.0.0.1 5 - - 0 1",
            "IPAddrRewriter cannot accept IPRewriter patterns",
        ),
        (
            By::Source,
            "pattern 1.0.0.1 2.0.0.2 0 1",
            "IPAddrRewriter pattern destination address must be '-'",
        ),
        (
            By::Pair,
            "pattern 1.0.0.1 5 - - 0 1",
            "IPAddrPairRewriter cannot accept IPRewriter patterns",
        ),
    ] {
        let input = Input::parse(text, by, 2, &Nobody);
        assert_eq!(input.map_or_else(|e| e, |input| input.to_string()), said, "{text}");
    }
}

#[test]
fn a_port_is_kept_if_it_can_be_and_two_flows_never_get_the_same() {
    let mut it = table(By::Both, &["pattern 9.9.9.9 1000-1009 - - 0 1", "drop"], 100);
    let mut seen = HashMap::new();
    for host in 1..=10 {
        let packet = format!("1.0.0.{host}:1003 > 2.0.0.2:80 tcp");
        let to = pass(&mut it, 0, &packet, NOW).unwrap();
        assert!(host > 1 || to == shown(0, "9.9.9.9:1003 > 2.0.0.2:80 tcp"), "{to}");
        assert!(seen.insert(to, host).is_none());
    }
    let eleventh = "1.0.0.11:1003 > 2.0.0.2:80 tcp";
    for _ in 0..3 {
        assert_eq!(pass(&mut it, 0, eleventh, NOW), Err(Refusal::Exhausted));
    }
    // To another server, and by another protocol, the same ports are free.
    assert!(pass(&mut it, 0, "1.0.0.11:1003 > 2.0.0.3:80 tcp", NOW).is_ok());
    assert!(pass(&mut it, 0, "1.0.0.11:1003 > 2.0.0.2:80 udp", NOW).is_ok());
    assert_eq!(it.0.counts(0), (12, 3));
    // Where one has gone, there is a place.
    let later = NOW + 290 * SECOND;
    for host in 2..=10 {
        let packet = format!("1.0.0.{host}:1003 > 2.0.0.2:80 tcp");
        pass(&mut it, 0, &packet, later).unwrap();
    }
    let to = pass(&mut it, 0, eleventh, NOW + 301 * SECOND).unwrap();
    assert_eq!(to, shown(0, "9.9.9.9:1003 > 2.0.0.2:80 tcp"));
}

#[test]
fn orders_of_choice() {
    let ports = |range: &str| {
        let input = format!("pattern 9.9.9.9 {range} - - 0 1");
        let mut it = table(By::Both, &[&input], 100);
        (0..4)
            .map(|n| {
                let to = pass(&mut it, 0, &format!("1.0.0.1:{} > 2.0.0.2:{n} udp", 1007 - n), NOW);
                let to = to.unwrap();
                to[10..14].parse::<u16>().unwrap()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(ports("1000-1009#"), [1000, 1001, 1002, 1003]);
    assert_eq!(ports("1000-1009"), [1007, 1006, 1005, 1004]);
    // By chance: what the test gives for that.
    assert_eq!(ports("1000-1009?"), [1005; 4]);
}

#[test]
fn tcp_goes_through_its_states() {
    let mut it = table(By::Both, &["pattern 9.9.9.9 1000-1009 - - 0 1", "drop"], 100);
    let left = |it: &(Table, u16)| {
        let text = it.0.listing(0, None, NOW, 0).0;
        text.lines().next().unwrap().rsplit_once("exp").unwrap().1.parse::<u64>().unwrap()
    };
    let (there, back) = ("1.0.0.1:1000 > 2.0.0.2:80 tcp", "2.0.0.2:80 > 9.9.9.9:1000 tcp");
    for (input, packet, seconds) in [
        (0, format!("{there} syn"), 300),
        (1, format!("{back} syn ack 1"), 300),
        (0, format!("{there} ack 1 \"ask\""), 300),
        (1, format!("{back} ack 4 \"say\""), 3600),
        (0, format!("{there} fin ack 4"), 3600),
        (1, format!("{back} fin ack 5"), 10),
        (0, format!("{there} ack 5"), 10),
        (0, format!("{there} syn"), 3600),
        (1, format!("{back} rst"), 10),
    ] {
        pass(&mut it, input, &packet, NOW).unwrap();
        assert_eq!(left(&it), seconds, "{packet}");
    }
    assert!(it.0.expire(NOW + 11 * SECOND, 10) && it.0.is_empty());
}

#[test]
fn udp_that_streams_lives_longer() {
    let mut it = table(By::Udp, &["keep 0 1"], 100);
    let (there, back) = ("1.0.0.1:1 > 2.0.0.2:2 udp", "2.0.0.2:2 > 1.0.0.1:1 udp");
    for (packet, output) in [(there, '0'), (back, '1'), (there, '0')] {
        assert!(pass(&mut it, 0, packet, NOW).unwrap().starts_with(output));
    }
    it.0.expire(NOW + 301 * SECOND, 10);
    assert_eq!(it.0.len(), 1);
    it.0.expire(NOW + 3601 * SECOND, 10);
    assert!(it.0.is_empty());
}

#[test]
fn room_is_made_but_not_of_what_is_guaranteed() {
    let mut it = table(By::Both, &["keep 0 1"], 3);
    let packet = |n: u64| format!("1.0.0.1:{n} > 2.0.0.2:80 udp");
    for n in 1..=3 {
        pass(&mut it, 0, &packet(n), NOW + n * SECOND).unwrap();
    }
    assert_eq!(pass(&mut it, 0, &packet(4), NOW + 4 * SECOND), Err(Refusal::Exhausted));
    pass(&mut it, 0, &packet(1), NOW + 5 * SECOND).unwrap();
    // The second is the one that would end first, and its guarantee is over.
    pass(&mut it, 0, &packet(4), NOW + 8 * SECOND).unwrap();
    let listing = it.0.listing(0, None, NOW, 0).0;
    assert!(!listing.contains("(1.0.0.1, 2,") && listing.contains("(1.0.0.1, 1,"), "{listing}");
    assert_eq!((it.0.len(), it.0.counts(0)), (3, (3, 1)));
    it.0.set_capacity(1);
    assert_eq!((it.0.len(), it.0.counts(0).0, it.0.capacity()), (1, 1, 1));
    it.0.clear();
    assert_eq!((it.0.len(), it.0.counts(0).0), (0, 0));
}

/// A rewriter's table with room for `capacity`, whose mappings are guaranteed for so many seconds.
fn guaranteed(capacity: u32, guarantee: u64, input: &str) -> (Table, u16) {
    let mut it = table(By::Both, &[input, "drop"], capacity);
    let rules = it.0.members[0].rules.clone();
    let (guarantee, data, done) = (guarantee * SECOND, 86_400 * SECOND, 240 * SECOND);
    let lives = [Lives { guarantee, data, done, ..lives() }; 2];
    it.0.set_rules(0, Rules { lives, ..rules }, 2);
    it
}

#[test]
fn a_guarantee_ends_at_its_millisecond() {
    let mut it = guaranteed(2, 2, "keep 0 1");
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
        assert_eq!(pass(&mut it, 0, &udp(n), NOW + at * ms).is_ok(), passes, "{n} at {at}");
    }
    let (listing, _) = it.0.listing(0, None, NOW, 0);
    assert!(listing.contains("(1.0.0.1, 4,") && listing.contains("(1.0.0.1, 5,"), "{listing}");
    assert_eq!(it.0.counts(0), (2, 3));
    // A packet renews it, to the millisecond.
    pass(&mut it, 0, &udp(4), NOW + 9000 * ms + 999_999).unwrap();
    pass(&mut it, 0, &udp(5), NOW + 9001 * ms).unwrap();
    assert_eq!(pass(&mut it, 0, &udp(6), NOW + 10_999 * ms), Err(Refusal::Exhausted));
    pass(&mut it, 0, &udp(6), NOW + 11_000 * ms).unwrap();
    assert!(!it.0.listing(0, None, NOW, 0).0.contains("(1.0.0.1, 4,"));
}

#[test]
fn a_newcomer_that_would_end_first_is_refused() {
    let mut it = guaranteed(2, 0, "pattern 9.9.9.9 1000-1009# - - 0 1");
    for n in 1..=2 {
        let (there, back) = (
            format!("1.0.0.1:{n} > 2.0.0.2:80 tcp ack 1 \"ask\""),
            format!("2.0.0.2:80 > 9.9.9.9:{} tcp ack 4 \"say\"", 999 + n),
        );
        pass(&mut it, 0, &there, NOW).unwrap();
        pass(&mut it, 1, &back, NOW).unwrap();
    }
    let new = "1.0.0.1:3 > 2.0.0.2:80 tcp syn";
    assert_eq!(pass(&mut it, 0, new, NOW + 2 * SECOND), Err(Refusal::Exhausted));
    assert_eq!((it.0.len(), it.0.counts(0)), (2, (2, 1)));
    // One that was reset ends before it; the port of the flow that was refused stays used.
    pass(&mut it, 0, "1.0.0.1:2 > 2.0.0.2:80 tcp rst", NOW + 3 * SECOND).unwrap();
    let to = pass(&mut it, 0, new, NOW + 4 * SECOND).unwrap();
    assert_eq!(to, shown(0, "9.9.9.9:1003 > 2.0.0.2:80 tcp syn"));
    assert_eq!(pass(&mut it, 1, "2.0.0.2:80 > 9.9.9.9:1001 tcp", NOW), Err(Refusal::Unmapped));
}

#[test]
fn a_life_that_gets_shorter_counts_at_once() {
    for ends in [&["rst"][..], &["fin", "back fin"]] {
        let mut it = guaranteed(3, 0, "keep 0 1");
        let packet = |n: u32, flags: &str| match flags.strip_prefix("back ") {
            None => format!("1.0.0.1:{n} > 2.0.0.2:80 tcp {flags}"),
            Some(flags) => format!("2.0.0.2:80 > 1.0.0.1:{n} tcp {flags}"),
        };
        for n in 1..=3 {
            pass(&mut it, 0, &packet(n, "syn"), NOW + u64::from(n)).unwrap();
        }
        // So the order exists already, and has the first as the one that ends first.
        for end in ends {
            pass(&mut it, 0, &packet(3, end), NOW + SECOND).unwrap();
        }
        pass(&mut it, 0, &packet(4, "syn"), NOW + 2 * SECOND).unwrap();
        let (listing, _) = it.0.listing(0, None, NOW, 0);
        assert!(!listing.contains("(1.0.0.1, 3,") && listing.contains("(1.0.0.1, 1,"), "{listing}");
    }
}

#[test]
fn a_ping_of_zeros_has_no_zero_checksum() {
    let mut it = table(By::Echo, &["pattern 9.9.9.9 1000-1003 - - 0 1", "drop"], 9);
    let asked = pass(&mut it, 0, "1.0.0.1 > 2.0.0.2 icmp type echo ident 0 seq 0", NOW).unwrap();
    assert_eq!(asked, shown(0, "9.9.9.9 > 2.0.0.2 icmp type echo ident 1001 seq 0"));
    let reply = "2.0.0.2 > 9.9.9.9 icmp type echo-reply ident 1001 seq 0";
    let wanted = "2.0.0.2 > 1.0.0.1 icmp type echo-reply ident 0 seq 0 check 65535";
    assert_eq!(pass(&mut it, 1, reply, NOW).unwrap(), shown(1, wanted));
}

#[test]
fn a_flow_that_becomes_its_own_reply_leaves_as_a_reply_but_once() {
    let mut it = table(By::Both, &["pattern 203.0.113.7 - - - 0 1", "drop"], 9);
    let packet = "203.0.113.7:4000 > 203.0.113.7:4000 udp";
    for (input, output) in [(0, 0), (0, 1), (1, 1), (0, 1)] {
        assert_eq!(pass(&mut it, input, packet, NOW).unwrap(), shown(output, packet));
    }
}

#[test]
fn the_order_has_no_more_entries_than_there_are_packets_or_mappings() {
    let mut it = guaranteed(1000, 1, "keep 0 1");
    for step in 0..300_000u32 {
        let now = NOW + u64::from(step) * SECOND / 400;
        let [_, a, b, c] = (step / 3).to_be_bytes();
        let flags = ["syn", "rst", "\"data\""][step as usize % 3];
        _ = pass(&mut it, 0, &format!("5.{a}.{b}.{c}:9 > 2.0.0.3:80 tcp {flags}"), now);
        assert!(it.0.order.entries() <= 5 * 1000 + 1024, "{} at {step}", it.0.order.entries());
    }
    // A table that empties needs no order.
    let mut it = guaranteed(1000, 1, "keep 0 1");
    for n in 0..700 {
        pass(&mut it, 0, &format!("5.0.0.1:{n} > 2.0.0.3:80 udp"), NOW).unwrap();
    }
    assert!(it.0.order.entries() >= 700);
    while !it.0.expire(NOW + 301 * SECOND, 100) {}
    pass(&mut it, 0, "5.0.0.2:1 > 2.0.0.3:80 udp", NOW + 301 * SECOND).unwrap();
    assert_eq!((it.0.len(), it.0.order.entries()), (1, 0));
}

#[test]
fn a_flood_finds_no_more_room_than_there_is_and_flows_that_were_there_stay() {
    let mut it = table(By::Both, &["pattern 9.9.9.9 1024-65535 - - 0 1", "drop"], 1000);
    let own = |n: u32| format!("1.0.0.1:{} > 2.0.0.2:80 udp", 2000 + n);
    let to: Vec<String> = (0..100).map(|n| pass(&mut it, 0, &own(n), NOW).unwrap()).collect();
    let mut made = 0;
    for step in 0..40_000u32 {
        let now = NOW + u64::from(step) * SECOND / 1000;
        let [_, a, b, c] = step.to_be_bytes();
        made +=
            u32::from(pass(&mut it, 0, &format!("5.{a}.{b}.{c}:9 > 2.0.0.3:80 udp"), now).is_ok());
        if step % 10 == 0 {
            let n = step / 10 % 100;
            assert_eq!(pass(&mut it, 0, &own(n), now).unwrap(), to[n as usize]);
        }
    }
    // Each keeps its place for five seconds: those of 900 a time, eight times.
    assert!((900 * 7..900 * 9).contains(&made), "{made}");
    assert_eq!(it.0.len(), 1000);
    assert_eq!(it.0.counts(0), (1000, 40_000 - u64::from(made)));
}

#[test]
fn members_of_a_table_share_room_and_nothing_else() {
    let mut first = table(By::Both, &["keep 0 1"], 2);
    let inputs = vec![Input::parse("keep 1 0", By::Both, 2, &Nobody).unwrap()];
    let rules = Rules { by: By::Both, lives: [lives(); 2], inputs, named: Vec::new() };
    let zone = first.0.join("other", rules, 2, NOW);
    assert_eq!(
        (first.0.zone("rw"), first.0.zone("other"), first.0.zone("x")),
        (Some(0), Some(1), None)
    );
    let packet = "1.0.0.1:1 > 2.0.0.2:80 udp";
    assert!(pass(&mut first, 0, packet, NOW).unwrap().starts_with('0'));
    let rules = first.0.members[1].rules.clone();
    assert_eq!(first.0.join("other", rules, 2, NOW), zone);
    let mut second = (std::mem::take(&mut first.0), zone);
    assert!(pass(&mut second, 0, packet, NOW).unwrap().starts_with('1'));
    assert_eq!(pass(&mut second, 0, "1.0.0.1:2 > 2.0.0.2:80 udp", NOW), Err(Refusal::Exhausted));
    assert_eq!((second.0.counts(0), second.0.counts(1)), ((1, 0), (1, 1)));
}

#[test]
fn other_rules_keep_the_mappings_that_have_a_place() {
    let mut it = table(By::Both, &["keep 0 1", "keep 1 1"], 100);
    pass(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).unwrap();
    pass(&mut it, 1, "1.0.0.1:2 > 2.0.0.2:80 udp", NOW).unwrap();
    let inputs = vec![Input::parse("drop", By::Both, 2, &Nobody).unwrap()];
    it.0.set_rules(0, Rules { by: By::Both, lives: [lives(); 2], inputs, named: Vec::new() }, 2);
    assert_eq!(it.0.counts(0).0, 1);
    assert!(pass(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).is_ok());
    assert_eq!(pass(&mut it, 0, "1.0.0.1:2 > 2.0.0.2:80 udp", NOW), Err(Refusal::Unmapped));
    it.0.set_input(0, 0, Input::Pass(1));
    assert_eq!(it.0.counts(0).0, 0);
    assert!(pass(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).unwrap().starts_with('1'));
}

#[test]
fn who_has_the_same_replies_takes_over() {
    let mut it = table(By::Both, &["pattern 9.9.9.9 77 - - 0 1", "drop"], 100);
    pass(&mut it, 0, "1.0.0.1:1 > 2.0.0.2:80 udp", NOW).unwrap();
    pass(&mut it, 0, "1.0.0.2:1 > 2.0.0.2:80 udp", NOW).unwrap();
    let reply = pass(&mut it, 1, "2.0.0.2:80 > 9.9.9.9:77 udp", NOW).unwrap();
    assert_eq!((reply, it.0.len()), (shown(1, "2.0.0.2:80 > 1.0.0.2:1 udp"), 1));
    // A flow whose replies look like itself.
    let mut it = table(By::Both, &["keep 0 1"], 100);
    pass(&mut it, 0, "1.0.0.1:1 > 1.0.0.1:1 udp", NOW).unwrap();
    pass(&mut it, 0, "1.0.0.1:1 > 1.0.0.1:1 udp", NOW).unwrap();
    it.0.clear();
    assert!(it.0.is_empty() && it.0.find(&Tuple4::default()).is_none());
}

#[test]
fn errors_are_about_what_was_sent() {
    let mut it = table(By::Both, &["pattern 9.9.9.9 1000-1009 3.0.0.3 99 0 1", "drop"], 100);
    pass(&mut it, 0, "1.0.0.1:1000 > 2.0.0.2:80 tcp syn seq 7", NOW).unwrap();
    let flow = Tuple4::new(([1, 0, 0, 1].into(), 1000), ([2, 0, 0, 2].into(), 80), ip_proto::TCP);
    assert!(it.0.mapping(0, flow).unwrap().0.shifts().add(false, 100, 5));
    let told = |packet: &str| {
        let mut bytes = sketch::build(packet).unwrap().bytes;
        let (ip, rest) = Ipv4Header::from_prefix(&bytes).unwrap();
        let quote = quote(ip.split_options(rest).unwrap().1)?;
        let restored = it.0.restore(0, &quote)?;
        restore(&mut bytes, &quote, &restored);
        Some(format!("{} {}", restored.output, sketch::print(&bytes, sketch::Layer::Network)))
    };
    let error = "icmp type unreachable code 4";
    assert_eq!(
        told(&format!("4.0.0.4 > 9.9.9.9 {error} [9.9.9.9:1000 > 3.0.0.3:99 tcp seq 205]"))
            .unwrap(),
        shown(1, &format!("4.0.0.4 > 1.0.0.1 {error} [1.0.0.1:1000 > 2.0.0.2:80 tcp seq 200]"))
    );
    // The receiver itself, who is known by another address.
    assert_eq!(
        told(&format!("3.0.0.3 > 9.9.9.9 {error} [9.9.9.9:1000 > 3.0.0.3:99 tcp seq 50]")).unwrap(),
        shown(1, &format!("2.0.0.2 > 1.0.0.1 {error} [1.0.0.1:1000 > 2.0.0.2:80 tcp seq 50]"))
    );
    // About a reply.
    assert_eq!(
        told(&format!("1.0.0.1 > 2.0.0.2 {error} [2.0.0.2:80 > 1.0.0.1:1000 tcp seq 9]")).unwrap(),
        shown(0, &format!("9.9.9.9 > 3.0.0.3 {error} [3.0.0.3:99 > 9.9.9.9:1000 tcp seq 9]"))
    );
    assert_eq!(told(&format!("4.0.0.4 > 9.9.9.9 {error} [9.9.9.9:1001 > 3.0.0.3:99 tcp]")), None);
    assert_eq!(told("4.0.0.4 > 9.9.9.9 icmp type echo [9.9.9.9:1000 > 3.0.0.3:99 tcp]"), None);
}

#[test]
fn errors_about_other_addresses_leave_ports_and_identifiers() {
    for (by, input) in
        [(By::Source, "pattern 9.9.9.9 - 0 1"), (By::Pair, "pattern 9.9.9.9 3.0.0.3 0 1")]
    {
        let mut it = table(by, &[input, "drop"], 100);
        for inside in ["tcp seq 7", "udp \"data\"", "icmp type echo ident 5 seq 6", "proto 99"] {
            let ports = matches!(&inside[..3], "tcp" | "udp");
            let ends = |src: &str, dst: &str| match ports {
                true => format!("{src}:5 > {dst}:6 {inside}"),
                false => format!("{src} > {dst} {inside}"),
            };
            pass(&mut it, 0, &ends("1.0.0.1", "2.0.0.2"), NOW).unwrap();
            let outer = if by == By::Pair { "3.0.0.3" } else { "2.0.0.2" };
            let error =
                format!("4.0.0.4 > 9.9.9.9 icmp type timeexceeded [{}]", ends("9.9.9.9", outer));
            let mut bytes = sketch::build(&error).unwrap().bytes;
            let quote = quote(&bytes[20..]).unwrap();
            let restored = it.0.restore(0, &quote).unwrap();
            assert_eq!(restore(&mut bytes, &quote, &restored), Some([1, 0, 0, 1].into()));
            let wanted = format!(
                "4.0.0.4 > 1.0.0.1 icmp type timeexceeded [{}]",
                ends("1.0.0.1", "2.0.0.2")
            );
            let shown = format!("0 {}", sketch::print(&bytes, sketch::Layer::Network));
            assert_eq!(shown, self::shown(0, &wanted), "{by:?}");
        }
    }
}

#[test]
fn what_is_expected_finds_its_way() {
    let mut it = table(By::Both, &["pattern 9.9.9.9 1000-1009# - - 0 1", "drop"], 100);
    let flow = Tuple4::new(([1, 0, 0, 1].into(), 777), ([2, 0, 0, 2].into(), 20), ip_proto::TCP);
    for _ in 0..2 {
        let to = it.0.expect(0, 0, flow, 0, NOW, &mut || 0).unwrap();
        assert_eq!((to.src().1, it.0.len()), (1000, 1));
        assert_eq!(it.0.lookup(0, flow), Some(to));
        assert_eq!(it.0.lookup(0, to.reversed()), Some(flow.reversed()));
    }
    assert_eq!(it.0.expect(0, 1, flow.reversed(), 0, NOW, &mut || 0), None);
    let reply = pass(&mut it, 1, "2.0.0.2:20 > 9.9.9.9:1000 tcp syn", NOW).unwrap();
    assert_eq!(reply, shown(1, "2.0.0.2:20 > 1.0.0.1:777 tcp syn"));
}

/// All that a rewriter can be.
const KINDS: [(By, &str); 6] = [
    (By::Both, "pattern 9.9.9.9 1000-1003 - - 0 1"),
    (By::Tcp, "pattern 9.9.9.9 1000-1003? 3.0.0.3 - 0 1"),
    (By::Udp, "keep 0 1"),
    (By::Source, "pattern 9.0.0.0/30 - 0 1"),
    (By::Pair, "pattern 9.0.0.0/30 3.0.0.3 0 1"),
    (By::Echo, "pattern 9.9.9.9 1000-1003 - - 0 1"),
];

/// A packet between few hosts, of any protocol, whole or a fragment.
fn packets() -> impl Strategy<Value = String> {
    let (host, port) = (1..5u8, 1000..1004u16);
    (host.clone(), host, port.clone(), port, 0..6u8).prop_map(|(a, b, c, d, kind)| match kind {
        0 => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} udp \"data\""),
        1 => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} udp nocheck"),
        2 => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} tcp ack 7 tcpopt nop;nop;sack1:2 \"data\""),
        3 => format!("1.0.0.{a} > 2.0.0.{b} icmp type echo ident {c} seq {d}"),
        4 => format!("1.0.0.{a} > 2.0.0.{b} udp frag 1480 id {c}"),
        _ => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} tcp ipopt rr{{1.0.0.1}}+2 fin"),
    })
}

proptest! {
    /// Whatever becomes of packets has right checksums, no two flows become the same, and
    /// replies become what was asked.
    #[test]
    fn replies_undo_what_became_of_packets(
        kind in prop::sample::select(KINDS.to_vec()),
        packets in prop::collection::vec(packets(), 1..60),
    ) {
        let (by, input) = kind;
        let mut it = table(by, &[input, "drop"], 1000);
        let mut flows: HashMap<Tuple4, Tuple4> = HashMap::new();
        for packet in packets {
            let before = sketch::build(&packet).unwrap().bytes;
            let mut bytes = before.clone();
            let passed = pass_bytes(&mut it, 0, &mut bytes, NOW);
            let Ok(Passed::Rewritten { output, .. }) = passed else {
                prop_assert_eq!(&bytes, &before);
                continue;
            };
            prop_assert_eq!(output, 0);
            let shown = sketch::print(&bytes, sketch::Layer::Network);
            // A sketch says where a checksum is not what it should be.
            prop_assert!(!shown.contains("sum") && !shown.contains("badcheck"), "{}", shown);
            let key = |bytes: &[u8]| {
                let (ip, rest) = Ipv4Header::from_prefix(bytes).unwrap();
                by.key(ip, ip.split_options(rest).unwrap().1).unwrap().0
            };
            let other = flows.insert(key(&bytes), key(&before));
            prop_assert!(other.is_none_or(|other| other == key(&before)), "{}", packet);
        }
        for (to, flow) in flows {
            let reply = if by == By::Source {
                Tuple4::new(([0; 4].into(), 0), to.src(), 0)
            } else {
                to.reversed()
            };
            prop_assert_eq!(it.0.lookup(0, reply), Some(flow.reversed()));
        }
    }

    /// Of all mappings of best effort, the newcomer among them, goes the one that ends first.
    #[test]
    fn who_ends_first_makes_room(
        guarantee in 0..3u64,
        capacity in 1..12u32,
        packets in prop::collection::vec((0..20u16, 0..6u8, 0..1_500_000_000u64), 1..200),
    ) {
        let mut it = guaranteed(capacity, guarantee, "keep 0 1");
        let mut now = NOW;
        for (host, kind, later) in packets {
            now += later;
            let ends = match kind % 3 {
                1 => format!("2.0.0.2:80 > 1.0.0.1:{host}"),
                _ => format!("1.0.0.1:{host} > 2.0.0.2:80"),
            };
            let kinds = ["udp", "udp", "tcp \"data\"", "tcp rst", "tcp \"back\"", "tcp fin"];
            let packet = format!("{ends} {}", kinds[usize::from(kind)]);
            it.0.expire(now, 1000);
            let before: HashMap<Tuple4, (u64, bool)> = it.0.iter().map(|(id, key, mapping)| {
                let end = it.0.flows.as_ref().unwrap().ends(id) / 1_000_000;
                (*key, (end, mapping.guaranteed(end) <= now / 1_000_000))
            }).collect();
            let passed = pass(&mut it, 0, &packet, now);
            let after: Vec<Tuple4> = it.0.iter().map(|(_, key, _)| *key).collect();
            prop_assert!(after.len() <= capacity as usize);
            let added = after.iter().any(|key| !before.contains_key(key));
            let gone: Vec<_> = before.iter().filter(|(key, _)| !after.contains(key)).collect();
            let ends = before.values().filter(|it| it.1).map(|it| it.0).min();
            let first = ends.filter(|&end| guarantee > 0 || end <= now / 1_000_000 + 300_000);
            match (&passed, gone[..].as_ref()) {
                (Err(_), []) => prop_assert!(before.len() == capacity as usize && first.is_none()),
                (Ok(_), []) => prop_assert!(!added || before.len() < capacity as usize),
                // What was overdue goes before the table is looked at.
                (Ok(_), [(_, (end, _))]) if *end <= now / 1_000_000 => {}
                (Ok(_), [(_, (end, free))]) => prop_assert_eq!((Some(*end), *free), (first, true)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    /// Nothing that a packet contains makes anything panic.
    #[test]
    fn hostile_bytes(
        kind in prop::sample::select(KINDS.to_vec()),
        packets in prop::collection::vec((packets(), any::<[(u8, u8); 4]>(), 0..80usize), 1..20),
    ) {
        let mut it = table(kind.0, &[kind.1, "pass 1"], 8);
        for (n, (packet, changes, length)) in packets.into_iter().enumerate() {
            let mut bytes = sketch::build(&packet).unwrap().bytes;
            for (at, value) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = value;
            }
            bytes.truncate(length.max(20));
            // What comes here was seen to have a header.
            bytes[0] = 0x40 | bytes[0].max(5) & 0xf;
            _ = pass_bytes(&mut it, n % 2, &mut bytes, NOW);
            if let Some(quote) = quote(&bytes) {
                let restored = it.0.restore(0, &quote);
                restored.map(|restored| restore(&mut bytes, &quote, &restored));
            }
            _ = command(&bytes);
            _ = replace(&bytes, 0..3, b"x");
        }
    }

    #[test]
    fn hostile_errors(
        packet in packets(),
        changes in any::<[(u8, u8); 3]>(),
        kind in prop::sample::select(KINDS.to_vec()),
        length in 20..200usize,
    ) {
        let mut it = table(kind.0, &[kind.1, "drop"], 8);
        let mut sent = sketch::build(&packet).unwrap().bytes;
        _ = pass_bytes(&mut it, 0, &mut sent, NOW);
        let mut error = sketch::build("4.0.0.4 > 9.9.9.9 icmp type unreachable").unwrap().bytes;
        error.extend(&sent);
        for (at, value) in changes {
            let at = 20 + usize::from(at) % (error.len() - 20);
            error[at] = value;
        }
        error.truncate(length);
        if let Some(quote) = quote(&error[20..])
            && let Some(restored) = it.0.restore(0, &quote)
        {
            restore(&mut error, &quote, &restored);
        }
    }
}
