//! Sets of values that matches compare fields with: listed in the rule, or named.

use crate::ct_state::CtState;
use crate::field::{Field, Kind};
use crate::value::{DisplayValue, Value};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The values that a set for a field has. A set of addresses may have both families.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ValueFamily {
    /// Numbers, such as ports.
    Number,
    /// IPv4 addresses.
    Ip4,
    /// IPv6 addresses.
    Ip6,
    /// Ethernet addresses.
    Station,
}

impl ValueFamily {
    /// The family of a field's values; `None` if the field takes no sets.
    pub(crate) fn of(field: Field) -> Option<ValueFamily> {
        ValueFamily::of_kind(field.spec().kind)
    }

    /// The family of values of a kind.
    fn of_kind(kind: Kind) -> Option<ValueFamily> {
        match kind {
            Kind::Number | Kind::Checksum | Kind::Protocol | Kind::State => {
                Some(ValueFamily::Number)
            }
            Kind::Address4 => Some(ValueFamily::Ip4),
            Kind::Address6 => Some(ValueFamily::Ip6),
            Kind::Station => Some(ValueFamily::Station),
            _ => None,
        }
    }

    /// The plural of its values.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ValueFamily::Number => "numbers",
            ValueFamily::Ip4 => "IPv4 addresses",
            ValueFamily::Ip6 => "IPv6 addresses",
            ValueFamily::Station => "Ethernet addresses",
        }
    }

    /// A field kind that renders these values.
    pub(crate) fn kind(self) -> Kind {
        match self {
            ValueFamily::Number => Kind::Number,
            ValueFamily::Ip4 => Kind::Address4,
            ValueFamily::Ip6 => Kind::Address6,
            ValueFamily::Station => Kind::Station,
        }
    }

    /// Number of bits of an address.
    fn bits(self) -> u32 {
        match self {
            ValueFamily::Number | ValueFamily::Station => 0,
            ValueFamily::Ip4 => 32,
            ValueFamily::Ip6 => 128,
        }
    }

    /// The number or prefix that the ranges are, if they are only that.
    pub(crate) fn single(self, ranges: &NumberSet) -> Option<Value> {
        match *ranges.as_slice() {
            [(low, high)] => self.value(low, high),
            _ => None,
        }
    }

    /// The number or prefix that a range is, if it is one.
    fn value(self, low: u128, high: u128) -> Option<Value> {
        let free = (low ^ high).checked_add(1).map_or(128, |it| it.trailing_zeros());
        let is_prefix =
            (low ^ high).count_ones() == free && (free == 128 || low >> free << free == low);
        let length = self.bits().checked_sub(free).filter(|_| is_prefix);
        match self {
            ValueFamily::Number | ValueFamily::Station => {
                (low == high).then_some(Value::Number(low as u64))
            }
            ValueFamily::Ip4 => Some(Value::Net4 { address: low as u32, length: length? as u8 }),
            ValueFamily::Ip6 => Some(Value::Net6 { address: low, length: length? as u8 }),
        }
    }
}

/// A set of numbers: ranges in ascending order, with numbers between them that belong to none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NumberSet(Arc<[(u128, u128)]>);

impl Default for NumberSet {
    fn default() -> NumberSet {
        NumberSet(Arc::new([]))
    }
}

impl NumberSet {
    /// Joins ranges, each from its least to its greatest number.
    pub fn new(mut all: Vec<(u128, u128)>) -> NumberSet {
        all.sort_unstable();
        let mut joined: Vec<(u128, u128)> = Vec::with_capacity(all.len());
        for (low, high) in all {
            match joined.last_mut() {
                Some((_, end)) if end.checked_add(1).is_none_or(|next| low <= next) => {
                    *end = high.max(*end);
                }
                _ => joined.push((low, high)),
            }
        }
        NumberSet(joined.into())
    }

    /// These ranges together with others.
    pub(crate) fn with(&self, others: impl IntoIterator<Item = (u128, u128)>) -> NumberSet {
        NumberSet::new(self.0.iter().copied().chain(others).collect())
    }

    /// These ranges without what others have.
    pub fn without(&self, others: &NumberSet) -> NumberSet {
        let mut left = Vec::with_capacity(self.0.len());
        for &(mut low, high) in self.0.iter() {
            let first = others.0.partition_point(|(_, end)| *end < low);
            let mut is_over = false;
            for &(from, to) in others.0.iter().skip(first).take_while(|(from, _)| *from <= high) {
                if low < from {
                    left.push((low, from - 1));
                }
                match to.checked_add(1) {
                    Some(next) => low = next,
                    None => is_over = true,
                }
            }
            if !is_over && low <= high {
                left.push((low, high));
            }
        }
        NumberSet(left.into())
    }

