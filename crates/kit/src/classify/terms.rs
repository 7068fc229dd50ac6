//! Patterns as terms: conditions on key bits, one of which a matching packet must meet.

use super::key_layout::KeyPosition;
use super::key_plan::{KeyPlan, Requirement, needed_values};
use super::pattern::{Expr, Id, Pattern, Test};
use super::prefixes::{accepted_words, complement, intersection};
use crate::rules::{Key, MaskedKey, WORDS};

/// The conjunction of two alternatives has at most so many terms, or [`TERMS_PER_TEST`] for each
/// test.
const MAX_TERMS: usize = 32;
/// See [`MAX_TERMS`].
const TERMS_PER_TEST: usize = 4;
/// The largest number of terms that are built for each node of a pattern.
const TERMS_PER_NODE: usize = 64;

/// The largest number of ranges of a term.
const MAX_RANGES: usize = 2;
/// How many terms the ranges of a term may expand to, by the number of its bits. Ranges that need
/// more are verified after the lookup: a term with many bits finds few packets anyway.
const MAX_EXPANSION: [(u32, usize); 3] = [(MIN_BITS, MAX_TERMS), (32, 8), (u32::MAX, 2)];
/// A term with fewer bits would match too many packets.
pub(crate) const MIN_BITS: u32 = 12;

/// A conjunction: bits of a key, and ranges of packet words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    mask: Key,
    value: Key,
    ranges: [Option<Test>; MAX_RANGES],
    /// Whether a packet that meets the term matches the pattern without further tests.
    pub(crate) is_exact: bool,
}

impl Term {
    /// The term that every packet meets.
    const ANY: Term = Term {
        mask: Key([0; WORDS]),
        value: Key([0; WORDS]),
        ranges: [None; MAX_RANGES],
        is_exact: true,
    };
    /// A condition that the key cannot express.
    const UNKNOWN: Term = Term { is_exact: false, ..Term::ANY };

    fn bit(position: KeyPosition, bit: u32) -> Term {
        Term { mask: position.key(1), value: position.key(bit), ..Term::ANY }
    }

    /// The term for a packet that passes a test, provided that it has the word.
    fn within(test: &Test, plan: &KeyPlan) -> Term {
        match plan.bits(test, (test.mask, test.lo)) {
            None => Term::UNKNOWN,
            Some((mask, value)) if test.is_equality() => Term { mask, value, ..Term::ANY },
            Some(_) => Term { ranges: [Some(*test), None], ..Term::ANY },
        }
    }

    /// The conjunction of two terms; `None` if no packet can meet it.
    fn and(&self, other: &Term) -> Option<Term> {
        let mut term = *self;
        term.is_exact &= other.is_exact;
        for word in 0..WORDS {
            let common = self.mask.0[word] & other.mask.0[word];
            if (self.value.0[word] ^ other.value.0[word]) & common != 0 {
                return None;
            }
            term.mask.0[word] |= other.mask.0[word];
            term.value.0[word] |= other.value.0[word];
        }
        for range in other.ranges.iter().flatten() {
            let is_same = |it: &Test| it.same_word(range) && it.mask == range.mask;
            let place = term.ranges.iter_mut().find(|it| it.as_ref().is_none_or(is_same));
            match place {
                Some(Some(own)) => *own = intersection(own, range)?,
                Some(none) => *none = Some(*range),
                None => term.is_exact = false,
            }
        }
        Some(term)
    }

    /// Expands ranges into terms of bits, if these are few.
    fn expand_ranges(self, plan: &KeyPlan, into: &mut Vec<Term>) {
        let mut terms = vec![Term { ranges: [None; MAX_RANGES], ..self }];
        let limit =
            MAX_EXPANSION.iter().find(|(width, _)| self.width() < *width).map_or(1, |it| it.1);
        for range in self.ranges.iter().flatten() {
            let bits = accepted_words(range).filter(|bits| bits.len() * terms.len() <= limit);
            let Some(bits) = bits else {
                terms.iter_mut().for_each(|term| term.is_exact = false);
                continue;
            };
            let bits = bits.iter().filter_map(|&bits| plan.bits(range, bits));
            let bits: Vec<Term> =
                bits.map(|(mask, value)| Term { mask, value, ..Term::ANY }).collect();
            terms = terms.iter().flat_map(|a| bits.iter().filter_map(|b| a.and(b))).collect();
        }
        into.append(&mut terms);
    }

