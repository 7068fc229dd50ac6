//! Cost estimates of rules as tests and as a table, measured on packets that are made from the
//! rules.

use super::bytecode::{Bytecode, Load, TEST};
use super::graph::Graph;
use super::header_words::HeaderWords;
use super::pattern::{Base, Expr, Pattern};
use super::program::Rule;
use super::table::{MIN_COST, RuleTable};
use rapidhash::RapidHashMap;
use std::fmt;
use std::sync::Arc;

/// The number of sample packets.
const SAMPLES: usize = 64;
/// For rules with more tests than this, the cost of tests is first extrapolated from samples of the
/// rules, because a graph of all of them takes long to compile.
const MAX_COMPILED_TESTS: usize = 16_384;
/// The tests in the two samples of the rules.
const SAMPLED_TESTS: [usize; 2] = [2048, 16_384];

/// The estimated costs of the two implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// The number of tests in the rules as written.
    written: usize,
    /// Approximate instructions per packet for tests; `None` if there are too few tests for an
    /// estimate.
    tests: Option<u32>,
    /// Approximate instructions per packet for a table; `None` if no table can be cheaper.
    table: Option<u32>,
}

impl Estimate {
    /// The estimate of rules that are compiled to tests without a comparison.
    pub(crate) fn without_comparison(rules: &[Rule]) -> Estimate {
        Estimate { written: rules.iter().map(count_tests).sum(), tests: None, table: None }
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

/// The compiled rules.
pub(crate) enum CompiledRules {
    /// As tests.
    Tests(Graph, Bytecode),
    /// As a table.
    Table(Arc<RuleTable>),
}

/// Compiles rules to the implementation that takes fewer instructions.
pub(crate) fn compile_cheapest(rules: &[Rule]) -> (CompiledRules, Estimate) {
    let mut estimate = Estimate::without_comparison(rules);
    let written = estimate.written;
    if is_few(written) {
        let (graph, bytecode) = compile_tests(rules.iter());
        return (CompiledRules::Tests(graph, bytecode), estimate);
    }
    let samples = make_samples(rules);
    let mut by_tests = None;
    estimate.tests = Some(match extrapolate(rules, written, &samples) {
        Some(cost) if cost > MIN_COST => cost,
        _ => {
            let (graph, bytecode) = compile_tests(rules.iter());
            let latency = bytecode.memory_latency();
            let cost = mean(&samples, |sample| bytecode.cost(sample, latency));
            by_tests = Some((graph, bytecode));
            cost
        }
    });
    if estimate.tests <= Some(MIN_COST)
        && let Some((graph, bytecode)) = by_tests
    {
        return (CompiledRules::Tests(graph, bytecode), estimate);
    }
    let table = RuleTable::new(rules);
    estimate.table = Some(mean(&samples, |sample| table.cost(sample)));
    if estimate.table < estimate.tests {
        return (CompiledRules::Table(Arc::new(table)), estimate);
    }
    let (graph, bytecode) = by_tests.unwrap_or_else(|| compile_tests(rules.iter()));
    (CompiledRules::Tests(graph, bytecode), estimate)
}

/// Whether so many tests cost no more than the cheapest table.
fn is_few(tests: usize) -> bool {
    tests <= (MIN_COST / TEST) as usize
}

fn count_tests(rule: &Rule) -> usize {
    rule.pattern.nodes.iter().filter(|expr| matches!(expr, Expr::Test { .. })).count()
}

/// Compiles rules to tests.
pub(crate) fn compile_tests<'a>(rules: impl Iterator<Item = &'a Rule>) -> (Graph, Bytecode) {
    let graph = Graph::from_rules(rules);
    let bytecode = Bytecode::new(&graph);
    (graph, bytecode)
}

/// The cost of the tests of many rules, extrapolated from samples of the rules.
fn extrapolate(rules: &[Rule], written: usize, samples: &[Sample]) -> Option<u32> {
    if written <= MAX_COMPILED_TESTS {
        return None;
    }
    let rules: Vec<Rule> = rules.iter().flat_map(alternatives).collect();
    let [(few, cost_few), (more, cost_more)] = SAMPLED_TESTS.map(|size| {
        let step = written.div_ceil(size);
        let (_, bytecode) = compile_tests(rules.iter().step_by(step));
        let count = rules.iter().step_by(step).map(count_tests).sum::<usize>();
        (count as f64, f64::from(mean(samples, |sample| bytecode.cost(sample, 0))))
    });
    let each = (cost_more - cost_few) / (more - few).max(1.0);
    Some((cost_more + each.max(0.0) * (written as f64 - more)) as u32)
}

/// Splits a rule into one for each alternative of its pattern; together they are equivalent.
pub(crate) fn alternatives(rule: &Rule) -> Vec<Rule> {
    let nodes = &rule.pattern.nodes;
    // The operands of a node precede it, contiguously.
    let mut starts: Vec<usize> = Vec::with_capacity(nodes.len());
    for (at, expr) in nodes.iter().enumerate() {
        starts.push(match *expr {
            Expr::Const(..) | Expr::Test { .. } => at,
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

/// A sample packet: it has the words that some patterns require, zeros elsewhere, and is long
/// enough for every test.
#[derive(Default)]
struct Sample {
    words: RapidHashMap<(Base, u16), u32>,
}

impl HeaderWords for Sample {
    fn header(&self, _: Base) -> &[u8] {
        &[]
    }

    fn word(&self, base: Base, offset: u16) -> Option<u32> {
        Some(self.words.get(&(base, offset)).copied().unwrap_or_default())
    }

    fn bytes(&self, _: Base) -> &[u8] {
        &[]
    }

    fn has_length(&self, _: &[u8], _: usize) -> bool {
        true
    }

    fn long(&self, _: &[u8], base: Base, offset: u16) -> Option<u64> {
        // The words of the sample do not overlap where it matters.
        let word = |offset| self.word(base, offset).unwrap_or_default();
        Some(u64::from(word(offset)) << 32 | u64::from(word(offset + 4)))
    }

    fn length(&self, _: Base) -> usize {
        usize::MAX
    }
}

/// A linear congruential generator with a fixed seed.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Makes sample packets, each from a rule (evenly over all rules) and another rule for the words
/// that the first leaves open. In one of four, a random word matches no rule in particular.
fn make_samples(rules: &[Rule]) -> Vec<Sample> {
    let mut numbers = Lcg(1);
    let mut sample = |at: usize| {
        let mut sample = Sample::default();
        let other = numbers.below(rules.len());
        for rule in [other, at * rules.len() / SAMPLES].map(|at| &rules[at]) {
            sample.apply(&rule.pattern, &mut numbers);
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
    /// Makes the sample match one alternative of a pattern.
    fn apply(&mut self, pattern: &Pattern, numbers: &mut Lcg) {
        let nodes = &pattern.nodes;
        let mut leaves: Vec<usize> = Vec::with_capacity(nodes.len());
        for expr in nodes {
            leaves.push(match *expr {
                Expr::Const(..) | Expr::Test { .. } => 1,
                Expr::Not(a) => leaves[a as usize],
                Expr::And(a, b) | Expr::Or(a, b) => leaves[a as usize] + leaves[b as usize],
                Expr::Cond(a, b, c) => [a, b, c].iter().map(|&id| leaves[id as usize]).sum(),
            });
        }
        let mut required: Vec<Option<bool>> = vec![None; nodes.len()];
        if let Some(root) = required.last_mut() {
            *root = Some(true);
        }
        for (at, expr) in nodes.iter().enumerate().rev() {
            let Some(holds) = required[at] else { continue };
            let mut picks = |a: u32, b: u32| {
                let (a, b) = (leaves[a as usize], leaves[b as usize]);
                numbers.below(a + b) < a
            };
            let mut require = |id: u32, holds: bool| required[id as usize] = Some(holds);
            match *expr {
                Expr::Const(..) => {}
                Expr::Test { test, negated, .. } => {
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
                Expr::Not(a) => require(a, !holds),
                Expr::And(a, b) | Expr::Or(a, b) => {
                    let all = matches!(expr, Expr::And(..)) == holds;
                    let first = picks(a, b);
                    [(a, first), (b, !first)]
                        .iter()
                        .filter(|it| all || it.1)
                        .for_each(|it| require(it.0, holds));
                }
                Expr::Cond(a, b, c) => {
                    let first = picks(b, c);
                    require(a, first);
                    require(if first { b } else { c }, holds);
                }
            }
        }
    }
}
