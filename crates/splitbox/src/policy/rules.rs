//! Stateless rules of `Middlebox` as a network function.

mod changes;
mod predicate;

use super::ip_filter::MAX_POLICIES_PER_RULE;
use super::stage::{Effect, Entry, MAX_POLICIES, Stage, build, family, remove_shadowed};
use super::{CompiledPolicy, PolicyError};
use crate::bits::Ternary;
use castanet_middlebox::analysis::RulePart;
use castanet_middlebox::language::{self, Command};
use castanet_middlebox::rule::{Chance, Rule, Target as RuleTarget};
use changes::Change;
use std::ops::Range;

/// A rule in its text.
struct RuleLine<'t> {
    rule: Rule,
    line: &'t str,
    start: usize,
}

impl RuleLine<'_> {
    /// The place of a part of the rule.
    fn range(&self, part: RulePart) -> Range<usize> {
        let range = language::place(self.line, part);
        self.start + range.start..self.start + range.end
    }

    /// The place of the whole rule.
    fn whole(&self) -> Range<usize> {
        let last = RulePart::Target(self.rule.targets.len().saturating_sub(1));
        self.range(RulePart::Match(0)).start..self.range(last).end
    }
}

/// The meaning of a rule for header strings.
struct CompiledRule {
    /// The matches: a packet is one of the rule's if it meets one of them.
    conditions: Vec<Ternary>,
    range: Range<usize>,
    targets: CompiledTargets,
}

enum CompiledTargets {
    Accept,
    Drop,
    /// Bits that are set, where a packet has the field.
    Changes(Vec<(Ternary, Ternary, Range<usize>)>),
}

