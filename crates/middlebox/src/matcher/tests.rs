//! The table against rules asked one by one.

use super::{Matcher, keys};
use crate::active_rules::ActiveRules;
use crate::ct_state::{CtInfo, CtState};
use crate::field::{FieldLocation, Kind};
use crate::headers::{self, Headers};
use crate::language::tests::predicate;
use crate::match_packet::PacketView;
use crate::rule::{Predicate, Rule, RuleComment, Target};
use crate::rule_set::RuleSet;
use crate::tests::{packet, sound};
use crate::value::{CONDITIONS, Condition, Value, mask4, mask6};
use crate::value_set::ValueSet;
use castanet_kit::rules::Key;
use castanet_packet::Packet;
use castanet_wire::bits;
use proptest::prelude::*;
use std::sync::Arc;

fn seen<'a>(packet: &'a Packet, headers: &'a Headers) -> PacketView<'a> {
    PacketView::new(packet.bytes(), headers, ("eth0", "eth1"))
}

/// The same predicate with a value that the packet has, or one near it.
pub(crate) fn near(
    predicate: &Predicate,
    packet: &Packet,
    add: u64,
    condition: Condition,
) -> Predicate {
    let mut near = predicate.clone();
    let spec = near.field.spec();
    let Some(headers) = headers::find(packet) else { return near };
    let number = match spec.location {
        FieldLocation::Bits { first, count } if headers.has(spec.layer) => {
            let header = packet.bytes().get(headers.layer(spec.layer).0..).unwrap_or_default();
            bits::get(header, first.into(), count.into())
        }
        FieldLocation::Upper => Some(headers.protocol.into()),
        FieldLocation::Version => Some(if headers.is_ip6 { 6 } else { 4 }),
        _ => None,
    };
    if let (Some(number), Some((is, value))) = (number, &mut near.test) {
        match value {
            Value::Number(_) if matches!(spec.kind, Kind::Named(_)) => {}
            Value::Number(value) if spec.bits() > 0 => {
                let last = u64::MAX >> (64 - spec.bits());
                *value = (number as u64).wrapping_add(add) & last;
                if spec.has_order() {
                    *is = condition;
                }
            }
            Value::Number(value) => *value = number as u64,
            Value::Net4 { address, length } => *address = number as u32 & mask4(*length),
            Value::Net6 { address, length } => *address = number & mask6(*length),
            Value::Set(set) if set.name().is_none() && add <= 1 => {
                let own = (number, number.saturating_add(add.into()));
                *set = Arc::new(ValueSet::list(set.ranges().with([own])));
            }
            _ => {}
        }
    }
    near
}

/// Rules about packets like these.
fn rules(packets: Vec<String>) -> impl Strategy<Value = (Vec<String>, Vec<Rule>)> {
    let condition = (0..CONDITIONS.len()).prop_map(|at| CONDITIONS[at].1);
    let one = (predicate(), 0..packets.len(), prop::sample::select(vec![0, 0, 1, u64::MAX]));
    let one = (one, condition, any::<bool>());
    let texts = packets.clone();
    let one = one.prop_map(move |((predicate, at, add), condition, is_near)| match is_near {
        true => near(&predicate, &packet(&texts[at]).0, add, condition),
        false => predicate,
    });
    let rule = prop::collection::vec(one, 1..4).prop_map(|matches| Rule {
        stateful: false,
        matches,
        targets: vec![Target::Accept],
        comment: RuleComment::default(),
    });
    (Just(packets), prop::collection::vec(rule, 0..40))
}

/// The short way to a key leads to the same one.
fn keys_agree(packet: &Packet, headers: &Headers) {
    for with_options in [false, true] {
        let (mut key, mut plain) = (Key::default(), Key::default());
        keys::fill(&mut key, packet.bytes(), headers, with_options);
        assert!(keys::is_of_ip(&key));
        if keys::fill_plain(&mut plain, &packet.bytes()[headers.network..], with_options).is_some()
        {
            assert_eq!(key, plain);
        }
    }
}

