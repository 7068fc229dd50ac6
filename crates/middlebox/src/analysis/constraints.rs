//! Constraints of all matches of a rule together: kinds of packets, and possible values of fields.

use super::bounds::{Bound, Number, least};
use super::kinds::Kinds;
use crate::ct_state::CtState;
use crate::field::{FieldLocation, Kind, Layer};
use crate::rule::Predicate;
use crate::value::{Condition, Value};
use crate::value_set::ValueSet;
use castanet_wire::extension::{self, is_extension};
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header, Tcp, ip_proto};

/// The kinds of packets that can satisfy all matches; none if the matches contradict each other. The
/// result has the kind of every packet for which [`Predicate::matches_packet`] is true of all
/// matches; it may have more kinds.
pub(super) fn kinds<'r>(matches: impl Iterator<Item = &'r Predicate>) -> Kinds {
    let mut constraints = Constraints { kinds: Kinds::ALL, ..Constraints::default() };
    matches.for_each(|predicate| constraints.add(predicate));
    constraints.settle()
}

/// A number in a header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Bits {
    layer: Layer,
    first: u16,
    count: u16,
}

const IP_VERSION: Bits = Bits { layer: Layer::Ip4, first: 0, count: 4 };
const IP_HEADER_LENGTH: Bits = Bits { layer: Layer::Ip4, first: 4, count: 4 };
const IP_PROTOCOL: Bits =
    Bits { layer: Layer::Ip4, first: Ipv4Header::PROTOCOL as u16 * 8, count: 8 };
const IP6_VERSION: Bits = Bits { layer: Layer::Ip6, first: 0, count: 4 };
const IP6_NEXT: Bits =
    Bits { layer: Layer::Ip6, first: Ipv6Header::NEXT_HEADER as u16 * 8, count: 8 };
const TCP_OFFSET: Bits = Bits { layer: Layer::Tcp, first: Tcp::OFFSET_BYTE as u16 * 8, count: 4 };

/// Number of bits of an Ethernet header.
const ETHERNET_BITS: u16 = Ethernet::LEN as u16 * 8;

/// The state of the connection, which lies in no header: behind those of all layers.
const CT_STATE: Bits =
    Bits { layer: Layer::Any, first: u16::MAX - CtState::BITS, count: CtState::BITS };

/// Fields with a limited range in all packets: least and greatest value.
const ALWAYS: [(Bits, u128, u128); 3] =
    [(IP_VERSION, 4, 4), (IP_HEADER_LENGTH, 5, 15), (IP6_VERSION, 6, 6)];

/// The values that a match allows for a TCP option.
struct OptionConstraint {
    /// The kind of the option; `None` for any option.
    kind: Option<u8>,
    absent: bool,
    /// Whether the match allows the option without a value of the right length.
    plain: bool,
    value: Bound,
    /// The largest value of the option.
    last: Number,
}

/// The extension headers that matches demand or exclude, as [bits](extension::bit).
#[derive(Default)]
struct Extensions {
    present: u16,
    absent: u16,
    any: bool,
}

/// The constraints of all matches of a rule.
struct Constraints<'r> {
    kinds: Kinds,
    protocol: Vec<Bound>,
    bits: Vec<(Bits, Bound)>,
    options: Vec<OptionConstraint>,
    extensions: Extensions,
    /// Layer; whether the payload must begin with the bytes, or must not; the bytes.
    payloads: Vec<(Layer, bool, &'r [u8])>,
    /// Whether the output is meant, not the input; whether it must have the name, or must not; the name.
    names: Vec<(bool, bool, &'r str)>,
}

impl Default for Constraints<'_> {
    fn default() -> Self {
        Constraints {
            kinds: Kinds::NONE,
            protocol: Vec::new(),
            bits: Vec::new(),
            options: Vec::new(),
            extensions: Extensions::default(),
            payloads: Vec::new(),
            names: Vec::new(),
        }
    }
}

