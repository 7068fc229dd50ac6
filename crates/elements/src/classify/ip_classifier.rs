//! `IPClassifier`: chooses the output by patterns of IPv4 packets.

use super::ip_rules::{IpRules, RuleSyntax, RuleText};
use castanet_element::prelude::*;
use castanet_kit::classify::{Pattern, Rule, RuleError};

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
/// = c.matcher tests: about 153 instructions a packet, no table takes less
/// = c.pattern1 dst host 2.0.0.2
/// ! c.pattern1 dst host 3.0.0.3
/// > in   1.0.0.1 > 3.0.0.3 udp
/// < two  1.0.0.1 > 3.0.0.3 udp
/// ```
///
/// ```click
/// in -> c :: IPClassifier
/// > in  1.0.0.1 > 3.0.0.3 udp
/// = c.drops.unmatched 1
/// = c.cache_hits_count -1
/// = c.cache_misses_count -1
/// = c.cache_total_count -1
/// = c.cache_hits_ratio -1
/// = c.cache_misses_ratio -1
/// ```
#[derive(Clone, Element)]
#[element(room = "classify", args = IPClassifierArgs, by = IpRules<IPClassifier>, methods, ports = "1/-")]
pub struct IPClassifier;

#[derive(Args)]
pub struct IPClassifierArgs {
    /// One pattern per output, in order.
    #[arg(rest)]
    patterns: Vec<String>,
    /// An argument of FastClick without effect: no results are cached, as lookups cost less.
    #[arg(keyword, name = "CACHING", default = false)]
    _caching: bool,
}

impl RuleSyntax for IPClassifier {
    type Args = IPClassifierArgs;
    const NEEDS_ALL_OUTPUTS: bool = true;

    fn texts(args: IPClassifierArgs, setup: &Setup) -> Result<Vec<RuleText>, ArgError> {
        let (patterns, outputs) = (args.patterns.len(), setup.outputs);
        if patterns != outputs {
            return Err(ArgError::new(format!("patterns: {patterns}, outputs: {outputs}"))
                .click(format!("need {outputs} arguments, one per output port"))
                .help("each output has one pattern; `-` is every packet"));
        }
        Ok(RuleText::of_arguments(args.patterns))
    }

    fn rule(n: usize, text: &str, _: usize, names: &Names) -> Result<Rule, RuleError> {
        Ok(Rule::new(Pattern::ip_with(text, names)?, u8::try_from(n).ok()))
    }
}
