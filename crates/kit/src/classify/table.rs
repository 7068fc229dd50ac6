//! Patterns found in a table of keys, however many there are.

use super::flat::{Flat, NO_OUTPUT, Words};
use super::graph::{DROP, Graph, OUT, Target};
use super::keys::Keys;
use super::listing::Jump;
use super::plan::Plan;
use super::program::Rule;
use super::rows::{NARROW, Row, rows};
use crate::rules::{Hit, Key, Mask, Masked, Table};
use rapidhash::{RapidHashMap, RapidHashSet};
use std::cmp::Reverse;
use std::fmt;

/// The number of a pattern, and below it whether what the table finds is still to be asked.
type Number = u32;

/// Rules by a table: the first that matches decides.
///
/// The table has a pattern's rows under its number, so the least number found is the first
/// pattern. Of rows that do not say all, the pattern itself is asked. Patterns of which rows
/// say little are not in the table, but tests in a graph of their own, which packets go
/// through for which the table has nothing earlier.
pub(crate) struct ByTable {
    keys: Keys,
    table: Table,
    /// By pattern; the last is that of a pattern that every packet matches, or none.
    outputs: Box<[u8]>,
    /// Patterns that are asked.
    asked: RapidHashMap<u32, Flat>,
    rest: Rest,
}

/// The patterns that are not in the table.
#[derive(Debug)]
struct Rest {
    flat: Flat,
    graph: Graph,
    /// The first of them.
    first: u32,
    count: usize,
}

impl Rest {
    fn new(rules: &[Rule], numbers: &[u32]) -> Rest {
        let graph = graph_of(numbers.iter().map(|&number| (&rules[number as usize], number)));
        let first = numbers.first().copied().unwrap_or(u32::MAX);
        Rest { flat: Flat::new(&graph), graph, first, count: numbers.len() }
    }
}

/// The tests of rules, whose ends are their numbers.
fn graph_of<'a>(rules: impl Iterator<Item = (&'a Rule, u32)>) -> Graph {
    Graph::new(rules.map(|(rule, number)| (&rule.pattern, OUT + number))).optimised()
}

/// Packets of a burst, which are looked up together.
#[derive(Debug, Default)]
pub struct Lookups {
    keys: Vec<Key>,
    /// For each packet, the first pattern that needs not be asked.
    found: Vec<u32>,
    /// What to ask of which packet, in their order.
    asks: Vec<Hit>,
    /// The next packet to answer for, and the next to ask.
    next: (usize, usize),
}

impl Lookups {
    /// Forgets what is left of the burst before.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.found.clear();
        self.asks.clear();
        self.next = (0, 0);
    }
}

impl ByTable {
    pub(crate) fn new(rules: &[Rule]) -> ByTable {
        let plan = Plan::new(rules.iter().map(|rule| &rule.pattern));
        let mut table = Table::new();
        table.expect_many();
        let (mut rest, mut asked) = (Vec::new(), RapidHashMap::default());
        let (mut outputs, mut otherwise) = (Vec::with_capacity(rules.len() + 1), NO_OUTPUT);
        let mut known: RapidHashSet<Masked> = RapidHashSet::default();
        for (number, rule) in (0..).zip(rules) {
            let rows = rows(&rule.pattern, &plan);
            let output = rule.output.unwrap_or(NO_OUTPUT);
            if rows.iter().any(|row| row.is_exact && row.width() == 0) {
                // No packet comes to those after it.
                otherwise = output;
                break;
            }
            outputs.push(output);
            if rows.iter().any(|row| !row.is_exact && row.width() < NARROW) {
                rest.push(number);
                continue;
            }
            // Of equal rows the first decides, if it can.
            let new = |row: &&Row| !known.contains(&row.masked());
            let rows: Vec<Row> = rows.iter().filter(new).copied().collect();
            for row in &rows {
                table.insert(number << 1 | Number::from(!row.is_exact), &row.masked());
            }
            known.extend(rows.iter().filter(|row| row.is_exact).map(Row::masked));
            if rows.iter().any(|row| !row.is_exact) {
                asked.insert(number, Flat::new(&graph_of(std::iter::once((rule, number)))));
            }
        }
        outputs.push(otherwise);
        table.settle();
        let rest = Rest::new(rules, &rest);
        ByTable { keys: plan.keys, table, outputs: outputs.into_boxed_slice(), asked, rest }
    }

    /// The output of a packet.
    pub(crate) fn one<W: Words>(&self, words: &W) -> u8 {
        let mut best = self.last();
        self.table.each(&self.keys.of(words), |rule| self.improve(&mut best, rule, words));
        self.answer(best, words)
    }