impl<'r> Constraints<'r> {
    fn add(&mut self, predicate: &'r Predicate) {
        let spec = predicate.field.spec();
        if predicate.negated && predicate.tests_layer_only() {
            self.kinds = self.kinds.and(Kinds::with(spec.layer).not());
            return;
        }
        self.kinds = self.kinds.and(Kinds::with(spec.layer));
        match spec.location {
            FieldLocation::Everywhere if predicate.negated => self.kinds = Kinds::NONE,
            FieldLocation::Everywhere => {}
            FieldLocation::In | FieldLocation::Out => {
                if let Some((condition, Value::Name(name))) = &predicate.test {
                    let is = (*condition == Condition::Equal) != predicate.negated;
                    self.names.push((spec.location == FieldLocation::Out, is, name));
                }
            }
            FieldLocation::Version => {
                let bound = number(predicate);
                let allowed = |version: u8, _| bound.allows(u128::from(version).into());
                self.kinds = self.kinds.and(Kinds::of(allowed));
            }
            FieldLocation::Upper => self.protocol.push(number(predicate)),
            FieldLocation::Bits { first, count } => {
                self.header(Bits { layer: spec.layer, first, count }, number(predicate));
            }
            // A packet without the header also satisfies a negated match.
            FieldLocation::Ethernet { .. } | FieldLocation::Vlan { .. } if predicate.negated => {}
            FieldLocation::Ethernet { first, count } => {
                self.header(Bits { layer: Layer::Any, first, count }, number(predicate));
            }
            FieldLocation::Vlan { first, count } => {
                let first = ETHERNET_BITS + first;
                self.header(Bits { layer: Layer::Any, first, count }, number(predicate));
            }
            FieldLocation::ConnectionState => {
                self.bits.push((CT_STATE, Bound::Within(0.into(), CtState::MOST.into())));
                self.header(CT_STATE, number(predicate));
            }
            FieldLocation::Chain | FieldLocation::Rate(_) | FieldLocation::ConnectionCount(_) => {}
            FieldLocation::Payload => self.payload(spec.layer, predicate),
            FieldLocation::Extension(kind) => self.extensions.add(kind, !predicate.negated),
            FieldLocation::Option(_) => self.option(predicate),
        }
    }

    fn header(&mut self, bits: Bits, bound: Bound) {
        let always = ALWAYS.iter().find(|(it, _, _)| *it == bits);
        let always = always.map(|(_, low, high)| Bound::Within((*low).into(), (*high).into()));
        self.bits.extend(always.into_iter().chain([bound]).map(|bound| (bits, bound)));
        if bits == IP_PROTOCOL {
            self.protocol.push(bound);
        }
    }

    fn payload(&mut self, layer: Layer, predicate: &'r Predicate) {
        if let Some((condition, Value::Bytes(bytes))) = &predicate.test {
            let is = (*condition == Condition::Equal) != predicate.negated;
            self.payloads.push((layer, is, bytes));
        }
    }

    fn option(&mut self, predicate: &Predicate) {
        let (kind, negated) = (predicate.field.option_kind(), predicate.negated);
        let is_number = predicate.field.spec().kind == Kind::Number;
        let last = Number::last_of(predicate.field.spec().bits());
        let (plain, value) = match &predicate.test {
            None => (!negated, alone(negated)),
            // An option without a value of the right length is unequal to every value.
            Some((condition, _)) => {
                (is_number && (*condition == Condition::Unequal) != negated, number(predicate))
            }
        };
        let constraint = OptionConstraint { kind, absent: negated, plain, value, last };
        if !constraint.absent {
            const PLAIN: u128 = (Tcp::LEN / 4) as u128;
            self.bits.push((TCP_OFFSET, Bound::Within((PLAIN + 1).into(), 15.into())));
        }
        self.options.push(constraint);
    }

    /// The kinds of packets that satisfy all constraints.
    fn settle(mut self) -> Kinds {
        let is_possible = self.names_agree(false)
            && self.names_agree(true)
            && self.payloads_agree()
            && self.bits_agree()
            && self.options_agree()
            && self.extensions.agree();
        if !is_possible {
            return Kinds::NONE;
        }
        self.kinds.and(Kinds::of(|version, upper| self.protocols_agree(version, upper)))
    }

