//! Rules, and the program compiled from them: what elements hold and run.

use super::error::RuleError;
use super::estimate::{Chosen, Estimate, choose, tests};
use super::flat::{Bytes, Flat, Headers, NO_OUTPUT, Words};
use super::graph::{DROP, Graph, OUT};
use super::lexer::words;
use super::names::{Names, NoNames};
use super::parse::parse;
use super::pattern::{Base, Expr, Pattern};
use super::table::{ByTable, Lookups};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// A pattern, and where packets go for which no earlier rule's pattern holds and this one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What a packet must look like.
    pub pattern: Pattern,
    /// The output, at most 254; none to drop.
    pub output: Option<u8>,
}

impl Rule {
    /// A rule that sends what looks like `pattern` to `output`, or drops it.
    pub fn new(pattern: Pattern, output: Option<u8>) -> Self {
        Rule { pattern, output }
    }

    /// Reads an `IPFilter` argument: `allow`, `deny`, `drop`, `accept` or the number of one of
    /// `outputs` outputs, then a pattern; without a pattern the rule takes every packet.
    pub fn filter(text: &str, outputs: usize) -> Result<Rule, RuleError> {
        Rule::filter_with(text, outputs, &NoNames)
    }

    /// As [`Rule::filter`], with names beyond the built-in ones.
    pub fn filter_with(text: &str, outputs: usize, names: &dyn Names) -> Result<Rule, RuleError> {
        let words = words(text);
        let Some((action, rest)) = words.split_first() else {
            return Err(RuleError::new(0, "empty pattern")
                .help("a rule is an action and a pattern, such as 'allow tcp'"));
        };
        let error = |message: String| RuleError::new(action.offset, message);
        let output = match action.text {
            "allow" | "accept" if outputs == 0 => {
                let message = "is meaningless, element has zero outputs";
                return Err(error(format!("'{}' {message}", action.text)));
            }
            "allow" | "accept" => Some(0),
            "deny" | "drop" => None,
            word => match crate::text::parse_u32(word) {
                Some(slot) if (slot as usize) < outputs.min(255) => Some(slot as u8),
                Some(slot) => {
                    return Err(error(format!("slot '{slot}' out of range"))
                        .help(format!("the element has {outputs} outputs")));
                }
                None => {
                    let actions = ["allow", "deny", "drop", "accept"];
                    let near = super::error::nearest(word, actions.into_iter());
                    let help = match near {
                        Some(near) => format!("did you mean '{near}'?"),
                        None => "an action is allow, deny, drop or the number of an output".into(),
                    };
                    return Err(error(format!("unknown slot ID '{word}'")).help(help));
                }
            },
        };
        Ok(Rule { pattern: parse(rest, text.len(), names)?, output })
    }
}

/// Rules compiled: answers which output a packet goes to.
///
/// Prints as Click's `program` handlers do, one test a line; or else what table it has.
#[derive(Clone, Debug)]
pub struct Program {
    graph: Graph,
    flat: Flat,
    /// In place of the two, where it takes a packet less.
    table: Option<Arc<ByTable>>,
    estimate: Estimate,
    needs_link: bool,
}

/// Whether any rule looks at the link header.
fn needs_link(rules: &[Rule]) -> bool {
    let is_link = |expr: &Expr| matches!(expr, Expr::Test { test, .. } if test.base == Base::Link);
    rules.iter().any(|rule| rule.pattern.nodes.iter().any(is_link))
}

/// An output, if it is one.
#[inline(always)]
fn some(output: u8) -> Option<u8> {
    (output != NO_OUTPUT).then_some(output)
}

impl Program {
    /// No output: the packet is dropped. Output 255 cannot be told from it.
    pub const NONE: u8 = NO_OUTPUT;

    /// Compiles `rules`, of which the first that matches a packet decides.
    ///
    /// They become tests or a table of keys, whichever takes a packet less.
    /// Time and memory grow with the rules' length times a logarithm, never faster.
    pub fn compile(rules: &[Rule]) -> Program {
        let (chosen, estimate) = choose(rules);
        let (graph, flat, table) = match chosen {
            Chosen::Tests(graph, flat) => (graph, flat, None),
            Chosen::Table(table) => (Graph::default(), Flat::default(), Some(table)),
        };
        Program { graph, flat, table, estimate, needs_link: needs_link(rules) }
    }

