//! `IPClassifier`: packets by patterns.

use super::ip_rules::{Form, Found, IpRules};
use castanet_engine::prelude::*;

/// Sends each IPv4 packet to the output of the first pattern that matches.
///
/// Patterns are tcpdump's kind, as Click writes them: `dst tcp port 80 or
/// 443`, `10.0.0.0/8 and syn`, `icmp type echo`, `ip ttl < 2`, `-` for all.
/// Packets that none matches are dropped. `pattern0` and so on read and
/// replace single patterns. A pattern may be long, such as thousands of addresses:
/// where that would make a packet slow, it is looked up in a table instead, as
/// `matcher` says.
///
/// Each packet is judged by itself, as in Click: what a pattern says of ports, TCP flags or
/// ICMP holds for no later fragment, and for no packet that ends before. Where that matters, an
/// `IPReassembler` comes before, or `ip frag` has an output of its own.
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
#[element(room = "classify", args = Patterns, methods)]
pub struct IPClassifier {
    rules: IpRules,
}

#[derive(Args)]
pub struct Patterns {
    /// A pattern for each output, in order.
    #[arg(rest)]
    patterns: Vec<String>,
}

impl Build for IPClassifier {
    type Args = Patterns;
    fn build(args: Patterns, setup: &Setup) -> Result<Self, ArgError> {
        let (patterns, outputs) = (args.patterns.len(), setup.outputs);
        if patterns != outputs {
            return Err(ArgError::new(format!("patterns: {patterns}, outputs: {outputs}"))
                .click(format!("need {outputs} arguments, one per output port"))
                .help("each output has one pattern; `-` is every packet"));
        }
        let rules = IpRules::new(Form::Classifier, args.patterns, outputs, setup.names)?;
        Ok(IPClassifier { rules })
    }
}

#[handlers]
impl IPClassifier {
    /// The patterns as compiled: tests, one a line, or the table that they are in.
    #[read]
    fn program(&self) -> String {
        self.rules.program.to_string()
    }
    /// Whether packets go through tests or are looked up in a table, and why.
    #[read]
    fn matcher(&self) -> String {
        self.rules.program.matcher()
    }
    /// The pattern of that number.
    #[read(pattern_)]
    fn pattern(&self, ask: &Ask) -> String {
        self.rules.text(ask.param)
    }
    /// Replaces the pattern of that number.
    #[write(pattern_)]
    fn set_pattern(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(IPClassifier { rules: self.rules.with(text, names)? })
    }
}

impl PerPacket for IPClassifier {
    type On = on::Ipv4;
    type Local = Found;
    type Fate = Port;

    #[inline]
    fn ahead<'p>(&self, found: &mut Found, packets: impl Iterator<Item = Ipv4<'p>>) {
        self.rules.ahead(found, packets);
    }

    #[inline]
    fn packet(&self, found: &mut Found, ip: Ipv4) -> Port {
        self.rules.port(found, &ip)
    }
}
