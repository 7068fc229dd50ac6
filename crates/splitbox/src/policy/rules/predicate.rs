//! Matches and changes of single fields on header strings.

use crate::bits::{Bits, Ternary};
use crate::header::{IP4, TRANSPORT_BYTES};
use crate::policy::stage::{LATER_FRAGMENT_BIT, family, fields, transport, writable};
use castanet_kit::rules::prefixes;
use castanet_middlebox::field::{Field, FieldLocation, Kind, Layer};
use castanet_middlebox::rule::Predicate;
use castanet_middlebox::value::{Condition, Value};
use castanet_middlebox::value_set::NumberSet;
use castanet_wire::{Ipv4Header, Ipv6Header, ip_proto};
use std::cmp::Ordering;

/// A message and a suggestion.
type Refusal = (String, Option<String>);

/// The first bit of the network header in a header string.
const NETWORK: usize = IP4.tos.at - 8 * Ipv4Header::TOS;

/// A field in the header strings of packets that have it.
struct Place {
    /// The packets: one of the address families, with the header of the field.
    packets: Ternary,
    at: usize,
    width: usize,
}

/// The address families in which a layer occurs, and its protocol.
fn families(layer: Layer) -> (&'static [bool], Option<u8>) {
    match layer {
        Layer::Any => (&[false, true], None),
        Layer::Ip4 => (&[false], None),
        Layer::Ip6 => (&[true], None),
        Layer::Icmp => (&[false], Some(ip_proto::ICMP)),
        Layer::Icmp6 => (&[true], Some(ip_proto::ICMPV6)),
        Layer::Udp => (&[false, true], Some(ip_proto::UDP)),
        Layer::Tcp => (&[false, true], Some(ip_proto::TCP)),
    }
}

/// The places of a field, one for each address family that has it.
fn places(field: Field) -> Result<Vec<Place>, Refusal> {
    let spec = field.spec();
    let no_part = |help: &str| {
        let message = format!("`{field}` is no part of a header string");
        Err((message, Some(help.to_owned())))
    };
    let (families, protocol) = families(spec.layer);
    let mut places = Vec::new();
    for &is_ip6 in families {
        let protocol_field = fields(is_ip6).protocol;
        let packets = protocol.map_or(family(is_ip6), |it| transport(is_ip6, it));
        let (at, width) = match spec.location {
            FieldLocation::Upper => (protocol_field.at, protocol_field.width),
            FieldLocation::Bits { first, count } => {
                let (first, count) = (usize::from(first), usize::from(count));
                let header = if protocol.is_some() { fields(is_ip6).sport.at } else { NETWORK };
                if protocol.is_some() && first + count > 8 * TRANSPORT_BYTES {
                    let message =
                        format!("it has the first {TRANSPORT_BYTES} bytes of a transport header");
                    return no_part(&message);
                }
                if is_ip6 && protocol.is_none() && first == 8 * Ipv6Header::NEXT_HEADER {
                    return no_part("`ip6-proto` is the protocol behind extension headers");
                }
                (header + first, count)
            }
            FieldLocation::In | FieldLocation::Out => {
                return no_part("a private function does not know interfaces");
            }
            FieldLocation::ConnectionState
            | FieldLocation::ConnectionCount(_)
            | FieldLocation::Rate(_)
            | FieldLocation::Chain => {
                return no_part("a private function has no connections, no limits and no chains");
            }
            _ => return no_part("it has headers without options, extension headers and payload"),
        };
        places.push(Place { packets, at, width });
    }
    Ok(places)
}

