//! Errors and warnings about rules; no rule is refused that some packet matches.

use super::constraints;
use super::kinds::Kinds;
use super::{rule_error, warnings, warnings_of_all};
use crate::field::{Field, Layer};
use crate::headers::{self, Headers};
use crate::language::tests::predicate;
use crate::language::{Command, command, place};
use crate::match_packet::PacketView;
use crate::matcher::tests::near;
use crate::rule::{Predicate, Rule, RuleComment, Target};
use crate::tests::{packet, sound};
use crate::value::{CONDITIONS, Value};
use castanet_packet::Packet;
use proptest::prelude::*;

fn read(line: &str) -> Rule {
    match command(line) {
        Ok(Some(Command::Add(rule))) => rule,
        other => panic!("{line}: {other:?}"),
    }
}

/// Asserts that a line is an error: the word that it is about, the message and the help.
fn wrong(line: &str, under: &str, message: &str, help: &str) {
    let fault = command(line).expect_err(line);
    let found = (&line[fault.range.clone()], fault.message.as_str());
    assert_eq!(found, (under, message), "{line}");
    assert_eq!(fault.help.as_deref(), Some(help), "{line}");
}

const EITHER: &str =
    "a packet must be all that the matches say; for one or the other, make a rule for each";

#[test]
fn contradictions_are_errors_that_say_what_contradicts_what() {
    for (line, under, message, help) in [
        (
            "tcp-dport 80 udp-dport 53 drop",
            "udp-dport 53",
            "`udp-dport 53` contradicts `tcp-dport 80`: no packet is both",
            "tcp-dport is about TCP, udp-dport about UDP; make a rule for each",
        ),
        (
            "ip6-saddr 2001:db8::/32 ip-proto tcp drop",
            "ip-proto tcp",
            "`ip-proto tcp` contradicts `ip6-saddr 2001:db8::/32`: no packet is both",
            "ip6-saddr is about IPv6, ip-proto about IPv4; `proto` is about both",
        ),
        (
            "add ip-ttl > 100 ip-ttl < 50 drop",
            "ip-ttl < 50",
            "`ip-ttl < 50` contradicts `ip-ttl > 100`: no packet is both",
            EITHER,
        ),
        (
            "tcp-dport > 65535 drop",
            "tcp-dport > 65535",
            "no packet is `tcp-dport > 65535`",
            "a value of tcp-dport is a number from 0 to 65535",
        ),
        (
            "ip-ihl 4 drop",
            "ip-ihl 4",
            "no packet is `ip-ihl 4`",
            "ip-ihl is from 5 to 15 in every IPv4 packet",
        ),
        (
            "net-proto ip6 icmp-type 8 drop",
            "icmp-type 8",
            "`icmp-type 8` contradicts `net-proto ip6`: no packet is both",
            "net-proto is about IPv6, icmp-type about IPv4; make a rule for each",
        ),
        (
            "ip-proto udp tcp-syn drop",
            "tcp-syn",
            "`tcp-syn` contradicts `ip-proto udp`: no packet is both",
            EITHER,
        ),
        (
            "in eth0 in eth1 drop",
            "in eth1",
            "`in eth1` contradicts `in eth0`: no packet is both",
            EITHER,
        ),
        (
            "tcp-dport >= 3 tcp-dport <= 4 tcp-dport != 3 tcp-sport 9 tcp-dport != 4 drop",
            "tcp-dport != 4",
            "`tcp-dport != 4` contradicts `tcp-dport >= 3` and `tcp-dport <= 4` and `tcp-dport != 3`: \
             no packet is all of that",
            EITHER,
        ),
    ] {
        wrong(line, under, message, help);
    }
}

