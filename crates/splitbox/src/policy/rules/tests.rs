//! Rules as functions, against the rules applied one by one as `Middlebox` does.

use super::super::{Format, compile};
use crate::bits::Bits;
use crate::header::{header_string, write_header_string};
use castanet_middlebox::PacketView;
use castanet_middlebox::language::rule;
use castanet_middlebox::rewrite::{PacketRewriter, RulePlan};
use castanet_packet::Packet;
use castanet_wire::headers::Headers;
use castanet_wire::sketch;
use proptest::prelude::*;

const RULES: &[&str] = &[
    "ip-saddr 1.0.0.0/8 drop",
    "ip-daddr 2.0.0.2 accept",
    "proto udp drop",
    "tcp-dport 80 mod tcp-dport 8080 mod ip-daddr 10.0.0.1",
    "tcp-dport > 1000 drop",
    "! tcp-dport drop",
    "! tcp-dport 80 mod ip-ttl 9",
    "! tcp-syn mod tcp-sport 77",
    "tcp-syn mod ip-dscp 5",
    "udp-sport != 5 mod udp-sport 5",
    "udp-dport >= 53 udp-dport < 100 mod udp-dport 54",
    "ip-saddr 1.0.0.1 mod ip-daddr 9.9.9.9",
    "ip-daddr 2.0.0.0/16 mod ip-saddr 8.8.8.0/24",
    "ip-daddr != 2.0.0.0/16 mod ip-daddr 7.7.0.0/16",
    "ip-saddr >= 5.0.0.0 accept",
    "icmp-type 8 drop",
    "icmp-code != 0 accept",
    "icmp6-type <= 128 mod ip6-hop-limit 1",
    "ip6-saddr ::1 mod ip6-daddr 2001:db8::5",
    "ip6-saddr < 2000:: mod ip6-saddr fd00::/8",
    "ip6-daddr ::2 drop",
    "net-proto ip6 mod ip6-traffic-class 3",
    "net-proto != ip6 mod ip-ecn 1",
    "! ip6-traffic-class drop",
    "ip-ce mod ip-non-ect 1",
    "ip-ect0 != 1 mod ip-ce 1",
    "ip-ttl <= 8 mod ip-ttl 200",
    "all mod ip-ttl 64 mod ip6-hop-limit 64",
    "all mod tcp-sport 1 mod udp-sport 2",
    "ip-mf drop",
    "ip-frag-offset > 0 mod ip-dscp 7",
    "! ip-df mod ip-daddr 3.0.0.0/12",
    "ip-proto 33 accept",
    "proto != tcp mod ip-dscp 1",
    "ip6-proto tcp mod tcp-dport 81 mod ip6-dscp 9",
    "tcp-flags 2 drop",
    "tcp-win 0 mod tcp-dport 9",
    "udp-len > 8 mod ip-saddr 4.4.4.4",
    "! udp-sport accept",
    "! icmp-type mod ip-saddr 6.0.0.0/7",
    "tcp-dport 80,443,1000-1100 drop",
    "udp-dport != 1-52,54-60 mod ip-dscp 3",
    "! ip-saddr 1.0.0.0/8,9.0.0.0-9.0.0.7 mod ip-dscp 6",
    "ip6-saddr ::1-::7,2001:db8::/32 drop",
    "proto tcp,33 mod ip-ttl 77",
];

