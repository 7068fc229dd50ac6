//! Flow rules of network cards in the syntax of `flow create` of DPDK's testpmd.

mod syntax;
#[cfg(test)]
mod tests;
mod words;

pub use syntax::{ITEMS, ItemSyntax};

use syntax::{Field, Form, RSS_FUNCTIONS, RSS_IP, RSS_TYPES};
use words::{Words, list, named};

/// A rule: packets of a pattern, and what a card does with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRule {
    /// The rule's text, one space between its words, without `flow create PORT`.
    pub text: String,
    /// Group of the rule: only `jump` leads to others than 0.
    pub group: u32,
    /// Priority within the group, 0 the highest.
    pub priority: u32,
    /// Whether the rule is about packets that come from the wire.
    pub ingress: bool,
    /// Whether the rule is about packets that leave to the wire.
    pub egress: bool,
    /// Whether the rule is about packets between ports of a switch in the card.
    pub transfer: bool,
    /// The headers of packets, outermost first.
    pub pattern: Vec<Item>,
    /// The actions, all of which are done.
    pub actions: Vec<Action>,
}

/// An item of a pattern. A value not given is the driver's default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Index in [`ITEMS`].
    pub kind: usize,
    /// Values to match, laid out as the header.
    pub spec: Option<Vec<u8>>,
    /// Upper ends of ranges that begin with `spec`.
    pub last: Option<Vec<u8>>,
    /// Bits of `spec` that matter.
    pub mask: Option<Vec<u8>>,
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// No action.
    Void,
    /// Later rules may match, too.
    Passthru,
    /// Marks packets.
    Flag,
    /// Drops packets.
    Drop,
    /// Counts packets, by the counter of this number.
    Count(u32),
    /// Goes on with the rules of this group.
    Jump(u32),
    /// Marks packets with this number.
    Mark(u32),
    /// Assigns packets to a receive queue.
    Queue(u16),
    /// Sends packets to another port of DPDK.
    PortId(u32),
    /// Spreads packets over queues by a hash.
    Rss(Rss),
    /// Removes the outermost VLAN tag.
    OfPopVlan,
    /// Subtracts 1 from the TTL or hop limit.
    DecTtl,
    /// Exchanges the Ethernet addresses.
    MacSwap,
    /// Removes a VXLAN header, and all before it.
    VxlanDecap,
}

impl Action {
    /// Its name in rules.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Void => "void",
            Action::Passthru => "passthru",
            Action::Flag => "flag",
            Action::Drop => "drop",
            Action::Count(_) => "count",
            Action::Jump(_) => "jump",
            Action::Mark(_) => "mark",
            Action::Queue(_) => "queue",
            Action::PortId(_) => "port_id",
            Action::Rss(_) => "rss",
            Action::OfPopVlan => "of_pop_vlan",
            Action::DecTtl => "dec_ttl",
            Action::MacSwap => "mac_swap",
            Action::VxlanDecap => "vxlan_decap",
        }
    }
}

/// Arguments of the action `rss`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rss {
    /// DPDK's number of the hash function; 0 for the driver's default.
    pub function: u32,
    /// The header over which to hash, if there are tunnels: 1 for the outermost; 0 for the driver's
    /// default.
    pub level: u32,
    /// Kinds of packets and headers over which to hash, as bits `RTE_ETH_RSS_*`.
    pub types: u64,
    /// The queues; none for all of the port.
    pub queues: Vec<u16>,
}

