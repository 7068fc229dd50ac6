//! Rules as masked keys: what of a rule a table can tell, and what has to be asked of the
//! packet then.

use super::keys::{self, Bits, Span};
use crate::field::{Kind, Layer, Place, Spec};
use crate::rule::{Predicate, Rule};
use crate::value::{Condition, Value, mask4, mask6};
use castanet_kit::rules::{Key, MaskedKey, prefixes};

/// A rule with ranges is several keys; with more than so many, ranges are asked for later.
const MOST: usize = 32;

/// A rule as keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compiled {
    /// The rule can only be about packets that one of these is about.
    pub(crate) keys: Vec<MaskedKey>,
    /// Whether it is about all of those.
    pub(crate) is_exact: bool,
}

/// Bits that a packet must all have. A predicate asks for few, and files of rules have a
/// million of it: so they lie where the row does.
#[derive(Clone, Copy, Default)]
struct Row {
    bits: [Option<Bits>; Row::MOST],
}

impl Row {
    /// The halves of an address, and its layer.
    const MOST: usize = 3;

    fn of(all: impl IntoIterator<Item = Bits>) -> Row {
        let mut row = Row::default();
        let mut all = all.into_iter();
        row.bits.iter_mut().zip(all.by_ref()).for_each(|(place, bits)| *place = Some(bits));
        debug_assert!(all.next().is_none(), "a row has room for all bits");
        row
    }

    fn iter(&self) -> impl Iterator<Item = &Bits> {
        self.bits.iter().flatten()
    }
}

/// What a predicate comes to: rows of which a packet has one, and whether that is all.
struct Part {
    rows: Vec<Row>,
    is_exact: bool,
}

impl Part {
    fn exactly(bits: impl IntoIterator<Item = Bits>) -> Part {
        Part { rows: vec![Row::of(bits)], is_exact: true }
    }

    /// No more than that the packet has the headers, and the option that is asked for.
    fn vaguely(predicate: &Predicate) -> Part {
        let spec = predicate.field.spec();
        let is_option = matches!(spec.place, Place::Option(_)) && !predicate.negated;
        let option = is_option.then(|| keys::option(predicate.field).0.equal(1));
        Part { rows: vec![Row::of(has(spec.layer).into_iter().chain(option))], is_exact: false }
    }

    /// Nothing at all.
    fn unknown() -> Part {
        Part { rows: vec![Row::default()], is_exact: false }
    }
}

/// That a packet has a layer.
fn has(layer: Layer) -> Option<Bits> {
    keys::layer(layer).map(|span| span.equal(1))
}

