//! Connections: who belongs to whom, what is restored, what ends when.

use super::mapping::Direction;
use super::{Asked, Connections, Exchanged, Finding, Found, Fresh, exchange};
use crate::headers::Headers;
use crate::in_force::InForce;
use crate::judge::rewrite;
use crate::language::rule;
use crate::matcher::Matcher;
use crate::rules::Rules;
use castanet_kit::flow::ExclusiveAccess;
use castanet_kit::rng::Rng;
use castanet_packet::Packet;
use castanet_wire::sketch::{self, Layer};
use std::collections::HashSet;

const SECOND: u64 = 1_000_000_000;

/// A middlebox of stateful rules.
struct Bench {
    in_force: InForce,
    matcher: Matcher,
    connections: Connections,
    chance: Rng,
    now: u64,
}

impl Bench {
    fn new(lines: &[&str]) -> Bench {
        let read = |line: &&str| rule(line, true).unwrap_or_else(|fault| panic!("{fault:?}"));
        let in_force = InForce::new(Rules::new(lines.iter().map(read)));
        let mut matcher = Matcher::default();
        matcher.follow(in_force.tables());
        Bench {
            in_force,
            matcher,
            connections: Connections::default(),
            chance: Rng::new(7),
            now: SECOND,
        }
    }

    /// What becomes of a packet, and which way it goes.
    fn pass(&mut self, text: &str) -> (Option<Direction>, String) {
        let built = sketch::build(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut packet = Packet::from_bytes(&built.bytes);
        packet.set_network_header(0, 0);
        let headers = Headers::find(&packet).expect("is IP");
        let now = self.now;
        let (connections, places) = (&mut self.connections, self.matcher.places());
        let mut asked = Asked::default();
        let looked = asked.ask(packet.bytes(), &headers);
        asked.look(connections);
        let (asked, bytes) = ((&asked, looked), packet.bytes());
        let early = connections.find(asked, bytes, &headers, now);
        let mut found = connections.find_now(asked, bytes, &headers, now);
        // Who may only read finds the same, or waits.
        match (early, &found) {
            (Finding::Of(early), Some(found)) => assert_eq!(early.direction, found.direction),
            (Finding::Of(_), None) | (Finding::None, Some(_)) => panic!("{text}"),
            (Finding::None, None) | (Finding::Wait, _) => {}
        }
        let has_rules = |found: &Found| connections.rules(found, places).next().is_some();
        if let Some(gone) = found.take_if(|found| !has_rules(found)) {
            connections.remove(&gone);
        }
        if let Some(found) = &found {
            let timeouts = &self.in_force.rules().timeouts;
            if connections.keep(found, bytes, &headers, timeouts, now) == Err(ExclusiveAccess) {
                connections.keep_now(found, bytes, &headers, timeouts, now);
            }
        }
        let seen = crate::Seen { bytes: packet.bytes(), headers: &headers, input: "", output: "" };
        let about: Vec<_> =
            self.in_force.rules().entries().filter(|it| it.rule.holds(&seen)).cloned().collect();
        if found.is_none() && !about.is_empty() {
            let random = || self.chance.bits();
            let (seen, timeouts) = ((packet.bytes(), &headers), &self.in_force.rules().timeouts);
            found = match connections.begin(seen, about.iter(), timeouts, random, now) {
                Some(Fresh::Begun(found)) => Some(found),
                Some(Fresh::Full) => return (None, "full".into()),
                Some(Fresh::NoPort) => return (None, "no port".into()),
                None => None,
            };
        }
        let Some(found) = found else {
            return (None, sketch::print(packet.bytes(), Layer::Network));
        };
        let plans = connections.rules(&found, places).map(|(_, entry)| &entry.plan);
        let mapped = connections.mapped(&found);
        let mut exchanged = Packet::from_bytes(packet.bytes());
        rewrite(&mut packet, headers, plans.clone(), mapped.as_ref(), None, 1500);
        // The short way does the same as the long one.
        let is_short = plans.clone().all(|plan| plan.fields.is_empty() && plan.options.is_empty());
        match connections.exchanged(&found) {
            Exchanged::Ends(to) => _ = exchange(exchanged.bytes_mut(), &headers, &to),
            Exchanged::Nothing => {}
            Exchanged::More => exchanged = Packet::from_bytes(packet.bytes()),
        }
        assert!(!is_short || exchanged.bytes() == packet.bytes(), "{text}");
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
    let mut bench = Bench::new(&[
        "ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9",
        "ip6-saddr 1::/16 map ip6-saddr 9::9",
    ]);
    // More of IPv6 than the table of IPv4 has room for so far.
    bench.out("10.0.0.1:5 > 2.0.0.2:80 udp");
    for port in 1..5000 {
        let out = bench.out(&format!("[1::1]:{port} > [2::2]:80 udp"));
        assert_eq!(out, came(&format!("[9::9]:{port} > [2::2]:80 udp")));
    }
}

const NAT: &str = "ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9 shuffle tcp-sport shuffle udp-sport";

#[test]
fn a_nat_translates_there_and_back() {
    let mut bench = Bench::new(&[NAT]);
    for proto in ["tcp syn", "udp"] {
        let out = bench.out(&format!("10.0.0.1:1000 > 2.0.0.2:80 {proto} \"hi\""));
        let port = sport(&out);
        assert_eq!(out, came(&format!("9.9.9.9:{port} > 2.0.0.2:80 {proto} \"hi\"")));
        let back = format!("2.0.0.2:80 > 9.9.9.9:{port} {proto} \"ho\"");
        let (direction, back) = bench.pass(&back);
        assert_eq!(direction, Some(Direction::Reverse));
        assert_eq!(back, came(&format!("2.0.0.2:80 > 10.0.0.1:1000 {proto} \"ho\"")));
    }
    let icmp = bench.out("10.0.0.1 > 2.0.0.2 icmp type echo ident 7");
    assert_eq!(icmp, came("9.9.9.9 > 2.0.0.2 icmp type echo ident 7"));
    let other = bench.out("10.0.0.3 > 2.0.0.2 icmp type echo ident 7");
    let ident: u16 =
        other.split("ident ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert_ne!(ident, 7, "somebody has it");
    let back = bench.out(&format!("2.0.0.2 > 9.9.9.9 icmp type echo-reply ident {ident}"));
    assert_eq!(back, came("2.0.0.2 > 10.0.0.3 icmp type echo-reply ident 7"));
    // Who is not known is not translated.
    let stranger = "2.0.0.2:80 > 9.9.9.9:77 tcp";
    assert_eq!(bench.pass(stranger), (None, came(stranger)));
}

#[test]
fn a_nat_of_ipv6_and_of_destinations() {
    let mut bench = Bench::new(&[
        "ip6-saddr fd00::/8 mod ip6-saddr 2001:db8::/64",
        "ip6-daddr 2001:db8::80 tcp-dport 80 map ip6-daddr fd00::80 map tcp-dport 8080",
    ]);
    let out = bench.out("[fd00::5]:9 > [2::2]:53 udp");
    assert_eq!(out, came("[2001:db8::5]:9 > [2::2]:53 udp"));
    assert_eq!(bench.out("[2::2]:53 > [2001:db8::5]:9 udp"), came("[2::2]:53 > [fd00::5]:9 udp"));
    assert_eq!(
        bench.out("[3::3]:9 > [2001:db8::80]:80 tcp syn"),
        came("[3::3]:9 > [fd00::80]:8080 tcp syn")
    );
    assert_eq!(
        bench.out("[fd00::80]:8080 > [3::3]:9 tcp syn ack 1"),
        came("[2001:db8::80]:80 > [3::3]:9 tcp syn ack 1")
    );
}

#[test]
fn ports_never_collide() {
    let mut bench = Bench::new(&["ip-proto udp map ip-saddr 9.9.9.9 shuffle udp-sport"]);
    let mut seen = HashSet::new();
    for host in 0..20u8 {
        for port in 1..=200 {
            let out = bench.out(&format!("10.0.0.{host}:{port} > 2.0.0.2:80 udp"));
            assert!(sport(&out) >= 1024 && seen.insert(sport(&out)), "{out}");
        }
    }
    // Without `shuffle` a port is kept where nobody has it.
    let mut bench = Bench::new(&["ip-proto udp map ip-saddr 9.9.9.9"]);
    assert_eq!(sport(&bench.out("10.0.0.1:5 > 2.0.0.2:80 udp")), 5);
    assert_eq!(sport(&bench.out("10.0.0.1:5 > 2.0.0.3:80 udp")), 5);
    assert_ne!(sport(&bench.out("10.0.0.2:5 > 2.0.0.2:80 udp")), 5);
}

#[test]
fn errors_and_first_fragments_find_their_connection() {
    let mut bench = Bench::new(&["ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9 map udp-sport 4000"]);
    let out = bench.out("10.0.0.1:1000 > 2.0.0.2:80 udp frag 0+ id 7 \"12345678\"");
    assert_eq!(out, came("9.9.9.9:4000 > 2.0.0.2:80 udp frag 0+ id 7 \"12345678\""));
    let error = "5.5.5.5 > 9.9.9.9 icmp type unreachable [9.9.9.9:4000 > 2.0.0.2:80 udp]";
    let (direction, error) = bench.pass(error);
    assert_eq!(direction, Some(Direction::Reverse));
    assert_eq!(
        error,
        came("5.5.5.5 > 10.0.0.1 icmp type unreachable [10.0.0.1:1000 > 2.0.0.2:80 udp]")
    );
    let error = "10.0.0.1 > 2.0.0.2 icmp type unreachable [2.0.0.2:80 > 10.0.0.1:1000 udp]";
    let wanted = "9.9.9.9 > 2.0.0.2 icmp type unreachable [2.0.0.2:80 > 9.9.9.9:4000 udp]";
    assert_eq!(bench.pass(error), (Some(Direction::Forward), came(wanted)));
    let stranger = "5.5.5.5 > 9.9.9.9 icmp type unreachable [9.9.9.9:4001 > 2.0.0.2:80 udp]";
    assert_eq!(bench.pass(stranger), (None, came(stranger)));
}

#[test]
fn sequence_numbers_are_shifted_there_and_back() {
    let mut bench = Bench::new(&["tcp-syn shuffle tcp-seq-num shuffle tcp-ack-num"]);
    let number = |text: &str, word: &str| -> u32 {
        let after = text.split(&format!(" {word} ")).nth(1).unwrap_or("0");
        after.split(' ').next().unwrap().parse().unwrap()
    };
    let syn = bench.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn seq 100");
    let seq = number(&syn, "seq").wrapping_sub(100);
    assert_ne!(seq, 0);
    let reply = format!("2.0.0.2:80 > 1.0.0.1:9 tcp syn seq 5000 ack {}", seq.wrapping_add(101));
    let back = bench.out(&reply);
    let ack = number(&back, "seq").wrapping_sub(5000);
    assert_ne!(ack, 0);
    assert_eq!(number(&back, "ack"), 101);
    let data = bench.out(&format!(
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
    let sack = bench.out(&format!(
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
    let mut bench = Bench::new(&["all map ip-id 5 map ip6-flow-label 0x12345"]);
    assert_eq!(bench.out("1.0.0.1 > 2.0.0.2 udp id 9"), came("1.0.0.1 > 2.0.0.2 udp id 5"));
    assert_eq!(bench.out("1::1 > 2::2 udp flow 9"), came("1::1 > 2::2 udp flow 0x12345"));
    assert_eq!(bench.out("2.0.0.2 > 1.0.0.1 udp id 9"), came("2.0.0.2 > 1.0.0.1 udp id 9"));
    let mut bench = Bench::new(&["all shuffle ip-id shuffle ip6-flow-label"]);
    let [a, b] = [1, 2].map(|id| bench.out(&format!("1.0.0.1 > 2.0.0.2 udp id {id}")));
    assert_ne!(a, b);
    let [a, b] = [1, 2].map(|id| bench.out(&format!("1::1 > 2::2 udp flow {id}")));
    assert_eq!(a, b);
}

#[test]
fn connections_end_when_they_should() {
    let mut bench = Bench::new(&["all accept"]);
    bench.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn");
    bench.out("1.0.0.1:9 > 2.0.0.2:53 udp");
    let after = |bench: &mut Bench, seconds: u64| {
        bench.now += seconds * SECOND;
        bench.connections.forget(bench.now, 64);
        bench.connections.len()
    };
    assert_eq!(after(&mut bench, 119), 2);
    assert_eq!(after(&mut bench, 2), 1);
    bench.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn");
    bench.out("2.0.0.2:80 > 1.0.0.1:9 tcp syn ack 1");
    bench.out("1.0.0.1:9 > 2.0.0.2:80 tcp ack 1");
    assert_eq!(after(&mut bench, 4 * 3600 - 1), 1, "established");
    bench.out("2.0.0.2:80 > 1.0.0.1:9 tcp fin ack 1");
    assert_eq!(after(&mut bench, 121), 0);
    let text = "1.0.0.1:9 > 2.0.0.2:53 udp";
    bench.out(text);
    let listed = bench.connections.list(bench.matcher.places(), bench.now, true);
    assert_eq!(listed, "udp 1.0.0.1:9 > 2.0.0.2:53 id1 expires 600 s\n");
}

#[test]
fn connections_of_rules_that_are_gone_end() {
    use crate::language::{Command, Which};
    let mut bench = Bench::new(&["udp-dport 53 map udp-dport 54", "tcp-syn accept"]);
    let text = "1.0.0.1:9 > 2.0.0.2:53 udp";
    assert_eq!(bench.out(text), came("1.0.0.1:9 > 2.0.0.2:54 udp"));
    let mut rules = Rules::clone(bench.in_force.rules());
    assert!(rules.obey(&Command::Delete(Which::Position(1))).is_some_and(|it| it.is_ok()));
    // The place of a rule that is gone is another's now.
    let new = rule("ip-proto udp map udp-dport 55", true).expect("is one");
    rules.add(new);
    bench.in_force = bench.in_force.with(rules);
    bench.matcher.follow(bench.in_force.tables());
    assert_eq!(bench.out(text), came("1.0.0.1:9 > 2.0.0.2:55 udp"));
    assert_eq!(bench.connections.len(), 1);
}

#[test]
fn a_flood_leaves_those_that_were_answered() {
    let mut bench = Bench::new(&["all accept"]);
    bench.connections.set_limit(100);
    bench.out("1.0.0.1:9 > 2.0.0.2:80 tcp syn");
    bench.out("2.0.0.2:80 > 1.0.0.1:9 tcp syn ack 1");
    bench.out("1.0.0.1:9 > 2.0.0.2:80 tcp ack 1");
    for n in 0..1000u32 {
        let from = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n);
        assert_ne!(bench.out(&format!("{from}:9 > 2.0.0.2:80 tcp syn")), "full");
    }
    assert_eq!((bench.connections.len(), bench.connections.counts().evicted), (100, 901));
    let (direction, _) = bench.pass("2.0.0.2:80 > 1.0.0.1:9 tcp ack 1");
    assert_eq!(direction, Some(Direction::Reverse));
}

#[test]
fn connections_go_on_under_another_configuration() {
    let mut bench = Bench::new(&["tcp-syn accept", "udp-dport 53 map udp-dport 54", "all accept"]);
    assert!(bench.out("1.0.0.1:9 > 2.0.0.2:53 udp").contains(":54"));
    bench.out("1.0.0.1 > 2.0.0.2 proto 99");
    // The same rule elsewhere, another in its place, and one that is gone.
    let other =
        ["ip-proto udp map udp-dport 99", "tcp-syn accept", "udp-dport 53 map udp-dport 54"];
    let other = Rules::new(other.iter().map(|line| rule(line, true).expect("is one")));
    assert!(!other.is_akin(bench.in_force.rules()) && other.clone().is_akin(&other));
    let other = InForce::new(other).in_place_of(&bench.in_force).expect("has room");
    bench.matcher.follow(other.tables());
    bench.connections.follow(other.rules(), usize::MAX);
    bench.in_force = other;
    let text = "1.0.0.1:9 > 2.0.0.2:53 udp";
    assert_eq!(bench.out(text), came("1.0.0.1:9 > 2.0.0.2:54 udp"));
    let listed = bench.connections.list(bench.matcher.places(), bench.now, false);
    assert_eq!(listed, "proto 99 1.0.0.1:0 > 2.0.0.2:0\nudp 1.0.0.1:9 > 2.0.0.2:53 id2\n");
    assert_eq!(bench.pass("1.0.0.1 > 2.0.0.2 proto 99").0, None, "no rule is left");
    assert_eq!(bench.connections.len(), 1);
}

#[test]
fn those_who_are_half_open_or_over_make_room() {
    let mut bench = Bench::new(&["tcp-dport 80 accept", "ip-proto udp accept"]);
    bench.connections.set_limit(3);
    let open = |bench: &mut Bench, host: u8| {
        bench.out(&format!("1.0.0.{host}:9 > 2.0.0.2:80 tcp syn"));
        bench.out(&format!("2.0.0.2:80 > 1.0.0.{host}:9 tcp syn ack 1"));
    };
    let agree =
        |bench: &mut Bench, host: u8| bench.out(&format!("1.0.0.{host}:9 > 2.0.0.2:80 tcp ack 1"));
    let lists = |bench: &Bench, host: u8| {
        bench
            .connections
            .list(bench.matcher.places(), bench.now, false)
            .contains(&format!("1.0.0.{host}:9 "))
    };
    for host in 1..=3 {
        open(&mut bench, host);
    }
    agree(&mut bench, 1);
    // The server has answered all; of two, the beginners have not answered in turn.
    for host in 4..50 {
        open(&mut bench, host);
        assert!(lists(&bench, 1) && lists(&bench, host), "{host}");
    }
    agree(&mut bench, 48);
    agree(&mut bench, 49);
    assert_eq!(bench.out("1.0.0.50:9 > 2.0.0.2:80 tcp syn"), "full");
    assert_eq!(bench.out("1.0.0.50:9 > 2.0.0.2:80 udp"), "full");
    // One end of two is not the end, but a reset is.
    bench.out("1.0.0.48:9 > 2.0.0.2:80 tcp fin ack 1");
    assert_eq!(bench.out("1.0.0.50:9 > 2.0.0.2:80 tcp syn"), "full");
    bench.out("2.0.0.2:80 > 1.0.0.48:9 tcp fin ack 1");
    open(&mut bench, 50);
    assert!(!lists(&bench, 48) && lists(&bench, 50));
    bench.out("2.0.0.2:80 > 1.0.0.1:9 tcp rst ack 1");
    agree(&mut bench, 50);
    open(&mut bench, 51);
    assert!(!lists(&bench, 1) && lists(&bench, 49) && lists(&bench, 50) && lists(&bench, 51));
}
