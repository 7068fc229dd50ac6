//! `IPClassifier`: chooses the output by patterns of IPv4 packets.

use super::ip_rules::{IpRules, IpRulesState, RuleSyntax};
use castanet_element::prelude::*;

/// Classifies IPv4 packets by tcpdump-like patterns; the first match selects the output.
///
/// Patterns have Click's syntax, which resembles tcpdump's: `dst tcp port 80 or 443`, `10.0.0.0/8
/// and syn`, `icmp type echo`, `ip ttl < 2`, `-` for all packets. Packets that match no pattern are
/// dropped. The handlers `pattern0` and so on read and replace single patterns. A pattern may be
/// long, with thousands of addresses for example: if tests would be slow, the packet is looked up
/// in a table instead; `matcher` tells which.
///
/// Each packet is classified by its own bytes, as in Click: patterns of ports, TCP flags or ICMP
/// match neither later fragments nor packets that end before these fields. Where that matters, put
/// an `IPReassembler` before it, or give `ip frag` its own output.
///
/// ```click
/// in -> c :: IPClassifier(tcp and syn, dst host 2.0.0.2, icmp type echo) -> syn
/// c[1] -> two;  c[2] -> ping
/// > in   1.0.0.1:99 > 2.0.0.2:80 tcp syn
/// > in   1.0.0.1:99 > 2.0.0.2:80 tcp
/// > in   1.0.0.1 > 3.0.0.3 icmp type echo
/// > in   1.0.0.1 > 3.0.0.3 udp
/// < syn  1.0.0.1:99 > 2.0.0.2:80 tcp syn
/// < two  1.0.0.1:99 > 2.0.0.2:80 tcp
/// < ping 1.0.0.1 > 3.0.0.3 icmp type echo
/// = c.drops.unmatched 1
/// = c.matcher tests: about 203 instructions a packet, no table takes less
/// = c.pattern1 dst host 2.0.0.2
/// ! c.pattern1 dst host 3.0.0.3
/// > in   1.0.0.1 > 3.0.0.3 udp
/// < two  1.0.0.1 > 3.0.0.3 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "classify", args = IPClassifierArgs, methods)]
pub struct IPClassifier {
    rules: IpRules,
}

#[derive(Args)]
pub struct IPClassifierArgs {
    /// One pattern per output, in order.
    #[arg(rest)]
    patterns: Vec<String>,
}

impl Build for IPClassifier {
    type Args = IPClassifierArgs;
    fn build(args: IPClassifierArgs, setup: &Setup) -> Result<Self, ArgError> {
        let (patterns, outputs) = (args.patterns.len(), setup.outputs);
        if patterns != outputs {
            return Err(ArgError::new(format!("patterns: {patterns}, outputs: {outputs}"))
                .click(format!("need {outputs} arguments, one per output port"))
                .help("each output has one pattern; `-` is every packet"));
        }
        let rules = IpRules::new(RuleSyntax::Classifier, args.patterns, outputs, setup.names)?;
        Ok(IPClassifier { rules })
    }
}

#[handlers]
impl IPClassifier {
    /// The compiled patterns: the tests, one per line, or the table.
    #[read]
    fn program(&self) -> String {
        self.rules.program.to_string()
    }
    /// Whether packets are matched by tests or looked up in a table, and why.
    #[read]
    fn matcher(&self) -> String {
        self.rules.program.matcher()
    }
    /// The pattern of this number.
    #[read(pattern_)]
    fn pattern(&self, ask: &ReadRequest) -> String {
        self.rules.text(ask.param)
    }
    /// Replaces the pattern of this number.
    #[write(pattern_)]
    fn set_pattern(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(IPClassifier { rules: self.rules.with(text, names)? })
    }
}

impl PerPacket for IPClassifier {
    type On = on::Ipv4;
    type Local = IpRulesState;
    type Fate = Port;

    #[inline]
    fn lookup_burst<'p>(&self, state: &mut IpRulesState, packets: impl Iterator<Item = Ipv4<'p>>) {
        self.rules.ahead(state, packets);
    }

    #[inline]
    fn packet(&self, state: &mut IpRulesState, ip: Ipv4) -> Port {
        self.rules.port(state, &ip)
    }
}
