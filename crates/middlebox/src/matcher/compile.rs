//! Compiles rules into masked keys, and tells which must also be tested on the packet.

use super::keys::{self, Bits, Span};
use crate::chains::ChainPaths;
use crate::ct_state::CtState;
use crate::field::{FieldLocation, FieldSpec, Kind, Layer};
use crate::rule::{Predicate, Rule};
use crate::value::{Condition, Value, mask4, mask6};
use crate::value_set::{NumberSet, ValueSet};
use castanet_kit::rules::{Key, MaskedKey, prefixes};

/// A rule with ranges is several keys; with more than so many, ranges are asked for later.
const MOST: usize = 32;
/// The same for rules with sets: a match with a set costs no more than one with a single value.
const MOST_OF_SETS: usize = 1 << 17;

/// A rule as masked keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompiledRule {
    /// Keys that together cover every packet that the rule matches.
    pub(crate) keys: Vec<MaskedKey>,
    /// Whether the keys cover only those packets.
    pub(crate) is_exact: bool,
}

/// Bits that a packet must all have. A predicate asks for few, and files of rules have a
/// million of it: so they lie where the row does.
#[derive(Clone, Copy, Default)]
struct Alternative {
    bits: [Option<Bits>; Alternative::MOST],
}

impl Alternative {
    /// The halves of an address, and its layer.
    const MOST: usize = 3;

    fn of(all: impl IntoIterator<Item = Bits>) -> Alternative {
        let mut alternative = Alternative::default();
        let mut all = all.into_iter();
        alternative.bits.iter_mut().zip(all.by_ref()).for_each(|(place, bits)| *place = Some(bits));
        debug_assert!(all.next().is_none(), "a row has room for all bits");
        alternative
    }

    fn iter(&self) -> impl Iterator<Item = &Bits> {
        self.bits.iter().flatten()
    }
}

/// A predicate as alternatives of which a packet has one, and whether they are exact.
struct PredicateKeys {
    alternatives: Vec<Alternative>,
    is_exact: bool,
}

impl PredicateKeys {
    fn exactly(bits: impl IntoIterator<Item = Bits>) -> PredicateKeys {
        PredicateKeys { alternatives: vec![Alternative::of(bits)], is_exact: true }
    }

    /// No more than that the packet has the headers, and the option that is asked for.
    fn vaguely(predicate: &Predicate) -> PredicateKeys {
        let spec = predicate.field.spec();
        let is_option = matches!(spec.location, FieldLocation::Option(_)) && !predicate.negated;
        let option = is_option.then(|| keys::option(predicate.field).0.equal(1));
        PredicateKeys {
            alternatives: vec![Alternative::of(has(spec.layer).into_iter().chain(option))],
            is_exact: false,
        }
    }

    /// Nothing at all.
    fn unknown() -> PredicateKeys {
        PredicateKeys { alternatives: vec![Alternative::default()], is_exact: false }
    }
}

/// That a packet has a layer.
fn has(layer: Layer) -> Option<Bits> {
    keys::layer(layer).map(|span| span.equal(1))
}

impl CompiledRule {
    pub(crate) fn of(rule: &Rule) -> CompiledRule {
        let mut all = CompiledRule { keys: vec![MaskedKey::default()], is_exact: true };
        let has_set = rule.matches.iter().any(|it| it.set().is_some());
        let most = if has_set { MOST_OF_SETS } else { MOST };
        for predicate in &rule.matches {
            match &predicate.test {
                Some((_, Value::Chain(chain))) => all = all.in_chain(chain, most),
                _ => all.narrow(predicate, most),
            }
        }
        all
    }

