//! Sets fields and updates the checksums over them.

use crate::field::{Field, FieldLocation, Kind, Layer};
use crate::headers::Headers;
use crate::value::{Value, mask4, mask6};
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::{Icmp, Ipv4Header, Tcp, Udp, bits, tcp, transport};
use std::ops::Range;

/// Sets a field of a packet that has it, and mends the checksums over it; a
/// checksum that is set itself is left as it is set.
pub fn set(bytes: &mut [u8], headers: &Headers, field: Field, value: &Value) {
    let spec = field.spec();
    if !headers.has(spec.layer) {
        return;
    }
    let (start, behind) = headers.layer(spec.layer);
    match (spec.location, value) {
        (FieldLocation::Payload, Value::Bytes(value)) => {
            let end = (behind + value.len()).min(headers.end);
            set_payload(bytes, headers, behind..end, value);
        }
        (FieldLocation::Bits { first, count }, value) => {
            let (first, count) = (usize::from(first), usize::from(count));
            let pseudo = matches!(spec.kind, Kind::Address4 | Kind::Address6);
            let field_bits = FieldBits { layer: spec.layer, first, count, pseudo };
            match spec.kind {
                Kind::Checksum => {
                    let header = bytes.get_mut(start..).unwrap_or_default();
                    if let Some(old) = bits::get(header, first, count) {
                        bits::set(header, first, count, new_value(spec.kind, old, value));
                    }
                }
                kind => put(bytes, headers, field_bits, |old| new_value(kind, old, value)),
            }
        }
        _ => {}
    }
}

/// Location of a number that checksums cover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldBits {
    layer: Layer,
    first: usize,
    count: usize,
    pseudo: bool,
}

impl FieldBits {
    /// So many bits from that byte of the layer's header on.
    pub(crate) const fn new(layer: Layer, byte: usize, count: usize) -> FieldBits {
        FieldBits { layer, first: byte * u8::BITS as usize, count, pseudo: false }
    }

    /// The same, so many bits later.
    pub(crate) const fn later(self, bits: usize) -> FieldBits {
        FieldBits { first: self.first + bits, ..self }
    }
}

/// Puts a number made of the old one in its place, if the packet has it, and mends
/// the checksums over it.
pub(crate) fn put(
    bytes: &mut [u8],
    headers: &Headers,
    field_bits: FieldBits,
    new: impl FnOnce(u128) -> u128,
) {
    let FieldBits { layer, first, count, pseudo } = field_bits;
    if !headers.has(layer) {
        return;
    }
    let (start, _) = headers.layer(layer);
    let Some(old) = bytes.get(start..).and_then(|it| bits::get(it, first, count)) else { return };
    let new = new(old);
    let range = start + first / 8..start + (first + count).div_ceil(8);
    let set = |bytes: &mut [u8]| {
        bits::set(&mut bytes[start..], first, count, new);
    };
    match layer {
        _ if pseudo => {
            change_with_checksums(bytes, headers, AffectedChecksums::Address, range, set)
        }
        Layer::Ip4 => change_with_checksums(bytes, headers, AffectedChecksums::Ip4, range, set),
        Layer::Ip6 => set(bytes),
        _ => change_with_checksums(bytes, headers, AffectedChecksums::Upper, range, set),
    }
}

/// Returns the new value of a field.
fn new_value(kind: Kind, old: u128, value: &Value) -> u128 {
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

/// The checksums that cover a changed field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AffectedChecksums {
    /// The IPv4 header's.
    Ip4,
    /// The IP header's, if it has one, and the transport's by its pseudo header.
    Address,
    /// The transport's.
    Upper,
}

/// Changes bytes, and mends checksums by how the sum over them changes.
fn change_with_checksums(
    bytes: &mut [u8],
    headers: &Headers,
    sums: AffectedChecksums,
    range: Range<usize>,
    change: impl FnOnce(&mut [u8]),
) {
    let start = if sums == AffectedChecksums::Upper { headers.transport } else { headers.network };
    // Sums are over words, counted from the start of the header.
    let from = start + (range.start - start) / 2 * 2;
    let to = (start + (range.end - start).next_multiple_of(2)).min(headers.end);
    let before = Sum::new().slice(&bytes[from..to]);
    change(bytes);
    let delta = Delta::new().sum(before, Sum::new().slice(&bytes[from..to]));
    if sums != AffectedChecksums::Upper
        && !headers.is_ip6
        && let Some((ip, _)) = Ipv4Header::from_prefix_mut(&mut bytes[headers.network..])
    {
        ip.adjust_checksum(delta);
    }
    if sums != AffectedChecksums::Ip4 {
        adjust_upper_checksum(bytes, headers, sums == AffectedChecksums::Address, delta);
    }
}

/// Mends the checksum of the transport header, if it is here and over what changed.
pub(super) fn adjust_upper_checksum(
    bytes: &mut [u8],
    headers: &Headers,
    pseudo: bool,
    delta: Delta,
) {
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
            if let Some((icmp, rest)) = Icmp::from_prefix_mut(header) {
                icmp.adjust_checksum(delta);
                // Behind the message may be padding.
                let length = headers.end.saturating_sub(headers.transport + Icmp::LEN);
                icmp.normalize_zero_checksum(&rest[..length.min(rest.len())]);
            }
        }
        // Protocols without fields of their own: DCCP's checksum is over the addresses.
        _ if pseudo && !headers.is_later_fragment => {
            let segment = bytes.get_mut(headers.transport..headers.end).unwrap_or_default();
            transport::adjust_checksum(headers.protocol, segment, delta);
        }
        _ => {}
    }
}

/// Shifts the sequence numbers of selective acknowledgments, as they lie in a packet.
pub(super) fn shift_sack(bytes: &mut [u8], headers: &Headers, by: u32) {
    let Some(sack) = headers.option(bytes, tcp::OPTION_SACK) else { return };
    let start = headers.options_range().start + sack.data_offset();
    let range = start..(start + sack.data.len()).min(headers.end);
    // An option may begin anywhere: the sum is over whole words all the same.
    change_with_checksums(bytes, headers, AffectedChecksums::Upper, range.clone(), |bytes| {
        shift(&mut bytes[range], by)
    });
}

/// Shifts each number of four bytes.
pub(super) fn shift(numbers: &mut [u8], by: u32) {
    for number in numbers.as_chunks_mut().0 {
        *number = u32::from_be_bytes(*number).wrapping_add(by).to_be_bytes();
    }
}

/// Returns the range of the transport checksum.
fn checksum_range(headers: &Headers) -> Range<usize> {
    let at = match headers.upper {
        Layer::Tcp => Tcp::CHECKSUM,
        Layer::Udp => Udp::CHECKSUM,
        Layer::Icmp | Layer::Icmp6 => Icmp::CHECKSUM,
        _ => return 0..0,
    };
    headers.transport + at..headers.transport + at + size_of::<u16>()
}

/// Sets the beginning of a payload. The value may reach into a transport header
/// and its checksum, which then keeps the value.
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
        change_with_checksums(bytes, headers, AffectedChecksums::Upper, covered, put);
    }
}