impl FlowRule {
    /// Reads a rule, with or without `flow create PORT` in front of it.
    pub fn parse(text: &str) -> Result<FlowRule, String> {
        let mut words = Words::new(text);
        if words.take("flow") {
            words.expect("create")?;
            words.number_if_any();
        }
        let mut rule = FlowRule {
            text: words.rest().join(" "),
            group: 0,
            priority: 0,
            ingress: false,
            egress: false,
            transfer: false,
            pattern: Vec::new(),
            actions: Vec::new(),
        };
        loop {
            match words.next("`ingress` and `pattern`")? {
                "group" => rule.group = words.number("a group", 32)? as u32,
                "priority" => rule.priority = words.number("a priority", 32)? as u32,
                "ingress" => rule.ingress = true,
                "egress" => rule.egress = true,
                "transfer" => rule.transfer = true,
                "pattern" => break,
                other => {
                    let known = ["group", "priority", "ingress", "egress", "transfer", "pattern"];
                    return Err(named("attribute", other, known));
                }
            }
        }
        if !rule.ingress && !rule.egress && !rule.transfer {
            return Err("the rule does not say `ingress`, `egress` or `transfer`".into());
        }
        rule.pattern = items(&mut words)?;
        words.expect("actions")?;
        rule.actions = actions(&mut words)?;
        match words.rest() {
            [] => Ok(rule),
            rest => Err(format!("`{}` stands behind the rule's end", rest.join(" "))),
        }
    }

    /// The queues that the rule names.
    pub fn queues(&self) -> impl Iterator<Item = u16> {
        self.actions.iter().flat_map(|action| match action {
            Action::Queue(queue) => std::slice::from_ref(queue).iter().copied(),
            Action::Rss(rss) => rss.queues.iter().copied(),
            _ => [].iter().copied(),
        })
    }

    /// The counter of the rule, if it counts packets.
    pub fn counter(&self) -> Option<u32> {
        self.actions.iter().find_map(|action| match action {
            Action::Count(counter) => Some(*counter),
            _ => None,
        })
    }
}

/// Reads items up to `end`.
fn items(words: &mut Words<'_>) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    loop {
        let name = words.next("an item, or `end`")?;
        if name == "end" {
            return Ok(items);
        }
        let known = || ITEMS.iter().map(|item| item.name).chain(["end"]);
        let kind = ITEMS.iter().position(|item| item.name == name);
        let kind = kind.ok_or_else(|| named("item", name, known()))?;
        let mut item = Item { kind, spec: None, last: None, mask: None };
        while !words.take("/") {
            item.read_field(words)?;
        }
        items.push(item);
    }
}

impl Item {
    /// Reads a field's name and what it must be.
    fn read_field(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let syntax = &ITEMS[self.kind];
        let name = words.next(&format!("a field of `{}`, or `/`", syntax.name))?;
        let field = syntax.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| {
            let fields = syntax.fields.iter().map(|field| field.name).chain(["/"]);
            named(&format!("field of `{}`", syntax.name), name, fields)
        })?;
        let path = format!("{} {name}", syntax.name);
        let relation = words.next(&format!("{path} is VALUE"))?;
        let known = ["is", "spec", "last", "mask", "prefix"];
        if !known.contains(&relation) {
            return Err(named(&format!("relation for `{path}`"), relation, known));
        }
        let path = format!("{path} {relation}");
        let ones = u128::MAX >> (128 - field.bits);
        let len = syntax.len;
        let set = |to: &mut Option<Vec<u8>>, value| {
            field.put(to.get_or_insert_with(|| vec![0; len]), value);
        };
        if relation == "prefix" {
            let length = words.number(&path, 8)? as usize;
            if length > field.bits {
                return Err(format!("{path} {length}: the field has {} bits", field.bits));
            }
            set(&mut self.mask, if length == 0 { 0 } else { ones << (field.bits - length) & ones });
            return Ok(());
        }
        let value = field.value(words, &path)?;
        match relation {
            "is" => {
                set(&mut self.spec, value);
                set(&mut self.mask, ones);
            }
            "spec" => set(&mut self.spec, value),
            "last" => set(&mut self.last, value),
            _ => set(&mut self.mask, value),
        }
        Ok(())
    }
}

impl Field {
    /// Reads a value of the field.
    fn value(&self, words: &mut Words<'_>, path: &str) -> Result<u128, String> {
        match self.form {
            Form::Number | Form::Native => words.number(path, self.bits),
            Form::Mac => words.mac(path),
            Form::Ipv4 => words
                .address(path, "an IPv4 address")
                .map(|it: std::net::Ipv4Addr| it.to_bits().into()),
            Form::Ipv6 => words.address(path, "an IPv6 address").map(std::net::Ipv6Addr::to_bits),
        }
    }

