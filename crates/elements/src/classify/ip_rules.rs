//! Rules of `IPFilter` and `IPClassifier`: their texts, and the program compiled from them.

use castanet_element::prelude::*;
use castanet_kit::classify::{Lookups, Pattern, Program, Rule};

/// Syntax of the rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleSyntax {
    /// An action and a pattern: `allow tcp`, `3 dst port 53`.
    Filter,
    /// A pattern, for the output of the same number: `tcp`.
    Classifier,
}

/// Rules, and the program compiled from them.
#[derive(Clone)]
pub(crate) struct IpRules {
    syntax: RuleSyntax,
    outputs: usize,
    texts: Vec<String>,
    rules: Vec<Rule>,
    pub(crate) program: Program,
}

impl IpRules {
    pub(crate) fn new(
        syntax: RuleSyntax,
        texts: Vec<String>,
        outputs: usize,
        names: &Names,
    ) -> Result<IpRules, ArgError> {
        let numbered = texts.iter().enumerate();
        let rules: Result<Vec<Rule>, _> =
            numbered.map(|(n, text)| rule(syntax, n, text, outputs, names)).collect();
        let rules = rules?;
        let program = Program::compile(&rules);
        Ok(IpRules { syntax, outputs, texts, rules, program })
    }

    /// The text of the rule of number `n`; empty if there is none.
    pub(crate) fn text(&self, n: &str) -> String {
        n.parse().ok().and_then(|n: usize| self.texts.get(n)).cloned().unwrap_or_default()
    }

    /// A copy of the rules with one replaced. `change` is the number of the rule and its new text.
    pub(crate) fn with(&self, change: &str, names: &Names) -> Result<IpRules, ArgError> {
        let (n, text) = change.split_once(' ').unwrap_or((change, ""));
        let mut new_rules = self.clone();
        let n: usize = n.parse().map_err(|_| ArgError::new("no such pattern"))?;
        let new = rule(self.syntax, n, text, self.outputs, names)?;
        match (new_rules.rules.get_mut(n), new_rules.texts.get_mut(n)) {
            (Some(rule), Some(text_slot)) => (*rule, *text_slot) = (new, text.trim().to_owned()),
            _ => return Err(ArgError::new("no such pattern")),
        }
        new_rules.program = Program::compile(&new_rules.rules);
        Ok(new_rules)
    }

    /// Looks up all packets of a burst, if the program has a table.
    #[inline]
    pub(crate) fn ahead<'p>(
        &self,
        state: &mut IpRulesState,
        packets: impl Iterator<Item = Ipv4<'p>>,
    ) {
        if self.program.has_table() {
            self.program
                .look_up(packets.map(|ip| self.match_input(ip.into_packet())), &mut state.0);
        }
    }

    /// The output of a packet. Packets come in the order in which [`IpRules::ahead`] has looked
    /// them up.
    #[inline]
    pub(crate) fn port(&self, state: &mut IpRulesState, ip: &Ipv4) -> Port {
        let (link, network) = self.match_input(ip.packet());
        let port = match self.program.has_table() {
            true => self.program.next_frame(&mut state.0, link, network),
            false => self.program.run_frame(link, network),
        };
        port.map_or(Port::DROP, Port::nth)
    }

    /// The bytes that rules match: the link header, if rules refer to it and there is one, and the
    /// bytes from the network header on.
    #[inline]
    fn match_input<'p>(&self, packet: &'p Packet) -> (&'p [u8], &'p [u8]) {
        let link = match packet.mac_offset() {
            Some(mac) if self.program.needs_link() => {
                usize::try_from(mac).ok().and_then(|at| packet.bytes().get(at..))
            }
            _ => None,
        };
        (link.unwrap_or_default(), packet.network_bytes())
    }
}

/// Results of the table lookups of the current burst, by worker.
#[derive(Default, Local)]
pub struct IpRulesState(Lookups);

fn rule(
    syntax: RuleSyntax,
    n: usize,
    text: &str,
    outputs: usize,
    names: &Names,
) -> Result<Rule, ArgError> {
    let rule = match syntax {
        RuleSyntax::Filter => Rule::filter_with(text, outputs, names),
        RuleSyntax::Classifier => {
            Pattern::ip_with(text, names).map(|p| Rule::new(p, u8::try_from(n).ok()))
        }
    };
    rule.map_err(|e| ArgError::from(e).at(format_args!("pattern {n}")))
}
