//! Errors: rules without any effect.

use super::constraints;
use super::kinds::{Kinds, protocol};
use super::{RuleDiagnostic, RulePart};
use crate::field::{FIELDS, Field, FieldLocation, Layer};
use crate::rule::{Hop, Predicate, Rule, Target};
use crate::value::wants;
use std::net::IpAddr;

/// Returns an error if no packet can match the rule, or if a target has no effect on the packets that
/// match.
pub(crate) fn rule_error(rule: &Rule) -> Option<RuleDiagnostic> {
    let kinds = constraints::kinds(rule.matches.iter());
    if kinds.is_empty() {
        return Some(contradiction(&rule.matches));
    }
    rule.targets.iter().enumerate().find_map(|(at, target)| idle(rule, kinds, at, target))
}

fn are_possible<'r>(matches: impl Iterator<Item = &'r Predicate>) -> bool {
    !constraints::kinds(matches).is_empty()
}

/// Returns the error for matches that no packet can satisfy: the fewest matches that contradict each
/// other.
fn contradiction(matches: &[Predicate]) -> RuleDiagnostic {
    // The error is about the last match of the shortest prefix that no packet can satisfy.
    let counts: Vec<usize> = (1..=matches.len()).collect();
    let at = counts.partition_point(|&count| are_possible(matches[..count].iter()));
    let last = &matches[at.min(matches.len() - 1)];
    let part = RulePart::Match(at);
    if !are_possible([last].into_iter()) {
        return RuleDiagnostic::new(part, format!("no packet is `{last}`"), never(last.field));
    }
    let head = &matches[..at];
    if let Some(other) = head.iter().find(|other| !are_possible([*other, last].into_iter())) {
        let message = format!("`{last}` contradicts `{other}`: no packet is both");
        return RuleDiagnostic::new(part, message, reason(other, last));
    }
    /// The most matches among which a smaller contradiction is sought.
    const MANY: usize = 32;
    let mut core: Vec<&Predicate> = head.iter().collect();
    let mut next = 0;
    while next < core.len() && core.len() <= MANY {
        let without = core.iter().enumerate().filter(|(it, _)| *it != next).map(|(_, it)| *it);
        match are_possible(without.chain([last])) {
            true => next += 1,
            false => _ = core.remove(next),
        }
    }
    let others = match core.len() {
        0..=MANY => core.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(" and "),
        _ => "what stands before it".into(),
    };
    let message = format!("`{last}` contradicts {others}: no packet is all of that");
    RuleDiagnostic::new(part, message, EITHER.to_owned())
}

const EITHER: &str =
    "a packet must be all that the matches say; for one or the other, make a rule for each";

/// Explains that no packet has such a value of the field, and names the possible values.
fn never(field: Field) -> String {
    match (field.spec().location, field.spec().name) {
        (_, "ip-ver") => "ip-ver is 4 in every IPv4 packet".into(),
        (_, "ip6-ver") => "ip6-ver is 6 in every IPv6 packet".into(),
        (_, "ip-ihl") => "ip-ihl is from 5 to 15 in every IPv4 packet".into(),
        (FieldLocation::Version | FieldLocation::Upper, name) => format!("every packet has {name}"),
        _ => format!("a value of {field} is {}", wants(field)),
    }
}

/// Explains why two matches contradict each other, and suggests a correction.
fn reason(one: &Predicate, other: &Predicate) -> String {
    let kinds = |it: &Predicate| constraints::kinds([it].into_iter());
    if !kinds(one).and(kinds(other)).is_empty() {
        return EITHER.into();
    }
    let of_version = |it: &Predicate| match it.field.spec().name {
        "ip-proto" => Some("IPv4"),
        "ip6-proto" | "ip6-next" => Some("IPv6"),
        _ => None,
    };
    let version = |it: &Predicate| {
        let layers = [Layer::Ip4, Layer::Ip6].into_iter();
        layers.filter(|layer| kinds(it).is_within(Kinds::with(*layer))).map(protocol).next()
    };
    if let (Some(first), Some(second)) = (version(one), version(other))
        && first != second
    {
        let both = [one, other].into_iter().any(|it| of_version(it).is_some());
        let proto = if both { "; `proto` is about both" } else { "; make a rule for each" };
        return format!("{} is about {first}, {} about {second}{proto}", one.field, other.field);
    }
    let name = |it: &Predicate| {
        let layers = [Layer::Tcp, Layer::Udp, Layer::Icmp, Layer::Icmp6].into_iter();
        layers.filter(|layer| kinds(it).is_within(Kinds::with(*layer))).map(protocol).next()
    };
    match (name(one), name(other)) {
        (Some(first), Some(second)) if first != second => {
            let (one, other) = (one.field, other.field);
            format!("{one} is about {first}, {other} about {second}; make a rule for each")
        }
        _ => EITHER.into(),
    }
}