/// Asks the matcher and each rule about each packet.
fn agree(matcher: &mut Matcher, rules: &RuleSet, packets: &[Packet]) {
    let headers: Vec<Option<Headers>> = packets.iter().map(headers::find).collect();
    matcher.start_burst();
    // Connections of all states.
    let state = |number: usize| CtState::NAMED[number % CtState::NAMED.len()].1;
    let with_headers = packets.iter().zip(&headers).filter_map(|(it, of)| Some((it, of.as_ref()?)));
    for (number, (packet, headers)) in with_headers.enumerate() {
        keys_agree(packet, headers);
        matcher.push(packet.bytes(), headers);
        matcher.set_state(state(number));
    }
    matcher.look_up();
    let mut found = Vec::new();
    let headers = packets.iter().zip(&headers).filter_map(|(it, of)| Some((it, of.as_ref()?)));
    for (number, (packet, headers)) in headers.enumerate() {
        let ct_info = CtInfo { state: state(number), is_of_connection: false };
        let seen = PacketView { ct_info, ..seen(packet, headers) };
        matcher.matching_rules(number as u32, &seen, &mut found);
        let plainly = rules.entries().filter(|entry| entry.rule.matches_packet(&seen));
        let plainly: Vec<u32> = plainly.map(|entry| entry.slot as u32).collect();
        let said = |slot: &u32| matcher.slots().entry(*slot).map(|it| it.rule.command());
        assert_eq!(
            found.iter().map(said).collect::<Vec<_>>(),
            plainly.iter().map(said).collect::<Vec<_>>()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn tables_equal_the_reference(
        (texts, rules) in prop::collection::vec(sound(), 1..6).prop_flat_map(rules),
    ) {
        let packets: Vec<Packet> = texts.iter().map(|text| packet(text).0).collect();
        let (all, mut matcher) = (ActiveRules::new(RuleSet::new(rules)), Matcher::default());
        matcher.set_tables(all.tables());
        agree(&mut matcher, all.rules(), &packets);
    }

    #[test]
    fn tables_follow_rule_changes(
        (texts, new) in prop::collection::vec(sound(), 1..4).prop_flat_map(rules),
        steps in prop::collection::vec((0..6usize, 1..9usize, any::<bool>()), 0..30),
    ) {
        let packets: Vec<Packet> = texts.iter().map(|text| packet(text).0).collect();
        let (mut active_rules, mut matcher) = (ActiveRules::default(), Matcher::default());
        let mut new = new.into_iter().cycle();
        for (what, at, is_late) in steps {
            let command = match (what, new.next()) {
                (0..3, Some(rule)) => format!("add {}", rule),
                (3, _) => format!("delete {at}"),
                (4, _) => format!("move {at} 1"),
                (_, Some(rule)) => format!("replace {at} {}", rule),
                (_, None) => "flush".into(),
            };
            // Some contradict themselves.
            let Ok(Some(command)) = crate::language::command(&command) else { continue };
            // That there is no such rule is an answer too.
            let mut all = RuleSet::clone(active_rules.rules());
            _ = all.execute(&command);
            active_rules = active_rules.with(all);
            // A worker may be late: then there are tables more.
            if !is_late {
                matcher.set_tables(active_rules.tables());
                agree(&mut matcher, active_rules.rules(), &packets);
            }
        }
    }
}

#[test]
fn other_rules_of_the_next_version_are_others() {
    let rule = |text: &str| crate::language::rule(text, false).expect(text);
    let (udp, tcp) = (rule("ip-proto udp drop"), rule("ip-proto tcp drop"));
    let packets = ["1.0.0.1:1 > 2.0.0.2:2 udp", "1.0.0.1:1 > 2.0.0.2:2 tcp"];
    let packets = packets.map(|text| packet(text).0);
    let mut matcher = Matcher::default();
    for rules in [vec![udp.clone()], vec![tcp, udp]] {
        let active_rules = ActiveRules::new(RuleSet::new(rules));
        matcher.set_tables(active_rules.tables());
        agree(&mut matcher, active_rules.rules(), &packets);
    }
}