    /// The number that stands for no pattern.
    fn last(&self) -> u32 {
        self.outputs.len() as u32 - 1
    }

    #[inline]
    fn improve<W: Words>(&self, best: &mut u32, rule: Number, words: &W) {
        let number = rule >> 1;
        if number < *best && (rule & 1 == 0 || self.holds(number, words)) {
            *best = number;
        }
    }

    fn holds<W: Words>(&self, number: u32, words: &W) -> bool {
        self.asked.get(&number).is_some_and(|flat| flat.end(words) == OUT + number)
    }

    /// The output, if `best` is the first pattern that the table has.
    #[inline]
    fn answer<W: Words>(&self, mut best: u32, words: &W) -> u8 {
        if self.rest.first < best {
            best = best.min(self.rest.flat.end(words) - OUT);
        }
        self.outputs.get(best as usize).copied().unwrap_or(NO_OUTPUT)
    }

    /// Adds a packet to those to look up.
    #[inline]
    pub(crate) fn add<W: Words>(&self, lookups: &mut Lookups, words: &W) {
        lookups.keys.push(self.keys.of(words));
    }

    /// Looks all of them up.
    pub(crate) fn look(&self, lookups: &mut Lookups) {
        let Lookups { keys, found, asks, .. } = lookups;
        found.resize(keys.len(), self.last());
        self.table.each_of(keys, |hit| {
            let number = hit.rule >> 1;
            let Some(best) = found.get_mut(hit.key as usize) else { return };
            match number < *best {
                true if hit.rule & 1 == 0 => *best = number,
                true => asks.push(hit),
                false => {}
            }
        });
    }

    /// The output of the next packet of those that were looked up, which is this one; nothing,
    /// if there is none left.
    #[inline]
    pub(crate) fn next<W: Words>(&self, lookups: &mut Lookups, words: &W) -> Option<u8> {
        let (at, mut ask) = lookups.next;
        let mut best = *lookups.found.get(at)?;
        while let Some(hit) = lookups.asks.get(ask)
            && hit.key as usize == at
        {
            self.improve(&mut best, hit.rule, words);
            ask += 1;
        }
        lookups.next = (at + 1, ask);
        Some(self.answer(best, words))
    }

    /// How many instructions a packet takes, about.
    pub(crate) fn cost<W: Words>(&self, words: &W) -> u32 {
        let key = self.keys.of(words);
        let mut cost = self.keys.cost() + FIXED;
        cost += LOOKUP * self.table.lookups(&key) + PROBE * self.table.probes() as u32;
        let mut best = self.last();
        self.table.each(&key, |rule| {
            cost += HIT;
            if rule & 1 != 0 && rule >> 1 < best {
                cost += self.asked.get(&(rule >> 1)).map_or(0, |flat| HIT + flat.cost(words, 0));
            }
            self.improve(&mut best, rule, words);
        });
        if self.rest.first < best {
            cost + self.rest.flat.cost(words, self.rest.flat.wait())
        } else {
            cost
        }
    }

    /// Which of the outputs some pattern names.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = u8> {
        self.outputs.iter().copied().filter(|&output| output != NO_OUTPUT)
    }

    /// How many different masks rows have.
    pub(crate) fn masks(&self) -> usize {
        self.table.masks().count()
    }

    /// The tests of patterns that are not in the table.
    pub(crate) fn rest(&self) -> &Graph {
        &self.rest.graph
    }
}

impl fmt::Debug for ByTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ByTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ByTable { table, outputs, asked, rest, .. } = self;
        let mut masks: Vec<Mask> = table.masks().collect();
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
        if !asked.is_empty() {
            writeln!(f, "{} patterns are asked once the table has found them", asked.len())?;
        }
        if rest.count > 0 {
            writeln!(f, "{} patterns are tests that end at their numbers", rest.count)?;
            rest.graph.fmt(f)?;
        }
        let last = outputs.last().filter(|&&output| output != NO_OUTPUT);
        writeln!(f, "else->{}", Jump(last.map_or(DROP, |&output| OUT + Target::from(output))))
    }
}

/// Instructions of a burst's bookkeeping for a packet, as callgrind counts them.
const FIXED: u32 = 100;
/// Those of a mask that a packet is looked up under.
const LOOKUP: u32 = 120;
/// Those of a probe.
const PROBE: u32 = 14;
/// Those of what is found.
const HIT: u32 = 10;
/// No table takes less.
pub(crate) const LEAST: u32 = FIXED + LOOKUP + HIT + super::keys::LEAST;
