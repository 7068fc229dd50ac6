//! A rule: matches and targets.

use crate::field::{Field, FieldLocation, Layer};
use crate::language::is_keyword;
use crate::value::{Condition, Value};
use crate::value_set::ValueSet;
use castanet_wire::MacAddr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

/// A rule, as one line of the language.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    /// Whether it applies to whole connections, in both directions.
    pub stateful: bool,
    /// The matches, all of which a packet must satisfy.
    pub matches: Vec<Predicate>,
    /// The targets.
    pub targets: Vec<Target>,
    /// Comments about the rule.
    pub comment: RuleComment,
}

/// Comments about a rule. All are equal, so that a rule with another comment is the same rule.
#[derive(Clone, Default, Debug)]
pub struct RuleComment(Option<Box<CommentText>>);

/// The texts of comments about a rule.
#[derive(Clone, Default, PartialEq, Debug)]
struct CommentText {
    /// Whole lines above the rule, each with its end.
    above: Box<str>,
    /// The text behind the rule and its `#`.
    beside: Box<str>,
}

impl RuleComment {
    /// Comments of these texts: whole lines above the rule, and what follows it.
    pub(crate) fn new(above: &str, beside: &str) -> RuleComment {
        let is_any = !above.is_empty() || !beside.is_empty();
        RuleComment(
            is_any.then(|| Box::new(CommentText { above: above.into(), beside: beside.into() })),
        )
    }

    /// Whole lines above the rule.
    pub(crate) fn above(&self) -> &str {
        self.0.as_ref().map_or("", |text| &text.above)
    }

    /// The text behind the rule, without its `#`.
    pub(crate) fn beside(&self) -> &str {
        self.0.as_ref().map_or("", |text| &text.beside)
    }

    /// Whether the texts are the same.
    pub(crate) fn is_text_of(&self, other: &RuleComment) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for RuleComment {
    fn eq(&self, _: &RuleComment) -> bool {
        true
    }
}

impl Eq for RuleComment {}

impl Hash for RuleComment {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A match of a rule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Predicate {
    /// Whether the match is negated.
    pub negated: bool,
    /// The field.
    pub field: Field,
    /// Condition and value; `None` if the field must only be present (for a flag: set).
    pub test: Option<(Condition, Value)>,
}

impl Predicate {
    /// Whether sets and chains of both have the same values at the time.
    fn has_values_of(&self, other: &Predicate) -> bool {
        match (&self.test, &other.test) {
            (Some((_, Value::Set(own))), Some((_, Value::Set(others)))) => {
                own.ranges() == others.ranges()
            }
            (Some((_, Value::Chain(own))), Some((_, Value::Chain(others)))) => {
                own.has_values_of(others)
            }
            (Some((_, Value::Chain(_))), _) | (_, Some((_, Value::Chain(_)))) => false,
            _ => true,
        }
    }

    /// The set that the field is compared with, if it is one.
    pub(crate) fn set(&self) -> Option<&Arc<ValueSet>> {
        self.test.as_ref().and_then(|(_, value)| value.set())
    }
}

/// A target of a rule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// Sets a field.
    Mod {
        /// The field.
        field: Field,
        /// The value; bits behind a prefix stay.
        value: Value,
    },
    /// Adds a TCP option, if the packet has none of its kind.
    Add {
        /// The option.
        option: Field,
        /// Its value, if it has one.
        value: Option<Value>,
    },
    /// Removes the TCP options of one kind, or all.
    Strip(Option<Field>),
    /// Removes all TCP options but this one (and those of other such targets).
    Keep(Field),
    /// Drops the packet, with a probability.
    Drop(Chance),
    /// Drops the packet, and answers it.
    Reject(Rejection),
    /// Accepts the packet, which overrides every drop.
    Accept,
    /// As `Mod` in the original direction of a connection; reversed for replies.
    Map {
        /// The field.
        field: Field,
        /// The value; bits behind a prefix stay.
        value: Value,
    },
    /// Gives a field a random value per connection.
    Shuffle(Field),
    /// Sends the connection to one of several next hops.
    Balance(Vec<Hop>),
    /// Writes a line about the packet to the log, under a name if it has one.
    Log(Option<Box<str>>),
    /// Sends the packet to the rules of a chain.
    Jump(Box<str>),
}

impl Target {
    /// Whether it must be the only target of its rule but `log`.
    pub(crate) fn is_exclusive(&self) -> bool {
        matches!(
            self,
            Target::Drop(_)
                | Target::Reject(_)
                | Target::Accept
                | Target::Balance(_)
                | Target::Jump(_)
        )
    }

