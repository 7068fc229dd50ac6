//! The elements of `IPFilter` and `IPClassifier`: rules, and the program compiled from them.

use super::{lent_words, warn_of_unused};
use castanet_element::fate::{self, NOT_TAKEN, none_taken};
use castanet_element::prelude::*;
use castanet_kit::classify::{ClickProgram, Lookups, Program, Rule, RuleError, word};
use std::marker::PhantomData;

/// FastClick's answer to questions about the cache of an element that has none.
const NOT_CACHED: i64 = -1;

/// A class of elements with rules.
pub trait RuleSyntax: Clone + Send + Sync + 'static {
    /// The arguments.
    type Args: Args;
    /// Whether an output that no packet can reach is a mistake.
    const NEEDS_ALL_OUTPUTS: bool;
    /// Returns the texts of the rules.
    fn texts(args: Self::Args, setup: &Setup) -> Result<Vec<RuleText>, ArgError>;
    /// Parses the rule of number `n` of an element with so many outputs.
    fn rule(n: usize, text: &str, outputs: usize, names: &Names) -> Result<Rule, RuleError>;
}

/// The text of a rule, and its place in words: `pattern 3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    pub(super) text: String,
    pub(super) place: String,
}

impl RuleText {
    /// The texts of arguments.
    pub(super) fn of_arguments(texts: Vec<String>) -> Vec<RuleText> {
        let number = |(n, text)| RuleText { text, place: format!("pattern {n}") };
        texts.into_iter().enumerate().map(number).collect()
    }
}

/// An element that sends packets where rules say: the rules, and the program compiled from them.
#[derive(Clone)]
pub struct IpRules<S> {
    outputs: usize,
    texts: Vec<RuleText>,
    rules: Vec<Rule>,
    program: Program,
    syntax: PhantomData<S>,
}

impl<S: RuleSyntax> Build for IpRules<S> {
    type Args = S::Args;
    fn build(args: S::Args, setup: &Setup) -> Result<Self, ArgError> {
        let (texts, outputs) = (S::texts(args, setup)?, setup.outputs);
        let numbered = texts.iter().enumerate();
        let rules = ArgError::all(numbered.map(|(n, it)| rule::<S>(n, it, outputs, setup.names)))?;
        let program = Program::compile(&rules);
        for (n, rule) in rules.iter().enumerate() {
            for warning in rule.pattern.warnings() {
                (setup.warn)(format!("pattern {n}: {}", warning.message));
            }
        }
        if S::NEEDS_ALL_OUTPUTS {
            warn_of_unused(&program, setup);
        }
        Ok(IpRules { outputs, texts, rules, program, syntax: PhantomData })
    }
}

#[handlers]
impl<S: RuleSyntax> IpRules<S> {
    /// The program that Click makes of the rules, one test a line; `matcher` tells what packets go
    /// through here.
    #[read]
    fn program(&self) -> String {
        ClickProgram::of_ip_rules(&self.rules).to_string()
    }

    /// Whether packets are matched by tests or looked up in a table, and why.
    #[read]
    fn matcher(&self) -> String {
        self.program.matcher()
    }

    /// Number of packets whose result was cached, as in FastClick; -1, as there is no cache.
    #[read]
    fn cache_hits_count(&self) -> i64 {
        NOT_CACHED
    }

    /// Number of packets whose result was not cached, as in FastClick; -1, as there is no cache.
    #[read]
    fn cache_misses_count(&self) -> i64 {
        NOT_CACHED
    }

    /// Number of packets looked up in the cache, as in FastClick; -1, as there is no cache.
    #[read]
    fn cache_total_count(&self) -> i64 {
        NOT_CACHED
    }

    /// Percentage of packets whose result was cached, as in FastClick; -1, as there is no cache.
    #[read]
    fn cache_hits_ratio(&self) -> i64 {
        NOT_CACHED
    }

    /// Percentage of packets whose result was not cached, as in FastClick; -1, as there is no cache.
    #[read]
    fn cache_misses_ratio(&self) -> i64 {
        NOT_CACHED
    }

    /// The rule or pattern of this number.
    #[read(pattern_)]
    fn pattern(&self, ask: &ReadRequest) -> String {
        let n: Option<usize> = ask.param.parse().ok();
        n.and_then(|n| self.texts.get(n)).map(|it| it.text.clone()).unwrap_or_default()
    }

    /// Replaces the rule or pattern of this number.
    #[write(pattern_)]
    fn set_pattern(&self, change: &str, names: &Names) -> Result<Self, ArgError> {
        let (n, text) = change.split_once(' ').unwrap_or((change, ""));
        let mut new_rules = self.clone();
        let n: usize = n.parse().map_err(|_| ArgError::new("no such pattern"))?;
        let new_text = RuleText { text: text.trim().to_owned(), place: format!("pattern {n}") };
        let new = rule::<S>(n, &new_text, self.outputs, names)?;
        match (new_rules.rules.get_mut(n), new_rules.texts.get_mut(n)) {
            (Some(rule), Some(text)) => (*rule, *text) = (new, new_text),
            _ => return Err(ArgError::new("no such pattern")),
        }
        new_rules.program = Program::compile(&new_rules.rules);
        Ok(new_rules)
    }
}

