//! Setting fields, with the checksums over them.

use crate::field::{Field, Kind, Layer, Place};
use crate::headers::Headers;
use crate::value::{Value, mask4, mask6};
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::{Icmp, Ipv4Header, Tcp, Udp, bits};
use std::ops::Range;

/// Sets a field of a packet that has it, and mends the checksums over it; a
/// checksum that is set itself is left as it is set.
pub fn set(bytes: &mut [u8], headers: &Headers, field: Field, value: &Value) {
    let spec = field.spec();
    if !headers.has(spec.layer) {
        return;
    }
    let (start, behind) = headers.layer(spec.layer);
    match (spec.place, value) {
        (Place::Payload, Value::Bytes(value)) => {
            let end = (behind + value.len()).min(headers.end);
            set_payload(bytes, headers, behind..end, value);
        }
        (Place::Bits { first, count }, value) => {
            let place = (usize::from(first), usize::from(count));
            let Some(old) = bytes.get(start..).and_then(|it| bits::get(it, place.0, place.1))
            else {
                return;
            };
            let new = replaced(spec.kind, old, value);
            let range = start + place.0 / 8..start + (place.0 + place.1).div_ceil(8);
            let put = |bytes: &mut [u8]| {
                bits::set(&mut bytes[start..], place.0, place.1, new);
            };
            match spec.kind {
                Kind::Checksum => put(bytes),
                Kind::Address4 | Kind::Address6 => {
                    changing(bytes, headers, Sums::Address, range, put)
                }
                _ if spec.layer == Layer::Ip4 => changing(bytes, headers, Sums::Ip4, range, put),
                _ if spec.layer == Layer::Ip6 => put(bytes),
                _ => changing(bytes, headers, Sums::Upper, range, put),
            }
        }
        _ => {}
    }
}

/// What a field becomes.
fn replaced(kind: Kind, old: u128, value: &Value) -> u128 {
    match (kind, value) {
        (Kind::Named(name), Value::Number(1)) => name.into(),
        (Kind::Named(name), _) => {
            if old == u128::from(name) {
                0
            } else {
                old
            }
        }
        (_, Value::Number(n)) => (*n).into(),
        (_, Value::Net4 { address, length }) => {
            old & u128::from(!mask4(*length)) | u128::from(*address)
        }
        (_, Value::Net6 { address, length }) => old & !mask6(*length) | address,
        _ => old,
    }
}

/// Which checksums are over what changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// The IPv4 header's.
    Ip4,
    /// The IP header's, if it has one, and the transport's by its pseudo header.
    Address,
    /// The transport's.
    Upper,
}

/// Changes bytes, and mends checksums by how the sum over them changes.
fn changing(
    bytes: &mut [u8],
    headers: &Headers,
    sums: Sums,
    range: Range<usize>,
    change: impl FnOnce(&mut [u8]),
) {
    let start = if sums == Sums::Upper { headers.transport } else { headers.network };
    // Sums are over words, counted from the start of the header.
    let from = start + (range.start - start) / 2 * 2;
    let to = (start + (range.end - start).next_multiple_of(2)).min(headers.end);
    let before = Sum::new().slice(&bytes[from..to]);
    change(bytes);
    let delta = Delta::new().sum(before, Sum::new().slice(&bytes[from..to]));
    if sums != Sums::Upper
        && !headers.is_ip6
        && let Some((ip, _)) = Ipv4Header::from_prefix_mut(&mut bytes[headers.network..])
    {
        ip.adjust_checksum(delta);
    }
    if sums != Sums::Ip4 {
        mend_upper(bytes, headers, sums == Sums::Address, delta);
    }
}

/// Mends the checksum of the transport header, if it is here and over what changed.
pub(super) fn mend_upper(bytes: &mut [u8], headers: &Headers, pseudo: bool, delta: Delta) {
    let header = &mut bytes[headers.transport..];
    match headers.upper {
        Layer::Tcp => {
            if let Some((tcp, _)) = Tcp::from_prefix_mut(header) {
                tcp.adjust_checksum(delta);
            }
        }
        Layer::Udp => {
            if let Some((udp, _)) = Udp::from_prefix_mut(header) {
                udp.adjust_checksum(delta);
            }
        }
        Layer::Icmp if pseudo => {}
        Layer::Icmp | Layer::Icmp6 => {
            if let Some((icmp, _)) = Icmp::from_prefix_mut(header) {
                icmp.adjust_checksum(delta);
            }
        }
        _ => {}
    }
}

/// Where the checksum of the transport header lies.
fn checksum_range(headers: &Headers) -> Range<usize> {
    let at = match headers.upper {
        Layer::Tcp => Tcp::CHECKSUM,
        Layer::Udp => Udp::CHECKSUM,
        Layer::Icmp | Layer::Icmp6 => Icmp::CHECKSUM,
        _ => return 0..0,
    };
    headers.transport + at..headers.transport + at + size_of::<u16>()
}

/// Sets the beginning of a payload. What is set may reach into a transport header
/// and its checksum, which is then left as it is set.
fn set_payload(bytes: &mut [u8], headers: &Headers, range: Range<usize>, value: &[u8]) {
    let put = |bytes: &mut [u8]| {
        let length = range.len();
        bytes[range.clone()].copy_from_slice(&value[..length]);
    };
    let sum = checksum_range(headers);
    let over_sum = range.start < sum.end && sum.start < range.end;
    let covered = range.start.max(headers.transport)..range.end;
    if over_sum || covered.is_empty() || headers.upper == Layer::Any {
        put(bytes);
    } else {
        changing(bytes, headers, Sums::Upper, covered, put);
    }
}
