//! Chains: rules for the packets that other rules send to them.
//!
//! A rule with the match `chain NAME` is about the packets that a rule with the target `jump NAME` matches:
//! its matches are its own and those of one such rule, as if they were written out.

use crate::field::FieldLocation;
use crate::match_packet::PacketView;
use crate::rule::{Predicate, Rule, Target};
use crate::value::{Condition, Value};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The matches of the rules that lead to a chain.
type Path = Vec<Predicate>;

/// The most paths to a chain: each jump to it multiplies those to the chain that it stands in.
const MOST_PATHS: usize = 1024;

/// A chain by name, with the paths by which packets come to it. Chains are equal if their names are, whatever
/// rules lead to them at the time.
#[derive(Clone, Debug)]
pub struct ChainPaths {
    name: Box<str>,
    paths: Arc<[Path]>,
}

impl ChainPaths {
    /// The name of the chain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The paths to it: all matches of one of them hold for a packet that comes to the chain.
    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Whether the paths are the same, and the sets in them have the same values.
    pub(crate) fn has_values_of(&self, other: &ChainPaths) -> bool {
        let values = |predicate: &'_ Predicate| predicate.set().map(|set| set.ranges().clone());
        let is_same = |(a, b): (&Path, &Path)| a.iter().map(values).eq(b.iter().map(values));
        self.paths == other.paths && self.paths.iter().zip(other.paths.iter()).all(is_same)
    }

    /// Whether a packet comes to the chain.
    pub(crate) fn has_packet(&self, packet: &PacketView) -> bool {
        self.paths.iter().any(|path| path.iter().all(|it| it.matches_packet(packet)))
    }
}

impl PartialEq for ChainPaths {
    fn eq(&self, other: &ChainPaths) -> bool {
        self.name == other.name
    }
}

impl Eq for ChainPaths {}

impl Hash for ChainPaths {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The chain that a match names, before the paths to it are known or after.
pub(crate) fn chain_of(predicate: &Predicate) -> Option<&str> {
    if predicate.field.spec().location != FieldLocation::Chain {
        return None;
    }
    match &predicate.test {
        Some((_, Value::Name(name))) => Some(name),
        Some((_, Value::Chain(chain))) => Some(chain.name()),
        _ => None,
    }
}

/// The chains that a rule sends packets to.
pub(crate) fn jumps(rule: &Rule) -> impl Iterator<Item = &str> {
    rule.targets.iter().filter_map(|target| match target {
        Target::Jump(name) => Some(&**name),
        _ => None,
    })
}

/// Whether a rule sends packets to a chain.
pub(crate) fn leads_to_chain(rule: &Rule) -> bool {
    jumps(rule).next().is_some()
}

/// The chains of a list of rules, with the paths to them.
#[derive(Clone, Default, Debug)]
pub(crate) struct Chains {
    chains: HashMap<Box<str>, Arc<ChainPaths>>,
}

impl Chains {
    /// Whether no rule leads to a chain.
    pub(crate) fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// Finds the paths to all chains of a list of rules.
    ///
    /// # Errors
    /// Rules that lead from a chain to itself, or too many paths to one.
    pub(crate) fn new<'r>(rules: impl Iterator<Item = &'r Rule>) -> Result<Chains, String> {
        let mut sources: HashMap<&str, Vec<&Rule>> = HashMap::new();
        for rule in rules {
            jumps(rule).for_each(|name| sources.entry(name).or_default().push(rule));
        }
        let mut chains = Chains::default();
        for name in sources.keys() {
            chains.find(name, &sources, &mut HashSet::new())?;
        }
        Ok(chains)
    }

    /// Finds the paths to a chain, and before to those from which rules lead to it.
    fn find<'r>(
        &mut self,
        name: &'r str,
        sources: &HashMap<&'r str, Vec<&'r Rule>>,
        open: &mut HashSet<&'r str>,
    ) -> Result<(), String> {
        if self.chains.contains_key(name) {
            return Ok(());
        }
        if !open.insert(name) {
            return Err(format!("chain `{name}` leads to itself"));
        }
        let mut paths: Vec<Path> = Vec::new();
        for rule in sources.get(name).into_iter().flatten() {
            for parent in rule.matches.iter().filter_map(chain_of) {
                self.find(parent, sources, open)?;
            }
            paths.extend(self.paths_by(rule));
            if paths.len() > MOST_PATHS {
                return Err(format!("there are more than {MOST_PATHS} paths to chain `{name}`"));
            }
        }
        open.remove(name);
        let chain = ChainPaths { name: name.into(), paths: paths.into() };
        self.chains.insert(name.into(), Arc::new(chain));
        Ok(())
    }

    /// The paths by a rule: by each path to the chains that it stands in, and by its own matches.
    fn paths_by(&self, rule: &Rule) -> Vec<Path> {
        let mut paths = vec![Path::new()];
        for predicate in &rule.matches {
            let Some(parent) = chain_of(predicate) else {
                paths.iter_mut().for_each(|path| path.push(predicate.clone()));
                continue;
            };
            let before = self.chains.get(parent).map_or(&[][..], |chain| chain.paths());
            let both = paths.iter().flat_map(|path| {
                before.iter().map(move |before| before.iter().chain(path).cloned().collect())
            });
            paths = both.take(MOST_PATHS + 1).collect();
        }
        paths
    }

    /// The rule with the paths to its chains; `None` if it has them.
    pub(crate) fn resolve(&self, rule: &Rule) -> Option<Rule> {
        let chain = |predicate: &Predicate| {
            let name = chain_of(predicate)?;
            let none = || ChainPaths { name: name.into(), paths: Arc::new([]) };
            Some(self.chains.get(name).cloned().unwrap_or_else(|| Arc::new(none())))
        };
        let is_resolved = rule.matches.iter().all(|predicate| match &predicate.test {
            Some((_, Value::Chain(held))) => {
                chain(predicate).is_some_and(|new| new.has_values_of(held))
            }
            _ => chain_of(predicate).is_none(),
        });
        if is_resolved {
            return None;
        }
        let mut rule = rule.clone();
        for predicate in &mut rule.matches {
            if let Some(chain) = chain(predicate) {
                predicate.test = Some((Condition::Equal, Value::Chain(chain)));
            }
        }
        Some(rule)
    }
}