/// The matches of a predicate: a packet satisfies it if it meets one of them.
///
/// # Errors
/// The field is no part of header strings.
pub(super) fn alternatives(predicate: &Predicate) -> Result<Vec<Ternary>, Refusal> {
    let Predicate { negated, field, test } = predicate;
    let spec = field.spec();
    if predicate.tests_layer_only() {
        return Ok(if *negated { without_layer(spec.layer) } else { with_layer(spec.layer) });
    }
    let is_allowed = |order: Ordering| {
        test.as_ref().is_none_or(|(condition, _)| condition.allows(order)) != *negated
    };
    match (spec.location, test) {
        (FieldLocation::Everywhere, _) => return Ok(vec![Ternary::ANY]),
        (FieldLocation::Version, Some((_, Value::Number(version)))) => {
            let families = [(false, 4), (true, 6)].into_iter();
            let allowed =
                families.filter(|(_, number): &(bool, u64)| is_allowed(number.cmp(version)));
            return Ok(allowed.map(|(is_ip6, _)| family(is_ip6)).collect());
        }
        // Every packet has them.
        (FieldLocation::Version | FieldLocation::Upper, None) => {
            return Ok(if *negated { Vec::new() } else { with_layer(spec.layer) });
        }
        _ => {}
    }
    if let Some((_, Value::Set(set))) = test
        && let Some(name) = set.name()
    {
        let help = "list the values, such as `80,443,8000-8100`: a policy is private as a whole";
        return Err((format!("a policy has no named sets such as `@{name}`"), Some(help.into())));
    }
    let all = places(*field)?.into_iter().flat_map(|place| {
        let matches = match (spec.kind, test) {
            (_, Some((condition, Value::Set(set)))) => {
                in_list(set.ranges(), condition.inverse_if(*negated), &place)
            }
            (Kind::Flag, None) => comparison(Condition::Equal.inverse_if(*negated), 1, 1, place.at),
            (Kind::Named(value), None) => {
                let condition = Condition::Equal.inverse_if(*negated);
                comparison(condition, value.into(), place.width, place.at)
            }
            (Kind::Named(value), Some((_, Value::Number(wanted)))) => {
                let [equal, unequal] = [1, 0].map(|it: u64| is_allowed(it.cmp(wanted)));
                let of = |condition| comparison(condition, value.into(), place.width, place.at);
                match (equal, unequal) {
                    (true, true) => vec![Ternary::ANY],
                    (true, false) => of(Condition::Equal),
                    (false, true) => of(Condition::Unequal),
                    (false, false) => Vec::new(),
                }
            }
            (_, Some((condition, value))) => {
                let (number, width) = number_of(value, place.width);
                comparison(condition.inverse_if(*negated), number, width, place.at)
            }
            // Other fields alone are about their layer.
            (_, None) => Vec::new(),
        };
        matches.into_iter().filter_map(move |it| it.and(&place.packets))
    });
    Ok(all.collect())
}

/// The numbers at a place that are in a list, or not, as prefixes.
fn in_list(list: &NumberSet, condition: Condition, place: &Place) -> Vec<Ternary> {
    let width = place.width as u32;
    let last = u128::MAX >> (u128::BITS - width);
    let ranges = match condition {
        Condition::Equal => list.clone(),
        _ => NumberSet::new(vec![(0, last)]).without(list),
    };
    let parts = ranges.as_slice().iter();
    let prefixes = parts.flat_map(|&(low, high)| prefixes(low, high, width));
    let row = |(mask, value): (u128, u128)| {
        let length = mask.count_ones() as usize;
        let start = value.checked_shr(width - length as u32).unwrap_or(0);
        Ternary::ANY.with(place.at, length, start)
    };
    prefixes.map(row).collect()
}

/// The first bits of a field that a value is about, as a number, and how many there are.
fn number_of(value: &Value, width: usize) -> (u128, usize) {
    match *value {
        Value::Number(number) => (number.into(), width),
        Value::Net4 { address, length } => {
            (u128::from(address) >> (32 - u32::from(length)), length.into())
        }
        Value::Net6 { address, length } => {
            (address.checked_shr(128 - u32::from(length)).unwrap_or(0), length.into())
        }
        Value::Bytes(_) | Value::Name(_) | Value::Set(_) | Value::Chain(_) | Value::Rate(_) => {
            (0, 0)
        }
    }
}