    /// The number of bits.
    pub(crate) fn width(&self) -> u32 {
        self.mask.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn masked(&self) -> MaskedKey {
        MaskedKey::new(self.mask, self.value)
    }
}

/// The terms of a pattern: a packet that meets none does not match; a packet that meets one matches
/// if the term is exact.
pub(crate) fn terms(pattern: &Pattern, plan: &KeyPlan) -> Vec<Term> {
    let nodes = &pattern.nodes;
    let mut builder = TermBuilder {
        plan,
        built: Vec::with_capacity(nodes.len()),
        spare: TERMS_PER_NODE * (nodes.len() + 1),
    };
    let mut tests: Vec<usize> = Vec::with_capacity(nodes.len());
    for (expr, needed) in nodes.iter().zip(needed_values(pattern)) {
        let below = |ids: &[Id]| ids.iter().map(|&id| tests[id as usize]).sum::<usize>();
        let below = match *expr {
            Expr::Const(..) | Expr::Test { .. } => 1,
            Expr::Not(a) => below(&[a]),
            Expr::And(a, b) | Expr::Or(a, b) => below(&[a, b]),
            Expr::Cond(a, b, c) => below(&[a, b, c]),
        };
        let limit = MAX_TERMS.max(TERMS_PER_TEST * below);
        let each = [true, false].map(|holds| match needed[usize::from(!holds)] {
            true => builder.build_node(*expr, holds, limit),
            false => Vec::new(),
        });
        builder.built.push(each);
        tests.push(below);
    }
    let built = builder.built.pop().map(|[terms, _]| terms).unwrap_or_default();
    let mut terms = Vec::with_capacity(built.len());
    built.into_iter().for_each(|term| term.expand_ranges(plan, &mut terms));
    terms
}

/// Builds the terms of a pattern's nodes.
struct TermBuilder<'a> {
    plan: &'a KeyPlan,
    /// For each node, the terms of its truth and of its falsehood, until its operator takes them.
    built: Vec<[Vec<Term>; 2]>,
    /// The number of terms that may still be built, so that time grows with the pattern's length.
    spare: usize,
}

impl TermBuilder<'_> {
    /// The terms of a node's truth or falsehood.
    fn build_node(&mut self, expr: Expr, holds: bool, limit: usize) -> Vec<Term> {
        match expr {
            Expr::Const(truth, _) if truth == holds => vec![Term::ANY],
            Expr::Const(..) => Vec::new(),
            Expr::Test { test, negated, .. } => {
                test_terms(&test, Requirement::new(negated, holds), self.plan)
            }
            Expr::Not(a) => self.take(a, !holds),
            Expr::And(a, b) | Expr::Or(a, b) => {
                let (a, b) = (self.take(a, holds), self.take(b, holds));
                match matches!(expr, Expr::And(..)) == holds {
                    true => self.conjunction(a, b, limit),
                    false => disjunction(a, b),
                }
            }
            Expr::Cond(a, b, c) => {
                // Truth and falsehood of a conditional both need both results of its condition.
                let [is, is_not] = self.built[a as usize].clone();
                let (then, otherwise) = (self.take(b, holds), self.take(c, holds));
                disjunction(
                    self.conjunction(is, then, limit),
                    self.conjunction(is_not, otherwise, limit),
                )
            }
        }
    }

    fn take(&mut self, id: Id, holds: bool) -> Vec<Term> {
        std::mem::take(&mut self.built[id as usize][usize::from(!holds)])
    }

    /// The conjunctions of two lists; if these are too many, one list, whose terms are then not
    /// exact.
    fn conjunction(&mut self, a: Vec<Term>, b: Vec<Term>, limit: usize) -> Vec<Term> {
        if a == [Term::ANY] {
            return b;
        }
        if b == [Term::ANY] {
            return a;
        }
        // The terms of one operand exist already, and are visited once more.
        let Some(spare) = self.spare.checked_sub(a.len().max(b.len())) else {
            return vec![Term::UNKNOWN];
        };
        self.spare = spare;
        if a.len() * b.len() > limit {
            // Keep the list that fewer packets meet, as far as the number of bits tells.
            let share =
                |terms: &[Term]| terms.iter().map(|it| (-f64::from(it.width())).exp2()).sum();
            let (of_a, of_b): (f64, f64) = (share(&a), share(&b));
            let mut smaller = if of_a <= of_b { a } else { b };
            smaller.iter_mut().for_each(|term| term.is_exact = false);
            return smaller;
        }
        if let ([a], [b]) = (&a[..], &b[..]) {
            return a.and(b).into_iter().collect();
        }
        a.iter().flat_map(|a| b.iter().filter_map(|b| a.and(b))).collect()
    }
}

/// The disjunction of two lists.
fn disjunction(mut a: Vec<Term>, mut b: Vec<Term>) -> Vec<Term> {
    if a.len() < b.len() {
        std::mem::swap(&mut a, &mut b);
    }
    a.append(&mut b);
    // A term that every packet meets covers all others.
    let wide = |terms: &[Term], term: Term| terms.contains(&term).then(|| vec![term]);
    match a.len() {
        // In long lists this is rare, and takes longer to check.
        ..=MAX_TERMS => wide(&a, Term::ANY).or_else(|| wide(&a, Term::UNKNOWN)).unwrap_or(a),
        _ => a,
    }
}

/// The terms of a test with a required result.
fn test_terms(test: &Test, requirement: Requirement, plan: &KeyPlan) -> Vec<Term> {
    if let Some(test_bits) = plan.test_bits(test) {
        let (position, bit) = match requirement {
            Requirement::Yes => (test_bits.yes, 1),
            Requirement::NotYes => (test_bits.yes, 0),
            Requirement::No => (test_bits.no, 1),
            Requirement::NotNo => (test_bits.no, 0),
        };
        return vec![position.map_or(Term::UNKNOWN, |position| Term::bit(position, bit))];
    }
    let there =
        |bit| plan.length_bit(test).map_or(Term::UNKNOWN, |position| Term::bit(position, bit));
    let tests = match requirement {
        Requirement::Yes | Requirement::NotNo => vec![*test],
        Requirement::No | Requirement::NotYes => complement(test),
    };
    let terms = tests.iter().filter_map(|test| there(1).and(&Term::within(test, plan)));
    let is_short = matches!(requirement, Requirement::NotYes | Requirement::NotNo);
    terms.chain(is_short.then(|| there(0))).collect()
}
