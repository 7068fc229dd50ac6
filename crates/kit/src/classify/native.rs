//! Programs as Rust source, for code that is compiled for one configuration.

use super::graph::{DROP, Graph, OUT, Target};
use super::pattern::{Base, Test};
use super::program::Program;
use std::fmt::Write as _;

/// The most tests that a source may have: tests that several ways lead to are written for each.
const MOST: usize = 64;

/// The tests of a program as Rust source.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NativeTests {
    /// An expression for the output, with `packet(OFFSET)` for a big-endian word of the packet, and
    /// `network(OFFSET)` and `transport(OFFSET)` for one of these headers and what follows.
    pub expression: String,
    /// The length that a packet must have.
    pub packet: usize,
    /// The length that it must have from the network header on.
    pub network: usize,
    /// The length that it must have from the transport header on.
    pub transport: usize,
}

impl Program {
    /// The tests of a program as Rust source; `None` if they are many, read the link header, or were
    /// replaced by a table.
    pub fn native(&self) -> Option<NativeTests> {
        let graph = self.test_graph()?;
        let mut source = Source { graph, native: NativeTests::default(), tests: 0 };
        source.write(graph.start)?;
        Some(source.native)
    }
}

/// The big-endian word of a packet or a header at an offset, as expressions of [`NativeTests`] call it;
/// 0 beyond the end.
#[inline(always)]
pub fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_be_bytes(*word))
}

/// A source while it is written.
struct Source<'a> {
    graph: &'a Graph,
    native: NativeTests,
    tests: usize,
}

impl Source<'_> {
    /// Adds the tests from a target on.
    fn write(&mut self, target: Target) -> Option<()> {
        if target >= OUT {
            let output = if target == DROP { Program::NONE } else { target as u8 };
            // Writing to a string cannot fail.
            _ = write!(self.native.expression, "{output}");
            return Some(());
        }
        self.tests += 1;
        let node = self.graph.nodes.get(target as usize)?;
        if self.tests > MOST {
            return None;
        }
        let Test { base, offset, mask, lo, hi } = node.test;
        let (header, length) = match base {
            Base::Packet => ("packet", &mut self.native.packet),
            Base::Network => ("network", &mut self.native.network),
            Base::Transport => ("transport", &mut self.native.transport),
            Base::Link => return None,
        };
        *length = usize::from(offset).wrapping_add(4).max(*length);
        let text = &mut self.native.expression;
        _ = match node.test.is_equality() {
            true => write!(text, "if {header}({offset}) & {mask:#x} == {lo:#x} {{ "),
            false => {
                let word = format!("{header}({offset}) & {mask:#x}");
                write!(text, "if ({lo:#x}..={hi:#x}).contains(&({word})) {{ ")
            }
        };
        self.write(node.yes)?;
        self.native.expression += " } else { ";
        self.write(node.no)?;
        self.native.expression += " }";
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pattern, Program, Rule};
    use super::NativeTests;

    fn native(patterns: &[&str]) -> Option<NativeTests> {
        let rule = |(n, text): (usize, &&str)| {
            Rule::new(Pattern::bytes(text).expect("a pattern"), Some(n as u8))
        };
        Program::tests_only(&patterns.iter().enumerate().map(rule).collect::<Vec<_>>()).native()
    }

    #[test]
    fn tests_become_branches() {
        let of = |expression: &str| NativeTests {
            expression: expression.to_owned(),
            ..NativeTests::default()
        };
        let one = "if packet(12) & 0xffff0000 == 0x8000000 { 0 } else { 1 }";
        assert_eq!(native(&["12/0800", "-"]), Some(NativeTests { packet: 16, ..of(one) }));
        assert_eq!(native(&["-"]), Some(of("0")));
    }

    #[test]
    fn tests_of_headers_name_the_header() {
        let filter = |text: &str| {
            let rules = [Rule::filter(text, 1).expect("a rule")];
            Program::tests_only(&rules).native()
        };
        let native = filter("allow udp && dst port > 53").expect("a source");
        assert_eq!((native.packet, native.network, native.transport), (0, 12, 4));
        let port = "if (0x36..=0xffff).contains(&(transport(0) & 0xffff)) { 0 } else { 255 }";
        assert!(native.expression.contains(port), "{native:?}");
        assert_eq!(filter("allow ether host 1:2:3:4:5:6"), None);
    }

    #[test]
    fn many_tests_have_no_source() {
        let many: Vec<String> = (0..70).map(|n| format!("12/{n:04x} 40/{n:04x}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(native(&many), None);
    }
}
