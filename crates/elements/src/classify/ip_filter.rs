//! `IPFilter`: filters IPv4 packets by rules.

use super::ip_rules::{IpRules, RuleSyntax, RuleText};
use super::rule_file;
use castanet_element::prelude::*;
use castanet_kit::classify::{Rule, RuleError};

/// Filters IPv4 packets by rules, like a firewall: the first rule that matches decides.
///
/// A rule is an action and a pattern. The action is `allow` (output 0), `deny` or `drop`, or the
/// number of an output; the patterns are those of `IPClassifier`. Packets that match no rule are
/// dropped. `file NAME` stands for the rules in a file, one a line, without empty lines. The handlers `pattern0` and so on read and replace single rules. The number of rules is
/// not limited: if tests would be slow, the packet is looked up in a table instead; `matcher` tells
/// which.
///
/// ```click
/// in -> f :: IPFilter(deny src net 10.0.0.0/8, 1 tcp, allow dst port 53) -> out;  f[1] -> tcp
/// > in  10.0.0.1:9 > 2.0.0.2:53 udp
/// > in  1.0.0.1:99 > 2.0.0.2:80 tcp
/// > in  1.0.0.1:99 > 2.0.0.2:53 udp
/// > in  1.0.0.1:99 > 2.0.0.2:54 udp
/// < tcp 1.0.0.1:99 > 2.0.0.2:80 tcp
/// < out 1.0.0.1:99 > 2.0.0.2:53 udp
/// = f.drops.unmatched 2
/// = f.matcher tests: 6 of them are too few for a table
/// = f.pattern2 allow dst port 53
/// ! f.pattern2 allow dst port 54
/// > in  1.0.0.1:99 > 2.0.0.2:54 udp
/// < out 1.0.0.1:99 > 2.0.0.2:54 udp
/// ```
///
/// Without outputs it drops and counts packets.
///
/// ```click
/// in -> f :: IPFilter(CACHING true, deny all)
/// > in  1.0.0.1:9 > 2.0.0.2:53 udp
/// = f.drops.unmatched 1
/// = f.cache_hits_count -1
/// = f.cache_misses_count -1
/// = f.cache_total_count -1
/// = f.cache_hits_ratio -1
/// = f.cache_misses_ratio -1
/// ```
///
/// Each packet is filtered by its own bytes, as in Click: patterns of ports, TCP flags or ICMP
/// match neither later fragments nor packets that end before these fields. So a rule that denies a
/// port lets later fragments pass, and also a first fragment that ends within the transport header.
/// Where that matters, put an `IPReassembler` before it, or deny `ip frag`; a `Middlebox` treats
/// fragments like the first fragment of their packet.
///
/// ```click
/// a -> IPFilter(deny dst port 5000, allow all) -> out
/// b -> IPReassembler -> IPFilter(deny dst port 5000, allow all) -> out
/// c -> IPFilter(deny ip frag, deny dst port 5000, allow all) -> out
/// > a   1.0.0.1:9 > 2.0.0.2:5000 udp id 7 frag 0+ "a packet"
/// > a   1.0.0.1 > 2.0.0.2 udp id 7 frag 16 "late"
/// < out 1.0.0.1 > 2.0.0.2 udp id 7 frag 16 "late"
/// > b   1.0.0.1:9 > 2.0.0.2:5000 udp id 7 frag 0+ "a packet"
/// > b   1.0.0.1 > 2.0.0.2 udp id 7 frag 16 "late"
/// > c   1.0.0.1:9 > 2.0.0.2:5000 udp id 7 frag 0+ "a packet"
/// > c   1.0.0.1 > 2.0.0.2 udp id 7 frag 16 "late"
/// ```
#[derive(Clone, Element)]
#[element(room = "classify", args = IPFilterArgs, by = IpRules<IPFilter>, methods, ports = "1/-")]
pub struct IPFilter;

#[derive(Args)]
pub struct IPFilterArgs {
    /// `allow`, `deny`, `drop` or an output number, then a pattern; or `file` and a file of rules.
    #[arg(rest)]
    pub(super) rules: Vec<String>,
    /// An argument of FastClick without effect: no results are cached, as lookups cost less.
    #[arg(keyword, name = "CACHING", default = false)]
    _caching: bool,
}

impl RuleSyntax for IPFilter {
    type Args = IPFilterArgs;
    const NEEDS_ALL_OUTPUTS: bool = false;

    fn texts(args: IPFilterArgs, _: &Setup) -> Result<Vec<RuleText>, ArgError> {
        rule_file::include(RuleText::of_arguments(args.rules))
    }

    fn rule(_: usize, text: &str, outputs: usize, names: &Names) -> Result<Rule, RuleError> {
        Rule::filter_with(text, outputs, names)
    }
}
