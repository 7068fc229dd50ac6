//! What a rule's targets come to, in the order in which they are done.

use crate::field::{Field, Kind, Layer};
use crate::rule::{Chance, Hop, Rule, Target};
use crate::value::Value;

/// What becomes of a packet that a rule is about.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// It goes, with this probability.
    pub drop: Option<Chance>,
    /// It goes on.
    pub accept: bool,
    /// It goes to one of these.
    pub hops: Vec<Hop>,
    /// Fields that are set, checksums last.
    pub fields: Vec<(Field, Value)>,
    /// What becomes of the ends of a connection, turned round in reverse.
    pub turns: Vec<Turn>,
    /// Options that go, change and come.
    pub options: Vec<OptionEdit>,
}

/// What becomes of one of the numbers that a connection has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The headers it is in.
    pub layer: Layer,
    /// Which one.
    pub end: End,
    /// What it becomes; nothing, if each connection is to have its own.
    pub value: Option<Value>,
}

/// A number that a connection has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Source address.
    Src,
    /// Destination address.
    Dst,
    /// Source port.
    SrcPort,
    /// Destination port.
    DstPort,
    /// Identification of IPv4.
    Id,
    /// Flow label of IPv6.
    Label,
    /// Sequence numbers.
    Seq,
    /// Sequence numbers of the other side.
    Ack,
    /// Numbers of selective acknowledgments.
    Sack,
}

impl End {
    /// What a field is of a connection.
    fn of(field: Field) -> Option<End> {
        Some(match field.spec().name {
            "ip-saddr" | "ip6-saddr" => End::Src,
            "ip-daddr" | "ip6-daddr" => End::Dst,
            "tcp-sport" | "udp-sport" => End::SrcPort,
            "tcp-dport" | "udp-dport" => End::DstPort,
            "ip-id" => End::Id,
            "ip6-flow-label" => End::Label,
            "tcp-seq-num" => End::Seq,
            "tcp-ack-num" => End::Ack,
            "tcp-opt-sack" => End::Sack,
            _ => return None,
        })
    }

    /// Whether a field is an address or a port.
    fn is_of(field: Field) -> bool {
        let end = End::of(field);
        matches!(end, Some(End::Src | End::Dst | End::SrcPort | End::DstPort))
    }
}

/// A change of the list of TCP options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionEdit {
    /// Those of a kind go.
    Strip(u8),
    /// All go.
    StripAll,
    /// All go but those of these kinds.
    Keep(Vec<u8>),
    /// Those of a kind get a value.
    Set(u8, Box<[u8]>),
    /// One of a kind comes, if there is none.
    Add(u8, Box<[u8]>),
}

impl OptionEdit {
    /// Its place among others: what goes, what changes, what comes.
    fn stage(&self) -> u8 {
        match self {
            OptionEdit::Strip(_) | OptionEdit::StripAll | OptionEdit::Keep(_) => 0,
            OptionEdit::Set(..) => 1,
            OptionEdit::Add(..) => 2,
        }
    }
}

impl Plan {
    /// What the targets of a rule come to.
    pub fn of(rule: &Rule) -> Plan {
        let mut plan = Plan::default();
        let mut kept = Vec::new();
        for target in &rule.targets {
            match target {
                Target::Drop(chance) => plan.drop = Some(*chance),
                Target::Accept => plan.accept = true,
                Target::Balance(hops) => plan.hops.clone_from(hops),
                Target::Map { field, value } => plan.turn(*field, Some(value)),
                Target::Shuffle(field) => plan.turn(*field, None),
                // The ends of a connection are restored in reverse, however they are set.
                Target::Mod { field, value } if rule.stateful && End::is_of(*field) => {
                    plan.turn(*field, Some(value));
                }
                Target::Mod { field, value } => plan.set(*field, value),
                Target::Strip(None) => plan.options.push(OptionEdit::StripAll),
                Target::Strip(Some(field)) => {
                    plan.options.extend(field.option_kind().map(OptionEdit::Strip));
                }
                Target::Keep(field) => kept.extend(field.option_kind()),
                Target::Add { option, value } => {
                    let value = value.as_ref().map_or(Box::default(), |it| encoded(*option, it));
                    plan.options.extend(option.option_kind().map(|it| OptionEdit::Add(it, value)));
                }
            }
        }
        if !kept.is_empty() {
            plan.options.push(OptionEdit::Keep(kept));
        }
        plan.options.sort_by_key(OptionEdit::stage);
        plan.fields.sort_by_key(|(field, _)| field.spec().kind == Kind::Checksum);
        plan
    }

    fn turn(&mut self, field: Field, value: Option<&Value>) {
        let turn = |end| Turn { layer: field.spec().layer, end, value: value.cloned() };
        self.turns.extend(End::of(field).map(turn));
    }

    fn set(&mut self, field: Field, value: &Value) {
        match field.option_kind() {
            Some(kind) => self.options.push(OptionEdit::Set(kind, encoded(field, value))),
            None => self.fields.push((field, value.clone())),
        }
    }

    /// Whether it changes nothing in packets.
    pub fn is_verdict(&self) -> bool {
        self.fields.is_empty()
            && self.options.is_empty()
            && self.turns.is_empty()
            && self.hops.is_empty()
    }
}

/// The bytes of an option's value.
fn encoded(option: Field, value: &Value) -> Box<[u8]> {
    let (bytes, length) = value.bytes(option.spec().bits());
    bytes[..length].into()
}