const PACKETS: &[&str] = &[
    "1.0.0.1:5 > 2.0.0.2:80 tcp syn",
    "1.0.0.1:5 > 2.0.0.2:80 tcp syn ack ttl 8 tos 3",
    "5.0.0.1:5 > 3.0.0.2:1001 tcp win 0 ack ipopt 0x01010100",
    "9.0.0.1:53 > 2.0.3.2:53 udp tos 2 \"abc\"",
    "1.0.0.1:5 > 2.0.0.2:6 udp nocheck",
    "1.0.0.1 > 2.0.0.2 icmp type echo",
    "8.0.0.1 > 2.0.0.2 icmp type unreachable code 3",
    "1.0.0.1 > 2.0.0.2 udp id 7 frag 16 len 60",
    "1.0.0.1:5 > 2.0.0.2:99 udp id 7 frag 0+ len 60",
    "7.0.0.1 > 2.0.0.2 proto 33 data 00050006",
    "1.0.0.1 > 2.0.0.2 proto 33 data 000500060300123411223344",
    "[::1]:5 > [::2]:80 tcp class 31 syn \"x\"",
    "[2001:db8::1]:5 > [::3]:80 tcp ack",
    "[::1]:5 > [::2]:6 udp \"abcd\"",
    "[::1]:5 > [::2]:6 udp id 1 frag 0+ len 80",
    "::1 > ::2 udp id 1 frag 16 len 80",
    "::1 > ::2 icmp6 type 128",
    "fd00::1 > ::2 icmp6 type 129",
    "::1 > ::2 proto 99",
];

/// The packet after all rules, as `Middlebox` applies them; `None` if it is dropped.
pub(in crate::policy) fn reference(
    rules: &[&str],
    bytes: &[u8],
    headers: &Headers,
) -> Option<Vec<u8>> {
    let rules = rules.iter().map(|text| rule(text, false).expect(text));
    let view = PacketView::new(bytes, headers, ("", ""));
    let plans: Vec<RulePlan> =
        rules.filter(|it| it.matches_packet(&view)).map(|it| RulePlan::new(&it)).collect();
    let is_accepted = plans.iter().any(|it| it.accept);
    if !is_accepted && plans.iter().any(|it| it.drop.is_some()) {
        return None;
    }
    let mut packet = Packet::from_bytes(bytes);
    let mut rewriter = PacketRewriter::new(&mut packet, *headers, 1500);
    plans.iter().for_each(|plan| {
        rewriter.apply(plan);
    });
    rewriter.finish();
    Some(packet.bytes().to_vec())
}

