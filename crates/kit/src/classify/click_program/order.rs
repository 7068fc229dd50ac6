//! The order of Click's instructions: tests that must all hold stand by their words.

use super::instruction::{Comparison, Instruction};
use super::{Budget, Language};

/// Sorts instructions that lead elsewhere by the same branch: by offset, then mask, then value.
///
/// As in Click, an instruction keeps its place if it is the first, follows the first one, or is the
/// target of several branches.
pub(super) fn sort(instructions: &mut [Instruction], language: Language, budget: &mut Budget) {
    let sources = single_sources(instructions);
    let mut at = 0;
    while at < instructions.len() && budget.take(1) {
        let swap = [0, 1].into_iter().find(|&on| {
            let next = instructions[at].jumps[on].step();
            next.is_some_and(|next| {
                let (first, second) = (&instructions[at], &instructions[next]);
                sources[next] != 0
                    && first.jumps[1 - on] == second.jumps[1 - on]
                    && place(&first.test, language) > place(&second.test, language)
            })
        });
        let Some(on) = swap else {
            at += 1;
            continue;
        };
        if let Some(next) = instructions[at].jumps[on].step() {
            let tests = (instructions[at].test, instructions[next].test);
            (instructions[next].test, instructions[at].test) = tests;
            // The smaller one may have to move further.
            at = if sources[at] != 0 { sources[at] } else { at };
        }
    }
}

/// For each instruction the only one that leads to it, or 0.
fn single_sources(instructions: &[Instruction]) -> Vec<usize> {
    let mut counts = vec![(0, 0); instructions.len()];
    for (from, instruction) in instructions.iter().enumerate() {
        for to in instruction.jumps.iter().filter_map(|jump| jump.step()) {
            counts[to] = (counts[to].0 + 1, from);
        }
    }
    counts.into_iter().map(|(count, from)| if count == 1 { from } else { 0 }).collect()
}

/// The place of a test among tests that must all hold.
fn place(test: &Comparison, language: Language) -> (u16, u32, u32) {
    /// The word with the IP protocol, and its place: before the word with the fragment offset.
    const PROTOCOL: (u16, u16) = (256 + 8, 256 + 3);
    let offset = match test.offset {
        offset if language == Language::Ip && offset == PROTOCOL.0 => PROTOCOL.1,
        offset => offset,
    };
    (offset, test.mask, test.value)
}
