//! The program that Click makes of patterns, as text: for handlers only, packets never run it.
//!
//! Click tests a packet by instructions, each of which compares one word under a mask and then jumps
//! forward or to an output. It makes them of the patterns (`assembly.rs`), sorts tests that must all
//! hold (`order.rs`), shortens jumps over tests whose result is known (`known_results.rs`), joins tests of
//! one word and removes those that are left over (`joins.rs`). Rules of `IPFilter` are optimised in
//! pairs, then pairs of these, and so on; in the end equal comparisons of one word are put together
//! (`groups.rs`). `program` handlers of Click print the result, so each step here has Click's order and
//! Click's limits.

#[cfg(test)]
mod agreement;
mod assembly;
mod groups;
mod instruction;
mod joins;
mod known_results;
mod order;
#[cfg(test)]
mod tests;

use super::error::RuleError;
use super::pattern::Pattern;
use super::program::Rule;
use instruction::{Instruction, Jump};

/// The work that one program may take, in instructions and known results looked at: tens of
/// milliseconds. The work grows with the square of the number of tests, or its cube.
const MAX_WORK: u64 = 1 << 25;

/// The work that is left.
struct Budget(u64);

impl Budget {
    /// Takes so much work, as far as there is any; returns whether there was enough.
    fn take(&mut self, work: usize) -> bool {
        let left = self.0.checked_sub(work as u64);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// The order in which tests that must all hold are sorted.
#[derive(Clone, Copy, PartialEq)]
enum Language {
    /// That of `Classifier`.
    Bytes,
    /// That of `IPFilter` and `IPClassifier`, which test the IP protocol early.
    Ip,
}

/// The program of Click for some rules.
///
/// The text form is that of Click's `program` handlers. A program that takes much work to optimise
/// (about a thousand rules with addresses and ports) is printed as far as it has come; it then has more
/// tests than Click's, but sends each packet to the same output.
#[derive(Clone, Debug, Default)]
pub struct ClickProgram {
    instructions: Vec<Instruction>,
    /// The jump of all packets, if there is nothing to test.
    all: Option<Jump>,
    /// Words begin so many bytes before the packet: see [`ClickProgram::of_byte_patterns`].
    alignment: u8,
}

impl ClickProgram {
    /// The program of rules of `IPFilter`, or of patterns of `IPClassifier`.
    pub fn of_ip_rules(rules: &[Rule]) -> ClickProgram {
        ClickProgram::of_ip_rules_within(rules, &mut Budget(MAX_WORK))
    }

    fn of_ip_rules_within(rules: &[Rule], budget: &mut Budget) -> ClickProgram {
        let mut programs: Vec<ClickProgram> = rules.iter().map(ClickProgram::of_rule).collect();
        let mut step = 1;
        while step < programs.len() {
            for first in (0..programs.len() - step).step_by(2 * step) {
                let next = std::mem::take(&mut programs[first + step]);
                programs[first].append(next);
                if !budget.is_spent() {
                    programs[first].optimise(Language::Ip, budget);
                }
            }
            step *= 2;
        }
        let mut program = programs.into_iter().next().unwrap_or_default();
        if step == 1 || budget.is_spent() {
            program.optimise(Language::Ip, budget);
        }
        program.redirect_failures(Jump::Drop);
        order::sort(&mut program.instructions, Language::Ip, budget);
        program.instructions = groups::group(&program.instructions);
        program
    }

    /// The program of patterns of `Classifier`, one for each output. As Click compares words at addresses
    /// that are multiples of 4, the first word begins `alignment` bytes before the packet, at most 3.
    ///
    /// # Errors
    /// One of the texts is no pattern.
    pub fn of_byte_patterns(texts: &[String], alignment: u8) -> Result<ClickProgram, RuleError> {
        let mut program = ClickProgram::default();
        for (n, text) in texts.iter().enumerate() {
            let pattern = Pattern::bytes_behind(usize::from(alignment), text)?;
            program.append(ClickProgram::of_rule(&Rule::new(pattern, u8::try_from(n).ok())));
        }
        program.redirect_failures(Jump::Drop);
        program.optimise(Language::Bytes, &mut Budget(MAX_WORK));
        Ok(ClickProgram { alignment, ..program })
    }

    /// The program of a rule alone.
    fn of_rule(rule: &Rule) -> ClickProgram {
        let output = rule.output.map_or(Jump::Drop, Jump::Output);
        let instructions = assembly::assemble(&rule.pattern, output);
        ClickProgram { instructions, ..ClickProgram::default() }
    }

    /// Appends a program for the packets that match nothing so far.
    fn append(&mut self, next: ClickProgram) {
        if self.all.is_some_and(|all| all != Jump::Failure) {
            return;
        }
        let first = self.instructions.len() as u32;
        self.redirect_failures(next.all.unwrap_or(Jump::Step(first)));
        self.all = if self.instructions.is_empty() { next.all } else { None };
        self.instructions.extend(next.instructions.into_iter().map(|it| it.moved_by(first)));
    }

    /// Sends the packets that match nothing elsewhere.
    fn redirect_failures(&mut self, target: Jump) {
        let jumps = self.instructions.iter_mut().flat_map(|it| &mut it.jumps);
        let all = jumps.chain(&mut self.all);
        all.filter(|jump| **jump == Jump::Failure).for_each(|jump| *jump = target);
    }

    fn optimise(&mut self, language: Language, budget: &mut Budget) {
        order::sort(&mut self.instructions, language, budget);
        known_results::shorten_jumps(&mut self.instructions, budget);
        joins::join(&mut self.instructions);
        self.remove_unused();
        budget.take(self.instructions.len());
    }
}