impl Compiled {
    pub(crate) fn of(rule: &Rule) -> Compiled {
        let mut all = Compiled { keys: vec![MaskedKey::default()], is_exact: true };
        for predicate in &rule.matches {
            let mut part = part(predicate);
            if all.keys.len() * part.rows.len() > MOST {
                part = Part::vaguely(predicate);
            }
            all.is_exact &= part.is_exact;
            let both = all.keys.iter().flat_map(|key| {
                part.rows.iter().filter_map(|row| row.iter().try_fold(*key, narrowed))
            });
            all.keys = both.collect();
        }
        all
    }
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

/// What keys can say of a predicate.
fn part(predicate: &Predicate) -> Part {
    let spec = predicate.field.spec();
    match &predicate.test {
        None => alone(predicate, spec),
        // A negation also holds for some packets without the field.
        Some(_) if predicate.negated => Part::unknown(),
        Some((condition, value)) => {
            compared(predicate, spec, *condition, value).unwrap_or_else(|| Part::vaguely(predicate))
        }
    }
}

/// A field that stands alone.
fn alone(predicate: &Predicate, spec: &Spec) -> Part {
    let yes = u64::from(!predicate.negated);
    let flag = |span: Option<Span>| match span {
        Some(span) => Part::exactly(has(spec.layer).into_iter().chain([span.equal(yes)])),
        None => Part::vaguely(predicate),
    };
    match (spec.place, spec.kind) {
        (Place::Everywhere, _) if yes == 1 => Part::exactly(None),
        (Place::Extension(Some(number)), _) => flag(keys::extension(number)),
        (Place::Extension(None), _) if yes == 0 => {
            Part::exactly(has(spec.layer).into_iter().chain([keys::no_extension()]))
        }
        (Place::Option(_), _) => match keys::option(predicate.field) {
            (span, true) => flag(Some(span)),
            (_, false) => Part::vaguely(predicate),
        },
        (Place::Bits { first, count: 1 }, Kind::Flag) => {
            flag(keys::span(spec.layer, first.into(), 1))
        }
        (Place::Bits { first, count }, Kind::Named(value)) if yes == 1 => {
            match keys::span(spec.layer, first.into(), count.into()) {
                Some(span) => {
                    Part::exactly(has(spec.layer).into_iter().chain([span.equal(value.into())]))
                }
                None => Part::vaguely(predicate),
            }
        }
        (Place::Bits { .. } | Place::Payload, kind)
            if !matches!(kind, Kind::Flag | Kind::Named(_)) =>
        {
            // Whoever has the headers has the field, as far as it is long enough.
            match keys::layer(spec.layer) {
                Some(layer) if spec.place == Place::Payload => Part::exactly([layer.equal(yes)]),
                Some(layer) if yes == 1 => {
                    Part { rows: vec![Row::of([layer.equal(1)])], is_exact: false }
                }
                _ => Part::unknown(),
            }
        }
        _ if yes == 1 => Part::vaguely(predicate),
        _ => Part::unknown(),
    }
}

/// A field and a value that it is compared with; nothing, if keys do not have it.
fn compared(
    predicate: &Predicate,
    spec: &Spec,
    condition: Condition,
    value: &Value,
) -> Option<Part> {
    let is_equal = condition == Condition::Equal;
    let layer = || has(spec.layer).into_iter();
    match (spec.place, value) {
        (_, _) if matches!(spec.kind, Kind::Named(_)) => None,
        (Place::Version, Value::Number(version)) if is_equal => {
            let layer = if *version == 6 { Layer::Ip6 } else { Layer::Ip4 };
            Some(Part::exactly(has(layer)))
        }
        (Place::Upper, Value::Number(number)) => {
            let rows = ranges(keys::protocol(), condition, *number)?;
            let rows = rows.into_iter().map(|bits| Row::of(layer().chain([bits])));
            Some(Part { rows: rows.collect(), is_exact: true })
        }
        (Place::Option(_), Value::Number(number)) => {
            let (span, valid) = keys::option_value(predicate.field)?;
            let rows = ranges(span, condition, *number)?;
            let rows = rows.into_iter().map(|bits| Row::of(layer().chain([valid.equal(1), bits])));
            Some(Part { rows: rows.collect(), is_exact: true })
        }
        (Place::Bits { first, count }, Value::Number(number)) => {
            let span = keys::span(spec.layer, first.into(), count.into())?;
            let rows = ranges(span, condition, *number)?;
            let rows = rows.into_iter().map(|bits| Row::of(layer().chain([bits])));
            Some(Part { rows: rows.collect(), is_exact: true })
        }
        (Place::Bits { first, count }, Value::Net4 { address, length }) if is_equal => {
            let span = keys::span(spec.layer, first.into(), count.into())?;
            let bits = span.masked(mask4(*length).into(), (*address).into());
            Some(Part::exactly(layer().chain([bits])))
        }
        (Place::Bits { first, .. }, Value::Net6 { address, length }) if is_equal => {
            let words = keys::words6(first.into())?;
            let (mask, half) = (mask6(*length), |n: u128, at: usize| (n >> (64 - at * 64)) as u64);
            let bits = words.into_iter().enumerate().map(|(at, word)| {
                let mask = half(mask, at);
                Bits { word, mask, value: half(*address, at) & mask }
            });
            Some(Part::exactly(layer().chain(bits)))
        }
        _ => None,
    }
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
    let rows = prefixes(low, high, span.count).map(|(mask, value)| span.masked(mask, value));
    let rows: Vec<Bits> = rows.take(MOST + 1).collect();
    (1..=MOST).contains(&rows.len()).then_some(rows)
}