    /// The word that it begins with.
    pub fn word(&self) -> &'static str {
        match self {
            Target::Mod { .. } => "mod",
            Target::Add { .. } => "add",
            Target::Strip(_) => "strip",
            Target::Keep(_) => "strip !",
            Target::Drop(_) => "drop",
            Target::Reject(_) => "reject",
            Target::Accept => "accept",
            Target::Map { .. } => "map",
            Target::Shuffle(_) => "shuffle",
            Target::Balance(_) => "lb",
            Target::Log(_) => "log",
            Target::Jump(_) => "jump",
        }
    }
}

/// The answer to a rejected packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rejection {
    /// A reset to TCP, port unreachable to others.
    #[default]
    Reset,
    /// ICMP port unreachable.
    Port,
    /// ICMP communication administratively prohibited.
    Admin,
    /// ICMP host unreachable.
    Host,
    /// ICMP network unreachable.
    Net,
}

impl Rejection {
    /// The answers that a rule names; none is a reset.
    pub(crate) const NAMED: [(&str, Rejection); 4] = [
        ("port", Rejection::Port),
        ("admin", Rejection::Admin),
        ("host", Rejection::Host),
        ("net", Rejection::Net),
    ];
}

/// A probability, in millionths of a percent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Chance(pub u32);

impl Chance {
    /// Certainty.
    pub const ALWAYS: Chance = Chance(100_000_000);
    /// Digits behind the point of a percentage.
    const MAX_SLOTS: usize = 6;

    /// Parses a percentage; `None` outside of 0 to 100.
    pub fn parse(text: &str) -> Option<Chance> {
        let text = text.strip_suffix('%').unwrap_or(text);
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let few = part.len() <= Chance::MAX_SLOTS && !(whole.is_empty() && part.is_empty());
        if !few || whole.len() > 3 || !is_number(whole) || !is_number(part) {
            return None;
        }
        let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: u32 = format!("{part:0<width$}", width = Chance::MAX_SLOTS).parse().ok()?;
        Some(Chance(whole * 1_000_000 + part)).filter(|chance| chance.0 <= Chance::ALWAYS.0)
    }

    /// Whether these random bits draw the event.
    #[inline]
    pub(crate) fn is_drawn(self, random: u64) -> bool {
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

/// Next hop of `lb`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hop {
    /// An address: becomes the destination annotation.
    Address(IpAddr),
    /// A station: becomes the destination of the Ethernet header.
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
            Target::Drop(Chance::ALWAYS) | Target::Accept | Target::Log(None) => Ok(()),
            Target::Log(Some(name)) | Target::Jump(name) => write!(f, " {name}"),
            Target::Drop(chance) => write!(f, " {chance}"),
            Target::Reject(rejection) => {
                let named = Rejection::NAMED.iter().find(|(_, it)| it == rejection);
                named.map_or(Ok(()), |(word, _)| write!(f, " {word}"))
            }
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
    /// Whether the rule needs data behind the IP header, which later fragments lack: a match tests
    /// it, or `lb` chooses by ports.
    pub(crate) fn reads_transport(&self) -> bool {
        let chooses = |target: &Target| matches!(target, Target::Balance(hops) if hops.len() > 1);
        let is_behind = |predicate: &Predicate| {
            let spec = predicate.field.spec();
            let is_upper = !matches!(spec.layer, Layer::Any | Layer::Ip4 | Layer::Ip6);
            is_upper
                || matches!(
                    spec.location,
                    FieldLocation::Payload | FieldLocation::Upper | FieldLocation::Extension(_)
                )
        };
        self.matches.iter().any(is_behind) || self.targets.iter().any(chooses)
    }

    /// Whether it tests the state of the packet's connection, itself or by the paths to its chain.
    pub(crate) fn reads_state(&self) -> bool {
        let is_state = |it: &Predicate| it.field.spec().location == FieldLocation::ConnectionState;
        self.matches.iter().any(is_state)
    }

    /// Whether sets and chains of equal rules have the same values at the time.
    pub(crate) fn has_values_of(&self, other: &Rule) -> bool {
        self.matches.iter().zip(&other.matches).all(|(own, others)| own.has_values_of(others))
    }

    /// The command that adds it.
    pub fn command(&self) -> String {
        format!("{} {self}", if self.stateful { "add-stateful" } else { "add" })
    }
}
