//! Rules, and the compiled programs that elements run.

use super::bytecode::{Bytecode, NO_OUTPUT};
use super::error::RuleError;
use super::estimate::{CompiledRules, Estimate, compile_cheapest, compile_tests};
use super::first::NetworkLookup;
use super::graph::{DROP, Graph, OUT};
use super::header_words::{Headers, RawBytes};
use super::lexer::tokenize;
use super::names::{Names, NoNames};
use super::parse::parse;
use super::pattern::{Base, Expr, Pattern};
use super::table::{Lookups, RuleTable};
use super::vector::{self, VectorProgram};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// A pattern and the output of packets that match it and no earlier rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The condition on packets.
    pub pattern: Pattern,
    /// The output, at most 254; `None` drops the packet.
    pub output: Option<u8>,
}

impl Rule {
    /// A rule that sends packets that match `pattern` to `output`, or drops them.
    pub fn new(pattern: Pattern, output: Option<u8>) -> Self {
        Rule { pattern, output }
    }

    /// Parses an `IPFilter` argument: `allow`, `deny`, `drop`, `accept` or the number of one of
    /// `outputs` outputs, then a pattern. Without a pattern the rule matches every packet.
    pub fn filter(text: &str, outputs: usize) -> Result<Rule, RuleError> {
        Rule::filter_with(text, outputs, &NoNames)
    }

    /// Like [`Rule::filter`], with names beyond the built-in ones.
    pub fn filter_with(text: &str, outputs: usize, names: &dyn Names) -> Result<Rule, RuleError> {
        let words = tokenize(text);
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

/// Compiled rules: they map each packet to an output.
///
/// The text form lists the tests, one a line, or describes the table; the text of Click's `program`
/// handlers is that of [`super::ClickProgram`].
#[derive(Clone, Debug)]
pub struct Program {
    graph: Graph,
    bytecode: Bytecode,
    /// The first instruction, if it is a lookup of a word of the network header.
    network_lookup: Option<NetworkLookup>,
    /// The program for bursts, if the tests are few.
    vector: Option<VectorProgram>,
    /// Replaces graph and bytecode if it takes fewer instructions per packet.
    table: Option<Arc<RuleTable>>,
    estimate: Estimate,
    needs_link: bool,
    /// Bytes of a packet that the tests read.
    length: usize,
}

/// Whether any rule reads the link header.
fn needs_link(rules: &[Rule]) -> bool {
    let is_link = |expr: &Expr| matches!(expr, Expr::Test { test, .. } if test.base == Base::Link);
    rules.iter().any(|rule| rule.pattern.nodes.iter().any(is_link))
}

/// An output, or `None` for [`NO_OUTPUT`].
#[inline(always)]
fn to_option(output: u8) -> Option<u8> {
    (output != NO_OUTPUT).then_some(output)
}

/// The bits that are set in any of the outputs.
#[inline(always)]
fn bits(outputs: &[u8]) -> u8 {
    outputs.iter().fold(0, |bits, output| bits | output)
}

impl Program {
    /// No output: the packet is dropped. Output 255 cannot be distinguished from it.
    pub const NONE: u8 = NO_OUTPUT;

    /// Compiles `rules`, of which the first that matches a packet decides.
    ///
    /// They become tests or a table of keys, whichever takes fewer instructions per packet. Time
    /// and memory grow with the rules' length times a logarithm, never faster.
    pub fn compile(rules: &[Rule]) -> Program {
        let (compiled, estimate) = compile_cheapest(rules);
        let (graph, bytecode, table) = match compiled {
            CompiledRules::Tests(graph, bytecode) => (graph, bytecode, None),
            CompiledRules::Table(table) => (Graph::default(), Bytecode::default(), Some(table)),
        };
        Program { table, ..Program::of_tests(graph, bytecode, estimate, rules) }
    }

    /// Compiles rules to tests, whatever their cost.
    pub fn tests_only(rules: &[Rule]) -> Program {
        let (graph, bytecode) = compile_tests(rules.iter());
        Program::of_tests(graph, bytecode, Estimate::without_comparison(rules), rules)
    }

    fn of_tests(graph: Graph, bytecode: Bytecode, estimate: Estimate, rules: &[Rule]) -> Program {
        let (network_lookup, needs_link) = (bytecode.network_lookup(), needs_link(rules));
        let vector = VectorProgram::new(&graph);
        let ends = graph.nodes.iter().map(|node| usize::from(node.test.offset) + 4);
        let length = ends.max().unwrap_or(0);
        Program {
            graph,
            bytecode,
            network_lookup,
            vector,
            table: None,
            estimate,
            needs_link,
            length,
        }
    }

    /// The tests; `None` if a table has replaced them.
    pub(super) fn test_graph(&self) -> Option<&Graph> {
        self.table.is_none().then_some(&self.graph)
    }

    /// Runs a program of `Classifier` patterns on a packet; `None` drops it.
    #[inline]
    pub fn run_bytes(&self, packet: &[u8]) -> Option<u8> {
        to_option(self.output_of_bytes(packet))
    }

    /// Like [`Program::run_bytes`], with [`Program::NONE`] for `None`.
    #[inline(always)]
    pub fn output_of_bytes(&self, packet: &[u8]) -> u8 {
        // Words made anew for more tests: else a single test would store them.
        match (self.bytecode.run_single(&RawBytes(packet)), &self.table) {
            (Some(output), _) => output,
            (None, None) => self.bytecode.run(&RawBytes(packet)),
            (None, Some(table)) => table.run(&RawBytes(packet)),
        }
    }

    /// The outputs of the packets of a burst, of which there are as many as `outputs`, each as
    /// [`Program::output_of_bytes`] returns it; answers the bits that are set in any.
    #[inline(always)]
    pub fn outputs_of_bytes<'p>(
        &self,
        packets: impl Iterator<Item = &'p [u8]>,
        outputs: &mut [u8],
    ) -> u8 {
        match &self.vector {
            // A single test has a form of its own.
            Some(vector) if outputs.len() >= vector::FEWEST && !self.bytecode.is_single() => {
                let alone =
                    |packet: Option<_>| packet.map_or(Program::NONE, |it| self.bytecode.run(&it));
                vector.run(packets.map(|packet| Some(RawBytes(packet))), outputs, alone);
            }
            _ => outputs
                .iter_mut()
                .zip(packets)
                .for_each(|(output, packet)| *output = self.output_of_bytes(packet)),
        }
        bits(outputs)
    }

    /// The outputs of the packets of a burst, of which there are as many as `outputs`, and the bits that are set in
    /// any. `load` writes the words at an offset of a header, as they are in memory, of as many packets as there are
    /// places for, maybe none, from a number on; it answers `false` if a packet of the burst lacks that word. `None`, and
    /// nothing is done, for such a burst, for one of few packets, and for a program that has no form for bursts.
    #[inline(always)]
    pub fn outputs_of_words(
        &self,
        outputs: &mut [u8],
        load: impl Fn(Base, usize, usize, &mut [u32]) -> bool,
    ) -> Option<u8> {
        let vector = self.vector.as_ref().filter(|_| outputs.len() >= vector::FEWEST)?;
        vector.run_words(outputs, load).then(|| bits(outputs))
    }

    /// The number of bytes of a packet on which its output by [`Program::output_of_bytes`] depends, where packets have as
    /// many; `None` if a table decides.
    pub fn length(&self) -> Option<usize> {
        self.table.is_none().then_some(self.length)
    }

    /// Runs a program of IP patterns on a packet from its network header on; `None` drops it.
    ///
    /// Patterns that read the link header do not match; see [`Program::output_of_frame`].
    #[inline]
    pub fn run_ip(&self, network: &[u8]) -> Option<u8> {
        to_option(self.output_of_frame(&[], network))
    }

    /// Runs a program of IP patterns on a packet with its link header; [`Program::NONE`] drops it.
    #[inline]
    pub fn output_of_frame(&self, link: &[u8], network: &[u8]) -> u8 {
        let words = Headers::new(link, network);
        match (&self.table, &self.network_lookup) {
            (Some(table), _) => table.run(&words),
            (None, None) => self.bytecode.run(&words),
            (None, Some(lookup)) => match lookup.find(network) {
                Some(target) => self.bytecode.run_on(&words, target),
                None => self.bytecode.run(&words),
            },
        }
    }

    /// Looks up the packets of a burst together, each given by its link header and the bytes from
    /// the network header on, for [`Program::outputs_of_frames`]. Does nothing if there is no table.
    #[inline]
    pub fn look_up<'a>(
        &self,
        packets: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        lookups: &mut Lookups,
    ) {
        let Some(table) = &self.table else { return };
        lookups.clear();
        packets.for_each(|(link, network)| table.add(lookups, &Headers::new(link, network)));
        table.find_all(lookups);
    }