#[test]
fn contradictions_are_found_in_all_kinds_of_fields() {
    for line in [
        "ip-saddr 10.0.0.0/8 ip-saddr 11.0.0.0/8 drop",
        "ip-saddr 10.0.0.0/8 ip-saddr != 10.0.0.0/7 drop",
        "ip-saddr < 10.0.0.0/8 ip-saddr 10.1.0.0/16 drop",
        "ip6-daddr 1::/16 ! ip6-daddr ::/0 drop",
        "tcp-syn ! tcp-syn drop",
        "tcp-flags 2 tcp-ack drop",
        "ip-ecn 1 ip-ce drop",
        "ip-ce ip-ect0 drop",
        "ip-flags 0 ip-df drop",
        "ip6-traffic-class 0xff ip6-ecn 0 drop",
        "ip6-dscp 1 ip6-ecn 2 ip6-traffic-class != 6 drop",
        "! tcp-dport tcp-syn drop",
        "! ip-ver ! ip6-ver drop",
        "! net-proto drop",
        "! proto drop",
        "net-proto ip4 net-proto ip6 drop",
        "net-proto != ip4 ip-ver 4 drop",
        "proto tcp udp-dport 53 drop",
        "proto icmp net-proto ip6 icmp6-type 128 drop",
        "ip6-proto udp ip6-next tcp drop",
        "ip6-next tcp ip6-eh drop",
        "ip6-next 44 ! ip6-eh-fragment drop",
        "ip6-eh-esp udp-dport 1 drop",
        "ip6-eh ! ip6-eh-hopbyhop ! ip6-eh-routing ! ip6-eh-fragment ! ip6-eh-esp ! ip6-eh-ah \
         ! ip6-eh-destopt ! ip6-eh-mobility ! ip6-eh-hip ! ip6-eh-shim6 drop",
        "! ip6-eh ip6-eh-routing drop",
        "tcp-opt-mss 1460 ! tcp-opt-mss drop",
        "tcp-opt-mss 1460 tcp-opt-mss != 1460 drop",
        "! tcp-opt tcp-opt-wscale drop",
        "tcp-opt ! tcp-opt drop",
        "tcp-opt-mss tcp-offset 5 drop",
        "tcp-opt-timestamp > 0xffffffffffffffff drop",
        "tcp-opt 99 0x0102 tcp-opt 99 > 0x0102 drop",
        "tcp-payload 0x4142 tcp-payload 0x43 drop",
        "tcp-payload 0x4142 ! tcp-payload 0x41 drop",
        "in a in != a drop",
        "out a ! out a drop",
        "ip-ver 6 drop",
        "ip6-ver < 6 drop",
    ] {
        let fault = command(line).expect_err(line);
        assert!(fault.help.is_some() && !fault.range.is_empty(), "{line}: {fault:?}");
    }
    for line in [
        "ip-saddr 10.0.0.0/8 ip-saddr != 10.1.0.0/16 drop",
        "tcp-opt-mss != 1460 ! tcp-opt-mss 1459 drop",
        "! tcp-opt-mss 1460 ! tcp-opt-mss 1461 drop",
        "tcp-flags 18 tcp-syn tcp-ack ! tcp-fin drop",
        "ip-proto != udp ip-proto != tcp drop",
        "! tcp-sport ip-proto tcp drop",
        "ip6-next 44 ip6-proto udp udp-dport 53 drop",
        "tcp-payload 0x4142 tcp-payload 0x41 tcp-payload != 0x43 drop",
        "in a out b drop",
        "proto icmp6 icmp6-type 128 drop",
        "tcp-opt ! tcp-opt-mss drop",
        "! ip6-proto drop",
    ] {
        assert!(command(line).is_ok(), "{line}: {:?}", command(line));
    }
    // However long a line is.
    let long: String = (0..20_000).map(|n| format!("tcp-dport != {n} ")).collect();
    assert!(command(&format!("{long} drop")).is_ok());
    let fault = command(&format!("{long} tcp-dport < 9 udp-dport != 3 drop"));
    assert!(fault.expect_err("is wrong").message.contains("`tcp-dport < 9` contradicts"));
}

#[test]
fn targets_that_do_nothing_to_what_a_rule_is_about_are_errors() {
    for (line, under, message, help) in [
        (
            "tcp-dport 80 mod udp-dport 81",
            "mod udp-dport 81",
            "`mod udp-dport` does nothing: the rule is about TCP",
            "`mod tcp-dport` would do something",
        ),
        (
            "add-stateful ip6-saddr 1::/16 map ip-saddr 1.2.3.4",
            "map ip-saddr 1.2.3.4",
            "`map ip-saddr` does nothing: the rule is about IPv6",
            "`map ip6-saddr` would do something",
        ),
        (
            "udp-dport 53 mod ip-ttl 3 strip all",
            "strip all",
            "`strip all` does nothing: the rule is about UDP",
            "leave it out, or make a rule of its own for TCP",
        ),
        (
            "ip-saddr 10.0.0.0/8 lb 2001:db8::1",
            "lb 2001:db8::1",
            "no packet goes to 2001:db8::1: the rule is about IPv4",
            "leave the address of IPv6 out",
        ),
    ] {
        wrong(line, under, message, help);
    }
    for line in [
        "all mod tcp-dport 1 mod udp-dport 1",
        "add-stateful ip-proto tcp mod icmp-code 1",
        "ip-proto tcp mod tcp-dport 5",
        "all lb 1.1.1.1 2::2",
        "net-proto ip6 lb 00:00:00:00:00:01",
    ] {
        assert!(command(line).is_ok(), "{line}: {:?}", command(line));
    }
}

