//! Warnings about rules that match fewer packets, or have less effect, than their text suggests.

use super::constraints;
use super::kinds::Kinds;
use super::{RuleDiagnostic, RulePart};
use crate::chains::{chain_of, jumps};
use crate::field::{Field, FieldLocation, Layer};
use crate::rule::{Chance, Predicate, Rule, Target};
use crate::value::{Condition, Value};
use std::collections::{HashMap, HashSet};

/// Returns warnings about one rule: packets that the rule seems to match and does not match.
pub fn warnings(rule: &Rule) -> Vec<RuleDiagnostic> {
    /// Limit of pairwise comparisons; no person writes rules of that size.
    const MANY: usize = 1 << 16;
    if rule.matches.len() * rule.targets.len() > MANY {
        return Vec::new();
    }
    let targets = || rule.targets.iter().enumerate();
    let mut all: Vec<RuleDiagnostic> = one_version(rule).into_iter().collect();
    all.extend(targets().filter_map(|(at, target)| void(rule, at, target)));
    all.extend(targets().filter_map(|(at, _)| overwritten(rule, at)));
    all
}

/// Returns warnings about a rule that is added to other rules.
pub(crate) fn warnings_beside<'r>(
    rule: &Rule,
    others: impl Iterator<Item = &'r Rule>,
) -> Vec<RuleDiagnostic> {
    let mut remarks = warnings(rule);
    if one_version(rule).is_some() && { others }.any(|other| for_other_version(other) == *rule) {
        remarks.remove(0);
    }
    remarks
}

/// Returns at most `most` warnings about a list of rules, each with the index of its rule. There is no
/// warning about packets that another rule matches.
pub fn warnings_of_all<'r>(
    rules: impl Iterator<Item = &'r Rule> + Clone,
    most: usize,
) -> Vec<(usize, RuleDiagnostic)> {
    let mut other_version_rules = OtherVersionRules::default();
    let of_rule = |(at, rule): (usize, &Rule)| {
        let mut remarks = warnings(rule);
        if one_version(rule).is_some() && other_version_rules.has(rule, rules.clone()) {
            remarks.remove(0);
        }
        remarks.into_iter().map(move |remark| (at, remark)).collect::<Vec<_>>()
    };
    let overruled = overruled(rules.clone());
    let loose_ends = loose_ends(rules.clone());
    let all = rules.clone().enumerate().flat_map(of_rule);
    let mut all: Vec<_> = overruled.into_iter().chain(loose_ends).chain(all).take(most).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Warns of chains that no rule leads to, and of jumps to chains without rules.
fn loose_ends<'r>(rules: impl Iterator<Item = &'r Rule> + Clone) -> Vec<(usize, RuleDiagnostic)> {
    let own = |rule: &'r Rule| rule.matches.iter().filter_map(chain_of);
    let known: HashSet<&str> = rules.clone().flat_map(own).collect();
    let reached: HashSet<&str> = rules.clone().flat_map(jumps).collect();
    if known.is_empty() && reached.is_empty() {
        return Vec::new();
    }
    let of_rule = |(at, rule): (usize, &'r Rule)| {
        let targets = rule.targets.iter().enumerate().filter_map(|(target, it)| match it {
            Target::Jump(name) if !known.contains(&**name) => {
                let message = format!("`jump {name}` does nothing: no rule is of that chain");
                let help = format!("a rule of it begins with `chain {name}`");
                Some(RuleDiagnostic::new(RulePart::Target(target), message, help))
            }
            _ => None,
        });
        let matches = rule.matches.iter().enumerate().filter_map(|(at, predicate)| {
            let name = chain_of(predicate).filter(|name| !reached.contains(name))?;
            let message = format!("no packet comes to chain `{name}`");
            let help = format!("a rule with `jump {name}` sends packets to it");
            Some(RuleDiagnostic::new(RulePart::Match(at), message, help))
        });
        matches.chain(targets).map(|remark| (at, remark)).collect::<Vec<_>>()
    };
    rules.enumerate().flat_map(of_rule).collect()
}

/// The rules of a list translated to the other IP version, by the protocol field that they test.
#[derive(Default)]
struct OtherVersionRules(HashMap<&'static str, HashSet<Rule>>);

impl OtherVersionRules {
    /// Whether another rule does the same for the other IP version.
    fn has<'r>(&mut self, rule: &Rule, rules: impl Iterator<Item = &'r Rule>) -> bool {
        let field = rule.matches.iter().find_map(|it| other_version(it.field));
        let Some((_, field)) = field else { return false };
        let is_of = |rule: &&Rule| rule.matches.iter().any(|it| it.field == field);
        let own = self.0.entry(field.spec().name);
        own.or_insert_with(|| rules.filter(is_of).map(for_other_version).collect()).contains(rule)
    }
}

/// A protocol field with its counterpart of the other IP version.
fn other_version(field: Field) -> Option<(Field, Field)> {
    let other = match field.spec().name {
        "ip-proto" => "ip6-proto",
        "ip6-proto" => "ip-proto",
        _ => return None,
    };
    Some((field, Field::named(other)?))
}

/// Translates a rule to the other IP version.
fn for_other_version(rule: &Rule) -> Rule {
    let mut for_other_version = rule.clone();
    for predicate in &mut for_other_version.matches {
        predicate.field = other_version(predicate.field).map_or(predicate.field, |it| it.1);
    }
    for_other_version
}

