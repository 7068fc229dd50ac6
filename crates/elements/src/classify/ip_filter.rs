//! `IPFilter`: packets by rules.

use super::ip_rules::{Form, Found, IpRules};
use castanet_engine::prelude::*;

/// Sends each IPv4 packet where the first matching rule says, or drops it.
///
/// A rule is an action and a pattern: `allow` (output 0), `deny` or `drop`,
/// or the number of an output; the pattern is as `IPClassifier` has it.
/// Packets that no rule matches are dropped. `pattern0` and so on read and
/// replace single rules. There may be any number: where many rules would make a
/// packet slow, it is looked up in a table instead, as `matcher` says.
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
/// Each packet is judged by itself, as in Click: what a pattern says of ports, TCP flags or
/// ICMP holds for no later fragment, and for no packet that ends before. So a rule that denies
/// a port lets later fragments pass, and a first fragment that is cut within the header. Where
/// that matters, an `IPReassembler` comes before, or `ip frag` is denied; a `Middlebox` judges
/// fragments by the first of their packet.
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
#[element(room = "classify", args = Rules, methods)]
pub struct IPFilter {
    rules: IpRules,
}

#[derive(Args)]
pub struct Rules {
    /// `allow`, `deny`, `drop` or an output number, then a pattern.
    #[arg(rest)]
    rules: Vec<String>,
}

impl Build for IPFilter {
    type Args = Rules;
    fn build(args: Rules, setup: &Setup) -> Result<Self, ArgError> {
        let rules = IpRules::new(Form::Filter, args.rules, setup.outputs, setup.names)?;
        Ok(IPFilter { rules })
    }
}

#[handlers]
impl IPFilter {
    /// The rules as compiled: tests, one a line, or the table that they are in.
    #[read]
    fn program(&self) -> String {
        self.rules.program.to_string()
    }
    /// Whether packets go through tests or are looked up in a table, and why.
    #[read]
    fn matcher(&self) -> String {
        self.rules.program.matcher()
    }
    /// The rule of that number.
    #[read(pattern_)]
    fn pattern(&self, ask: &Ask) -> String {
        self.rules.text(ask.param)
    }
    /// Replaces the rule of that number.
    #[write(pattern_)]
    fn set_pattern(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(IPFilter { rules: self.rules.with(text, names)? })
    }
}

impl PerPacket for IPFilter {
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