    /// Narrows the keys to packets that satisfy a predicate, if they are `most` at most.
    fn narrow(&mut self, predicate: &Predicate, most: usize) {
        let mut predicate_keys = predicate_keys(predicate);
        if self.keys.len() * predicate_keys.alternatives.len() > most {
            predicate_keys = PredicateKeys::vaguely(predicate);
        }
        self.is_exact &= predicate_keys.is_exact;
        let both = self.keys.iter().flat_map(|key| {
            predicate_keys
                .alternatives
                .iter()
                .filter_map(|alternative| alternative.iter().try_fold(*key, narrowed))
        });
        self.keys = both.collect();
    }

    /// These keys for packets that come to a chain, if they are `most` at most. They are not exact if two
    /// of them have a packet in common, which must count once.
    fn in_chain(&self, chain: &ChainPaths, most: usize) -> CompiledRule {
        let mut all = CompiledRule { keys: Vec::new(), is_exact: self.is_exact };
        for path in chain.paths() {
            let mut own = self.clone();
            path.iter().for_each(|predicate| own.narrow(predicate, most));
            all.keys.extend(own.keys);
            all.is_exact &= own.is_exact;
            if all.keys.len() > most {
                return CompiledRule { keys: self.keys.clone(), is_exact: false };
            }
        }
        let is_many = chain.paths().len() > 1;
        all.is_exact &= !is_many || all.keys.len() <= MOST && are_disjoint(&all.keys);
        all
    }
}

/// Whether no packet has two of the keys.
fn are_disjoint(keys: &[MaskedKey]) -> bool {
    let is_apart = |one: &MaskedKey, other: &MaskedKey| {
        let common = *one.mask() & *other.mask();
        *one.value() & common != *other.value() & common
    };
    keys.iter().enumerate().all(|(at, key)| keys[..at].iter().all(|other| is_apart(key, other)))
}

/// A key that also has these bits; none, if it has others there.
fn narrowed(masked: MaskedKey, bits: &Bits) -> Option<MaskedKey> {
    let (Key(mut mask), Key(mut value)) = (*masked.mask(), *masked.value());
    let common = mask[bits.word] & bits.mask;
    if value[bits.word] & common != bits.value & common {
        return None;
    }
    mask[bits.word] |= bits.mask;
    value[bits.word] |= bits.value;
    Some(MaskedKey::new(Key(mask), Key(value)))
}

/// Compiles a predicate.
fn predicate_keys(predicate: &Predicate) -> PredicateKeys {
    let spec = predicate.field.spec();
    match &predicate.test {
        None => alone(predicate, spec),
        // A match that no packet satisfies until its set gets values.
        Some((Condition::Equal, Value::Set(set)))
            if !predicate.negated && set.ranges().as_slice().is_empty() =>
        {
            PredicateKeys { alternatives: Vec::new(), is_exact: true }
        }
        // Every packet has a state.
        Some((condition, value)) if spec.location == FieldLocation::ConnectionState => {
            in_states(condition.inverse_if(predicate.negated), value)
        }
        Some(_) if spec.is_limit() => PredicateKeys::unknown(),
        // No packet comes to a chain to which the paths are not known.
        Some((_, Value::Name(_))) if spec.location == FieldLocation::Chain => {
            PredicateKeys { alternatives: Vec::new(), is_exact: true }
        }
        // A negation also holds for some packets without the field.
        Some(_) if predicate.negated => PredicateKeys::unknown(),
        Some((condition, value)) => compared(predicate, spec, *condition, value)
            .unwrap_or_else(|| PredicateKeys::vaguely(predicate)),
    }
}

