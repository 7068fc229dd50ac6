//! Patterns as conjunctions of masked words that must be equal, for users that can only compare bits.
//! Unlike the terms of a table's keys they are exact, and fail where they would be too many.

use super::key_plan::{Requirement, needed_values};
use super::pattern::{Base, Expr, Id, Pattern, Test};
use super::prefixes::{Bits, accepted_words, complement};
use std::fmt;

/// A word of a packet that must have these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskedWord {
    /// The header that the offset is relative to.
    pub base: Base,
    /// The offset in bytes, a multiple of four.
    pub offset: u16,
    /// The bits that are compared.
    pub mask: u32,
    /// Their value.
    pub value: u32,
}

/// A condition on the length of a header and the bytes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderLength {
    /// The header.
    pub base: Base,
    /// The number of bytes.
    pub bytes: u16,
    /// Whether the packet must have so many bytes, or must not.
    pub is_there: bool,
}

/// Conditions of which a packet must meet all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conjunction {
    /// The words, at most one for each place.
    pub words: Vec<MaskedWord>,
    /// The lengths.
    pub lengths: Vec<HeaderLength>,
}

/// The reason why a pattern has no list of conjunctions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConjunctionsError {
    /// There would be more conjunctions than the limit.
    TooMany(usize),
    /// A range is over bits that do not lie side by side.
    Range,
}

impl fmt::Display for ConjunctionsError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ConjunctionsError::TooMany(limit) => {
                write!(f, "the pattern needs more than {limit} comparisons of bits")
            }
            ConjunctionsError::Range => {
                f.write_str("a range over bits that do not lie side by side")
            }
        }
    }
}

impl std::error::Error for ConjunctionsError {}

impl Conjunction {
    fn of_word(test: &Test, (mask, value): Bits) -> Conjunction {
        let word = MaskedWord { base: test.base, offset: test.offset, mask, value };
        Conjunction { words: vec![word], lengths: Vec::new() }
    }

    fn of_length(test: &Test, is_there: bool) -> Conjunction {
        let length = HeaderLength { base: test.base, bytes: test.needs(), is_there };
        Conjunction { words: Vec::new(), lengths: vec![length] }
    }

    /// Both together; `None` if no packet meets both.
    fn and(&self, other: &Conjunction) -> Option<Conjunction> {
        let mut all = self.clone();
        for word in &other.words {
            let is_same = |it: &&mut MaskedWord| (it.base, it.offset) == (word.base, word.offset);
            match all.words.iter_mut().find(is_same) {
                Some(own) if (own.value ^ word.value) & own.mask & word.mask != 0 => return None,
                Some(own) => {
                    (own.mask, own.value) = (own.mask | word.mask, own.value | word.value);
                }
                None => all.words.push(*word),
            }
        }
        for length in &other.lengths {
            let excludes = |it: &HeaderLength| match (it.is_there, length.is_there) {
                (true, false) => it.bytes >= length.bytes,
                (false, true) => it.bytes <= length.bytes,
                _ => false,
            };
            if all.lengths.iter().any(|it| it.base == length.base && excludes(it)) {
                return None;
            }
            if !all.lengths.contains(length) {
                all.lengths.push(*length);
            }
        }
        Some(all)
    }
}

impl Pattern {
    /// The pattern as a list of conjunctions: a packet matches the pattern exactly if it meets at
    /// least one of them.
    ///
    /// # Errors
    /// There would be more than `limit`, or bits are compared that cannot be.
    pub fn conjunctions(&self, limit: usize) -> Result<Vec<Conjunction>, ConjunctionsError> {
        let mut built: Vec<[Vec<Conjunction>; 2]> = Vec::with_capacity(self.nodes.len());
        for (expr, needed) in self.nodes.iter().zip(needed_values(self)) {
            let mut each = [Vec::new(), Vec::new()];
            for (own, holds) in each.iter_mut().zip([true, false]) {
                if needed[usize::from(!holds)] {
                    *own = of_node(*expr, holds, &built, limit)?;
                }
            }
            built.push(each);
        }
        Ok(built.pop().map(|[truth, _]| truth).unwrap_or_default())
    }
}

/// The conjunctions of a node's truth or falsehood.
fn of_node(
    expr: Expr,
    holds: bool,
    built: &[[Vec<Conjunction>; 2]],
    limit: usize,
) -> Result<Vec<Conjunction>, ConjunctionsError> {
    let of = |id: Id, holds: bool| &built[id as usize][usize::from(!holds)][..];
    let both = |a: &[Conjunction], b: &[Conjunction]| {
        let all = a.iter().flat_map(|a| b.iter().filter_map(|b| a.and(b)));
        // No more than tell that there are too many.
        limited(all.take(limit.saturating_add(1)).collect(), limit)
    };
    match expr {
        Expr::Const(truth, _) if truth == holds => Ok(vec![Conjunction::default()]),
        Expr::Const(..) => Ok(Vec::new()),
        Expr::Test { test, negated, .. } => {
            limited(of_test(&test, Requirement::new(negated, holds))?, limit)
        }
        Expr::Not(a) => Ok(of(a, !holds).to_vec()),
        Expr::And(a, b) | Expr::Or(a, b) => {
            let (a, b) = (of(a, holds), of(b, holds));
            match matches!(expr, Expr::And(..)) == holds {
                true => both(a, b),
                false => limited([a, b].concat(), limit),
            }
        }
        Expr::Cond(a, b, c) => {
            let then = both(of(a, true), of(b, holds))?;
            limited([then, both(of(a, false), of(c, holds))?].concat(), limit)
        }
    }
}

