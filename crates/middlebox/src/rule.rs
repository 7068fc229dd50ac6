//! A rule: what packets it is about, and what becomes of them.

use crate::field::Field;
use crate::language::is_keyword;
use crate::value::{Condition, Value};
use castanet_wire::MacAddr;
use std::fmt;
use std::net::IpAddr;

/// A rule, as one line says it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    /// Whether it is about whole connections, both directions.
    pub stateful: bool,
    /// What a packet must be, all of it.
    pub matches: Vec<Predicate>,
    /// What becomes of it.
    pub targets: Vec<Target>,
}

/// Something that a packet may be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Predicate {
    /// Whether it must not be that.
    pub negated: bool,
    /// The field.
    pub field: Field,
    /// How it must compare; nothing, if it must only be there (or, for a flag,
    /// set).
    pub test: Option<(Condition, Value)>,
}

/// Something that becomes of a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A field gets a value.
    Mod {
        /// The field.
        field: Field,
        /// What it gets; of a prefix, the bits behind it stay.
        value: Value,
    },
    /// A TCP option comes to the others, if there is none of its kind.
    Add {
        /// Which one.
        option: Field,
        /// Its value, if it has one.
        value: Option<Value>,
    },
    /// TCP options go: those of one kind, or all.
    Strip(Option<Field>),
    /// All TCP options go but this one (and those of other such targets).
    Keep(Field),
    /// The packet goes, with some probability.
    Drop(Chance),
    /// The packet goes on, whatever other rules want to drop.
    Accept,
    /// As `Mod`, for the packets of a connection one way; turned round the other.
    Map {
        /// The field.
        field: Field,
        /// What it gets; of a prefix, the bits behind it stay.
        value: Value,
    },
    /// A field gets a value of its own in each connection.
    Shuffle(Field),
    /// The packet goes to one of several next hops, by connection.
    Balance(Vec<Hop>),
}

impl Target {
    /// Whether it stands alone in its rule.
    pub fn stands_alone(&self) -> bool {
        matches!(self, Target::Drop(_) | Target::Accept | Target::Balance(_))
    }

    /// The word that it begins with.
    pub fn word(&self) -> &'static str {
        match self {
            Target::Mod { .. } => "mod",
            Target::Add { .. } => "add",
            Target::Strip(_) => "strip",
            Target::Keep(_) => "strip !",
            Target::Drop(_) => "drop",
            Target::Accept => "accept",
            Target::Map { .. } => "map",
            Target::Shuffle(_) => "shuffle",
            Target::Balance(_) => "lb",
        }
    }
}

/// A probability, in millionths of a percent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Chance(pub u32);

impl Chance {
    /// Certainty.
    pub const ALWAYS: Chance = Chance(100_000_000);
    /// Places behind the point that percentages can have.
    const PLACES: usize = 6;

    /// A percentage; nothing, if this is none from 0 to 100.
    pub fn parse(text: &str) -> Option<Chance> {
        let text = text.strip_suffix('%').unwrap_or(text);
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let few = part.len() <= Chance::PLACES && !(whole.is_empty() && part.is_empty());
        if !few || whole.len() > 3 || !is_number(whole) || !is_number(part) {
            return None;
        }
        let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: u32 = format!("{part:0<width$}", width = Chance::PLACES).parse().ok()?;
        Some(Chance(whole * 1_000_000 + part)).filter(|chance| chance.0 <= Chance::ALWAYS.0)
    }

    /// Whether it comes true for these random bits.
    #[inline]
    pub fn comes(self, random: u64) -> bool {
        let scaled = (u128::from(random) * u128::from(Chance::ALWAYS.0)) >> u64::BITS;
        scaled < u128::from(self.0)
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let part = format!("{part:06}");
        write!(f, "{whole}.{}", part.trim_end_matches('0'))
    }
}

/// Where `lb` sends packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hop {
    /// To this address: it becomes the destination annotation.
    Address(IpAddr),
    /// To this station: it becomes the destination of the Ethernet header.
    Station(MacAddr),
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hop::Address(address) => write!(f, "{address}"),
            Hop::Station(station) => write!(f, "{station}"),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field;
        write!(f, "{}{field}", if self.negated { "! " } else { "" })?;
        match &self.test {
            None => Ok(()),
            Some((Condition::Equal, Value::Name(name))) if is_keyword(name) => {
                write!(f, " {} {name}", Condition::Equal)
            }
            Some((Condition::Equal, value)) => write!(f, " {}", value.of(field)),
            Some((condition, value)) => write!(f, " {condition} {}", value.of(field)),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Target::Mod { field, value } | Target::Map { field, value } => {
                write!(f, " {field} {}", value.of(*field))
            }
            Target::Add { option, value: None } => write!(f, " {option}"),
            Target::Add { option, value: Some(value) } => {
                write!(f, " {option} {}", value.of(*option))
            }
            Target::Strip(None) => f.write_str(" all"),
            Target::Strip(Some(field)) | Target::Keep(field) | Target::Shuffle(field) => {
                write!(f, " {field}")
            }
            Target::Drop(Chance::ALWAYS) | Target::Accept => Ok(()),
            Target::Drop(chance) => write!(f, " {chance}"),
            Target::Balance(hops) => hops.iter().try_for_each(|hop| write!(f, " {hop}")),
        }
    }
}

/// The rule without the command that adds it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matches = self.matches.iter().map(ToString::to_string);
        let words: Vec<String> =
            matches.chain(self.targets.iter().map(ToString::to_string)).collect();
        f.write_str(&words.join(" "))
    }
}

impl Rule {
    /// Whether it takes what follows the IP header, which later fragments do not have: some match
    /// is about that, or it chooses between hops by ports.
    pub(crate) fn looks_behind(&self) -> bool {
        use crate::field::{Layer, Place};
        let chooses = |target: &Target| matches!(target, Target::Balance(hops) if hops.len() > 1);
        let is_behind = |predicate: &Predicate| {
            let spec = predicate.field.spec();
            let is_upper = !matches!(spec.layer, Layer::Any | Layer::Ip4 | Layer::Ip6);
            is_upper || matches!(spec.place, Place::Payload | Place::Upper | Place::Extension(_))
        };
        self.matches.iter().any(is_behind) || self.targets.iter().any(chooses)
    }

    /// The command that adds it.
    pub fn command(&self) -> String {
        format!("{} {self}", if self.stateful { "add-stateful" } else { "add" })
    }
}
