//! Rules in a table of keys, for large numbers of rules.

use super::bytecode::{Bytecode, NO_OUTPUT};
use super::graph::{DROP, Graph, OUT, Target};
use super::header_words::HeaderWords;
use super::key_layout::KeyLayout;
use super::key_plan::KeyPlan;
use super::listing::BranchText;
use super::program::Rule;
use super::terms::{MIN_BITS, Term, terms};
use crate::rules::{Key, MaskStats, MaskedKey, RuleMatch, Table};
use rapidhash::{RapidHashMap, RapidHashSet};
use std::cmp::Reverse;
use std::fmt;

/// A rule's number; the lowest bit tells whether a match still needs verification.
type Number = u32;

/// Rules as a table: the first that matches decides.
///
/// The table holds the terms of each pattern under the rule's number, so the least number found is
/// the first rule. If a term is not exact, the pattern itself is verified. Patterns whose terms
/// have few bits are not in the table, but tests in a graph of their own, which runs for packets
/// that the table has no earlier match for.
pub(crate) struct RuleTable {
    keys: KeyLayout,
    table: Table,
    /// The outputs by rule; the last is that of packets that match no rule before it.
    outputs: Box<[u8]>,
    /// The rules whose matches need verification.
    to_verify: RapidHashMap<u32, Bytecode>,
    rest: UnindexedRules,
}

/// The rules that are not in the table.
#[derive(Debug)]
struct UnindexedRules {
    bytecode: Bytecode,
    graph: Graph,
    /// The number of the first of them.
    first: u32,
    count: usize,
}

impl UnindexedRules {
    fn new(rules: &[Rule], numbers: &[u32]) -> UnindexedRules {
        let graph = graph_of(numbers.iter().map(|&number| (&rules[number as usize], number)));
        let first = numbers.first().copied().unwrap_or(u32::MAX);
        UnindexedRules { bytecode: Bytecode::new(&graph), graph, first, count: numbers.len() }
    }
}

/// The graph of rules, whose final targets are their numbers.
fn graph_of<'a>(rules: impl Iterator<Item = (&'a Rule, u32)>) -> Graph {
    Graph::new(rules.map(|(rule, number)| (&rule.pattern, OUT + number))).optimised()
}

/// The packets of a burst that are looked up together.
#[derive(Debug, Default)]
pub struct Lookups {
    keys: Vec<Key>,
    /// For each packet, the first rule that needs no verification.
    found: Vec<u32>,
    /// Matches to verify, in the order of the packets.
    unverified: Vec<RuleMatch>,
    /// The indices of the next packet and of its first match to verify.
    next: (usize, usize),
}

impl Lookups {
    /// Discards the remainder of the previous burst.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.found.clear();
        self.unverified.clear();
        self.next = (0, 0);
    }
}

impl RuleTable {
    pub(crate) fn new(rules: &[Rule]) -> RuleTable {
        let plan = KeyPlan::new(rules.iter().map(|rule| &rule.pattern));
        let mut table = Table::new();
        table.defer_probes();
        let (mut rest, mut to_verify) = (Vec::new(), RapidHashMap::default());
        let (mut outputs, mut default_output) = (Vec::with_capacity(rules.len() + 1), NO_OUTPUT);
        let mut known: RapidHashSet<MaskedKey> = RapidHashSet::default();
        for (number, rule) in (0..).zip(rules) {
            let terms = terms(&rule.pattern, &plan);
            let output = rule.output.unwrap_or(NO_OUTPUT);
            if terms.iter().any(|term| term.is_exact && term.width() == 0) {
                // No packet reaches the rules after it.
                default_output = output;
                break;
            }
            outputs.push(output);
            if terms.iter().any(|term| !term.is_exact && term.width() < MIN_BITS) {
                rest.push(number);
                continue;
            }
            // Of equal exact terms, the first rule decides.
            let new = |term: &&Term| !known.contains(&term.masked());
            let terms: Vec<Term> = terms.iter().filter(new).copied().collect();
            for term in &terms {
                table.insert(number << 1 | Number::from(!term.is_exact), &term.masked());
            }
            known.extend(terms.iter().filter(|term| term.is_exact).map(Term::masked));
            if terms.iter().any(|term| !term.is_exact) {
                to_verify.insert(number, Bytecode::new(&graph_of(std::iter::once((rule, number)))));
            }
        }
        outputs.push(default_output);
        table.settle();
        let rest = UnindexedRules::new(rules, &rest);
        RuleTable { keys: plan.keys, table, outputs: outputs.into_boxed_slice(), to_verify, rest }
    }

    /// The output of a packet.
    pub(crate) fn run<W: HeaderWords>(&self, words: &W) -> u8 {
        let mut best = self.no_match();
        self.table
            .for_each_match(&self.keys.key(words), |rule| self.keep_first(&mut best, rule, words));
        self.finish(best, words)
    }

    /// The number that stands for no match in the table.
    fn no_match(&self) -> u32 {
        self.outputs.len() as u32 - 1
    }