/// The numbers of `width` bits at a place that compare so with `value`, as prefixes.
fn comparison(condition: Condition, value: u128, width: usize, at: usize) -> Vec<Ternary> {
    let bit = |index: usize| value >> (width - 1 - index) & 1;
    // The numbers that are the same up to a bit, where they have the other one.
    let flipped = |index: usize| {
        let start = (value ^ 1 << (width - 1 - index)) >> (width - 1 - index);
        Ternary::ANY.with(at, index + 1, start)
    };
    let different =
        |of: Option<u128>| (0..width).filter(move |&it| of.is_none_or(|of| bit(it) == of));
    let last = if width == 128 { u128::MAX } else { (1 << width) - 1 };
    match condition {
        Condition::Equal => vec![Ternary::ANY.with(at, width, value)],
        Condition::Unequal => different(None).map(flipped).collect(),
        Condition::Less => different(Some(1)).map(flipped).collect(),
        Condition::More => different(Some(0)).map(flipped).collect(),
        Condition::AtMost | Condition::AtLeast if width == 0 => vec![Ternary::ANY],
        Condition::AtMost if value == last => vec![Ternary::ANY],
        Condition::AtMost => comparison(Condition::Less, value + 1, width, at),
        Condition::AtLeast if value == 0 => vec![Ternary::ANY],
        Condition::AtLeast => comparison(Condition::More, value - 1, width, at),
    }
}

/// The packets with a layer.
fn with_layer(layer: Layer) -> Vec<Ternary> {
    match families(layer) {
        (&[_, _], None) => vec![Ternary::ANY],
        (families, None) => families.iter().map(|&it| family(it)).collect(),
        (families, Some(protocol)) => families.iter().map(|&it| transport(it, protocol)).collect(),
    }
}

/// The packets without a layer.
fn without_layer(layer: Layer) -> Vec<Ternary> {
    let (with, protocol) = families(layer);
    let mut all = Vec::new();
    for is_ip6 in [false, true] {
        match protocol.filter(|_| with.contains(&is_ip6)) {
            None if with.contains(&is_ip6) => {}
            None => all.push(family(is_ip6)),
            Some(protocol) => {
                let place = fields(is_ip6).protocol;
                let others = comparison(Condition::Unequal, protocol.into(), place.width, place.at);
                let later = family(is_ip6).with(LATER_FRAGMENT_BIT, 1, 1);
                all.push(later);
                all.extend(others.into_iter().filter_map(|it| it.and(&family(is_ip6))));
            }
        }
    }
    all
}

/// The bits that a `mod` sets, each with the packets that have the field.
///
/// # Errors
/// Actions cannot change the field.
pub(super) fn changes(field: Field, value: &Value) -> Result<Vec<(Ternary, Ternary)>, String> {
    let spec = field.spec();
    let places = places(field).map_err(|(message, _)| message)?;
    let mut changes = Vec::new();
    for place in places {
        let (number, width) = match (spec.kind, value) {
            (Kind::Named(_), Value::Number(0)) => {
                return Err(format!("`mod {field} 0` depends on the value before"));
            }
            (Kind::Named(name), _) => (name.into(), place.width),
            _ => number_of(value, place.width),
        };
        let action = Ternary::ANY.with(place.at, width, number);
        let within: Bits = writable(&place.packets);
        if action.projection().overlaps(&!within) {
            return Err(format!("`{field}` is not for a private function to change"));
        }
        changes.push((place.packets, action));
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comparisons_are_prefixes(
            value: u8,
            width in 0..9_usize,
            at in 0..20_usize,
            condition in prop::sample::select(castanet_middlebox::value::CONDITIONS.to_vec()),
        ) {
            let value = u128::from(value) & ((1 << width) - 1);
            let prefixes = comparison(condition.1, value, width, at);
            prop_assert!(prefixes.len() <= width.max(1));
            for number in 0..1 << width {
                let header = Ternary::ANY.with(at, width, number).value();
                let count = prefixes.iter().filter(|it| it.matches(header)).count();
                prop_assert_eq!(count, usize::from(condition.1.allows(number.cmp(&value))));
            }
        }
    }

    #[test]
    fn comparisons_of_addresses() {
        let [low, high] = [Condition::AtMost, Condition::More]
            .map(|it| comparison(it, u128::MAX - 1, 128, 5).len());
        assert_eq!((low, high), (127 + 1, 1));
        assert_eq!(comparison(Condition::AtMost, u128::MAX, 128, 5), [Ternary::ANY]);
    }
}