/// Warns of a rule that accepts every packet and so cancels the drops of other rules.
fn overruled<'r>(rules: impl Iterator<Item = &'r Rule> + Clone) -> Option<(usize, RuleDiagnostic)> {
    let is_all = |it: &Predicate| it.field.spec().location == FieldLocation::Everywhere;
    let accepts = |rule: &Rule| {
        !rule.stateful && rule.targets == [Target::Accept] && rule.matches.iter().all(is_all)
    };
    let (at, _) = rules.clone().enumerate().find(|(_, rule)| accepts(rule))?;
    let drops = |rule: &Rule| matches!(rule.targets[..], [Target::Drop(_) | Target::Reject(_)]);
    if !{ rules }.any(drops) {
        return None;
    }
    let message =
        "`all accept` overrules every rule that drops, before it and behind it".to_owned();
    let help = "leave it out: what no rule drops goes on anyway".to_owned();
    Some((at, RuleDiagnostic::new(RulePart::Target(0), message, help)))
}

/// Warns of a rule that matches one IP version only because of the protocol field that it tests.
fn one_version(rule: &Rule) -> Option<RuleDiagnostic> {
    let is_said = |it: &Predicate| it.test.is_some() && other_version(it.field).is_some();
    let at = rule.matches.iter().position(is_said)?;
    let said = &rule.matches[at];
    let (own, other, version) = match said.field.spec().layer {
        Layer::Ip4 => ("IPv4", "IPv6", "ip4"),
        _ => ("IPv6", "IPv4", "ip6"),
    };
    let others = rule.matches.iter().filter(|it| !is_said(it));
    let free = constraints::kinds(others);
    let has = |layer| !free.and(Kinds::with(layer)).is_empty();
    let names_one = |target: &Target| match target {
        Target::Mod { field, .. } | Target::Map { field, .. } | Target::Shuffle(field) => {
            matches!(field.spec().layer, Layer::Ip4 | Layer::Ip6)
        }
        // An IP address belongs to one version; a station serves both.
        Target::Balance(_) => true,
        _ => false,
    };
    // A rule that cannot be translated is meant as it is written.
    let is_icmp = matches!(
        said.test,
        Some((Condition::Equal, Value::Number(n)))
            if [castanet_wire::ip_proto::ICMP, castanet_wire::ip_proto::ICMPV6].contains(&(n as u8))
    );
    let is_meant = !has(Layer::Ip4) || !has(Layer::Ip6) || is_icmp;
    if is_meant || rule.targets.iter().any(names_one) {
        return None;
    }
    let neutral = Predicate { field: Field::named("proto")?, ..said.clone() };
    let message = format!("{other} passes by this rule: {} is about {own} alone", said.field);
    let help = format!(
        "`{neutral}` is about both, and `net-proto {version}` beside it says that one is meant"
    );
    Some(RuleDiagnostic::new(RulePart::Match(at), message, help))
}

/// Warns of a target that has no effect unless another rule changes the packet before.
fn void(rule: &Rule, at: usize, target: &Target) -> Option<RuleDiagnostic> {
    let remark = |message: String, help: String| {
        Some(RuleDiagnostic::new(RulePart::Target(at), message, help))
    };
    let is_absent = |option: Field| {
        let absent = |it: &Predicate| it.negated && it.test.is_none();
        let of = |it: &Predicate| it.field == option || it.field == Field::any_option();
        rule.matches.iter().any(|it| of(it) && absent(it))
    };
    let is_present =
        |option: Field| rule.matches.iter().any(|it| it.field == option && !it.negated);
    let goes = |option: Field| {
        let strips = |it: &Target| match it {
            Target::Strip(which) => which.is_none_or(|it| it == option),
            _ => false,
        };
        rule.targets.iter().any(strips)
    };
    match target {
        Target::Drop(Chance(0)) => {
            remark("`drop 0` drops nothing".into(), "leave the rule out, or the 0".into())
        }
        Target::Mod { field, .. } if field.option_kind().is_some() && goes(*field) => remark(
            format!("`mod {field}` does nothing: the option is stripped before"),
            format!("`add {field}` puts one in its place"),
        ),
        Target::Mod { field, .. } if field.option_kind().is_some() && is_absent(*field) => remark(
            format!("`mod {field}` does nothing: the rule is about packets without the option"),
            format!("`add {field}` adds it"),
        ),
        Target::Strip(Some(field)) if is_absent(*field) => remark(
            format!("`strip {field}` does nothing: the rule is about packets without the option"),
            "leave the target out".into(),
        ),
        Target::Add { option, .. } if is_present(*option) && !goes(*option) => remark(
            format!("`add {option}` does nothing: the rule is about packets with the option"),
            format!("`mod {option}` changes it"),
        ),
        _ => None,
    }
}

/// Warns of a target whose field a later target of the rule sets again.
fn overwritten(rule: &Rule, at: usize) -> Option<RuleDiagnostic> {
    let sets = |target: &Target| match target {
        Target::Mod { field, value } | Target::Map { field, value } => {
            Some((*field, prefix(value)))
        }
        Target::Shuffle(field) => Some((*field, None)),
        _ => None,
    };
    let (field, own) = sets(&rule.targets[at])?;
    let covers = |(other, length): (Field, Option<u8>)| {
        other == field && length.is_none_or(|length| own.is_some_and(|own| length >= own))
    };
    let later = rule.targets[at + 1..].iter().find(|it| sets(it).is_some_and(covers))?;
    let message = format!("`{}` does nothing: `{later}` comes behind it", rule.targets[at]);
    Some(RuleDiagnostic::new(RulePart::Target(at), message, "leave one of them out".to_owned()))
}

/// The prefix length of an address, unless the address is complete.
fn prefix(value: &Value) -> Option<u8> {
    match value {
        Value::Net4 { length, .. } if *length < 32 => Some(*length),
        Value::Net6 { length, .. } if *length < 128 => Some(*length),
        _ => None,
    }
}