/// The packet after a function; `None` if it is dropped.
fn result(policy: &super::CompiledPolicy, bytes: &[u8], headers: &Headers) -> Option<Vec<u8>> {
    let within = Bits::first(policy.header_bits);
    let string = header_string(bytes, headers);
    let changed = policy.function.evaluate(string & within);
    let mut bytes = bytes.to_vec();
    write_header_string(&mut bytes, headers, &(changed | string & !within));
    (!changed.is_zero()).then_some(bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_function_does_what_the_rules_do(
        rules in prop::collection::vec(prop::sample::select(RULES.to_vec()), 0..7),
        packet in prop::sample::select(PACKETS.to_vec()),
        changes in prop::collection::vec((1..64_usize, any::<u8>()), 0..3),
    ) {
        let policy = compile(Format::Rules, &rules.join("\n"));
        let policy = policy.map_err(|it| TestCaseError::fail(format!("{rules:?}: {it:?}")))?;
        let mut bytes = sketch::build(packet).expect(packet).bytes;
        for (at, byte) in changes {
            bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
        }
        // The entry refuses packets without whole headers.
        let headers = Headers::of(&bytes, 0).filter(|it| !it.is_cut());
        let Some(headers) = headers else { return Ok(()) };
        let expected = reference(&rules, &bytes, &headers);
        prop_assert_eq!(result(&policy, &bytes, &headers), expected, "{:?}", rules);
    }
}

#[test]
fn every_rule_of_the_property_compiles_and_changes_a_packet_or_passes_it() {
    for text in RULES {
        let policy = compile(Format::Rules, text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        for packet in PACKETS {
            let bytes = sketch::build(packet).expect(packet).bytes;
            let headers = Headers::of(&bytes, 0).expect(packet);
            let expected = reference(&[text], &bytes, &headers);
            assert_eq!(result(&policy, &bytes, &headers), expected, "{text}: {packet}");
        }
    }
}

#[test]
fn later_rules_win_and_places_are_those_of_the_rules() {
    let text = "# two rules\nip-saddr 1.0.0.0/8 mod ip-ttl 1 # first\n\n  ip-saddr 1.0.0.1 mod ip-ttl 2\nall drop\n";
    let policy = compile(Format::Rules, text).expect("are rules");
    let places: Vec<&str> = policy.ranges.iter().map(|it| &text[it.clone()]).collect();
    assert_eq!(places, ["all drop", "mod ip-ttl 2", "mod ip-ttl 1"]);
    // The last byte that matters is that of the source.
    assert_eq!(policy.header_bits, 8 * (3 + 16));
}

#[test]
fn rules_that_cannot_be_private_are_errors_at_their_places() {
    let text = "in eth0 drop\nall drop 50\ntcp-opt-mss > 5 drop\nadd-stateful all map ip-saddr 1.0.0.1\n\
                all lb 1.0.0.1\ntcp-payload 0x47 drop\nip6-next tcp drop\nall mod ip-id 4\n\
                tcp-checksum 5 drop\nother drop\nflush\ntcp-syn add tcp-opt-sackp mod ip-ce 0\n\
                ip6-eh drop\nall mod tcp-payload 0x47\n";
    let errors = compile(Format::Rules, text).unwrap_err();
    let shown: Vec<String> = errors
        .iter()
        .map(|it| format!("{}: {}: {}", it.line(text), &text[it.range.clone()], it.message))
        .collect();
    assert_eq!(
        shown,
        [
            "1: in eth0: `in` is no part of a header string",
            "2: drop 50: a private function drops all packets of a rule or none",
            "3: tcp-opt-mss > 5: `tcp-opt-mss` is no part of a header string",
            "4: all map ip-saddr 1.0.0.1: a stateful rule is about connections, which a private function does not have",
            "4: map ip-saddr 1.0.0.1: `map` is no action of a private function",
            "5: lb 1.0.0.1: a private function has no connections to balance and no next hops",
            "6: tcp-payload 0x47: `tcp-payload` is no part of a header string",
            "7: ip6-next tcp: `ip6-next` is no part of a header string",
            "8: mod ip-id 4: `ip-id` is not for a private function to change",
            "9: tcp-checksum 5: `tcp-checksum` is no part of a header string",
            "10: other drop: a private function is about IP packets alone",
            "11: flush: a policy has rules alone, and no other commands",
            "12: add tcp-opt-sackp: `add` is no action of a private function",
            "12: mod ip-ce 0: `mod ip-ce 0` depends on the value before",
            "13: ip6-eh: `ip6-eh` is no part of a header string",
            "14: mod tcp-payload 0x47: `tcp-payload` is no part of a header string",
        ]
    );
    assert!(errors.iter().filter(|it| it.help.is_some()).count() >= 13);
    let syntax = compile(Format::Rules, "all dorp\n").unwrap_err();
    assert_eq!(&"all dorp"[syntax[0].range.clone()], "dorp");
}

#[test]
fn too_many_matches_are_an_error() {
    let text = "ip-saddr != 1.0.0.1 ip-daddr != 1.0.0.1 ip-id != 5 drop\n";
    let errors = compile(Format::Rules, text).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].message, "the rule needs more than 4096 matches");
    // Each of many rules tests what all others change.
    let rule = |n: usize| {
        let (n, m) = (n / 200, n % 200);
        format!(
            "ip-saddr 1.0.{n}.{m} mod ip-daddr 2.{n}.{m}.0/24\n\
             ip-daddr 3.0.{n}.{m} mod ip-saddr 4.0.{n}.{m}\n"
        )
    };
    let errors = |count: usize| {
        let text: String = (0..count).map(rule).collect();
        compile(Format::Rules, &text).map(|_| ()).err().unwrap_or_default()
    };
    assert_eq!(errors(20), []);
    let message = errors(300)[0].message.clone();
    assert!(message.starts_with("rules from here on change what each other test"), "{message}");
}
