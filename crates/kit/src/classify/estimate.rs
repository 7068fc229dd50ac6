//! What rules cost a packet, by tests and by a table: tried on packets made of the rules.

use super::flat::{Flat, Load, TEST, Words};
use super::graph::Graph;
use super::pattern::{Base, Expr, Pattern};
use super::program::Rule;
use super::table::{ByTable, LEAST};
use rapidhash::RapidHashMap;
use std::fmt;
use std::sync::Arc;

/// Packets that are tried.
const SAMPLES: usize = 64;
/// Rules of more tests than this are not made into a graph before fewer of them were, to see
/// what that would come to.
const MANY: usize = 16_384;
/// The tests of the fewer rules: from what they cost, and twice.
const FEW: [usize; 2] = [2048, 16_384];

/// How rules find out about a packet, and what speaks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// How many tests the rules have as written.
    written: usize,
    /// Instructions of a packet that goes through tests, about; none if there are so few that
    /// nobody asks.
    tests: Option<u32>,
    /// Instructions of a packet that is looked up, about; none if no table can be worth it.
    table: Option<u32>,
}

impl Estimate {
    /// Of rules that nobody asks about.
    pub(crate) fn of_tests(rules: &[Rule]) -> Estimate {
        Estimate { written: rules.iter().map(tests_of).sum(), tests: None, table: None }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { written, tests, table } = *self;
        match (tests, table) {
            (None, _) if is_few(written) => {
                write!(f, "tests: {written} of them are too few for a table")
            }
            (None, _) => write!(f, "tests: nobody asked what a table would take"),
            (Some(tests), None) => {
                write!(f, "tests: about {tests} instructions a packet, no table takes less")
            }
            (Some(tests), Some(table)) if tests <= table => {
                write!(f, "tests: about {tests} instructions a packet, a table would take {table}")
            }
            (Some(tests), Some(table)) => {
                write!(f, "table: about {table} instructions a packet, tests would take {tests}")
            }
        }
    }
}

/// What became of rules.
pub(crate) enum Chosen {
    /// Tests.
    Tests(Graph, Flat),
    /// A table.
    Table(Arc<ByTable>),
}

/// Makes rules into what takes fewer instructions.
pub(crate) fn choose(rules: &[Rule]) -> (Chosen, Estimate) {
    let mut estimate = Estimate::of_tests(rules);
    let written = estimate.written;
    if is_few(written) {
        let (graph, flat) = tests(rules.iter());
        return (Chosen::Tests(graph, flat), estimate);
    }
    let samples = samples(rules);
    let mut by_tests = None;
    estimate.tests = Some(match predicted(rules, written, &samples) {
        Some(cost) if cost > LEAST => cost,
        _ => {
            let (graph, flat) = tests(rules.iter());
            let wait = flat.wait();
            let cost = mean(&samples, |sample| flat.cost(sample, wait));
            by_tests = Some((graph, flat));
            cost
        }
    });
    if estimate.tests <= Some(LEAST)
        && let Some((graph, flat)) = by_tests
    {
        return (Chosen::Tests(graph, flat), estimate);
    }
    let table = ByTable::new(rules);
    estimate.table = Some(mean(&samples, |sample| table.cost(sample)));
    if estimate.table < estimate.tests {
        return (Chosen::Table(Arc::new(table)), estimate);
    }
    let (graph, flat) = by_tests.unwrap_or_else(|| tests(rules.iter()));
    (Chosen::Tests(graph, flat), estimate)
}

/// Whether so many tests, all of them, take no more than any table.
fn is_few(tests: usize) -> bool {
    tests <= (LEAST / TEST) as usize
}

fn tests_of(rule: &Rule) -> usize {
    rule.pattern.nodes.iter().filter(|expr| matches!(expr, Expr::Test { .. })).count()
}

/// Rules as tests.
pub(crate) fn tests<'a>(rules: impl Iterator<Item = &'a Rule>) -> (Graph, Flat) {
    let graph = Graph::of_outputs(rules);
    let flat = Flat::new(&graph);
    (graph, flat)
}

/// What the tests of many rules would cost, from what those of fewer do.
fn predicted(rules: &[Rule], written: usize, samples: &[Sample]) -> Option<u32> {
    if written <= MANY {
        return None;
    }
    let rules: Vec<Rule> = rules.iter().flat_map(alternatives).collect();
    let [(few, cost_few), (more, cost_more)] = FEW.map(|most| {
        let step = written.div_ceil(most);
        let (_, flat) = tests(rules.iter().step_by(step));
        let count = rules.iter().step_by(step).map(tests_of).sum::<usize>();
        (count as f64, f64::from(mean(samples, |sample| flat.cost(sample, 0))))
    });
    let each = (cost_more - cost_few) / (more - few).max(1.0);
    Some((cost_more + each.max(0.0) * (written as f64 - more)) as u32)
}

