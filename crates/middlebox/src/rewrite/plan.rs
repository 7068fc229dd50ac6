//! What a rule's targets come to, in the order in which they are done.

use crate::field::{Field, Kind};
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
    /// Fields that are set one way, and restored the other.
    pub maps: Vec<(Field, Value)>,
    /// Fields that get a value of their own in each connection.
    pub shuffles: Vec<Field>,
    /// Options that go, change and come.
    pub options: Vec<OptionEdit>,
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
                Target::Map { field, value } => plan.maps.push((*field, value.clone())),
                Target::Shuffle(field) => plan.shuffles.push(*field),
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
            && self.maps.is_empty()
            && self.shuffles.is_empty()
            && self.hops.is_empty()
    }
}

/// The bytes of an option's value.
fn encoded(option: Field, value: &Value) -> Box<[u8]> {
    let (bytes, length) = value.bytes(option.spec().bits());
    bytes[..length].into()
}
