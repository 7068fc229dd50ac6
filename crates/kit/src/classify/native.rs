//! Programs as Rust source, for code that is compiled for one configuration.

use super::graph::{DROP, Graph, OUT, Target};
use super::pattern::Base;
use super::program::Program;
use std::fmt::Write as _;

/// The most tests that a source may have: tests that several ways lead to are written for each.
const MOST: usize = 64;

impl Program {
    /// The tests of a program of `Classifier` patterns as a Rust expression for the output, with
    /// `word(OFFSET)` for the big-endian words of the packet, and the length that a packet must have for
    /// all of them. `None` if they are many, read headers, or were replaced by a table.
    pub fn native(&self) -> Option<(usize, String)> {
        let graph = self.test_graph()?;
        let mut source = Source { graph, text: String::new(), length: 0, tests: 0 };
        source.write(graph.start)?;
        Some((source.length, source.text))
    }
}

/// A source while it is written.
struct Source<'a> {
    graph: &'a Graph,
    text: String,
    /// The length that a packet must have.
    length: usize,
    tests: usize,
}

impl Source<'_> {
    /// Adds the tests from a target on.
    fn write(&mut self, target: Target) -> Option<()> {
        if target >= OUT {
            let output = if target == DROP { Program::NONE } else { target as u8 };
            // Writing to a string cannot fail.
            _ = write!(self.text, "{output}");
            return Some(());
        }
        self.tests += 1;
        let node = self.graph.nodes.get(target as usize)?;
        if self.tests > MOST || node.test.base != Base::Packet {
            return None;
        }
        let test = node.test;
        self.length = self.length.max(usize::from(test.offset) + 4);
        _ = match test.is_equality() {
            true => write!(
                self.text,
                "if word({}) & {:#x} == {:#x} {{ ",
                test.offset, test.mask, test.lo
            ),
            false => write!(
                self.text,
                "if ({:#x}..={:#x}).contains(&(word({}) & {:#x})) {{ ",
                test.lo, test.hi, test.offset, test.mask
            ),
        };
        self.write(node.yes)?;
        self.text += " } else { ";
        self.write(node.no)?;
        self.text += " }";
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pattern, Program, Rule};

    fn native(patterns: &[&str]) -> Option<(usize, String)> {
        let rule = |(n, text): (usize, &&str)| {
            Rule::new(Pattern::bytes(text).expect("a pattern"), Some(n as u8))
        };
        Program::tests_only(&patterns.iter().enumerate().map(rule).collect::<Vec<_>>()).native()
    }

    #[test]
    fn tests_become_branches() {
        let (length, text) = native(&["12/0800", "-"]).expect("a source");
        assert_eq!(length, 16);
        assert_eq!(text, "if word(12) & 0xffff0000 == 0x8000000 { 0 } else { 1 }");
        assert_eq!(native(&["-"]), Some((0, "0".to_owned())));
    }

    #[test]
    fn many_tests_have_no_source() {
        let many: Vec<String> = (0..70).map(|n| format!("12/{n:04x} 40/{n:04x}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(native(&many), None);
    }
}
