//! Tests of connections: lookup, translation, expiry, eviction.

use super::listing::ConnectionFormat;
use super::mapping::Direction;
use super::{
    BurstLookup, Connections, LookupResult, PacketConnection, TupleRewrite, rewrite_packet4,
};
use crate::active_rules::ActiveRules;
use crate::exit::Exit;
use crate::headers;
use crate::language::rule;
use crate::matcher::Matcher;
use crate::rule_set::RuleSet;
use crate::verdict::rewrite;
use castanet_kit::conntrack::ExclusiveAccess;
use castanet_kit::rng::Rng;
use castanet_packet::Packet;
use castanet_wire::ipfix::{EndReason, FlowRecord};
use castanet_wire::sketch::{self, Layer};
use std::collections::HashSet;

const SECOND: u64 = 1_000_000_000;

/// A middlebox of stateful rules.
struct Harness {
    active_rules: ActiveRules,
    matcher: Matcher,
    connections: Connections,
    chance: Rng,
    now: u64,
}

impl Harness {
    fn new(lines: &[&str]) -> Harness {
        let read = |line: &&str| rule(line, true).unwrap_or_else(|fault| panic!("{fault:?}"));
        let active_rules = ActiveRules::new(RuleSet::new(lines.iter().map(read)));
        let mut matcher = Matcher::default();
        matcher.set_tables(active_rules.tables());
        Harness {
            active_rules,
            matcher,
            connections: Connections::default(),
            chance: Rng::new(7),
            now: SECOND,
        }
    }