    /// The same as tests, whatever those would take.
    pub fn tests_only(rules: &[Rule]) -> Program {
        let (graph, flat) = tests(rules.iter());
        let (estimate, needs_link) = (Estimate::of_tests(rules), needs_link(rules));
        Program { graph, flat, table: None, estimate, needs_link }
    }

    #[inline(always)]
    fn output<W: Words>(&self, words: &W) -> u8 {
        match self.flat.only(words) {
            Some(output) => output,
            None => self.output_of_many(words),
        }
    }

    #[inline]
    fn output_of_many<W: Words>(&self, words: &W) -> u8 {
        match &self.table {
            None => self.flat.run(words),
            Some(table) => table.one(words),
        }
    }

    /// Runs a program of `Classifier` patterns on a packet; none means drop.
    #[inline]
    pub fn run_bytes(&self, packet: &[u8]) -> Option<u8> {
        some(self.output_of_bytes(packet))
    }

    /// As [`Program::run_bytes`], with [`Program::NONE`] for none.
    #[inline(always)]
    pub fn output_of_bytes(&self, packet: &[u8]) -> u8 {
        self.output(&Bytes(packet))
    }

    /// Runs a program of IP patterns on a packet from its network header on; none means drop.
    ///
    /// Patterns that look at the link header do not match; see [`Program::run_frame`].
    #[inline]
    pub fn run_ip(&self, network: &[u8]) -> Option<u8> {
        some(self.output(&Headers::new(&[], network)))
    }

    /// Runs a program of IP patterns on a packet whose link header is at hand.
    #[inline]
    pub fn run_frame(&self, link: &[u8], network: &[u8]) -> Option<u8> {
        some(self.output(&Headers::new(link, network)))
    }

    /// Whether packets are looked up in a table, best many at once.
    #[inline]
    pub fn looks_up(&self) -> bool {
        self.table.is_some()
    }

    /// Looks the packets of a burst up together, each a link header and what begins with the
    /// network header, for [`Program::next_frame`] to answer one by one. Does nothing where
    /// there is no table.
    #[inline]
    pub fn look_up<'a>(
        &self,
        packets: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        lookups: &mut Lookups,
    ) {
        let Some(table) = &self.table else { return };
        lookups.clear();
        packets.for_each(|(link, network)| table.add(lookups, &Headers::new(link, network)));
        table.look(lookups);
    }

    /// As [`Program::run_frame`]; of packets that were looked up, each asked for in turn, the
    /// answer is there.
    #[inline]
    pub fn next_frame(&self, lookups: &mut Lookups, link: &[u8], network: &[u8]) -> Option<u8> {
        let words = Headers::new(link, network);
        let Some(table) = &self.table else { return some(self.output(&words)) };
        some(table.next(lookups, &words).unwrap_or_else(|| table.one(&words)))
    }

    /// Whether any rule looks at the link header, so that [`Program::run_frame`] is needed.
    pub fn needs_link(&self) -> bool {
        self.needs_link
    }

    /// Those of `outputs` outputs that no packet can reach.
    pub fn unused(&self, outputs: usize) -> Vec<usize> {
        let named = self.table.iter().flat_map(|table| table.outputs().map(usize::from));
        let branches = self.graph.nodes.iter().flat_map(|node| [node.yes, node.no]);
        let ends = branches.chain([self.graph.start]).filter_map(|target| match target {
            DROP => None,
            target => target.checked_sub(OUT).map(|output| output as usize),
        });
        let used: HashSet<usize> = named.chain(ends).collect();
        (0..outputs).filter(|output| !used.contains(output)).collect()
    }

    /// How many different masks the table has, if there is one.
    pub fn masks(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.masks())
    }

    /// How many tests the program has; those of a table are none.
    pub fn tests(&self) -> usize {
        self.table.as_ref().map_or(&self.graph, |table| table.rest()).nodes.len()
    }

    /// What the rules became, tests or a table, and why: a line.
    pub fn matcher(&self) -> String {
        self.estimate.to_string()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            None => self.graph.fmt(f),
            Some(table) => table.fmt(f),
        }
    }
}
