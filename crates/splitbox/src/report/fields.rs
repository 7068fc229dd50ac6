//! The names of the fields of header strings that a projection has.

use crate::bits::Bits;
use crate::header::{HeaderField, HeaderFields, IP4, IP6, SOURCE_HASH, TRANSPORT_BYTES, kind};
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp};

/// Bits of the [kind](kind) byte.
const KIND_BITS: usize = 8;
/// Bits of the fragment word that are flags.
const FRAGMENT_FLAGS: usize = 3;

/// A name for bits of a header string.
struct FieldName {
    name: &'static str,
    /// The name of the first eight bits alone, and that of the others.
    halves: Option<[&'static str; 2]>,
    field: HeaderField,
}

fn name(name: &'static str, at: usize, width: usize) -> FieldName {
    FieldName { name, halves: None, field: HeaderField { at, width } }
}

fn named(text: &'static str, HeaderField { at, width }: HeaderField) -> FieldName {
    name(text, at, width)
}

fn flag(text: &'static str, flag: u8) -> FieldName {
    name(text, flag.leading_zeros() as usize, 1)
}

/// The names of all bits of the header strings of one family, in order.
fn names(is_ip6: bool) -> Vec<FieldName> {
    let mut all = vec![
        flag("IP version", kind::IP6),
        flag("fragment", kind::FRAGMENT),
        flag("later fragment", kind::LATER_FRAGMENT),
        name("length of the transport header", kind::LENGTHS[0].1.leading_zeros() as usize, 4),
        flag("packet", kind::PACKET),
        named("source hash", SOURCE_HASH),
    ];
    let own = if is_ip6 { &IP6 } else { &IP4 };
    if is_ip6 {
        network6(&mut all);
    } else {
        network4(&mut all);
    }
    transport(&mut all, own);
    all
}

fn network4(all: &mut Vec<FieldName>) {
    let at = |byte: usize| IP4.tos.at + 8 * byte - 8 * Ipv4Header::TOS;
    all.extend([
        name("header length", at(0), 8),
        named("TOS", IP4.tos),
        name("total length", at(Ipv4Header::TOTAL_LEN), 16),
        name("identification", at(Ipv4Header::ID), 16),
        name("fragment flags", at(Ipv4Header::FRAGMENT_WORD), FRAGMENT_FLAGS),
        name(
            "fragment offset",
            at(Ipv4Header::FRAGMENT_WORD) + FRAGMENT_FLAGS,
            16 - FRAGMENT_FLAGS,
        ),
        named("TTL", IP4.ttl),
        named("protocol", IP4.protocol),
        name("header checksum", at(Ipv4Header::CHECKSUM), 16),
        named("src", IP4.src),
        named("dst", IP4.dst),
    ]);
}

fn network6(all: &mut Vec<FieldName>) {
    let at = |byte: usize| IP6.src.at + 8 * byte - 8 * Ipv6Header::SRC;
    let class = IP6.tos.at + IP6.tos.width;
    all.extend([
        name("version", at(0), IP6.tos.at - at(0)),
        named("traffic class", IP6.tos),
        name("flow label", class, at(Ipv6Header::PAYLOAD_LEN) - class),
        name("payload length", at(Ipv6Header::PAYLOAD_LEN), 16),
        named("protocol", IP6.protocol),
        named("hop limit", IP6.ttl),
        named("src", IP6.src),
        named("dst", IP6.dst),
    ]);
}

fn transport(all: &mut Vec<FieldName>, own: &HeaderFields) {
    let at = |byte: usize| own.sport.at + 8 * byte;
    let icmp = Some(["ICMP type", "ICMP code"]);
    all.extend([
        FieldName { halves: icmp, ..named("sport", own.sport) },
        named("dport", own.dport),
        name("TCP sequence number", at(Tcp::SEQ), 32),
        name("TCP acknowledgment number", at(Tcp::ACK), 32),
        name("TCP header length", at(Tcp::OFFSET_BYTE), 8),
        name("TCP flags", at(Tcp::FLAGS), 8),
        name("TCP window", at(Tcp::WINDOW), 16),
    ]);
    const { assert!(Tcp::WINDOW + 2 == TRANSPORT_BYTES, "all bits have a name") };
}

impl FieldName {
    /// The bits of a projection in this field, as text; `None` if it has none.
    fn of(&self, projection: &Bits) -> Option<String> {
        let HeaderField { at, width } = self.field;
        let mask =
            (at..at + width).fold(0_u128, |mask, at| mask << 1 | u128::from(projection.get(at)));
        let all = u128::MAX >> (u128::BITS as usize - width);
        let prefix = mask.count_ones() as usize;
        let name = self.name;
        if mask == 0 {
            return None;
        }
        if let Some([first, second]) = self.halves {
            let (low, high) = (all >> (width - 8), all & !0xff);
            match mask {
                _ if mask == high => return Some(format!("{name}/8 or {first}")),
                _ if mask == low => return Some(format!("{name} & {mask:#x} or {second}")),
                _ => {}
            }
        }
        Some(match mask {
            _ if mask == all => name.to_owned(),
            _ if mask == all & !(all >> prefix) => format!("{name}/{prefix}"),
            _ => format!("{name} & {mask:#x}"),
        })
    }
}

/// The fields of a projection for packets of one family: `src/24` has the first 24 bits of a field,
/// `dport & 0xf0` those of a mask.
pub fn fields(projection: &Bits, is_ip6: bool) -> Vec<String> {
    names(is_ip6).iter().filter_map(|it| it.of(projection)).collect()
}

/// The bits of a projection that have to be guessed: all but those of the kind byte, which is the same
/// for nearly all packets.
pub fn guess_bits(projection: &Bits) -> u32 {
    (*projection & !Bits::first(KIND_BITS)).weight()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::HEADER_BITS;

    #[test]
    fn each_bit_has_one_name() {
        for (is_ip6, end) in [(false, 312), (true, 472)] {
            let mut at = 0;
            for it in names(is_ip6) {
                assert_eq!(it.field.at, at, "{}", it.name);
                at += it.field.width;
            }
            assert_eq!(at, end);
            assert!(end <= HEADER_BITS);
        }
    }

    #[test]
    fn fields_are_named_with_prefixes_and_masks() {
        let bits = |parts: &[(HeaderField, u128)]| {
            let mut bits = Bits::ZERO;
            parts.iter().for_each(|&(it, mask)| bits.put(it.at, it.width, mask));
            bits
        };
        let all = |field: HeaderField| (field, u128::MAX);
        let rule = bits(&[(IP4.src, 0xffff_ff00), all(IP4.protocol), all(IP4.dport)]);
        assert_eq!(fields(&rule, false), ["protocol", "src/24", "dport"]);
        assert_eq!(guess_bits(&rule), 48);
        let odd = bits(&[(IP4.dport, 0xf0), (IP4.sport, 0xff00)]);
        assert_eq!(fields(&odd, false), ["sport/8 or ICMP type", "dport & 0xf0"]);
        let code = bits(&[(IP4.sport, 0xff)]);
        assert_eq!(fields(&code, false), ["sport & 0xff or ICMP code"]);
        let six = bits(&[(IP6.dst, u128::MAX << 64), all(IP6.tos)]);
        assert_eq!(fields(&six, true), ["traffic class", "dst/64"]);
        assert_eq!(fields(&Bits::first(1), true), ["IP version"]);
        assert_eq!(guess_bits(&Bits::first(8)), 0);
    }
}