    /// Whether a number is in one of them.
    pub fn contains(&self, number: u128) -> bool {
        let at = self.0.partition_point(|(_, high)| *high < number);
        self.0.get(at).is_some_and(|(low, _)| *low <= number)
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[(u128, u128)] {
        &self.0
    }

    /// Renders them as values of a family and of a field of that kind.
    pub(crate) fn text(&self, kind: Kind, family: ValueFamily) -> impl Iterator<Item = String> {
        let text = |kind, value: Value| DisplayValue { kind, value }.to_string();
        self.0.iter().map(move |&(low, high)| match family.value(low, high) {
            Some(value) => text(kind, value),
            None => {
                let end =
                    |it| family.value(it, it).map_or(String::new(), |it| text(family.kind(), it));
                format!("{}-{}", end(low), end(high))
            }
        })
    }
}

/// A set of values that a match names or lists. Named sets are equal if their names are, whatever
/// values they have at the time.
#[derive(Clone, Debug)]
pub struct ValueSet {
    name: Option<Arc<str>>,
    ranges: NumberSet,
}

impl ValueSet {
    /// A set whose values the rule lists.
    pub(crate) fn list(ranges: NumberSet) -> ValueSet {
        ValueSet { name: None, ranges }
    }

    /// A set by name; the error says what a name may be.
    pub(crate) fn named(name: &str, ranges: NumberSet) -> Result<ValueSet, String> {
        check_name(name)?;
        Ok(ValueSet { name: Some(name.into()), ranges })
    }

    /// The same set with other values.
    pub(crate) fn with_ranges(&self, ranges: NumberSet) -> ValueSet {
        ValueSet { name: self.name.clone(), ranges }
    }

    /// Its name; `None` if the rule lists the values.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its values.
    pub fn ranges(&self) -> &NumberSet {
        &self.ranges
    }

    /// Renders the set as a match of a field of this kind writes it.
    pub(crate) fn of(&self, kind: Kind) -> String {
        let family = ValueFamily::of_kind(kind).unwrap_or(ValueFamily::Number);
        match &self.name {
            Some(name) => format!("@{name}"),
            None if kind == Kind::State => {
                let numbers = self.ranges.as_slice().iter().flat_map(|&(low, high)| low..=high);
                numbers.filter_map(CtState::name_of).collect::<Vec<_>>().join(",")
            }
            None => self.ranges.text(kind, family).collect::<Vec<_>>().join(","),
        }
    }
}

/// An error unless a set may have this name: letters, digits, `-`, `_` and `.`.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !name.is_empty() && name.chars().all(is_fine) {
        true => Ok(()),
        false => Err("the name of a set has letters, digits, `-`, `_` and `.`".into()),
    }
}

impl PartialEq for ValueSet {
    fn eq(&self, other: &ValueSet) -> bool {
        match (&self.name, &other.name) {
            (None, None) => self.ranges == other.ranges,
            (own, others) => own == others,
        }
    }
}

impl Eq for ValueSet {}

impl Hash for ValueSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.name {
            Some(name) => name.hash(state),
            None => self.ranges.hash(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = Vec<(u128, u128)>> {
        let range = (0u128..40, 0u128..6).prop_map(|(low, length)| (low, low + length));
        proptest::collection::vec(range, 0..8)
    }

    proptest! {
        #[test]
        fn ranges_have_the_numbers_of_their_parts(a in ranges(), b in ranges()) {
            let has = |all: &[(u128, u128)], n| all.iter().any(|(low, high)| (low..=high).contains(&&n));
            let (some, others) = (NumberSet::new(a.clone()), NumberSet::new(b.clone()));
            let gaps = some.as_slice().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
            prop_assert!(gaps, "{some:?}");
            for n in 0..50 {
                prop_assert_eq!(some.contains(n), has(&a, n));
                prop_assert_eq!(some.with(b.clone()).contains(n), has(&a, n) || has(&b, n));
                prop_assert_eq!(some.without(&others).contains(n), has(&a, n) && !has(&b, n));
            }
        }

        #[test]
        fn ranges_of_addresses_are_prefixes_where_they_can_be(low: u32, length in 0u8..=32) {
            let mask = crate::value::mask4(length);
            let (low, high) = (low & mask, low | !mask);
            let value = ValueFamily::Ip4.value(low.into(), high.into());
            prop_assert_eq!(value, Some(Value::Net4 { address: low, length }));
            let half = low.wrapping_add(1);
            if length < 31 {
                prop_assert_eq!(ValueFamily::Ip4.value(half.into(), high.into()), None);
            }
        }
    }

    #[test]
    fn the_ends_of_all_numbers() {
        let all = NumberSet::new(vec![(0, u128::MAX)]);
        assert!(all.contains(0) && all.contains(u128::MAX));
        let value = ValueFamily::Ip6.value(0, u128::MAX);
        assert_eq!(value, Some(Value::Net6 { address: 0, length: 0 }));
        assert_eq!(all.without(&all), NumberSet::default());
        let last = NumberSet::new(vec![(u128::MAX, u128::MAX), (3, 3)]);
        assert_eq!(all.without(&last).as_slice(), [(0, 2), (4, u128::MAX - 1)]);
    }
}