/// A field that stands alone.
fn alone(predicate: &Predicate, spec: &FieldSpec) -> PredicateKeys {
    let yes = u64::from(!predicate.negated);
    let flag = |span: Option<Span>| match span {
        Some(span) => PredicateKeys::exactly(has(spec.layer).into_iter().chain([span.equal(yes)])),
        None => PredicateKeys::vaguely(predicate),
    };
    match (spec.location, spec.kind) {
        (FieldLocation::Everywhere, _) if yes == 1 => PredicateKeys::exactly(None),
        (FieldLocation::Extension(Some(number)), _) => flag(keys::extension(number)),
        (FieldLocation::Extension(None), _) if yes == 0 => {
            PredicateKeys::exactly(has(spec.layer).into_iter().chain([keys::no_extension()]))
        }
        (FieldLocation::Option(_), _) => match keys::option(predicate.field) {
            (span, true) => flag(Some(span)),
            (_, false) => PredicateKeys::vaguely(predicate),
        },
        (FieldLocation::Bits { first, count: 1 }, Kind::Flag) => {
            flag(keys::span(spec.layer, first.into(), 1))
        }
        (FieldLocation::Bits { first, count }, Kind::Named(value)) if yes == 1 => {
            match keys::span(spec.layer, first.into(), count.into()) {
                Some(span) => PredicateKeys::exactly(
                    has(spec.layer).into_iter().chain([span.equal(value.into())]),
                ),
                None => PredicateKeys::vaguely(predicate),
            }
        }
        (FieldLocation::Bits { .. } | FieldLocation::Payload, kind)
            if !matches!(kind, Kind::Flag | Kind::Named(_)) =>
        {
            // A packet with the header has the field, unless it is too short.
            match keys::layer(spec.layer) {
                Some(layer) if spec.location == FieldLocation::Payload => {
                    PredicateKeys::exactly([layer.equal(yes)])
                }
                Some(layer) if yes == 1 => PredicateKeys {
                    alternatives: vec![Alternative::of([layer.equal(1)])],
                    is_exact: false,
                },
                _ => PredicateKeys::unknown(),
            }
        }
        _ if yes == 1 => PredicateKeys::vaguely(predicate),
        _ => PredicateKeys::unknown(),
    }
}

/// The states of connections that compare so with a state or a list of them.
fn in_states(condition: Condition, value: &Value) -> PredicateKeys {
    let named = |number: u128| match value {
        Value::Set(set) => set.ranges().contains(number),
        value => value.range().is_some_and(|(only, _)| only == number),
    };
    let is_equal = condition == Condition::Equal;
    let wanted = (0..=CtState::MOST).filter(|number| named(*number) == is_equal);
    let all = NumberSet::new(wanted.map(|number| (number, number)).collect());
    let width = keys::ct_state().count;
    let rows = all.as_slice().iter().flat_map(|&(low, high)| prefixes(low, high, width));
    let row = |(mask, value)| Alternative::of([keys::ct_state().masked(mask as u64, value as u64)]);
    PredicateKeys { alternatives: rows.map(row).collect(), is_exact: true }
}

/// A field and a value that it is compared with; nothing, if keys do not have it.
fn compared(
    predicate: &Predicate,
    spec: &FieldSpec,
    condition: Condition,
    value: &Value,
) -> Option<PredicateKeys> {
    let is_equal = condition == Condition::Equal;
    let layer = || has(spec.layer).into_iter();
    if let Value::Set(set) = value {
        return is_equal.then(|| in_set(spec, set))?;
    }
    match (spec.location, value) {
        (_, _) if matches!(spec.kind, Kind::Named(_)) => None,
        (FieldLocation::Version, Value::Number(version)) if is_equal => {
            let layer = if *version == 6 { Layer::Ip6 } else { Layer::Ip4 };
            Some(PredicateKeys::exactly(has(layer)))
        }
        (FieldLocation::Upper, Value::Number(number)) => {
            let alternatives = ranges(keys::protocol(), condition, *number)?;
            let alternatives =
                alternatives.into_iter().map(|bits| Alternative::of(layer().chain([bits])));
            Some(PredicateKeys { alternatives: alternatives.collect(), is_exact: true })
        }
        (FieldLocation::Option(_), Value::Number(number)) => {
            let (span, valid) = keys::option_value(predicate.field)?;
            let alternatives = ranges(span, condition, *number)?;
            let alternatives = alternatives
                .into_iter()
                .map(|bits| Alternative::of(layer().chain([valid.equal(1), bits])));
            Some(PredicateKeys { alternatives: alternatives.collect(), is_exact: true })
        }
        (FieldLocation::Bits { first, count }, Value::Number(number)) => {
            let span = keys::span(spec.layer, first.into(), count.into())?;
            let alternatives = ranges(span, condition, *number)?;
            let alternatives =
                alternatives.into_iter().map(|bits| Alternative::of(layer().chain([bits])));
            Some(PredicateKeys { alternatives: alternatives.collect(), is_exact: true })
        }
        (FieldLocation::Bits { first, count }, Value::Net4 { address, length }) if is_equal => {
            let span = keys::span(spec.layer, first.into(), count.into())?;
            let bits = span.masked(mask4(*length).into(), (*address).into());
            Some(PredicateKeys::exactly(layer().chain([bits])))
        }
        (FieldLocation::Bits { first, .. }, Value::Net6 { address, length }) if is_equal => {
            let words = keys::words6(first.into())?;
            let bits = words6(words, mask6(*length), *address);
            Some(PredicateKeys::exactly(layer().chain(bits)))
        }
        _ => None,
    }
}