    fn names_agree(&self, is_out: bool) -> bool {
        let all = || self.names.iter().filter(|it| it.0 == is_out);
        match all().find(|it| it.1) {
            Some((_, _, name)) => all().all(|(_, is, other)| *is == (name == other)),
            None => true,
        }
    }

    fn payloads_agree(&self) -> bool {
        let mut layers: Vec<Layer> = self.payloads.iter().map(|it| it.0).collect();
        layers.sort_unstable();
        layers.dedup();
        layers.into_iter().all(|layer| {
            let own = || self.payloads.iter().filter(move |it| it.0 == layer);
            let longest = own().filter(|it| it.1).map(|it| it.2).max_by_key(|it| it.len());
            let fits = |longest: &[u8]| own().all(|(_, is, it)| longest.starts_with(it) == *is);
            longest.is_none_or(fits)
        })
    }

    /// Whether there are values for all header fields. Overlapping fields are checked together: they are
    /// the same field, or lie in one byte.
    fn bits_agree(&mut self) -> bool {
        self.bits.sort_unstable_by_key(|(bits, _)| *bits);
        let mut rest = &self.bits[..];
        while let Some(((first, _), _)) = rest.split_first() {
            let mut end = first.first + first.count;
            let own = rest.iter().take_while(|(bits, _)| {
                let is_own = bits.layer == first.layer && bits.first < end;
                end = if is_own { end.max(bits.first + bits.count) } else { end };
                is_own
            });
            let (own, behind) = rest.split_at(own.count());
            if !cluster_agrees(own, Bits { count: end - first.first, ..*first }) {
                return false;
            }
            rest = behind;
        }
        true
    }

    fn options_agree(&self) -> bool {
        let none = self.options.iter().any(|it| it.kind.is_none() && it.absent);
        let is_some = self.options.iter().any(|it| it.kind.is_none() && !it.absent);
        if none && is_some {
            return false;
        }
        let kinds = self.options.iter().filter_map(|it| it.kind);
        let mut kinds: Vec<u8> = kinds.collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.into_iter().all(|kind| {
            let own = || self.options.iter().filter(move |it| it.kind == Some(kind));
            let last = own().map(|it| it.last).min().unwrap_or(Number::MOST);
            let is_there =
                || own().all(|it| it.plain) || least(own().map(|it| it.value), last).is_some();
            own().all(|it| it.absent) || !none && is_there()
        })
    }

    /// Whether packets of a kind can have a protocol that all constraints allow.
    fn protocols_agree(&self, version: u8, upper: Layer) -> bool {
        let implied = match upper {
            Layer::Tcp => Bound::only(u128::from(ip_proto::TCP)),
            Layer::Udp => Bound::only(u128::from(ip_proto::UDP)),
            Layer::Icmp => Bound::only(u128::from(ip_proto::ICMP)),
            Layer::Icmp6 => Bound::only(u128::from(ip_proto::ICMPV6)),
            _ => Bound::ALL,
        };
        let allowed = || self.protocol.iter().copied().chain([implied]);
        if least(allowed(), Number::last_of(8)).is_none() {
            return false;
        }
        let next = || self.bits.iter().filter(|(bits, _)| *bits == IP6_NEXT).map(|it| it.1);
        if version == 4 || next().next().is_none() && self.extensions.is_free() {
            return true;
        }
        let is_allowed = |protocol: u8| allowed().all(|it| it.allows(u128::from(protocol).into()));
        let can_be_next = |first: u8| next().all(|it| it.allows(u128::from(first).into()));
        (0..=u8::MAX).any(|first| can_be_next(first) && self.extensions.allow(first, is_allowed))
    }
}

impl Extensions {
    fn add(&mut self, kind: Option<u8>, is: bool) {
        match (kind, is) {
            (None, true) => self.any = true,
            (Some(kind), true) => self.present |= extension::bit(kind),
            (kind, false) => self.absent |= kind.map_or(u16::MAX, extension::bit),
        }
    }