    #[inline]
    fn keep_first<W: HeaderWords>(&self, best: &mut u32, rule: Number, words: &W) {
        let number = rule >> 1;
        if number < *best && (rule & 1 == 0 || self.verify(number, words)) {
            *best = number;
        }
    }

    fn verify<W: HeaderWords>(&self, number: u32, words: &W) -> bool {
        self.to_verify.get(&number).is_some_and(|bytecode| bytecode.end(words) == OUT + number)
    }

    /// The output, if `best` is the first match in the table.
    #[inline]
    fn finish<W: HeaderWords>(&self, mut best: u32, words: &W) -> u8 {
        if self.rest.first < best {
            best = best.min(self.rest.bytecode.end(words) - OUT);
        }
        self.outputs.get(best as usize).copied().unwrap_or(NO_OUTPUT)
    }

    /// Adds a packet to the batch.
    #[inline]
    pub(crate) fn add<W: HeaderWords>(&self, lookups: &mut Lookups, words: &W) {
        lookups.keys.push(self.keys.key(words));
    }

    /// Looks up all packets of the batch.
    pub(crate) fn find_all(&self, lookups: &mut Lookups) {
        let Lookups { keys, found, unverified, .. } = lookups;
        found.resize(keys.len(), self.no_match());
        self.table.for_each_match_of(keys, |hit| {
            let number = hit.rule >> 1;
            let Some(best) = found.get_mut(hit.key as usize) else { return };
            match number < *best {
                true if hit.rule & 1 == 0 => *best = number,
                true => unverified.push(hit),
                false => {}
            }
        });
    }

    /// The output of the next packet of the batch, which must be this one; `None` if the batch is
    /// finished.
    #[inline]
    pub(crate) fn next<W: HeaderWords>(&self, lookups: &mut Lookups, words: &W) -> Option<u8> {
        let (at, mut next_unverified) = lookups.next;
        let mut best = *lookups.found.get(at)?;
        while let Some(hit) = lookups.unverified.get(next_unverified)
            && hit.key as usize == at
        {
            self.keep_first(&mut best, hit.rule, words);
            next_unverified += 1;
        }
        lookups.next = (at + 1, next_unverified);
        Some(self.finish(best, words))
    }

    /// The approximate instructions of a packet.
    pub(crate) fn cost<W: HeaderWords>(&self, words: &W) -> u32 {
        let key = self.keys.key(words);
        let mut cost = self.keys.cost() + FIXED;
        cost += LOOKUP * self.table.lookups(&key) + PROBE * self.table.probes() as u32;
        let mut best = self.no_match();
        self.table.for_each_match(&key, |rule| {
            cost += MATCH;
            if rule & 1 != 0 && rule >> 1 < best {
                cost += self
                    .to_verify
                    .get(&(rule >> 1))
                    .map_or(0, |bytecode| MATCH + bytecode.cost(words, 0));
            }
            self.keep_first(&mut best, rule, words);
        });
        if self.rest.first < best {
            cost + self.rest.bytecode.cost(words, self.rest.bytecode.memory_latency())
        } else {
            cost
        }
    }

    /// The outputs that some rule has.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = u8> {
        self.outputs.iter().copied().filter(|&output| output != NO_OUTPUT)
    }

    /// The number of different masks.
    pub(crate) fn masks(&self) -> usize {
        self.table.masks().count()
    }

    /// The graph of the rules that are not in the table.
    pub(crate) fn rest(&self) -> &Graph {
        &self.rest.graph
    }
}

impl fmt::Debug for RuleTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for RuleTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleTable { table, outputs, to_verify, rest, .. } = self;
        let mut masks: Vec<MaskStats> = table.masks().collect();
        masks.sort_by_key(|it| (Reverse(it.values), it.mask.0));
        writeln!(
            f,
            "table of {} patterns, {} keys, {} masks, {} probes, {} bytes",
            outputs.len() - 1 - rest.count,
            table.len(),
            masks.len(),
            table.probes(),
            table.memory()
        )?;
        self.keys.fmt(f)?;
        for it in masks {
            let words: Vec<String> = it.mask.0.iter().map(|word| format!("{word:x}")).collect();
            writeln!(f, "mask {} keys {}", words.join(" "), it.values)?;
        }
        if !to_verify.is_empty() {
            writeln!(f, "{} patterns are asked once the table has found them", to_verify.len())?;
        }
        if rest.count > 0 {
            writeln!(f, "{} patterns are tests that end at their numbers", rest.count)?;
            rest.graph.fmt(f)?;
        }
        let last = outputs.last().filter(|&&output| output != NO_OUTPUT);
        writeln!(f, "else->{}", BranchText(last.map_or(DROP, |&output| OUT + Target::from(output))))
    }
}

/// Instructions of a burst's bookkeeping per packet, as callgrind counts them.
const FIXED: u32 = 100;
/// Instructions of each mask that a packet is looked up under; one with a single value takes less.
const LOOKUP: u32 = 120;
/// Instructions of a probe.
const PROBE: u32 = 14;
/// Instructions of a match.
const MATCH: u32 = 10;
/// The instructions of the cheapest table.
pub(crate) const MIN_COST: u32 = FIXED + LOOKUP + MATCH + super::key_layout::MIN_COST;