/// A field whose value is in a set; nothing, if keys do not have it or would be too many.
fn in_set(spec: &FieldSpec, set: &ValueSet) -> Option<PredicateKeys> {
    let ranges = set.ranges().as_slice().iter();
    let prefixes = |width| {
        // A named set may have numbers that the field cannot have.
        let last = u128::MAX >> (u128::BITS - width);
        let all = ranges.flat_map(move |&(low, high)| prefixes(low, high.min(last), width));
        let all: Vec<(u128, u128)> = all.take(MOST_OF_SETS + 1).collect();
        (all.len() <= MOST_OF_SETS).then_some(all)
    };
    let layer = || has(spec.layer).into_iter();
    let span = match spec.location {
        FieldLocation::Upper => keys::protocol(),
        FieldLocation::Bits { first, .. } if spec.kind == Kind::Address6 => {
            let words = keys::words6(first.into())?;
            let row = |(mask, value)| Alternative::of(layer().chain(words6(words, mask, value)));
            let alternatives = prefixes(128)?.into_iter().map(row).collect();
            return Some(PredicateKeys { alternatives, is_exact: true });
        }
        FieldLocation::Bits { first, count } => keys::span(spec.layer, first.into(), count.into())?,
        _ => return None,
    };
    let row =
        |(mask, value)| Alternative::of(layer().chain([span.masked(mask as u64, value as u64)]));
    let alternatives = prefixes(span.count)?.into_iter().map(row).collect();
    Some(PredicateKeys { alternatives, is_exact: true })
}

/// The bits of an IPv6 address under a mask, in two words.
fn words6(words: [usize; 2], mask: u128, value: u128) -> impl Iterator<Item = Bits> {
    let half = |n: u128, at: usize| (n >> (64 - at * 64)) as u64;
    words.into_iter().enumerate().map(move |(at, word)| {
        let mask = half(mask, at);
        Bits { word, mask, value: half(value, at) & mask }
    })
}

/// The numbers that compare so with `number`, as bits; nothing, if that is too many rows.
fn ranges(span: Span, condition: Condition, number: u64) -> Option<Vec<Bits>> {
    let last = u64::MAX >> (u64::BITS - span.count);
    let (low, high) = match condition {
        Condition::Equal => (number, number),
        Condition::AtMost => (0, number),
        Condition::AtLeast => (number, last),
        Condition::Less => (0, number.checked_sub(1)?),
        Condition::More => (number.checked_add(1)?, last),
        Condition::Unequal => return None,
    };
    let alternatives = prefixes(low.into(), high.into(), span.count)
        .map(|(mask, value)| span.masked(mask as u64, value as u64));
    let alternatives: Vec<Bits> = alternatives.take(MOST + 1).collect();
    (1..=MOST).contains(&alternatives.len()).then_some(alternatives)
}
