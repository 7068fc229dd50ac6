//! Equal comparisons of one word with several values: Click puts them together, and prints them in a
//! row.

use super::ClickProgram;
use super::instruction::{Comparison, Instruction, Jump};
use std::fmt;

/// So many values are sorted, for a binary search.
const MIN_SORTED: usize = 7;

/// Tests of a word for several values.
struct Group<'a> {
    first: &'a Instruction,
    values: Vec<u32>,
    no: Jump,
}

/// The program with tests of a word for several values in a row.
pub(super) fn group(instructions: &[Instruction]) -> Vec<Instruction> {
    let mut groups = Vec::with_capacity(instructions.len());
    let mut uses = count_uses(instructions);
    let (mut numbers, mut count) = (vec![0; instructions.len()], 0);
    for at in 0..instructions.len() {
        if uses[at] > 0 {
            let group = collect(instructions, at, &mut uses);
            numbers[at] = count;
            count += group.values.len() as u32;
            groups.push(group);
        }
    }
    let number = |jump: Jump| jump.step().map_or(jump, |step| Jump::Step(numbers[step]));
    let mut grouped = Vec::with_capacity(instructions.len());
    for Group { first, values, no } in groups {
        let last = values.len() - 1;
        for (at, value) in values.into_iter().enumerate() {
            let next = Jump::Step(grouped.len() as u32 + 1);
            let jumps = [if at == last { number(no) } else { next }, number(first.yes())];
            grouped.push(Instruction { test: Comparison { value, ..first.test }, jumps });
        }
    }
    grouped
}

/// An instruction with those that follow it alone and compare the same word; they lose their use.
fn collect<'a>(instructions: &'a [Instruction], at: usize, uses: &mut [u32]) -> Group<'a> {
    let first = &instructions[at];
    let mut group = Group { first, values: vec![first.test.value], no: first.no() };
    while let Some(next) = group.no.step().filter(|&next| uses[next] == 1) {
        let other = &instructions[next];
        let is_alike = other.yes() == first.yes()
            && (other.test.offset, other.test.mask) == (first.test.offset, first.test.mask);
        if !is_alike {
            break;
        }
        group.values.push(other.test.value);
        group.no = other.no();
        uses[next] = 0;
    }
    if group.values.len() >= MIN_SORTED {
        // Click compares words as its machine loads them: the first byte counts least.
        group.values.sort_unstable_by_key(|value| value.swap_bytes());
    }
    group
}

/// How many branches lead to each instruction; the first has one from outside.
fn count_uses(instructions: &[Instruction]) -> Vec<u32> {
    let mut uses = vec![0; instructions.len()];
    if let Some(first) = uses.first_mut() {
        *first = 1;
    }
    for (at, instruction) in instructions.iter().enumerate() {
        if uses[at] > 0 {
            for step in instruction.jumps.iter().filter_map(|jump| jump.step()) {
                uses[step] += 1;
            }
        }
    }
    uses
}

impl fmt::Display for ClickProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, Instruction { test, jumps: [no, yes] }) in self.instructions.iter().enumerate() {
            // As in Click, numbers below 0 wrap.
            let offset = test.offset.wrapping_sub(u16::from(self.alignment));
            write!(f, "{step:2} {offset:3}/{:08x}%{:08x}", test.value, test.mask)?;
            write!(f, "  yes->{yes}  no->{no}")?;
            f.write_str(if test.short_yes { "  short->yes\n" } else { "\n" })?;
        }
        match self.all {
            // The number that stands for dropped packets in Click.
            Some(Jump::Drop) => writeln!(f, "all->[{}]", i32::MAX)?,
            Some(all) => writeln!(f, "all->{all}")?,
            None => {}
        }
        let safe = self.instructions.iter().map(|it| it.test.length()).max().unwrap_or(0);
        let safe = safe.wrapping_sub(u32::from(self.alignment));
        writeln!(f, "safe length {safe}\nalignment offset {}", self.alignment)
    }
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Jump::Step(step) => write!(f, "step {step}"),
            Jump::Output(output) => write!(f, "[{output}]"),
            Jump::Drop => f.write_str("[X]"),
            Jump::Failure => f.write_str("[-]"),
        }
    }
}