#[cfg(test)]
mod tests {
    use crate::active_rules::ActiveRules;
    use crate::headers;
    use crate::language::command;
    use crate::match_packet::PacketView;
    use crate::matcher::Matcher;
    use crate::rule_set::RuleSet;
    use crate::tests::packet;

    fn run(rules: &mut RuleSet, line: &str) -> Result<String, String> {
        let command = command(line).expect(line).expect(line);
        rules.execute(&command).expect(line)
    }

    /// The positions of the rules that match a packet, as the tables find them in a burst and alone.
    fn found(rules: &RuleSet, text: &str) -> Vec<usize> {
        let mut matcher = Matcher::default();
        matcher.set_tables(ActiveRules::new(rules.clone()).tables());
        let (packet, _) = packet(text);
        let headers = headers::find(&packet).expect(text);
        let seen = PacketView::new(packet.bytes(), &headers, ("a", "b"));
        let (mut alone, mut in_burst) = (Vec::new(), Vec::new());
        matcher.matching_rules_of(&seen, &mut alone);
        matcher.start_burst();
        matcher.push(packet.bytes(), &headers);
        matcher.look_up();
        matcher.matching_rules(0, &seen, &mut in_burst);
        assert_eq!(alone, in_burst);
        let by_rule = rules.entries().enumerate().filter(|(_, it)| it.rule.matches_packet(&seen));
        let found: Vec<usize> = by_rule.map(|(at, _)| at + 1).collect();
        let slots = rules.entries().enumerate().filter(|(_, it)| alone.contains(&(it.slot as u32)));
        assert_eq!(slots.map(|(at, _)| at + 1).collect::<Vec<_>>(), found);
        assert_eq!(found.len(), alone.len(), "each rule once");
        found
    }

    const SYN: &str = "10.0.0.1:5 > 2.0.0.2:80 tcp syn";
    const DNS: &str = "10.0.0.1:5 > 2.0.0.2:53 udp";

    #[test]
    fn rules_of_a_chain_are_about_what_is_sent_there() {
        let mut rules = RuleSet::default();
        for line in [
            "chain inner ip-ttl 64 mod ip-ttl 9",
            "set add hosts 10.0.0.1",
            "ip-saddr @hosts jump outer",
            "chain outer tcp-dport 80 jump inner",
            "chain outer accept",
        ] {
            run(&mut rules, line).expect(line);
        }
        assert_eq!(found(&rules, SYN), [1, 2, 3, 4]);
        assert_eq!(found(&rules, DNS), [2, 4]);
        // Values of sets, and rules that lead there, change.
        run(&mut rules, "set remove hosts 10.0.0.1").expect("changes");
        assert!(found(&rules, SYN).is_empty());
        run(&mut rules, "udp-dport 53 jump inner").expect("is a rule");
        assert_eq!(found(&rules, DNS), [1, 5]);
        run(&mut rules, "delete 5").expect("is there");
        assert!(found(&rules, DNS).is_empty());
    }

    #[test]
    fn a_packet_that_comes_by_two_paths_counts_once() {
        let mut rules = RuleSet::default();
        for line in ["ip-ttl 64 jump c", "proto udp jump c", "chain c accept"] {
            run(&mut rules, line).expect(line);
        }
        assert_eq!(found(&rules, DNS), [1, 2, 3]);
        assert_eq!(found(&rules, SYN), [1, 3]);
        assert!(found(&rules, "10.0.0.1:5 > 2.0.0.2:80 tcp syn ttl 9").is_empty());
    }

    #[test]
    fn a_chain_that_leads_to_itself_is_refused_and_nothing_changes() {
        let mut rules = RuleSet::default();
        for line in ["proto tcp jump a", "chain a tcp-syn jump b", "chain b accept"] {
            run(&mut rules, line).expect(line);
        }
        let text = rules.text();
        for line in ["chain b tcp-dport 80 jump a", "chain a jump a", "replace 1 chain b jump a"] {
            let error = run(&mut rules, line).expect_err(line);
            assert!(error.ends_with("leads to itself"), "{line}: {error}");
            assert_eq!(rules.text(), text);
        }
        assert_eq!(found(&rules, SYN), [1, 2, 3]);
    }

    #[test]
    fn paths_multiply_up_to_a_limit() {
        let mut rules = RuleSet::default();
        let lines = (0..6).flat_map(|chain| {
            let from = if chain == 0 { String::new() } else { format!("chain c{} ", chain - 1) };
            (0..4).map(move |n| format!("{from}ip-dscp {n} jump c{chain}"))
        });
        let failed = lines.map(|line| run(&mut rules, &line)).find_map(Result::err);
        let wanted = "there are more than 1024 paths to chain `c5`";
        assert_eq!(failed.as_deref(), Some(wanted));
    }
}
