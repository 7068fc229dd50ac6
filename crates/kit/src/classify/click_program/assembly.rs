//! Patterns as Click's instructions, before any optimisation.

use super::instruction::{Comparison, Instruction, Jump};
use crate::classify::listing::listing_base;
use crate::classify::pattern::{Base, Expr, Form, Next, Pattern, Test, Word};

/// One of the comparisons of a test. If it is equal, the next one is made.
struct Part {
    comparison: Comparison,
    /// Whether the test holds if this is unequal; else the test does not hold then. Of the last
    /// comparison, equal has the opposite effect of unequal.
    holds_if_unequal: bool,
}

/// The instructions of a pattern: one at least, and never one that leads back.
pub(super) fn assemble(pattern: &Pattern, output: Jump) -> Vec<Instruction> {
    let leaves = pattern.leaves();
    let mut parts = Vec::with_capacity(leaves.len());
    let mut ends: Vec<usize> = vec![0];
    let mut negated = Vec::with_capacity(leaves.len());
    for leaf in &leaves {
        negated.push(append_parts(&leaf.expr, &mut parts));
        ends.push(parts.len());
    }
    let target = |next| match next {
        Next::Leaf(leaf) => Jump::Step(ends[leaf as usize] as u32),
        Next::Match => output,
        Next::Mismatch => Jump::Failure,
    };
    let mut instructions = Vec::with_capacity(parts.len());
    for (at, leaf) in leaves.iter().enumerate() {
        let (mut holds, mut fails) = (target(leaf.yes), target(leaf.no));
        if negated[at] {
            std::mem::swap(&mut holds, &mut fails);
        }
        let (first, end) = (ends[at], ends[at + 1]);
        for (step, part) in (first + 1..).zip(&parts[first..end]) {
            let (unequal, last) =
                if part.holds_if_unequal { (holds, fails) } else { (fails, holds) };
            let equal = if step == end { last } else { Jump::Step(step as u32) };
            instructions.push(Instruction { test: part.comparison, jumps: [unequal, equal] });
        }
    }
    instructions
}

/// Appends the comparisons of a leaf; returns whether its opposite was asked for.
fn append_parts(leaf: &Expr, parts: &mut Vec<Part>) -> bool {
    let word = |base, offset| (listing_base(base) as u16).wrapping_add(offset);
    match *leaf {
        Expr::Const(holds, Word { base, offset }) => {
            // As in Click, the opposite of `true` keeps its answer for short packets, while the
            // opposite of a relation changes it, which keeps them out.
            let short_yes = !holds && base != Base::Packet;
            let comparison =
                Comparison { offset: word(base, offset), mask: 0, value: 0, short_yes };
            parts.push(Part { comparison, holds_if_unequal: false });
            !holds
        }
        Expr::Test { test, negated, form } => {
            let offset = word(test.base, test.offset);
            let (mut pairs, mut opposite) = (Vec::new(), negated);
            match form {
                Form::Value => pairs.push((test.mask, test.lo)),
                Form::ValueTwice => pairs.extend([(test.mask, test.lo); 2]),
                Form::Limit { shift } => {
                    // A test that accepts 0 is the opposite of one for the values above.
                    opposite ^= test.lo == 0;
                    pairs.extend(above(limit(&test, shift), test.mask >> shift, shift));
                }
            }
            let is_limit = matches!(form, Form::Limit { .. });
            parts.extend(pairs.into_iter().map(|(mask, value)| {
                let holds_if_unequal = is_limit && value == 0;
                let short_yes = holds_if_unequal != opposite;
                let comparison = Comparison { offset, mask, value, short_yes };
                Part { comparison, holds_if_unequal }
            }));
            opposite
        }
        // Operators are no leaves.
        Expr::Not(_) | Expr::And(..) | Expr::Or(..) | Expr::Cond(..) => false,
    }
}

/// The field's largest value that is not above the limit of a test and has bits of the mask only.
fn limit(test: &Test, shift: u8) -> u32 {
    let mask = test.mask >> shift;
    let limit = if test.lo == 0 { test.hi >> shift } else { (test.lo >> shift).saturating_sub(1) };
    match (limit & !mask).checked_ilog2() {
        Some(missing) => (limit | ((1 << missing) - 1)) & mask,
        None => limit,
    }
}

/// Masks and values that tell, one after the other, whether a field under a mask is above a limit: of
/// upper bits that are 0 in the limit some are 1, or upper bits that are 1 in it are all 1 and the lower
/// ones are above the rest of the limit.
fn above(mut limit: u32, mut mask: u32, shift: u8) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    while limit < mask {
        let is_high = limit > mask >> 1;
        let end = if is_high { !(limit + 1) & mask } else { limit };
        let upper = match end.checked_ilog2() {
            Some(bit) => mask & !(u32::MAX >> (31 - bit)),
            None => mask,
        };
        pairs.push((upper << shift, if is_high { upper << shift } else { 0 }));
        mask &= !upper;
        limit &= mask;
    }
    pairs
}
