//! Matches packets against predicates field by field. This is the reference for the lookup tables.

use crate::ct_state::CtInfo;
use crate::field::{Field, FieldLocation, Kind, Layer};
use crate::headers::Headers;
use crate::rule::{Predicate, Rule};
use crate::value::{Condition, Value, mask4, mask6};
use castanet_wire::{Ethernet, bits, ether_type};
use std::cmp::Ordering;

/// A packet as the rules match it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// The bytes of the packet.
    pub bytes: &'a [u8],
    /// Its Ethernet header and VLAN tags, which may have been stripped; empty if there are none.
    pub link: &'a [u8],
    /// Offsets of its headers.
    pub headers: &'a Headers,
    /// Name of the input interface.
    pub input: &'a str,
    /// Name of the output interface.
    pub output: &'a str,
    /// The state of its connection.
    pub ct_info: CtInfo,
    /// The time in nanoseconds.
    pub now: u64,
    /// Whether limits count the packet: not where it is only tested.
    pub is_counted: bool,
}

/// The value of a field in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FieldValue<'a> {
    /// The packet does not have the header that the field belongs to.
    NoLayer,
    /// The packet has the header, but not the field.
    Absent,
    /// The packet has the field, which has no comparable value.
    Present,
    /// A number.
    Number(u128),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A name.
    Name(&'a str),
}

impl<'a> PacketView<'a> {
    /// A packet with these headers, of no connection and at time 0, that passes between two interfaces; limits
    /// do not count it.
    pub fn new(
        bytes: &'a [u8],
        headers: &'a Headers,
        (input, output): (&'a str, &'a str),
    ) -> PacketView<'a> {
        let (ct_info, now, is_counted) = (CtInfo::default(), 0, false);
        let link = bytes.get(..headers.network).unwrap_or_default();
        PacketView { bytes, link, headers, input, output, ct_info, now, is_counted }
    }

    fn read(&self, field: Field) -> FieldValue<'a> {
        let (spec, headers) = (field.spec(), self.headers);
        if !headers.has(spec.layer) {
            return FieldValue::NoLayer;
        }
        let there = |there: bool| if there { FieldValue::Present } else { FieldValue::Absent };
        match spec.location {
            FieldLocation::Everywhere => FieldValue::Present,
            FieldLocation::In => FieldValue::Name(self.input),
            FieldLocation::Out => FieldValue::Name(self.output),
            FieldLocation::Version => FieldValue::Number(if headers.is_ip6 { 6 } else { 4 }),
            FieldLocation::Upper => FieldValue::Number(headers.protocol.into()),
            FieldLocation::Extension(number) => there(headers.has_extension(number)),
            FieldLocation::Option(_) => self.option(field),
            FieldLocation::ConnectionState => FieldValue::Number(self.ct_info.state as u128),
            // Limits count packets that satisfy all else; a chain is no field of the packet.
            FieldLocation::Rate(_) | FieldLocation::ConnectionCount(_) => FieldValue::Present,
            FieldLocation::Chain => FieldValue::Absent,
            FieldLocation::Ethernet { first, count } => {
                let header = self.link.get(..Ethernet::LEN).unwrap_or_default();
                bits::get(header, first.into(), count.into())
                    .map_or(FieldValue::Absent, FieldValue::Number)
            }
            FieldLocation::Vlan { first, count } => {
                let tag = self.vlan_tag().unwrap_or_default();
                bits::get(tag, first.into(), count.into())
                    .map_or(FieldValue::Absent, FieldValue::Number)
            }
            FieldLocation::Payload => {
                let (_, start) = headers.layer(spec.layer);
                FieldValue::Bytes(self.bytes.get(start..headers.end).unwrap_or_default())
            }
            FieldLocation::Bits { first, count } => {
                let (start, _) = headers.layer(spec.layer);
                let header = self.bytes.get(start..).unwrap_or_default();
                bits::get(header, first.into(), count.into())
                    .map_or(FieldValue::Absent, FieldValue::Number)
            }
        }
    }

    /// The control information of the first VLAN tag.
    fn vlan_tag(&self) -> Option<&'a [u8]> {
        let (ether, behind) = Ethernet::from_prefix(self.link)?;
        let is_tag = matches!(ether.ether_type(), ether_type::VLAN | ether_type::QINQ);
        behind.get(..2).filter(|_| is_tag)
    }

    fn option(&self, field: Field) -> FieldValue<'a> {
        let Some(kind) = field.option_kind() else {
            let has_any = self.headers.options(self.bytes).next().is_some();
            return if has_any { FieldValue::Present } else { FieldValue::Absent };
        };
        let Some(option) = self.headers.option(self.bytes, kind) else { return FieldValue::Absent };
        let data = option.data;
        let bits = usize::from(field.spec().bits());
        match field.spec().kind {
            Kind::Presence => FieldValue::Present,
            // An option of the wrong length has no comparable value.
            Kind::Number if data.len() * 8 == bits => {
                bits::get(data, 0, bits).map_or(FieldValue::Present, FieldValue::Number)
            }
            Kind::Number => FieldValue::Present,
            _ => FieldValue::Bytes(data),
        }
    }
}