    /// Evaluates a packet; returns its direction and the packet that comes out.
    fn pass(&mut self, text: &str) -> (Option<Direction>, String) {
        let built = sketch::build(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut packet = Packet::from_bytes(&built.bytes);
        packet.set_network_header(0, 0);
        let headers = headers::find(&packet).expect("is IP");
        let now = self.now;
        let (connections, slots) = (&mut self.connections, self.matcher.slots());
        let mut batch = BurstLookup::default();
        let key = batch.push(packet.bytes(), &headers);
        batch.look_up(connections);
        let (batch, bytes) = ((&batch, key), packet.bytes());
        let early = connections.find(batch, bytes, &headers, now);
        let mut found = connections.find_exclusive(batch, bytes, &headers, now);
        // The shared lookup has the same result, or asks for exclusive access.
        match (early, &found) {
            (LookupResult::Connection(early), Some(found)) => {
                assert_eq!(early.direction, found.direction)
            }
            (LookupResult::Connection(_), None) | (LookupResult::None, Some(_)) => panic!("{text}"),
            (LookupResult::None, None) | (LookupResult::NeedsWrite, _) => {}
        }
        let has_rules = |found: &PacketConnection| connections.rules(found, slots).next().is_some();
        if let Some(gone) = found.take_if(|found| !has_rules(found)) {
            connections.remove(&gone);
        }
        if let Some(found) = &found {
            let timeouts = &self.active_rules.rules().timeouts;
            if connections.refresh(found, bytes, &headers, timeouts, now) == Err(ExclusiveAccess) {
                connections.refresh_exclusive(found, bytes, &headers, timeouts, now);
            }
        }
        let seen = crate::PacketView::new(packet.bytes(), &headers, ("", ""));
        let about: Vec<_> = self
            .active_rules
            .rules()
            .entries()
            .filter(|it| it.rule.matches_packet(&seen))
            .cloned()
            .collect();
        if found.is_none() && !about.is_empty() {
            let random = || self.chance.bits();
            let (seen, timeouts) =
                ((packet.bytes(), &headers), &self.active_rules.rules().timeouts);
            found = match connections.create(seen, about.iter(), timeouts, random, now) {
                Ok(found) => found,
                Err(Exit::Full) => return (None, "full".into()),
                Err(Exit::NoPort) => return (None, "no port".into()),
                Err(exit) => panic!("{exit:?}"),
            };
        }
        let Some(found) = found else {
            return (None, sketch::print(packet.bytes(), Layer::Network));
        };
        let plans = connections.rules(&found, slots).map(|(_, entry)| &entry.plan);
        let mapping = connections.mapping(&found);
        let mut rewritten = Packet::from_bytes(packet.bytes());
        rewrite(&mut packet, headers, plans.clone(), Some(&mapping), None, 1500);
        // The short way does the same as the long one.
        let is_short = plans.clone().all(|plan| plan.fields.is_empty() && plan.options.is_empty());
        match connections.tuple_rewrite(&found, connections.state(&found)) {
            TupleRewrite::Tuple4(from, to) => {
                rewrite_packet4(rewritten.bytes_mut(), &headers, &from, &to);
            }
            TupleRewrite::None => {}
            TupleRewrite::Full => rewritten = Packet::from_bytes(packet.bytes()),
        }
        assert!(!is_short || rewritten.bytes() == packet.bytes(), "{text}");
        (Some(found.direction), sketch::print(packet.bytes(), Layer::Network))
    }

    fn out(&mut self, text: &str) -> String {
        self.pass(text).1
    }
}

/// The sketch as it is printed.
fn came(text: &str) -> String {
    let built = sketch::build(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    sketch::print(&built.bytes, Layer::Network)
}

/// The source port in a printed sketch.
fn sport(text: &str) -> u16 {
    let (from, _) = text.split_once(" > ").expect("is a packet");
    from.rsplit(':').next().and_then(|port| port.parse().ok()).expect("is a port")
}

#[test]
fn each_family_has_numbers_of_its_own() {
    let mut harness = Harness::new(&[
        "ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9",
        "ip6-saddr 1::/16 map ip6-saddr 9::9",
    ]);
    // More of IPv6 than the table of IPv4 has room for so far.
    harness.out("10.0.0.1:5 > 2.0.0.2:80 udp");
    for port in 1..5000 {
        let out = harness.out(&format!("[1::1]:{port} > [2::2]:80 udp"));
        assert_eq!(out, came(&format!("[9::9]:{port} > [2::2]:80 udp")));
    }
}

const NAT: &str = "ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9 shuffle tcp-sport shuffle udp-sport";

#[test]
fn nat_translates_both_directions() {
    let mut harness = Harness::new(&[NAT]);
    for proto in ["tcp syn", "udp"] {
        let out = harness.out(&format!("10.0.0.1:1000 > 2.0.0.2:80 {proto} \"hi\""));
        let port = sport(&out);
        assert_eq!(out, came(&format!("9.9.9.9:{port} > 2.0.0.2:80 {proto} \"hi\"")));
        let back = format!("2.0.0.2:80 > 9.9.9.9:{port} {proto} \"ho\"");
        let (direction, back) = harness.pass(&back);
        assert_eq!(direction, Some(Direction::Reply));
        assert_eq!(back, came(&format!("2.0.0.2:80 > 10.0.0.1:1000 {proto} \"ho\"")));
    }
    let icmp = harness.out("10.0.0.1 > 2.0.0.2 icmp type echo ident 7");
    assert_eq!(icmp, came("9.9.9.9 > 2.0.0.2 icmp type echo ident 7"));
    let other = harness.out("10.0.0.3 > 2.0.0.2 icmp type echo ident 7");
    let ident: u16 =
        other.split("ident ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert_ne!(ident, 7, "somebody has it");
    let back = harness.out(&format!("2.0.0.2 > 9.9.9.9 icmp type echo-reply ident {ident}"));
    assert_eq!(back, came("2.0.0.2 > 10.0.0.3 icmp type echo-reply ident 7"));
    // An unknown tuple is not translated.
    let stranger = "2.0.0.2:80 > 9.9.9.9:77 tcp";
    assert_eq!(harness.pass(stranger), (None, came(stranger)));
}

#[test]
fn a_nat_of_ipv6_and_of_destinations() {
    let mut harness = Harness::new(&[
        "ip6-saddr fd00::/8 mod ip6-saddr 2001:db8::/64",
        "ip6-daddr 2001:db8::80 tcp-dport 80 map ip6-daddr fd00::80 map tcp-dport 8080",
    ]);
    let out = harness.out("[fd00::5]:9 > [2::2]:53 udp");
    assert_eq!(out, came("[2001:db8::5]:9 > [2::2]:53 udp"));
    assert_eq!(harness.out("[2::2]:53 > [2001:db8::5]:9 udp"), came("[2::2]:53 > [fd00::5]:9 udp"));
    assert_eq!(
        harness.out("[3::3]:9 > [2001:db8::80]:80 tcp syn"),
        came("[3::3]:9 > [fd00::80]:8080 tcp syn")
    );
    assert_eq!(
        harness.out("[fd00::80]:8080 > [3::3]:9 tcp syn ack 1"),
        came("[2001:db8::80]:80 > [3::3]:9 tcp syn ack 1")
    );
}

#[test]
fn allocated_ports_are_unique() {
    let mut harness = Harness::new(&["ip-proto udp map ip-saddr 9.9.9.9 shuffle udp-sport"]);
    let mut seen = HashSet::new();
    for host in 0..20u8 {
        for port in 1..=200 {
            let out = harness.out(&format!("10.0.0.{host}:{port} > 2.0.0.2:80 udp"));
            assert!(sport(&out) >= 1024 && seen.insert(sport(&out)), "{out}");
        }
    }
    // Without `shuffle` a free port is kept.
    let mut harness = Harness::new(&["ip-proto udp map ip-saddr 9.9.9.9"]);
    assert_eq!(sport(&harness.out("10.0.0.1:5 > 2.0.0.2:80 udp")), 5);
    assert_eq!(sport(&harness.out("10.0.0.1:5 > 2.0.0.3:80 udp")), 5);
    assert_ne!(sport(&harness.out("10.0.0.2:5 > 2.0.0.2:80 udp")), 5);
}

#[test]
fn icmp_errors_and_first_fragments_find_their_connection() {
    let mut harness =
        Harness::new(&["ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9 map udp-sport 4000"]);
    let out = harness.out("10.0.0.1:1000 > 2.0.0.2:80 udp frag 0+ id 7 \"12345678\"");
    assert_eq!(out, came("9.9.9.9:4000 > 2.0.0.2:80 udp frag 0+ id 7 \"12345678\""));
    let error = "5.5.5.5 > 9.9.9.9 icmp type unreachable [9.9.9.9:4000 > 2.0.0.2:80 udp]";
    let (direction, error) = harness.pass(error);
    assert_eq!(direction, Some(Direction::Reply));
    assert_eq!(
        error,
        came("5.5.5.5 > 10.0.0.1 icmp type unreachable [10.0.0.1:1000 > 2.0.0.2:80 udp]")
    );
    let error = "10.0.0.1 > 2.0.0.2 icmp type unreachable [2.0.0.2:80 > 10.0.0.1:1000 udp]";
    let wanted = "9.9.9.9 > 2.0.0.2 icmp type unreachable [2.0.0.2:80 > 9.9.9.9:4000 udp]";
    assert_eq!(harness.pass(error), (Some(Direction::Original), came(wanted)));
    let stranger = "5.5.5.5 > 9.9.9.9 icmp type unreachable [9.9.9.9:4001 > 2.0.0.2:80 udp]";
    assert_eq!(harness.pass(stranger), (None, came(stranger)));
}

#[test]
fn sequence_numbers_are_translated_in_both_directions() {
    let mut harness = Harness::new(&["tcp-syn shuffle tcp-seq-num shuffle tcp-ack-num"]);
    let number = |text: &str, word: &str| -> u32 {
        let after = text.split(&format!(" {word} ")).nth(1).unwrap_or("0");
        after.split(' ').next().unwrap().parse().unwrap()
    };
    let syn = harness.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn seq 100");
    let seq = number(&syn, "seq").wrapping_sub(100);
    assert_ne!(seq, 0);
    let reply = format!("2.0.0.2:80 > 1.0.0.1:9 tcp syn seq 5000 ack {}", seq.wrapping_add(101));
    let back = harness.out(&reply);
    let ack = number(&back, "seq").wrapping_sub(5000);
    assert_ne!(ack, 0);
    assert_eq!(number(&back, "ack"), 101);
    let data = harness.out(&format!(
        "1.0.0.1:9 > 2.0.0.2:80 tcp seq 101 ack {} tcpopt nop;nop;sack{}-{} \"hi\"",
        ack.wrapping_add(5001),
        ack.wrapping_add(6000),
        ack.wrapping_add(7000),
    ));
    let wanted = format!(
        "1.0.0.1:9 > 2.0.0.2:80 tcp seq {} ack 5001 tcpopt nop;nop;sack6000-7000 \"hi\"",
        seq.wrapping_add(101)
    );
    assert_eq!(data, came(&wanted));
    let sack = harness.out(&format!(
        "2.0.0.2:80 > 1.0.0.1:9 tcp seq 5001 ack {} tcpopt nop;nop;sack{}-{}",
        seq.wrapping_add(103),
        seq.wrapping_add(200),
        seq.wrapping_add(300),
    ));
    let wanted = format!(
        "2.0.0.2:80 > 1.0.0.1:9 tcp seq {} ack 103 tcpopt nop;nop;sack200-300",
        ack.wrapping_add(5001)
    );
    assert_eq!(sack, came(&wanted));
}

#[test]
fn labels_and_identifications() {
    let mut harness = Harness::new(&["all map ip-id 5 map ip6-flow-label 0x12345"]);
    assert_eq!(harness.out("1.0.0.1 > 2.0.0.2 udp id 9"), came("1.0.0.1 > 2.0.0.2 udp id 5"));
    assert_eq!(harness.out("1::1 > 2::2 udp flow 9"), came("1::1 > 2::2 udp flow 0x12345"));
    assert_eq!(harness.out("2.0.0.2 > 1.0.0.1 udp id 9"), came("2.0.0.2 > 1.0.0.1 udp id 9"));
    let mut harness = Harness::new(&["all shuffle ip-id shuffle ip6-flow-label"]);
    let [a, b] = [1, 2].map(|id| harness.out(&format!("1.0.0.1 > 2.0.0.2 udp id {id}")));
    assert_ne!(a, b);
    let [a, b] = [1, 2].map(|id| harness.out(&format!("1::1 > 2::2 udp flow {id}")));
    assert_eq!(a, b);
}

#[test]
fn connections_expire_by_their_timeouts() {
    let mut harness = Harness::new(&["all accept"]);
    harness.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn");
    harness.out("1.0.0.1:9 > 2.0.0.2:53 udp");
    let after = |harness: &mut Harness, seconds: u64| {
        harness.now += seconds * SECOND;
        harness.connections.expire(harness.now, 64);
        harness.connections.len()
    };
    assert_eq!(after(&mut harness, 119), 2);
    assert_eq!(after(&mut harness, 2), 1);
    harness.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn");
    harness.out("2.0.0.2:80 > 1.0.0.1:9 tcp syn ack 1");
    harness.out("1.0.0.1:9 > 2.0.0.2:80 tcp ack 1");
    assert_eq!(after(&mut harness, 4 * 3600 - 1), 1, "established");
    harness.out("2.0.0.2:80 > 1.0.0.1:9 tcp fin ack 1");
    assert_eq!(after(&mut harness, 121), 0);
    let text = "1.0.0.1:9 > 2.0.0.2:53 udp";
    harness.out(text);
    let listed =
        harness.connections.list(harness.matcher.slots(), harness.now, ConnectionFormat::Verbose);
    assert_eq!(listed, "udp 1.0.0.1:9 > 2.0.0.2:53 id1 expires 600 s\n");
}

#[test]
fn connections_of_rules_that_are_gone_end() {
    use crate::language::{Command, RuleSelector};
    let mut harness = Harness::new(&["udp-dport 53 map udp-dport 54", "tcp-syn accept"]);
    let text = "1.0.0.1:9 > 2.0.0.2:53 udp";
    assert_eq!(harness.out(text), came("1.0.0.1:9 > 2.0.0.2:54 udp"));
    let mut rules = RuleSet::clone(harness.active_rules.rules());
    assert!(
        rules.execute(&Command::Delete(RuleSelector::Position(1))).is_some_and(|it| it.is_ok())
    );
    // The place of a rule that is gone is another's now.
    let new = rule("ip-proto udp map udp-dport 55", true).expect("is one");
    rules.add(new);
    harness.active_rules = harness.active_rules.with(rules);
    harness.matcher.set_tables(harness.active_rules.tables());
    assert_eq!(harness.out(text), came("1.0.0.1:9 > 2.0.0.2:55 udp"));
    assert_eq!(harness.connections.len(), 1);
}

#[test]
fn a_syn_flood_does_not_evict_replied_connections() {
    let mut harness = Harness::new(&["all accept"]);
    harness.connections.set_limit(100);
    harness.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn");
    harness.out("2.0.0.2:80 > 1.0.0.1:9 tcp syn ack 1");
    harness.out("1.0.0.1:9 > 2.0.0.2:80 tcp ack 1");
    for n in 0..1000u32 {
        let from = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n);
        assert_ne!(harness.out(&format!("{from}:9 > 2.0.0.2:80 tcp syn")), "full");
    }
    assert_eq!((harness.connections.len(), harness.connections.counts().evicted), (100, 901));
    let (direction, _) = harness.pass("2.0.0.2:80 > 1.0.0.1:9 tcp ack 1");
    assert_eq!(direction, Some(Direction::Reply));
}

#[test]
fn connections_survive_a_reload() {
    let mut harness =
        Harness::new(&["tcp-syn accept", "udp-dport 53 map udp-dport 54", "all accept"]);
    assert!(harness.out("1.0.0.1:9 > 2.0.0.2:53 udp").contains(":54"));
    harness.out("1.0.0.1 > 2.0.0.2 proto 99");
    // The same rule elsewhere, another in its place, and one that is gone.
    let other =
        ["ip-proto udp map udp-dport 99", "tcp-syn accept", "udp-dport 53 map udp-dport 54"];
    let other = RuleSet::new(other.iter().map(|line| rule(line, true).expect("is one")));
    assert!(
        !other.shares_history_with(harness.active_rules.rules())
            && other.clone().shares_history_with(&other)
    );
    let other = ActiveRules::new(other).replacing(&harness.active_rules).expect("has room");
    harness.matcher.set_tables(other.tables());
    harness.connections.set_rules(other.rules(), usize::MAX);
    harness.active_rules = other;
    let text = "1.0.0.1:9 > 2.0.0.2:53 udp";
    assert_eq!(harness.out(text), came("1.0.0.1:9 > 2.0.0.2:54 udp"));
    let listed =
        harness.connections.list(harness.matcher.slots(), harness.now, ConnectionFormat::Brief);
    assert_eq!(listed, "proto 99 1.0.0.1:0 > 2.0.0.2:0\nudp 1.0.0.1:9 > 2.0.0.2:53 id2\n");
    assert_eq!(harness.pass("1.0.0.1 > 2.0.0.2 proto 99").0, None, "no rule is left");
    assert_eq!(harness.connections.len(), 1);
}

#[test]
fn those_who_are_half_open_or_over_make_room() {
    let mut harness = Harness::new(&["tcp-dport 80 accept", "ip-proto udp accept"]);
    harness.connections.set_limit(3);
    let open = |harness: &mut Harness, host: u8| {
        harness.out(&format!("1.0.0.{host}:9 > 2.0.0.2:80 tcp syn"));
        harness.out(&format!("2.0.0.2:80 > 1.0.0.{host}:9 tcp syn ack 1"));
    };
    let agree = |harness: &mut Harness, host: u8| {
        harness.out(&format!("1.0.0.{host}:9 > 2.0.0.2:80 tcp ack 1"))
    };
    let lists = |harness: &Harness, host: u8| {
        harness
            .connections
            .list(harness.matcher.slots(), harness.now, ConnectionFormat::Brief)
            .contains(&format!("1.0.0.{host}:9 "))
    };
    for host in 1..=3 {
        open(&mut harness, host);
    }
    agree(&mut harness, 1);
    // The server has answered all; of two, the beginners have not answered in turn.
    for host in 4..50 {
        open(&mut harness, host);
        assert!(lists(&harness, 1) && lists(&harness, host), "{host}");
    }
    agree(&mut harness, 48);
    agree(&mut harness, 49);
    assert_eq!(harness.out("1.0.0.50:9 > 2.0.0.2:80 tcp syn"), "full");
    assert_eq!(harness.out("1.0.0.50:9 > 2.0.0.2:80 udp"), "full");
    // One end of two is not the end, but a reset is.
    harness.out("1.0.0.48:9 > 2.0.0.2:80 tcp fin ack 1");
    assert_eq!(harness.out("1.0.0.50:9 > 2.0.0.2:80 tcp syn"), "full");
    harness.out("2.0.0.2:80 > 1.0.0.48:9 tcp fin ack 1");
    open(&mut harness, 50);
    assert!(!lists(&harness, 48) && lists(&harness, 50));
    harness.out("2.0.0.2:80 > 1.0.0.1:9 tcp rst ack 1");
    agree(&mut harness, 50);
    open(&mut harness, 51);
    assert!(
        !lists(&harness, 1) && lists(&harness, 49) && lists(&harness, 50) && lists(&harness, 51)
    );
}

impl Harness {
    /// A middlebox whose connections are metered.
    fn metered(lines: &[&str]) -> Harness {
        let mut harness = Harness::new(lines);
        harness.connections.set_metered(true);
        harness
    }

    /// Records of connections that have ended, and of those that are due after `active` seconds.
    fn records(&mut self, active: u64) -> Vec<FlowRecord> {
        let (mut records, lost) = self.connections.take_records();
        assert_eq!((lost, self.connections.has_records()), (0, false));
        let due = (self.now.saturating_sub(active * SECOND), EndReason::ActiveTimeout);
        let slots = (0, self.connections.extent());
        self.connections.export_due(slots, due, &mut |record| records.push(*record));
        records
    }
}

/// Packets and bytes forward and in reverse, and the reason.
fn summary(record: &FlowRecord) -> ([u64; 4], EndReason) {
    let (forward, reverse) = (record.counts, record.reverse.expect("has both directions"));
    ([forward.packets, forward.octets, reverse.packets, reverse.octets], record.reason)
}

#[test]
fn a_record_has_both_directions_and_the_translation() {
    let mut harness =
        Harness::metered(&["ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9 map udp-sport 4000"]);
    harness.out("10.0.0.1:5 > 2.0.0.2:53 udp len 100");
    harness.now += SECOND;
    harness.out("2.0.0.2:53 > 9.9.9.9:4000 udp len 300");
    harness.out("10.0.0.1:5 > 2.0.0.2:53 udp len 60");
    assert!(harness.records(60).is_empty());
    harness.now += 601 * SECOND;
    while !harness.connections.expire(harness.now, 100) {}
    let records = harness.records(60);
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(summary(record), ([2, 160, 1, 300], EndReason::IdleTimeout));
    assert_eq!((record.start, record.end, record.protocol), (1000, 2000, 17));
    let at = |text: &str, port| (text.parse().expect("is an address"), port);
    assert_eq!((record.src, record.dst), (at("10.0.0.1", 5), at("2.0.0.2", 53)));
    let translation = record.translation.expect("is translated");
    assert_eq!((translation.src, translation.dst), (at("9.9.9.9", 4000), at("2.0.0.2", 53)));
    assert!(harness.records(0).is_empty());
}

#[test]
fn records_say_why_they_were_made() {
    let mut harness = Harness::metered(&["all accept"]);
    harness.connections.set_limit(3);
    let tcp = |flags: &str| format!("1.0.0.1:9 > 2.0.0.2:80 tcp {flags}");
    harness.out(&tcp("syn"));
    harness.out("[1::1]:9 > [2::2]:80 udp len 60");
    harness.now += 30 * SECOND;
    harness.out("[1::1]:9 > [2::2]:80 udp len 60");
    assert!(harness.records(60).is_empty());
    harness.now += 31 * SECOND;
    let records = harness.records(60);
    let active = EndReason::ActiveTimeout;
    let summaries: Vec<_> = records.iter().map(summary).collect();
    assert_eq!(summaries, [([1, 40, 0, 0], active), ([2, 120, 0, 0], active)]);
    assert_eq!(records[1].translation, None);
    // TCP that is over does not wait for its timeout.
    harness.out("2.0.0.2:80 > 1.0.0.1:9 tcp rst");
    let [record] = harness.records(60)[..] else { panic!("there is one record") };
    assert_eq!(summary(&record), ([0, 0, 1, 40], EndReason::EndOfFlow));
    assert_eq!((record.counts.tcp_flags, record.reverse.map(|it| it.tcp_flags)), (2, Some(4)));
    // Four connections have room for three.
    for host in 3..5 {
        harness.out(&format!("1.0.0.{host} > 2.0.0.2 proto 99"));
    }
    harness.out("1.0.0.5 > 2.0.0.2 proto 99");
    let records = harness.records(60);
    assert_eq!(
        records.iter().map(|it| it.reason).collect::<Vec<_>>(),
        [EndReason::LackOfResources]
    );
    // All end when an operator removes them.
    harness.out("1.0.0.5 > 2.0.0.2 proto 99");
    let mut rules = RuleSet::clone(harness.active_rules.rules());
    harness.connections.set_rules(harness.active_rules.rules(), usize::MAX);
    assert!(rules.execute(&crate::language::Command::Flush).is_some_and(|it| it.is_ok()));
    let flushed = harness.active_rules.with(rules);
    harness.connections.set_rules(flushed.rules(), usize::MAX);
    let records = harness.records(60);
    assert_eq!((records.is_empty(), harness.connections.len()), (false, 0));
    assert!(records.iter().all(|it| it.reason == EndReason::ForcedEnd), "{records:?}");
}

/// Every packet of a connection is in one record, whatever ends it.
#[test]
fn records_of_connections_add_up() {
    let mut harness = Harness::metered(&["all accept"]);
    harness.connections.set_limit(20);
    let (mut chance, mut passed, mut counted) = (Rng::new(3), 0, 0);
    for _ in 0..20_000 {
        harness.now += chance.bits() % SECOND * 10;
        let (host, kind) = (chance.bits() % 40, chance.bits() % 6);
        let (from, to) = (format!("1.0.0.{host}:9"), "2.0.0.2:80");
        let (from, to) = if chance.bits() % 2 == 0 { (&*from, to) } else { (to, &*from) };
        let upper = ["udp", "tcp syn", "tcp ack 1", "tcp syn ack 1", "tcp fin ack 1", "tcp rst"];
        let (direction, text) = harness.pass(&format!("{from} > {to} {}", upper[kind as usize]));
        assert!(direction.is_some() || text == "full", "{text}");
        passed += u64::from(direction.is_some());
        let now = harness.now;
        harness.connections.expire(now, 3);
        if chance.bits() % 10 == 0 {
            counted += harness.records(60).iter().map(packets).sum::<u64>();
        }
    }
    harness.now += SECOND;
    counted += harness.records(0).iter().map(packets).sum::<u64>();
    assert_eq!(counted, passed);
}

fn packets(record: &FlowRecord) -> u64 {
    let ([forward, _, reverse, _], _) = summary(record);
    forward + reverse
}
