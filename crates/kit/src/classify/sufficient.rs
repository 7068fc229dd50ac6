//! Tests that decide alone to which output a packet goes.

use super::conjunctions::MaskedWord;
use super::facts::Facts;
use super::graph::{Graph, OUT, Target};
use super::pattern::{Base, Test};
use super::program::Program;

/// The most tests of a program in which a sufficient one is looked for.
const MOST: usize = 64;

impl Program {
    /// A word of the packet that decides alone: packets that have all four bytes, and this value under the mask, go to `output`,
    /// whatever the other tests are. `None` if there is no such test, if the program has more than 64 tests, or if a table has
    /// replaced them.
    pub fn sufficient_test(&self, output: u8) -> Option<MaskedWord> {
        let graph = self.test_graph().filter(|graph| graph.nodes.len() <= MOST)?;
        let tests = graph.nodes.iter().map(|node| node.test);
        let mut tests = tests.filter(|test| test.base == Base::Packet && test.is_equality());
        let Test { base, offset, mask, lo: value, .. } =
            tests.find(|test| is_sufficient(graph, test, OUT + Target::from(output)))?;
        Some(MaskedWord { base, offset, mask, value })
    }
}

/// Whether all packets that pass `test` come to `end`.
fn is_sufficient(graph: &Graph, test: &Test, end: Target) -> bool {
    let mut facts = Facts::default();
    // All four bytes: those that look at a packet load the word.
    facts.assume(&Test { mask: u32::MAX, lo: 0, hi: u32::MAX, ..*test }, false, true);
    facts.assume(test, false, true);
    let mut at = graph.start;
    while let Some(node) = graph.nodes.get(at as usize) {
        let Some(answer) = facts.decide(&node.test, node.short_yes) else { return false };
        at = node.branch(answer);
    }
    at == end
}

#[cfg(test)]
mod tests {
    use super::super::{Pattern, Program, Rule};
    use proptest::prelude::*;

    fn program(patterns: &[&str]) -> Program {
        let rule = |(n, text): (usize, &&str)| {
            Rule::new(Pattern::bytes(text).expect("a pattern"), Some(n as u8))
        };
        Program::tests_only(&patterns.iter().enumerate().map(rule).collect::<Vec<_>>())
    }

    /// Offset, mask and value of the test for an output.
    fn sufficient(patterns: &[&str], output: u8) -> Option<(u16, u32, u32)> {
        let test = program(patterns).sufficient_test(output)?;
        Some((test.offset, test.mask, test.value))
    }

    #[test]
    fn a_value_that_rules_out_all_other_patterns_is_sufficient() {
        let router = ["12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"];
        assert_eq!(sufficient(&router, 2), Some((12, 0xffff_0000, 0x0800_0000)));
        assert_eq!(sufficient(&router, 0), None, "two words");
        assert_eq!(sufficient(&router, 3), None, "what is left");
        assert_eq!(sufficient(&["12/0800"], 0), Some((12, 0xffff_0000, 0x0800_0000)));
    }

    #[test]
    fn a_pattern_behind_one_of_other_bytes_has_no_sufficient_test() {
        assert_eq!(sufficient(&["0/01", "12/0800"], 1), None);
        assert_eq!(sufficient(&["12/08", "12/0800"], 1), None, "never reached");
        assert_eq!(sufficient(&["12/0800", "12/08"], 1), None, "depends on the second byte");
        assert_eq!(sufficient(&["-", "12/0800"], 0), None, "without a test");
    }

    proptest! {
        #[test]
        fn packets_that_pass_go_to_the_output(
            patterns in prop::collection::vec(
                prop::collection::vec((0u16..6, 0u8..3, prop::bool::ANY), 1..3),
                1..6,
            ),
            packets in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 64),
        ) {
            let term = |&(offset, byte, is_not): &(u16, u8, bool)| {
                format!("{}{offset}/{byte:02x}", if is_not { "!" } else { "" })
            };
            let text = |terms: &Vec<(u16, u8, bool)>| {
                terms.iter().map(term).collect::<Vec<_>>().join(" ")
            };
            let texts: Vec<String> = patterns.iter().map(text).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let program = program(&texts);
            for output in 0..patterns.len() as u8 {
                let Some(test) = program.sufficient_test(output) else { continue };
                for packet in &packets {
                    let word = packet.get(usize::from(test.offset)..).and_then(<[u8]>::first_chunk);
                    let passes = word.is_some_and(|it| u32::from_be_bytes(*it) & test.mask == test.value);
                    prop_assert!(!passes || program.run_bytes(packet) == Some(output));
                }
            }
        }
    }
}
