//! Rules, and the program compiled from them: what elements hold and run.

use std::fmt;

use super::error::RuleError;
use super::flat::{Bytes, Flat, Headers, NO_OUTPUT};
use super::graph::{DROP, Graph, OUT, Target};
use super::lexer::words;
use super::names::{Names, NoNames};
use super::parse::parse;
use super::pattern::{Base, Pattern};

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
/// Prints as Click's `program` handlers do, one test a line.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) graph: Graph,
    flat: Flat,
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
    /// Time and memory grow with the rules' length times a logarithm, never faster.
    pub fn compile(rules: &[Rule]) -> Program {
        let target = |output: Option<u8>| output.map_or(DROP, |port| OUT + Target::from(port));
        let graph = Graph::new(rules.iter().map(|r| (&r.pattern, target(r.output)))).optimised();
        let flat = Flat::new(&graph);
        Program { graph, flat }
    }

    /// Runs a program of `Classifier` patterns on a packet; none means drop.
    #[inline]
    pub fn run_bytes(&self, packet: &[u8]) -> Option<u8> {
        some(self.output_of_bytes(packet))
    }

    /// As [`Program::run_bytes`], with [`Program::NONE`] for none.
    #[inline(always)]
    pub fn output_of_bytes(&self, packet: &[u8]) -> u8 {
        self.flat.run(&Bytes(packet))
    }

    /// Runs a program of IP patterns on a packet from its network header on; none means drop.
    ///
    /// Patterns that look at the link header do not match; see [`Program::run_frame`].
    #[inline]
    pub fn run_ip(&self, network: &[u8]) -> Option<u8> {
        some(self.flat.run(&Headers::new(&[], network)))
    }

    /// Runs a program of IP patterns on a packet whose link header is at hand.
    #[inline]
    pub fn run_frame(&self, link: &[u8], network: &[u8]) -> Option<u8> {
        some(self.flat.run(&Headers::new(link, network)))
    }

    /// Whether any test looks at the link header, so that [`Program::run_frame`] is needed.
    pub fn needs_link(&self) -> bool {
        self.graph.nodes.iter().any(|node| node.test.base == Base::Link)
    }

    /// Those of `outputs` outputs that no packet can reach.
    pub fn unused(&self, outputs: usize) -> Vec<usize> {
        let mut used = vec![false; outputs];
        let branches = self.graph.nodes.iter().flat_map(|n| [n.yes, n.no]);
        for target in branches.chain([self.graph.start]) {
            let port = target.wrapping_sub(OUT) as usize;
            if let Some(used) = used.get_mut(port) {
                *used = target != DROP;
            }
        }
        (0..outputs).filter(|&port| !used[port]).collect()
    }

    /// How many tests the program has.
    pub fn tests(&self) -> usize {
        self.graph.nodes.len()
    }
}

/// Where Click's listing counts each header from.
fn listed(base: Base) -> usize {
    match base {
        Base::Packet | Base::Link => 0,
        Base::Network => 256,
        Base::Transport => 512,
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut safe = 0;
        for (step, node) in self.graph.nodes.iter().enumerate() {
            let test = &node.test;
            safe = safe.max(listed(test.base) + usize::from(test.needs()));
            write!(
                f,
                "{step:2} {:3}/{:08x}",
                listed(test.base) + usize::from(test.offset),
                test.lo
            )?;
            if !test.is_equality() {
                write!(f, "-{:08x}", test.hi)?;
            }
            write!(f, "%{:08x}  yes->{}  no->{}", test.mask, Jump(node.yes), Jump(node.no))?;
            f.write_str(if node.short_yes { "  short->yes\n" } else { "\n" })?;
        }
        if self.graph.start >= OUT {
            writeln!(f, "all->{}", Jump(self.graph.start))?;
        }
        writeln!(f, "safe length {safe}\nalignment offset 0")
    }
}

/// A branch as Click lists it.
struct Jump(Target);

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DROP => f.write_str("[X]"),
            step @ 0..OUT => write!(f, "step {step}"),
            output => write!(f, "[{}]", output - OUT),
        }
    }
}