    fn is_free(&self) -> bool {
        !self.any && self.present == 0 && self.absent == 0
    }

    fn agree(&self) -> bool {
        let known = (0..=u8::MAX).fold(0, |all, it| all | extension::bit(it));
        self.present & self.absent == 0 && !(self.any && known & !self.absent == 0)
    }

    /// Whether a packet that carries one of the allowed protocols may have `first` as its first header.
    fn allow(&self, first: u8, is_allowed: impl Fn(u8) -> bool) -> bool {
        let bit = extension::bit(first);
        if self.absent & bit != 0 {
            return false;
        }
        if !is_extension(first) {
            // The headers behind it are unknown.
            let (any, others) = (self.any && bit == 0, self.present & !bit);
            return !any && others == 0 && is_allowed(first);
        }
        // Only the last header can be one that the parser cannot step over.
        let ends = |it: &u8| self.present & extension::bit(*it) != 0 && !is_extension(*it);
        let mut ends = (0..=u8::MAX).filter(ends);
        match (ends.next(), ends.next()) {
            (None, _) => true,
            (Some(last), None) => is_allowed(last),
            _ => false,
        }
    }
}

/// Whether overlapping fields have a common value.
fn cluster_agrees(own: &[(Bits, Bound)], all: Bits) -> bool {
    let whole = own.iter().all(|(bits, _)| (bits.first, bits.count) == (all.first, all.count));
    if whole {
        return least(own.iter().map(|it| it.1), Number::last_of(all.count)).is_some();
    }
    const BYTE: u16 = u8::BITS as u16;
    if all.count > BYTE {
        return true;
    }
    let part = |value: u128, bits: &Bits| {
        let behind = all.first + all.count - bits.first - bits.count;
        (value >> behind & ((1 << bits.count) - 1)).into()
    };
    (0..1 << all.count).any(|value| own.iter().all(|(bits, bound)| bound.allows(part(value, bits))))
}

/// The bound of a match without a comparison.
fn alone(negated: bool) -> Bound {
    if negated { Bound::NONE } else { Bound::ALL }
}

/// The numbers that a match allows for a numeric field.
fn number(predicate: &Predicate) -> Bound {
    let Predicate { negated, field, test } = predicate;
    let only = |value: u8, is: bool| {
        let value = Number::from(u128::from(value));
        if is { Bound::Within(value, value) } else { Bound::Without(value, value) }
    };
    let (condition, value) = match (test, field.spec().kind) {
        (None, Kind::Flag) => return only(1, !negated),
        (None, Kind::Named(value)) => return only(value, !negated),
        (None, _) => return alone(*negated),
        (Some((condition, value)), Kind::Named(named)) => {
            let is = (*value == Value::Number(1)) == (*condition == Condition::Equal);
            return only(named, is != *negated);
        }
        (Some((condition, value)), _) => (*condition, value),
    };
    let condition = condition.inverse_if(*negated);
    if let Value::Set(set) = value {
        return in_set(set, condition);
    }
    let (low, high) = match (value.range(), value) {
        (Some((low, high)), _) => (low.into(), high.into()),
        (None, Value::Bytes(bytes)) => (Number::of_bytes(bytes), Number::of_bytes(bytes)),
        (None, _) => return Bound::ALL,
    };
    Bound::compared(condition, low, high)
}

/// The numbers that a match with a set allows, and perhaps more. Named sets may get any values later.
fn in_set(set: &ValueSet, condition: Condition) -> Bound {
    let (first, last) = match (set.name(), set.ranges().as_slice()) {
        (None, [first, .., last]) => (first, last),
        (None, [only]) => (only, only),
        _ => return Bound::ALL,
    };
    match condition {
        Condition::Equal => Bound::Within(first.0.into(), last.1.into()),
        _ if first == last => Bound::Without(first.0.into(), first.1.into()),
        _ => Bound::ALL,
    }
}