    /// The outputs of the packets of a burst, of which there are as many as `outputs`, each given as for
    /// [`Program::look_up`]: the output that [`Program::output_of_frame`] returns, and `none` for `None`. If there is a
    /// table, the packets must have been looked up.
    #[inline(always)]
    pub fn outputs_of_frames<'p>(
        &self,
        packets: impl Iterator<Item = Option<(&'p [u8], &'p [u8])>>,
        none: u8,
        lookups: &mut Lookups,
        outputs: &mut [u8],
    ) {
        let vector = self.vector.as_ref().filter(|_| outputs.len() >= vector::FEWEST);
        if let Some(vector) = vector.filter(|vector| vector.is_of_network()) {
            let packets = packets.map(|it| it.map(|(_, network)| RawBytes(network)));
            let headers = |it: RawBytes<'p>| Headers::new(&[], it.0);
            let alone = |it: Option<_>| it.map_or(none, |it| self.bytecode.run(&headers(it)));
            return vector.run(packets, outputs, alone);
        }
        if let Some(vector) = vector {
            let headers = |(link, network)| Headers::new(link, network);
            let alone = |it: Option<_>| it.map_or(none, |words| self.bytecode.run(&words));
            return vector.run(packets.map(|it| it.map(headers)), outputs, alone);
        }
        for (output, packet) in outputs.iter_mut().zip(packets) {
            *output = match packet {
                Some((link, network)) => self.output_of_looked_up(lookups, link, network),
                None => none,
            };
        }
    }

    /// The output of the next packet of those that have been looked up.
    // Slices go in registers: words that lay in memory would be read before their parts are written there.
    #[inline(never)]
    fn output_of_looked_up(&self, lookups: &mut Lookups, link: &[u8], network: &[u8]) -> u8 {
        let next =
            self.table.as_ref().and_then(|it| it.next(lookups, &Headers::new(link, network)));
        next.unwrap_or_else(|| self.output_of_frame(link, network))
    }

    /// Whether any rule reads the link header, so that packets need theirs.
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

    /// The number of different masks of the table, or 0.
    pub fn masks(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.masks())
    }

    /// The number of tests; for a table, of the rules that are not in it.
    pub fn tests(&self) -> usize {
        self.table.as_ref().map_or(&self.graph, |table| table.rest()).nodes.len()
    }

    /// A line that tells whether the rules became tests or a table, and the estimated costs.
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
