//! Whether a packet is what a predicate says: the plain way, one field after the
//! other, which faster ways are compared with.

use crate::field::{Field, Kind, Layer, Place};
use crate::headers::Headers;
use crate::rule::{Predicate, Rule};
use crate::value::{Condition, Value, mask4, mask6};
use castanet_wire::bits;
use std::cmp::Ordering;

/// A packet as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where its headers are.
    pub headers: &'a Headers,
    /// The interface that it came in by.
    pub input: &'a str,
    /// The interface that it is to leave by.
    pub output: &'a str,
}

/// What a packet has of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading<'a> {
    /// It does not have the headers that the field lies in.
    NoLayer,
    /// It has them, but not the field.
    Absent,
    /// It has the field, which has no value.
    Present,
    /// A number.
    Number(u128),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A name.
    Name(&'a str),
}

impl<'a> Seen<'a> {
    fn read(&self, field: Field) -> Reading<'a> {
        let (spec, headers) = (field.spec(), self.headers);
        if !headers.has(spec.layer) {
            return Reading::NoLayer;
        }
        let there = |there: bool| if there { Reading::Present } else { Reading::Absent };
        match spec.place {
            Place::Everywhere => Reading::Present,
            Place::In => Reading::Name(self.input),
            Place::Out => Reading::Name(self.output),
            Place::Version => Reading::Number(if headers.is_ip6 { 6 } else { 4 }),
            Place::Upper => Reading::Number(headers.protocol.into()),
            Place::Extension(number) => there(headers.has_extension(number)),
            Place::Option(_) => self.option(field),
            Place::Payload => {
                let (_, start) = headers.layer(spec.layer);
                Reading::Bytes(self.bytes.get(start..headers.end).unwrap_or_default())
            }
            Place::Bits { first, count } => {
                let (start, _) = headers.layer(spec.layer);
                let header = self.bytes.get(start..).unwrap_or_default();
                bits::get(header, first.into(), count.into())
                    .map_or(Reading::Absent, Reading::Number)
            }
        }
    }

    fn option(&self, field: Field) -> Reading<'a> {
        let Some(kind) = field.option_kind() else {
            let has_any = self.headers.options(self.bytes).next().is_some();
            return if has_any { Reading::Present } else { Reading::Absent };
        };
        let Some(option) = self.headers.option(self.bytes, kind) else { return Reading::Absent };
        let data = option.data;
        let bits = usize::from(field.spec().bits());
        match field.spec().kind {
            Kind::Presence => Reading::Present,
            // One whose length is wrong has no such value.
            Kind::Number if data.len() * 8 == bits => {
                bits::get(data, 0, bits).map_or(Reading::Present, Reading::Number)
            }
            Kind::Number => Reading::Present,
            _ => Reading::Bytes(data),
        }
    }
}

impl Predicate {
    /// Whether the packet is what it says.
    pub fn holds(&self, seen: &Seen) -> bool {
        let reading = seen.read(self.field);
        if reading == Reading::NoLayer {
            return self.negated && self.is_about_layer();
        }
        let said = match &self.test {
            None => self.is_said_alone(reading),
            Some((condition, value)) => {
                compares(self.field, reading, value).is_some_and(|order| condition.allows(order))
                    || *condition == Condition::Unequal && is_incomparable(reading)
            }
        };
        said != self.negated
    }

    /// Whether it asks only for the headers that the field lies in, which all
    /// packets with these headers have.
    pub(crate) fn is_about_layer(&self) -> bool {
        let spec = self.field.spec();
        let always = matches!(spec.place, Place::Bits { .. } | Place::Payload | Place::Upper);
        let about_value = matches!(spec.kind, Kind::Flag | Kind::Named(_));
        self.test.is_none() && always && !about_value && spec.layer != Layer::Any
    }

    /// Whether a field that stands alone says yes.
    fn is_said_alone(&self, reading: Reading) -> bool {
        match (self.field.spec().kind, reading) {
            (_, Reading::Absent) => false,
            (Kind::Flag, Reading::Number(n)) => n == 1,
            (Kind::Named(value), Reading::Number(n)) => n == u128::from(value),
            _ => true,
        }
    }
}

/// Whether a field is there with something that is no value of it.
fn is_incomparable(reading: Reading) -> bool {
    reading == Reading::Present
}

/// How what a packet has compares with a value; nothing, if it does not.
fn compares(field: Field, reading: Reading, value: &Value) -> Option<Ordering> {
    match (reading, value) {
        (Reading::Number(n), Value::Number(value)) => match field.spec().kind {
            Kind::Named(is) => Some(u64::from(n == u128::from(is)).cmp(value)),
            _ => Some(n.cmp(&u128::from(*value))),
        },
        (Reading::Number(n), Value::Net4 { address, length }) => {
            Some((n & u128::from(mask4(*length))).cmp(&u128::from(*address)))
        }
        (Reading::Number(n), Value::Net6 { address, length }) => {
            Some((n & mask6(*length)).cmp(address))
        }
        (Reading::Bytes(bytes), Value::Bytes(value)) => Some(match field.spec().kind {
            Kind::Prefix => bytes[..bytes.len().min(value.len())].cmp(value),
            _ => numeric(bytes).cmp(&numeric(value)),
        }),
        (Reading::Name(name), Value::Name(value)) => Some(name.cmp(value)),
        _ => None,
    }
}

/// Bytes as a number of any size: how long it is without zeros, then what it is.
fn numeric(bytes: &[u8]) -> (usize, &[u8]) {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    (bytes.len() - zeros, &bytes[zeros..])
}

impl Rule {
    /// Whether it is about the packet.
    pub fn holds(&self, seen: &Seen) -> bool {
        self.matches.iter().all(|predicate| predicate.holds(seen))
    }
}
