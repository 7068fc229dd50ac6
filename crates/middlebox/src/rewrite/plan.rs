//! Compiled targets of a rule, in the order in which they apply.

use crate::field::{Field, Kind, Layer};
use crate::rule::{Chance, Hop, Rejection, Rule, Target};
use crate::value::Value;

/// Compiled targets of a rule.
#[derive(Clone, Debug, Default)]
pub struct RulePlan {
    /// Drops the packet, with this probability.
    pub drop: Option<Chance>,
    /// The answer to a packet that it drops, if there is one.
    pub rejection: Option<Rejection>,
    /// Accepts the packet.
    pub accept: bool,
    /// Whether it writes a line to the log.
    pub logs: bool,
    /// Next hops of `lb`.
    pub hops: Vec<Hop>,
    /// Fields to set, checksums last.
    pub fields: Vec<(Field, Value)>,
    /// Translation of a connection, reversed for replies.
    pub nat_changes: Vec<NatChange>,
    /// Option edits: removals, changes, additions.
    pub options: Vec<OptionEdit>,
}

/// Translation of one field of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NatChange {
    /// The layer of the field.
    pub layer: Layer,
    /// The field.
    pub field: NatField,
    /// The new value; `None` for a random one per connection.
    pub value: Option<Value>,
}

/// A field that connections translate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NatField {
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

impl NatField {
    /// Returns the translated field for a field of the language.
    fn from_field(field: Field) -> Option<NatField> {
        Some(match field.spec().name {
            "ip-saddr" | "ip6-saddr" => NatField::Src,
            "ip-daddr" | "ip6-daddr" => NatField::Dst,
            "tcp-sport" | "udp-sport" => NatField::SrcPort,
            "tcp-dport" | "udp-dport" => NatField::DstPort,
            "ip-id" => NatField::Id,
            "ip6-flow-label" => NatField::Label,
            "tcp-seq-num" => NatField::Seq,
            "tcp-ack-num" => NatField::Ack,
            "tcp-opt-sack" => NatField::Sack,
            _ => return None,
        })
    }

    /// Whether a field is an address or a port.
    fn is_address_or_port(field: Field) -> bool {
        let field = NatField::from_field(field);
        matches!(field, Some(NatField::Src | NatField::Dst | NatField::SrcPort | NatField::DstPort))
    }
}

/// A change of the list of TCP options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionEdit {
    /// Removes options of a kind.
    Strip(u8),
    /// Removes all options.
    StripAll,
    /// Removes all options but those of these kinds.
    Keep(Vec<u8>),
    /// Sets the value of options of a kind.
    Set(u8, Box<[u8]>),
    /// Adds an option, if there is none of its kind.
    Add(u8, Box<[u8]>),
}

impl OptionEdit {
    /// Order among edits: removals, changes, additions.
    fn stage(&self) -> u8 {
        match self {
            OptionEdit::Strip(_) | OptionEdit::StripAll | OptionEdit::Keep(_) => 0,
            OptionEdit::Set(..) => 1,
            OptionEdit::Add(..) => 2,
        }
    }
}

impl RulePlan {
    /// Compiles the targets of a rule.
    pub fn new(rule: &Rule) -> RulePlan {
        let mut plan = RulePlan::default();
        let mut kept = Vec::new();
        for target in &rule.targets {
            match target {
                Target::Drop(chance) => plan.drop = Some(*chance),
                Target::Reject(rejection) => {
                    (plan.drop, plan.rejection) = (Some(Chance::ALWAYS), Some(*rejection));
                }
                Target::Accept => plan.accept = true,
                Target::Log(_) => plan.logs = true,
                // The rules of the chain have the matches of this one.
                Target::Jump(_) => {}
                Target::Balance(hops) => plan.hops.clone_from(hops),
                Target::Map { field, value } => plan.add_nat_change(*field, Some(value)),
                Target::Shuffle(field) => plan.add_nat_change(*field, None),
                // Addresses and ports of a connection are restored in replies, whichever target
                // sets them.
                Target::Mod { field, value }
                    if rule.stateful && NatField::is_address_or_port(*field) =>
                {
                    plan.add_nat_change(*field, Some(value));
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

    fn add_nat_change(&mut self, field: Field, value: Option<&Value>) {
        let layer = field.spec().layer;
        let change = |field| NatChange { layer, field, value: value.cloned() };
        self.nat_changes.extend(NatField::from_field(field).map(change));
    }

    fn set(&mut self, field: Field, value: &Value) {
        match field.option_kind() {
            Some(kind) => self.options.push(OptionEdit::Set(kind, encoded(field, value))),
            None => self.fields.push((field, value.clone())),
        }
    }

    /// Whether it leaves packets unchanged.
    pub(crate) fn is_verdict_only(&self) -> bool {
        self.fields.is_empty()
            && self.options.is_empty()
            && self.nat_changes.is_empty()
            && self.hops.is_empty()
    }
}

/// The bytes of an option's value.
fn encoded(option: Field, value: &Value) -> Box<[u8]> {
    let (bytes, length) = value.bytes(option.spec().bits());
    bytes[..length].into()
}