/// A rule as one for each of its pattern's alternatives, which come to the same.
pub(crate) fn alternatives(rule: &Rule) -> Vec<Rule> {
    let nodes = &rule.pattern.nodes;
    // What a node is made of stands before it, in one piece.
    let mut starts: Vec<usize> = Vec::with_capacity(nodes.len());
    for (at, expr) in nodes.iter().enumerate() {
        starts.push(match *expr {
            Expr::Const(_) | Expr::Test { .. } => at,
            Expr::Not(a) => starts[a as usize],
            Expr::And(a, b) | Expr::Or(a, b) => starts[a as usize].min(starts[b as usize]),
            Expr::Cond(a, b, c) => {
                [a, b, c].map(|id| starts[id as usize]).into_iter().min().unwrap_or(at)
            }
        });
    }
    let mut rules = Vec::new();
    let mut left: Vec<usize> = nodes.len().checked_sub(1).into_iter().collect();
    while let Some(at) = left.pop() {
        match nodes[at] {
            Expr::Or(a, b) => left.extend([b as usize, a as usize]),
            _ => rules.push(Rule::new(rule.pattern.part(starts[at], at), rule.output)),
        }
    }
    rules
}

fn mean(samples: &[Sample], cost: impl Fn(&Sample) -> u32) -> u32 {
    let sum: u64 = samples.iter().map(|sample| u64::from(cost(sample))).sum();
    (sum / samples.len().max(1) as u64) as u32
}

/// A packet of which nothing is known but what some patterns say of it; it is long enough for
/// every test.
#[derive(Default)]
struct Sample {
    words: RapidHashMap<(Base, u16), u32>,
}

impl Words for Sample {
    fn header(&self, _: Base) -> &[u8] {
        &[]
    }

    fn word(&self, base: Base, offset: u16) -> Option<u32> {
        Some(self.words.get(&(base, offset)).copied().unwrap_or_default())
    }

    fn bytes(&self, _: Base) -> &[u8] {
        &[]
    }

    fn are(&self, _: &[u8], _: usize) -> bool {
        true
    }

    fn long(&self, _: &[u8], base: Base, offset: u16) -> Option<u64> {
        // Words of this packet do not overlap, but where nobody asks.
        let word = |offset| self.word(base, offset).unwrap_or_default();
        Some(u64::from(word(offset)) << 32 | u64::from(word(offset + 4)))
    }

    fn length(&self, _: Base) -> usize {
        usize::MAX
    }
}

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Packets that are as rules from everywhere say; what those do not say is as others say, and
/// of some packets one word is as nobody says.
fn samples(rules: &[Rule]) -> Vec<Sample> {
    let mut numbers = Numbers(1);
    let mut sample = |at: usize| {
        let mut sample = Sample::default();
        let other = numbers.below(rules.len());
        for rule in [other, at * rules.len() / SAMPLES].map(|at| &rules[at]) {
            sample.fit(&rule.pattern, &mut numbers);
        }
        if at % 4 == 3 {
            let mut all: Vec<_> = sample.words.keys().copied().collect();
            all.sort_unstable();
            if let Some(word) = all.get(numbers.below(all.len())) {
                sample.words.insert(*word, numbers.below(usize::MAX) as u32);
            }
        }
        sample
    };
    (0..SAMPLES).map(&mut sample).collect()
}

impl Sample {
    /// Makes a pattern match, by one of its alternatives.
    fn fit(&mut self, pattern: &Pattern, numbers: &mut Numbers) {
        let nodes = &pattern.nodes;
        let mut leaves: Vec<usize> = Vec::with_capacity(nodes.len());
        for expr in nodes {
            leaves.push(match *expr {
                Expr::Const(_) | Expr::Test { .. } => 1,
                Expr::Not(a) => leaves[a as usize],
                Expr::And(a, b) | Expr::Or(a, b) => leaves[a as usize] + leaves[b as usize],
                Expr::Cond(a, b, c) => [a, b, c].iter().map(|&id| leaves[id as usize]).sum(),
            });
        }
        let mut wanted: Vec<Option<bool>> = vec![None; nodes.len()];
        if let Some(root) = wanted.last_mut() {
            *root = Some(true);
        }
        for (at, expr) in nodes.iter().enumerate().rev() {
            let Some(holds) = wanted[at] else { continue };
            let mut picks = |a: u32, b: u32| {
                let (a, b) = (leaves[a as usize], leaves[b as usize]);
                numbers.below(a + b) < a
            };
            let mut want = |id: u32, holds: bool| wanted[id as usize] = Some(holds);
            match *expr {
                Expr::Const(_) => {}
                Expr::Test { test, negated } => {
                    let (load, shift) = Load::new(&test);
                    let word = self.words.entry((load.base, load.offset)).or_default();
                    let fit = match holds != negated {
                        true => test.lo,
                        false => [0, test.mask, test.lo ^ (test.mask & test.mask.wrapping_neg())]
                            .into_iter()
                            .find(|&word| !test.accepts(word))
                            .unwrap_or(test.lo),
                    };
                    *word = *word & !load.mask | fit << shift;
                }
                Expr::Not(a) => want(a, !holds),
                Expr::And(a, b) | Expr::Or(a, b) => {
                    let all = matches!(expr, Expr::And(..)) == holds;
                    let first = picks(a, b);
                    [(a, first), (b, !first)]
                        .iter()
                        .filter(|it| all || it.1)
                        .for_each(|it| want(it.0, holds));
                }
                Expr::Cond(a, b, c) => {
                    let first = picks(b, c);
                    want(a, first);
                    want(if first { b } else { c }, holds);
                }
            }
        }
    }
}