#[test]
fn rules_that_do_less_than_they_seem_to_are_read_with_a_warning() {
    let neutral = |said: &str, version: &str| {
        format!(
            "`{said}` is about both, and `net-proto {version}` beside it says that one is meant"
        )
    };
    for (line, under, message, help) in [
        (
            "ip-proto udp drop",
            "ip-proto udp",
            "IPv6 passes by this rule: ip-proto is about IPv4 alone",
            neutral("proto udp", "ip4"),
        ),
        (
            "add ip6-proto != tcp udp-dport 53 drop",
            "ip6-proto != tcp",
            "IPv4 passes by this rule: ip6-proto is about IPv6 alone",
            neutral("proto != tcp", "ip6"),
        ),
        (
            "replace 1 stateful tcp-syn ! tcp-opt-mss mod tcp-opt-mss 5",
            "mod tcp-opt-mss 5",
            "`mod tcp-opt-mss` does nothing: the rule is about packets without the option",
            "`add tcp-opt-mss` adds it".into(),
        ),
        (
            "tcp-opt-mss > 9 add tcp-opt-mss 9",
            "add tcp-opt-mss 9",
            "`add tcp-opt-mss` does nothing: the rule is about packets with the option",
            "`mod tcp-opt-mss` changes it".into(),
        ),
        (
            "all strip all mod tcp-opt-mss 9",
            "mod tcp-opt-mss 9",
            "`mod tcp-opt-mss` does nothing: the option is stripped before",
            "`add tcp-opt-mss` puts one in its place".into(),
        ),
        ("all drop 0", "drop 0", "`drop 0` drops nothing", "leave the rule out, or the 0".into()),
        (
            "all mod ip-ttl 3 mod ip-ttl 4",
            "mod ip-ttl 3",
            "`mod ip-ttl 3` does nothing: `mod ip-ttl 4` comes behind it",
            "leave one of them out".into(),
        ),
    ] {
        let rule = match command(line) {
            Ok(Some(Command::Add(rule) | Command::Replace(_, rule))) => rule,
            other => panic!("{line}: {other:?}"),
        };
        let found = warnings(&rule);
        let [remark] = &found[..] else { panic!("{line}: {found:?}") };
        assert_eq!(&line[place(line, remark.part)], under, "{line}");
        assert_eq!((remark.message.as_str(), remark.help.clone()), (message, Some(help)), "{line}");
    }
    for line in [
        "ip-proto udp ip-saddr 10.0.0.0/8 drop",
        "net-proto ip4 ip-proto udp drop",
        "ip-proto icmp drop",
        "ip-proto drop",
        "ip-proto udp mod ip-ttl 3",
        "add-stateful ip-proto tcp map ip-saddr 1.2.3.4",
        "proto udp drop",
        "tcp-opt-mss strip tcp-opt-mss add tcp-opt-mss 5",
        "all mod ip-saddr 10.1.2.3 mod ip-saddr 11.0.0.0/8",
        "all accept",
    ] {
        assert_eq!(warnings(&read(line)), [], "{line}");
    }
}