impl Predicate {
    /// Whether the packet satisfies the predicate, if it is no limit, which every packet is taken to
    /// satisfy here.
    pub fn matches_packet(&self, packet: &PacketView) -> bool {
        if let Some((_, Value::Chain(chain))) = &self.test {
            return chain.has_packet(packet);
        }
        if self.field.spec().is_limit() {
            return true;
        }
        let found = packet.read(self.field);
        if found == FieldValue::NoLayer {
            return self.negated && self.tests_layer_only();
        }
        let is_satisfied = match &self.test {
            None => self.is_satisfied_alone(found),
            Some((condition, value)) => {
                compare(self.field, found, value).is_some_and(|order| condition.allows(order))
                    || *condition == Condition::Unequal && is_incomparable(found)
            }
        };
        is_satisfied != self.negated
    }

    /// Whether the predicate tests only for the header, which every packet of that layer has.
    pub fn tests_layer_only(&self) -> bool {
        let spec = self.field.spec();
        let always = matches!(
            spec.location,
            FieldLocation::Bits { .. } | FieldLocation::Payload | FieldLocation::Upper
        );
        let about_value = matches!(spec.kind, Kind::Flag | Kind::Named(_));
        self.test.is_none() && always && !about_value && spec.layer != Layer::Any
    }

    /// Whether a predicate without a condition is satisfied.
    fn is_satisfied_alone(&self, value: FieldValue) -> bool {
        match (self.field.spec().kind, value) {
            (_, FieldValue::Absent) => false,
            (Kind::Flag, FieldValue::Number(n)) => n == 1,
            (Kind::Named(value), FieldValue::Number(n)) => n == u128::from(value),
            _ => true,
        }
    }
}

/// Whether the field is present without a comparable value.
fn is_incomparable(value: FieldValue) -> bool {
    value == FieldValue::Present
}

/// Compares the field of a packet with a value; `None` if they are not comparable.
fn compare(field: Field, found: FieldValue, value: &Value) -> Option<Ordering> {
    match (found, value) {
        (FieldValue::Number(n), Value::Number(value)) => match field.spec().kind {
            Kind::Named(is) => Some(u64::from(n == u128::from(is)).cmp(value)),
            _ => Some(n.cmp(&u128::from(*value))),
        },
        (FieldValue::Number(n), Value::Net4 { address, length }) => {
            Some((n & u128::from(mask4(*length))).cmp(&u128::from(*address)))
        }
        (FieldValue::Number(n), Value::Set(set)) => Some(match set.ranges().contains(n) {
            true => Ordering::Equal,
            false => Ordering::Less,
        }),
        (FieldValue::Number(n), Value::Net6 { address, length }) => {
            Some((n & mask6(*length)).cmp(address))
        }
        (FieldValue::Bytes(bytes), Value::Bytes(value)) => Some(match field.spec().kind {
            Kind::Prefix => bytes[..bytes.len().min(value.len())].cmp(value),
            _ => without_leading_zeros(bytes).cmp(&without_leading_zeros(value)),
        }),
        (FieldValue::Name(name), Value::Name(value)) => Some(name.cmp(value)),
        _ => None,
    }
}

/// Bytes as a number of any size: its length without leading zeros, then these bytes.
fn without_leading_zeros(bytes: &[u8]) -> (usize, &[u8]) {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    (bytes.len() - zeros, &bytes[zeros..])
}

impl Rule {
    /// Whether the packet satisfies all predicates.
    pub fn matches_packet(&self, packet: &PacketView) -> bool {
        self.matches.iter().all(|predicate| predicate.matches_packet(packet))
    }
}