fn limited(
    conjunctions: Vec<Conjunction>,
    limit: usize,
) -> Result<Vec<Conjunction>, ConjunctionsError> {
    match conjunctions.len() > limit {
        true => Err(ConjunctionsError::TooMany(limit)),
        false => Ok(conjunctions),
    }
}

/// The conjunctions of a test with a required result.
fn of_test(test: &Test, requirement: Requirement) -> Result<Vec<Conjunction>, ConjunctionsError> {
    let words = match requirement {
        Requirement::Yes | Requirement::NotNo => {
            accepted_words(test).ok_or(ConjunctionsError::Range)?
        }
        Requirement::No | Requirement::NotYes if test.is_equality() => other_words(test),
        Requirement::No | Requirement::NotYes => {
            let words: Option<Vec<_>> = complement(test).iter().map(accepted_words).collect();
            words.ok_or(ConjunctionsError::Range)?.concat()
        }
    };
    let there = Conjunction::of_length(test, true);
    let words = words.into_iter().filter_map(|bits| Conjunction::of_word(test, bits).and(&there));
    let is_short = matches!(requirement, Requirement::NotYes | Requirement::NotNo);
    Ok(words.chain(is_short.then(|| Conjunction::of_length(test, false))).collect())
}

/// The words that an equality does not accept: those that first differ at each of its bits.
fn other_words(test: &Test) -> Vec<Bits> {
    if test.lo & !test.mask != 0 {
        return vec![(0, 0)];
    }
    let bits = (0..u32::BITS).rev().map(|bit| 1 << bit).filter(|bit: &u32| test.mask & bit != 0);
    bits.map(|bit| {
        let mask = test.mask & !(bit - 1);
        (mask, test.lo & mask ^ bit)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::evaluate;
    use super::*;
    use proptest::prelude::*;

    fn meets(conjunction: &Conjunction, headers: [&[u8]; 4]) -> bool {
        let word = |base: Base, offset: u16| {
            let header = headers[base as usize].get(usize::from(offset)..).unwrap_or_default();
            let mut bytes = [0; 4];
            bytes.iter_mut().zip(header).for_each(|(to, from)| *to = *from);
            u32::from_be_bytes(bytes)
        };
        let has = |it: &HeaderLength| headers[it.base as usize].len() >= usize::from(it.bytes);
        conjunction.words.iter().all(|it| word(it.base, it.offset) & it.mask == it.value)
            && conjunction.lengths.iter().all(|it| has(it) == it.is_there)
    }

    /// Patterns of each kind, which small headers often match.
    const PATTERNS: [&str; 12] = [
        "-",
        "none",
        "src host 0.1.0.1 and dst net 0.0.0.0/6",
        "tcp or udp",
        "not (udp and src port 1)",
        "src or dst port <= 2",
        "udp port != 1",
        "ip ttl > 1 and not tcp opt syn",
        "ip frag || icmp type 1",
        "(ip hl 5 ? tcp : ip tos 1)",
        "not ip dscp 0 and src port >= 1 and src port <= 300",
        "ip len < 2 or tcp win 1",
    ];

    proptest! {
        #[test]
        fn conjunctions_hold_exactly_when_patterns_do(
            which in 0..PATTERNS.len(),
            network in prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 5, 6, 17, 0x45]), 0..24),
            transport in prop::collection::vec(0_u8..4, 0..22),
            protocol in prop::sample::select(vec![0_u8, 1, 6, 17]),
        ) {
            let mut network = network;
            network.get_mut(9).into_iter().for_each(|it| *it = protocol);
            let pattern = Pattern::ip(PATTERNS[which]).expect(PATTERNS[which]);
            let headers: [&[u8]; 4] = [&[], &[], &network, &transport];
            let conjunctions = pattern.conjunctions(1000).expect(PATTERNS[which]);
            let is_met = conjunctions.iter().any(|it| meets(it, headers));
            prop_assert_eq!(is_met, evaluate(&pattern, headers), "{}", PATTERNS[which]);
        }
    }

    #[test]
    fn too_many_conjunctions_are_an_error() {
        let pattern = Pattern::ip(
            "src port >= 1 and src port <= 65534 and dst port > 0 and dst port < 65535",
        )
        .expect("is a pattern");
        assert_eq!(pattern.conjunctions(100), Err(ConjunctionsError::TooMany(100)));
        // Thirty prefixes for each range, and both protocols or more.
        assert!(pattern.conjunctions(10_000).is_ok_and(|all| all.len() >= 900));
    }
}