/// Compiles a text of rules, one a line. All rules that match a packet apply; all matches are about the
/// packet as it came; `accept` beats `drop`, the last rule to set a bit wins, and packets of no rule
/// pass unchanged.
///
/// # Errors
/// All rules that are no stateless rules of `Middlebox`, or that a private function cannot have.
pub(super) fn compile(text: &str) -> Result<CompiledPolicy, Vec<PolicyError>> {
    let commands = language::commands(text)
        .map_err(|errors| errors.into_iter().map(PolicyError::from).collect::<Vec<_>>())?;
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for (start, command) in commands {
        let line = text[start..].lines().next().unwrap_or_default();
        let compiled = match command {
            Command::Add(rule) => compile_rule(&RuleLine { rule, line, start }),
            command => Err(vec![command_error(&command, line, start)]),
        };
        match compiled {
            Ok(rule) => rules.push(rule),
            Err(more) => errors.extend(more),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut stages = vec![verdicts(&rules)];
    let [four, six] = [false, true].map(|is_ip6| changes::lists(&changes_of(&rules, is_ip6)));
    add_changes(&mut stages, four?, six?);
    build(&stages)
}

fn command_error(command: &Command, line: &str, start: usize) -> PolicyError {
    let indent = line.len() - line.trim_start().len();
    let range = start + indent..start + line.trim_end().len();
    match command {
        Command::SetNonIpPolicy(_) => {
            PolicyError::new(range, "a private function is about IP packets alone")
                .help("the configuration around the entry decides about all other packets")
        }
        _ => PolicyError::new(range, "a policy has rules alone, and no other commands"),
    }
}

/// The meaning of a rule.
fn compile_rule(line: &RuleLine) -> Result<CompiledRule, Vec<PolicyError>> {
    let (rule, mut errors) = (&line.rule, Vec::new());
    if rule.stateful {
        let message =
            "a stateful rule is about connections, which a private function does not have";
        errors.push(PolicyError::new(line.whole(), message).help("write a stateless rule"));
    }
    let mut conditions = vec![Ternary::ANY];
    for (at, predicate) in rule.matches.iter().enumerate() {
        match predicate::alternatives(predicate) {
            Ok(alternatives) => conditions = product(&conditions, &alternatives),
            Err((message, help)) => {
                let range = line.range(RulePart::Match(at));
                errors.push(PolicyError { range, message, help });
            }
        }
        if conditions.len() > MAX_POLICIES_PER_RULE {
            let message = format!("the rule needs more than {MAX_POLICIES_PER_RULE} matches");
            let help = "ranges, `!=` and `!` of several fields become many matches";
            errors.push(PolicyError::new(line.whole(), message).help(help));
            break;
        }
    }
    let targets = targets(line, &mut errors);
    match errors.is_empty() {
        true => Ok(CompiledRule { conditions, range: line.whole(), targets }),
        false => Err(errors),
    }
}

/// The packets of both lists; up to one match more than a rule may have.
fn product(some: &[Ternary], others: &[Ternary]) -> Vec<Ternary> {
    let all = some.iter().flat_map(|a| others.iter().filter_map(|b| a.and(b)));
    all.take(MAX_POLICIES_PER_RULE + 1).collect()
}

fn targets(line: &RuleLine, errors: &mut Vec<PolicyError>) -> CompiledTargets {
    let mut changes = Vec::new();
    // A verdict ends the list; a target beside it is no action.
    let mut targets: Vec<_> = line.rule.targets.iter().enumerate().collect();
    targets.sort_by_key(|(_, target)| !matches!(target, RuleTarget::Log(_)));
    for (at, target) in targets {
        let range = line.range(RulePart::Target(at));
        let message = match target {
            RuleTarget::Accept => return CompiledTargets::Accept,
            RuleTarget::Drop(Chance::ALWAYS) => return CompiledTargets::Drop,
            RuleTarget::Mod { field, value } => match predicate::changes(*field, value) {
                Ok(more) => {
                    changes.extend(more.into_iter().map(|(on, set)| (on, set, range.clone())));
                    continue;
                }
                Err(message) => message,
            },
            RuleTarget::Reject(_) => "a private function sends no answers; `drop` drops".into(),
            RuleTarget::Drop(_) => "a private function drops all packets of a rule or none".into(),
            RuleTarget::Balance(_) => {
                "a private function has no connections to balance and no next hops".into()
            }
            other => format!("`{}` is no action of a private function", other.word()),
        };
        errors.push(PolicyError::new(range, message).help(
            "actions are `drop`, `accept`, and `mod` of TOS, TTL, addresses and ports of TCP and UDP",
        ));
    }
    CompiledTargets::Changes(changes)
}

/// The first stage: packets that rules accept go on, then those that rules drop are dropped.
fn verdicts(rules: &[CompiledRule]) -> Stage {
    let of = |is_wanted: fn(&CompiledTargets) -> bool, effect: Effect| {
        let rules = rules.iter().filter(move |rule| is_wanted(&rule.targets));
        rules.flat_map(move |rule| {
            rule.conditions.iter().map(move |&condition| Entry {
                condition,
                effect,
                range: rule.range.clone(),
            })
        })
    };
    let accepted = of(|it| matches!(it, CompiledTargets::Accept), Effect::Set(Ternary::ANY, 1));
    let dropped: Vec<Entry> = of(|it| matches!(it, CompiledTargets::Drop), Effect::Drop).collect();
    let entries = if dropped.is_empty() { dropped } else { accepted.chain(dropped).collect() };
    Stage { entries: without_shadowed(entries), rest: 1 }
}

/// The entries that packets come to.
fn without_shadowed(entries: Vec<Entry>) -> Vec<Entry> {
    let mut left = entries.iter().enumerate().map(|(at, it)| (it.condition, at)).collect();
    remove_shadowed(&mut left);
    left.into_iter().map(|(_, at)| entries[at].clone()).collect()
}

/// The changes to packets of an address family, in the order of the rules.
fn changes_of(rules: &[CompiledRule], is_ip6: bool) -> Vec<Change> {
    let mut all = Vec::new();
    for rule in rules {
        let CompiledTargets::Changes(changes) = &rule.targets else { continue };
        for (on, action, range) in changes {
            let conditions: Vec<Ternary> = rule
                .conditions
                .iter()
                .filter_map(|condition| condition.and(on)?.and(&family(is_ip6)))
                .collect();
            if !conditions.is_empty() {
                all.push(Change { conditions, action: *action, range: range.clone() });
            }
        }
    }
    all
}

/// Adds the stages that change packets: IPv6 before IPv4, and in front a match that tells them apart
/// if there are both.
fn add_changes(stages: &mut Vec<Stage>, four: Vec<Vec<Entry>>, six: Vec<Vec<Entry>>) {
    let first_of_four = 2 + six.len();
    let end = first_of_four + four.len();
    let range = four.first().and_then(|list| list.first()).map(|it| it.range.clone());
    let guard = range.filter(|_| !six.is_empty()).map(|range| Entry {
        condition: family(false),
        effect: Effect::Set(Ternary::ANY, first_of_four),
        range,
    });
    stages.push(Stage { entries: guard.into_iter().collect(), rest: 2 });
    let count = six.len();
    for (at, mut entries) in six.into_iter().chain(four).enumerate() {
        let next = if at + 1 == count { end } else { at + 3 };
        for entry in &mut entries {
            if let Effect::Set(_, target) = &mut entry.effect {
                *target = next;
            }
        }
        stages.push(Stage { entries, rest: next });
    }
}

/// Whether lists of entries become more than a function may have.
fn is_excess(count: usize) -> bool {
    count > MAX_POLICIES
}

#[cfg(test)]
pub(super) mod tests;