/// Returns the error for a target without effect on the packets that match the rule.
fn idle(rule: &Rule, kinds: Kinds, at: usize, target: &Target) -> Option<RuleDiagnostic> {
    // ICMP errors about a connection belong to the connection.
    let errors = |version: u8, layer| {
        let upper = if version == 4 { Layer::Icmp } else { Layer::Icmp6 };
        rule.stateful && layer == upper && !kinds.and(Kinds::of(|it, _| it == version)).is_empty()
    };
    let kinds = kinds.or(Kinds::of(errors));
    let (field, layer) = match target {
        Target::Mod { field, .. } | Target::Map { field, .. } => (Some(*field), field.spec().layer),
        Target::Add { option: field, .. } | Target::Keep(field) | Target::Shuffle(field) => {
            (Some(*field), field.spec().layer)
        }
        Target::Strip(field) => (*field, Layer::Tcp),
        Target::Balance(hops) => return idle_hop(kinds, at, hops),
        Target::Drop(_) | Target::Reject(_) | Target::Accept | Target::Log(_) | Target::Jump(_) => {
            return None;
        }
    };
    if !kinds.and(Kinds::with(layer)).is_empty() {
        return None;
    }
    let about = match kinds.name() {
        Some(name) => format!("the rule is about {name}"),
        None => format!("the rule is about no packet of {}", protocol(layer)),
    };
    let message = format!("`{}` does nothing: {about}", words(target, field));
    let twin = field.and_then(|field| twin(field, kinds));
    let help = twin.map(|twin| format!("`{} {twin}` would do something", target.word()));
    let other = || format!("leave it out, or make a rule of its own for {}", protocol(layer));
    Some(RuleDiagnostic::new(RulePart::Target(at), message, help.unwrap_or_else(other)))
}

/// A target and its field.
fn words(target: &Target, field: Option<Field>) -> String {
    match field {
        Some(field) => format!("{} {field}", target.word()),
        None => target.to_string(),
    }
}

/// The same field of another layer that packets of these kinds have.
fn twin(field: Field, kinds: Kinds) -> Option<Field> {
    let spec = field.spec();
    let (_, rest) = spec.name.split_once('-')?;
    let is_twin = |it: &&crate::field::FieldSpec| {
        let has_name = it.name.split_once('-').is_some_and(|(_, other)| other == rest);
        let takes = it.modifies() == spec.modifies() && it.maps == spec.maps;
        has_name && takes && it.layer != Layer::Any && kinds.is_within(Kinds::with(it.layer))
    };
    FIELDS.iter().find(is_twin).and_then(|it| Field::named(it.name))
}

/// A next hop that no packet of these kinds can go to.
fn idle_hop(kinds: Kinds, at: usize, hops: &[Hop]) -> Option<RuleDiagnostic> {
    hops.iter().find_map(|hop| {
        let layer = match hop {
            Hop::Address(IpAddr::V4(_)) => Layer::Ip4,
            Hop::Address(IpAddr::V6(_)) => Layer::Ip6,
            Hop::Station(_) => return None,
        };
        let about = kinds.name().filter(|_| kinds.and(Kinds::with(layer)).is_empty())?;
        let of = protocol(layer);
        let message = format!("no packet goes to {hop}: the rule is about {about}");
        Some(RuleDiagnostic::new(
            RulePart::Target(at),
            message,
            format!("leave the address of {of} out"),
        ))
    })
}