    /// Writes a value into a header.
    fn put(&self, header: &mut [u8], value: u128) {
        if self.form == Form::Native {
            header[..4].copy_from_slice(&(value as u32).to_ne_bytes());
            return;
        }
        for bit in 0..self.bits {
            let (byte, shift) = ((self.at + bit) / 8, 7 - (self.at + bit) % 8);
            let one = (value >> (self.bits - 1 - bit) & 1) as u8;
            header[byte] = header[byte] & !(1 << shift) | one << shift;
        }
    }
}

/// Names of all actions.
const ACTIONS: &[&str] = &[
    "void",
    "passthru",
    "flag",
    "drop",
    "count",
    "jump",
    "mark",
    "queue",
    "port_id",
    "rss",
    "of_pop_vlan",
    "dec_ttl",
    "mac_swap",
    "vxlan_decap",
    "end",
];

/// Reads actions up to `end`.
fn actions(words: &mut Words<'_>) -> Result<Vec<Action>, String> {
    let mut actions = Vec::new();
    loop {
        let action = match words.next("an action, or `end`")? {
            "end" => return Ok(actions),
            "void" => Action::Void,
            "passthru" => Action::Passthru,
            "flag" => Action::Flag,
            "drop" => Action::Drop,
            "of_pop_vlan" => Action::OfPopVlan,
            "dec_ttl" => Action::DecTtl,
            "mac_swap" => Action::MacSwap,
            "vxlan_decap" => Action::VxlanDecap,
            "count" if words.take("identifier") => {
                Action::Count(words.number("count identifier", 32)? as u32)
            }
            "count" => Action::Count(0),
            "jump" => Action::Jump(words.argument("jump", "group", 32)? as u32),
            "mark" => Action::Mark(words.argument("mark", "id", 32)? as u32),
            "queue" => Action::Queue(words.argument("queue", "index", 16)? as u16),
            "port_id" => Action::PortId(words.argument("port_id", "id", 32)? as u32),
            "rss" => {
                actions.push(Action::Rss(rss(words)?));
                continue;
            }
            other => return Err(named("action", other, ACTIONS.iter().copied())),
        };
        words.expect("/")?;
        actions.push(action);
    }
}

/// Reads the arguments of the action `rss`, and the `/` behind them.
fn rss(words: &mut Words<'_>) -> Result<Rss, String> {
    let mut rss = Rss { function: 0, level: 0, types: RSS_IP, queues: Vec::new() };
    loop {
        match words.next("an argument of `rss`, or `/`")? {
            "/" => return Ok(rss),
            "func" => {
                let name = words.next("a hash function")?;
                let number = RSS_FUNCTIONS.iter().position(|function| *function == name);
                rss.function = number
                    .ok_or_else(|| named("hash function", name, RSS_FUNCTIONS.iter().copied()))?
                    as u32;
            }
            "level" => rss.level = words.number("rss level", 32)? as u32,
            "types" => {
                let types = list(words, |words| {
                    let name = words.next("a type of packets, or `end`")?;
                    let found = RSS_TYPES.iter().find(|(known, _)| *known == name);
                    let known = || RSS_TYPES.iter().map(|(known, _)| *known).chain(["end"]);
                    found.map(|(_, bits)| *bits).ok_or_else(|| named("RSS type", name, known()))
                })?;
                rss.types = types.into_iter().fold(0, |all, bits| all | bits);
            }
            "queues" => {
                let queues = list(words, |words| words.number("a queue, or `end`", 16))?;
                rss.queues = queues.into_iter().map(|queue| queue as u16).collect();
            }
            other => {
                return Err(named(
                    "argument of `rss`",
                    other,
                    ["func", "level", "types", "queues", "/"],
                ));
            }
        }
    }
}
