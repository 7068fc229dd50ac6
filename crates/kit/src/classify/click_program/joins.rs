//! Tests of one word that become one, and tests that no packet needs.

use super::ClickProgram;
use super::instruction::{Instruction, Jump};

/// Joins tests of the same word, from the last one on.
pub(super) fn join(instructions: &mut [Instruction]) {
    for at in (0..instructions.len()).rev() {
        while widen(instructions, at) || narrow(instructions, at) {}
    }
}

/// Joins an instruction with the one on its no branch, if together they leave one bit open. Else
/// flips it if this brings a test that it is compatible with to the yes branch.
fn widen(instructions: &mut [Instruction], at: usize) -> bool {
    let instruction = instructions[at];
    let Some(next) = instruction.no().step().map(|next| instructions[next]) else { return false };
    if next.test.is_compatible(&instruction.test) && instruction.test.is_of_one_bit() {
        instructions[at].flip();
        return false;
    }
    let (test, other) = (instruction.test, next.test);
    let differing = test.value ^ other.value;
    let mut joined = test;
    joined.mask &= !differing;
    joined.value &= !differing;
    let fits = test.offset != 0
        && other.offset == test.offset
        && test.mask != 0
        && other.mask == test.mask
        && (test.short_yes || !other.short_yes)
        && instruction.yes() == next.yes()
        && (differing == 0 || differing.is_power_of_two())
        && joined.length() == test.length();
    if fits {
        instructions[at] = Instruction { test: joined, jumps: [next.no(), instruction.yes()] };
    }
    fits
}

/// Joins an instruction with the one on its yes branch, if both must be equal.
fn narrow(instructions: &mut [Instruction], at: usize) -> bool {
    let mut instruction = instructions[at];
    let Some(step) = instruction.yes().step() else { return false };
    let next = &mut instructions[step];
    if instruction.no() == next.yes() && next.test.is_of_one_bit() {
        next.flip();
    }
    let (test, other) = (&mut instruction.test, &next.test);
    let is_shorter = other.short_yes != test.short_yes && other.length() < test.length();
    let has_bits = test.mask != 0 && other.mask != 0;
    let fits =
        instruction.jumps[0] == next.no() && other.is_compatible(test) && !(has_bits && is_shorter);
    if fits {
        test.offset = if test.mask == 0 { other.offset } else { test.offset };
        (test.mask, test.value) = (test.mask | other.mask, test.value | other.value);
        instruction.jumps[1] = next.yes();
        instructions[at] = instruction;
    }
    fits
}

impl ClickProgram {
    /// Removes tests without effect, and those that no packet comes to.
    pub(super) fn remove_unused(&mut self) {
        // From the last one on, so that jumps skip any number of tests.
        let mut targets: Vec<Jump> = vec![Jump::Drop; self.instructions.len()];
        for at in (0..self.instructions.len()).rev() {
            let instruction = &mut self.instructions[at];
            for jump in &mut instruction.jumps {
                *jump = jump.step().map_or(*jump, |step| targets[step]);
            }
            let has_effect = instruction.yes() != instruction.no() && instruction.test.mask != 0;
            targets[at] = if has_effect { Jump::Step(at as u32) } else { instruction.yes() };
        }
        match targets.first() {
            Some(Jump::Step(first)) => self.remove_unreachable(*first as usize),
            Some(end) => {
                self.all = Some(*end);
                self.instructions.clear();
            }
            None => self.all = self.all.or(Some(Jump::Drop)),
        }
    }

    /// Keeps the instruction `first` and those that it leads to.
    fn remove_unreachable(&mut self, first: usize) {
        self.all = None;
        self.instructions[0] = self.instructions[first];
        let mut numbers: Vec<Option<u32>> = vec![None; self.instructions.len()];
        numbers[0] = Some(0);
        let mut kept = Vec::new();
        for at in 0..self.instructions.len() {
            if numbers[at].is_none() {
                continue;
            }
            numbers[at] = Some(kept.len() as u32);
            let instruction = self.instructions[at];
            for step in instruction.jumps.iter().filter_map(|jump| jump.step()) {
                numbers[step] = Some(0);
            }
            kept.push(instruction);
        }
        let renumber = |jump: &mut Jump| {
            if let Some(number) = jump.step().and_then(|step| numbers[step]) {
                *jump = Jump::Step(number);
            }
        };
        kept.iter_mut().flat_map(|it| &mut it.jumps).for_each(renumber);
        self.instructions = kept;
    }
}