#[test]
fn what_other_rules_do_is_not_left_undone() {
    let said = |lines: &[&str]| {
        let rules: Vec<Rule> = lines.iter().map(|line| read(line)).collect();
        let line = |(at, remark): (usize, super::RuleDiagnostic)| {
            format!("{} {}", at + 1, remark.line(&rules[at]).split(';').next().unwrap_or(""))
        };
        warnings_of_all(rules.iter(), 10).into_iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(said(&["ip-proto udp drop", "tcp-syn drop", "ip6-proto udp drop"]), [""; 0]);
    assert_eq!(
        said(&["ip-proto udp drop", "all accept", "ip6-proto tcp drop"]),
        [
            "1 `ip-proto udp`: IPv6 passes by this rule: ip-proto is about IPv4 alone",
            "2 `accept`: `all accept` overrules every rule that drops, before it and behind it",
            "3 `ip6-proto tcp`: IPv4 passes by this rule: ip6-proto is about IPv6 alone",
        ]
    );
    let many = vec!["ip-proto udp drop"; 100];
    assert_eq!(said(&many).len(), 10);
}

/// The kind of a packet.
fn kind(headers: &Headers) -> Kinds {
    let version = if headers.is_ip6 { Layer::Ip6 } else { Layer::Ip4 };
    let others = [Layer::Icmp, Layer::Icmp6, Layer::Udp, Layer::Tcp];
    let upper = others.into_iter().filter(|it| headers.has(*it));
    let with = upper.clone().fold(Kinds::with(version), |all, it| all.and(Kinds::with(it)));
    match upper.count() {
        0 => others.into_iter().fold(with, |all, it| all.and(Kinds::with(it).not())),
        _ => with,
    }
}

/// Packets of all kinds, some of them broken.
fn any_packet() -> impl Strategy<Value = Packet> {
    let odd = prop::sample::select(vec![
        "1::1 > 2::2 tcp syn frag 0+ id 7 class 0xb9 flow 0x12345 hop 3",
        "1::1 > 2::2 udp frag 1480 id 7",
        "1.0.0.1 > 2.0.0.2 tcp frag 0+ tcpopt nop;nop;ts1:2 \"12345678\"",
        "1.0.0.1 > 2.0.0.2 udp frag 1480 \"12345678\"",
        "1.0.0.1 > 2.0.0.2 proto 47",
        "1.0.0.1 > 2.0.0.2 tcp syn tcpopt mss1460;sackok;ts1:0;nop;wscale7",
        "1::1 > 2::2 proto 50",
        "1::1 > 2::2 icmp6 type 128",
    ]);
    let text = prop_oneof![sound(), odd.prop_map(str::to_owned)];
    let changes = prop::collection::vec((0usize..80, any::<u8>()), 0..4);
    let headers = prop::collection::vec(prop::sample::select(vec![0u8, 43, 44, 60, 51, 50]), 0..3);
    (text, changes, headers).prop_map(|(text, changes, headers)| {
        let (packet, _) = packet(&text);
        let mut bytes = packet.bytes().to_vec();
        for number in headers.into_iter().take(if bytes[0] >> 4 == 6 { 3 } else { 0 }) {
            const NEXT: usize = 6;
            let next = std::mem::replace(&mut bytes[NEXT], number);
            bytes.splice(40..40, [next, 0, 0, 0, 0, 0, 0, 0]);
        }
        for (at, byte) in changes {
            bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
        }
        let mut packet = Packet::from_bytes(&bytes);
        packet.set_network_header(0, 0);
        packet
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn matchable_rules_have_no_error(
        packet in any_packet(),
        all in prop::collection::vec(
            (predicate(), 0..CONDITIONS.len(), 0u64..3, any::<bool>()), 1..12),
    ) {
        let Some(headers) = headers::find(&packet) else { return Ok(()) };
        let seen =
            PacketView::new(packet.bytes(), &headers, ("eth0", "eth1"));
        let own = |(mut it, at, add, bare): (Predicate, usize, u64, bool)| {
            if bare && it.field.spec().kind != crate::field::Kind::Interface {
                it.test = None;
            }
            if let Some((_, Value::Name(name))) = &mut it.test {
                *name = if add == 0 { "eth0" } else { "eth1" }.into();
            }
            near(&it, &packet, add.wrapping_sub(1), CONDITIONS[at].1)
        };
        let matches: Vec<Predicate> =
            all.into_iter().map(own).filter(|it| it.matches_packet(&seen)).collect();
        let kinds = constraints::kinds(matches.iter());
        prop_assert!(kind(&headers).is_within(kinds), "{:?} {:?}", matches, headers);
        let rule = Rule { stateful: false, matches, targets: vec![Target::Accept], comment: RuleComment::default() };
        prop_assert_eq!(rule_error(&rule), None);
    }

    #[test]
    fn overlapping_ranges_are_satisfiable(
        field in prop::sample::select(vec!["ip-ttl", "tcp-flags", "ip6-traffic-class", "proto"]),
        all in prop::collection::vec((0..CONDITIONS.len(), any::<u8>(), any::<bool>()), 1..6),
    ) {
        let field = Field::named(field).expect("is one");
        let predicate = |&(at, n, negated): &(usize, u8, bool)| {
            let test = Some((CONDITIONS[at].1, Value::Number(n.into())));
            Predicate { negated, field, test }
        };
        let fits = |n: u8, &(at, value, negated): &(usize, u8, bool)| {
            CONDITIONS[at].1.allows(n.cmp(&value)) != negated
        };
        let is_one = (0..=u8::MAX).any(|n| all.iter().all(|it| fits(n, it)));
        let matches: Vec<Predicate> = all.iter().map(predicate).collect();
        prop_assert_eq!(!constraints::kinds(matches.iter()).is_empty(), is_one);
    }
}
