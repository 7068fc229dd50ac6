//! What `IPFilter` and `IPClassifier` share: rules by their text, and the program of them.

use castanet_engine::prelude::*;
use castanet_kit::classify::{Lookups, Pattern, Program, Rule};

/// How a rule is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `allow tcp`, `3 dst port 53`.
    Filter,
    /// `tcp`, for the output of the same number.
    Classifier,
}

/// Rules, and the program of them.
#[derive(Clone)]
pub(crate) struct IpRules {
    form: Form,
    outputs: usize,
    texts: Vec<String>,
    rules: Vec<Rule>,
    pub(crate) program: Program,
}

impl IpRules {
    pub(crate) fn new(
        form: Form,
        texts: Vec<String>,
        outputs: usize,
        names: &Names,
    ) -> Result<IpRules, ArgError> {
        let numbered = texts.iter().enumerate();
        let rules: Result<Vec<Rule>, _> =
            numbered.map(|(n, text)| rule(form, n, text, outputs, names)).collect();
        let rules = rules?;
        let program = Program::compile(&rules);
        Ok(IpRules { form, outputs, texts, rules, program })
    }

    /// The text of rule `n`.
    pub(crate) fn text(&self, n: &str) -> String {
        n.parse().ok().and_then(|n: usize| self.texts.get(n)).cloned().unwrap_or_default()
    }

    /// The same rules but for one: `N RULE`.
    pub(crate) fn with(&self, change: &str, names: &Names) -> Result<IpRules, ArgError> {
        let (n, text) = change.split_once(' ').unwrap_or((change, ""));
        let mut changed = self.clone();
        let n: usize = n.parse().map_err(|_| ArgError::new("no such pattern"))?;
        let new = rule(self.form, n, text, self.outputs, names)?;
        match (changed.rules.get_mut(n), changed.texts.get_mut(n)) {
            (Some(rule), Some(place)) => (*rule, *place) = (new, text.trim().to_owned()),
            _ => return Err(ArgError::new("no such pattern")),
        }
        changed.program = Program::compile(&changed.rules);
        Ok(changed)
    }

    /// Looks the packets of a burst up, where rules are so many that this is worth it.
    #[inline]
    pub(crate) fn ahead<'p>(&self, found: &mut Found, packets: impl Iterator<Item = Ipv4<'p>>) {
        if self.program.has_table() {
            self.program.look_up(packets.map(|ip| self.parts(ip.into_packet())), &mut found.0);
        }
    }

    /// The output of a packet, the next of those that were looked up.
    #[inline]
    pub(crate) fn port(&self, found: &mut Found, ip: &Ipv4) -> Port {
        let (link, network) = self.parts(ip.packet());
        let port = match self.program.has_table() {
            true => self.program.next_frame(&mut found.0, link, network),
            false => self.program.run_frame(link, network),
        };
        port.map_or(Port::DROP, Port::nth)
    }

    /// What rules look at: the link header, if they do, and what begins with the network header.
    #[inline]
    fn parts<'p>(&self, packet: &'p Packet) -> (&'p [u8], &'p [u8]) {
        let link = match packet.mac_offset() {
            Some(mac) if self.program.needs_link() => {
                usize::try_from(mac).ok().and_then(|at| packet.bytes().get(at..))
            }
            _ => None,
        };
        (link.unwrap_or_default(), packet.network_bytes())
    }
}

/// What a worker found out about the packets of a burst.
#[derive(Default, Local)]
pub struct Found(Lookups);

fn rule(form: Form, n: usize, text: &str, outputs: usize, names: &Names) -> Result<Rule, ArgError> {
    let rule = match form {
        Form::Filter => Rule::filter_with(text, outputs, names),
        Form::Classifier => {
            Pattern::ip_with(text, names).map(|p| Rule::new(p, u8::try_from(n).ok()))
        }
    };
    rule.map_err(|e| ArgError::from(e).at(format_args!("pattern {n}")))
}