impl<S: RuleSyntax> PerPacket for IpRules<S>
where
    Self: Describe,
{
    type On = on::Ipv4;
    type Local = IpRulesState;
    type Fate = Port;
    const DECIDES_BURSTS: bool = true;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;

    #[inline]
    fn decide_burst(
        &self,
        state: &mut IpRulesState,
        packets: &mut [Packet],
        fates: &mut [u8],
    ) -> bool {
        let (program, lookups) = (&self.program, &mut state.0);
        // Outputs are the indices of fates: `Port::known`.
        if program.needs_link() {
            program.look_up(packets.iter_mut().filter_map(frame), lookups);
            program.outputs_of_frames(packets.iter_mut().map(frame), NOT_TAKEN, lookups, fates);
        } else {
            program.look_up(packets.iter_mut().filter_map(datagram), lookups);
            program.outputs_of_frames(packets.iter_mut().map(datagram), NOT_TAKEN, lookups, fates);
        }
        true
    }

    fn byte_length(&self) -> Option<usize> {
        Some(0)
    }

    fn handle_bytes(
        &self,
        state: &mut IpRulesState,
        bytes: &mut BurstBytes,
        fates: &mut [u8],
    ) -> u8 {
        let (program, lookups) = (&self.program, &mut state.0);
        if let Some(bits) = lent_words::outputs_of_headers(program, bytes, fates) {
            return bits;
        }
        let links = program.needs_link().then_some(());
        if let Some(packets) = links.and_then(|()| bytes.link_and_network()) {
            bytes.link_and_network().into_iter().for_each(|all| program.look_up(all, lookups));
            program.outputs_of_frames(packets.map(Some), NOT_TAKEN, lookups, fates);
        } else if let Some(packets) = bytes.network() {
            bytes.network().into_iter().for_each(|all| program.look_up(all.map(alone), lookups));
            program.outputs_of_frames(packets.map(alone).map(Some), NOT_TAKEN, lookups, fates);
        } else {
            // No element has marked headers.
            return none_taken(fates);
        }
        fate::bits(fates).1
    }

    #[inline]
    fn packet(&self, _: &mut IpRulesState, ip: Ipv4) -> Port {
        let packet = ip.packet();
        let link = if self.program.needs_link() { packet.mac_bytes() } else { &[] };
        Port::known(self.program.output_of_frame(link, packet.network_bytes()))
    }

    fn native(&self) -> Option<String> {
        let native = self.program.native()?;
        let lengths = format!("{}, {}", native.network, native.transport);
        let tests = format!("|network, transport| {}", native.expression);
        Some(format!("element.output(packet, {lengths}, {tests})"))
    }
}

impl<S> IpRules<S> {
    /// The output of a packet, by `tests` of big-endian words of its network header and its transport
    /// header, and what follows, if it has these lengths from there on.
    #[inline(always)]
    pub fn output(
        &self,
        ip: Ipv4,
        network_len: usize,
        transport_len: usize,
        tests: impl FnOnce(&dyn Fn(usize) -> u32, &dyn Fn(usize) -> u32) -> u8,
    ) -> Port {
        let network = ip.packet().network_bytes();
        // The header length of RFC 791 counts words.
        let header_len = network.first().map_or(0, |b| usize::from(b & 0x0F) * 4);
        let transport = match transport_len {
            0 => &[],
            _ => network.get(header_len..).unwrap_or_default(),
        };
        if network.len() < network_len || transport.len() < transport_len {
            return self.short(network);
        }
        Port::known(tests(&|at| word(network, at), &|at| word(transport, at)))
    }

    /// The output of a packet that is shorter than the tests need.
    #[cold]
    #[inline(never)]
    fn short(&self, network: &[u8]) -> Port {
        Port::known(self.program.output_of_frame(&[], network))
    }
}

/// The bytes that rules match of an IPv4 packet.
#[inline(always)]
fn frame(packet: &mut Packet) -> Option<(&[u8], &[u8])> {
    let packet = packet.ipv4()?.into_packet();
    Some((packet.mac_bytes(), packet.network_bytes()))
}

/// A packet without its link header.
#[inline(always)]
fn alone(network: &[u8]) -> (&[u8], &[u8]) {
    (&[], network)
}

/// The same for rules that do not read the link header.
#[inline(always)]
fn datagram(packet: &mut Packet) -> Option<(&[u8], &[u8])> {
    Some(alone(packet.ipv4()?.into_bytes()))
}

/// Results of the table lookups of the current burst, by worker.
#[derive(Default, Local)]
pub struct IpRulesState(Lookups);

fn rule<S: RuleSyntax>(
    n: usize,
    it: &RuleText,
    outputs: usize,
    names: &Names,
) -> Result<Rule, ArgError> {
    let rule = S::rule(n, &it.text, outputs, names);
    rule.map_err(|e| ArgError::from(e).at(&it.place))
}
