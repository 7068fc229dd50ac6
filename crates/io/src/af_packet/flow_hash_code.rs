//! eBPF code of the flow hash by which a fanout group's table is looked up.

use crate::assembler::{Assembler, IF_IS, IF_IS_NOT, PACKET, R0, R1, Register};
use castanet_kit::rss::FLOW_HASH_FACTOR;
use castanet_wire::{ether_type, ip_proto};

/// Offset of `protocol` in `struct __sk_buff`; the value is in network order.
const PROTOCOL: i16 = 16;

// Registers that keep their values when a packet is loaded from.
const HASH: Register = 7;
const LENGTH: Register = 8;
const ABOVE: Register = 9;

/// Code that has [`castanet_kit::rss::flow_hash`] of a packet in `R0` at its end. It answers 0 at once
/// where a header is cut short.
pub(super) fn flow_hash_code() -> Vec<u64> {
    let mut asm = Assembler::default();
    let [ipv4, ipv6, ports, mix] = std::array::from_fn(|_| asm.label());
    let network_order = |ether_type: u16| u32::from(ether_type.to_be());
    asm.copy(PACKET, R1);
    asm.set(HASH, 0);
    asm.load_word(LENGTH, R1, PROTOCOL);
    asm.jump_if(IF_IS, LENGTH, 0, network_order(ether_type::IPV4), ipv4);
    asm.jump_if(IF_IS, LENGTH, 0, network_order(ether_type::IPV6), ipv6);
    asm.jump(mix);
    asm.place(ipv4);
    for at in [12, 16] {
        asm.load_network_word(at);
        asm.exclusive_or(HASH, R0);
    }
    asm.load_network_byte(0);
    asm.and_word(R0, 0x0f);
    asm.shift_left(R0, 2);
    asm.copy(LENGTH, R0);
    asm.load_network_byte(9);
    asm.copy(ABOVE, R0);
    // Fragments: more of them, or an offset.
    asm.load_network_half(6);
    asm.and_word(R0, 0x3fff);
    asm.jump_if(IF_IS_NOT, R0, 0, 0, mix);
    asm.jump(ports);
    asm.place(ipv6);
    for at in (8..40).step_by(4) {
        asm.load_network_word(at);
        asm.exclusive_or(HASH, R0);
    }
    asm.load_network_byte(6);
    asm.copy(ABOVE, R0);
    asm.set(LENGTH, 40);
    asm.place(ports);
    let has_ports = asm.label();
    for protocol in [ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP] {
        asm.jump_if(IF_IS, ABOVE, 0, protocol.into(), has_ports);
    }
    asm.jump(mix);
    asm.place(has_ports);
    asm.load_network_word_at(LENGTH);
    asm.copy(R1, R0);
    asm.shift_right_word(R1, 16);
    asm.exclusive_or(R0, R1);
    asm.and_word(R0, 0xffff);
    asm.exclusive_or(HASH, R0);
    asm.place(mix);
    asm.multiply_word(HASH, FLOW_HASH_FACTOR);
    asm.copy(R0, HASH);
    asm.shift_right_word(R0, 16);
    asm.exclusive_or(R0, HASH);
    asm.assemble().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fanout_table::FanoutTable;
    use castanet_kit::rss::flow_hash;
    use proptest::prelude::*;

    /// The entry that the kernel looks up. Needs root.
    fn entry(table: &FanoutTable, ether_type: u16, network: &[u8]) -> u32 {
        let ether = [&[0; 12][..], &ether_type.to_be_bytes()].concat();
        table.socket_of(&[&ether, network].concat()).unwrap()
    }

    /// A table of which each entry is its own number.
    fn table() -> FanoutTable {
        let table = FanoutTable::new(1 << 16, &flow_hash_code()).unwrap();
        (0..1 << 16).for_each(|entry| table.set(entry, entry).unwrap());
        table
    }

    fn header() -> impl Strategy<Value = (u16, Vec<u8>)> {
        let protocol = prop_oneof![Just(6u8), Just(17), Just(132), Just(1), Just(58), any::<u8>()];
        let fragment = prop_oneof![Just(0u16), Just(0x4000), Just(0x2000), any::<u16>()];
        let bytes = proptest::collection::vec(any::<u8>(), 120);
        let kind = prop_oneof![Just(ether_type::IPV4), Just(ether_type::IPV6), Just(0x0806)];
        (kind, bytes, protocol, fragment, 5u8..=15).prop_map(
            |(kind, mut bytes, protocol, fragment, words)| {
                if kind == ether_type::IPV4 {
                    (bytes[0], bytes[9]) = (0x40 | words, protocol);
                    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
                } else {
                    (bytes[0], bytes[6]) = (0x60, protocol);
                }
                (kind, bytes)
            },
        )
    }

    #[test]
    fn the_kernel_computes_the_same() {
        let table = table();
        proptest!(|((kind, bytes) in header())| {
            prop_assert_eq!(entry(&table, kind, &bytes), flow_hash(kind, &bytes) & 0xffff);
        });
        // The hash is one of the flow, in both directions.
        let mut packet =
            [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9];
        let there = flow_hash(ether_type::IPV4, &packet);
        packet[12..24].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1, 0, 9, 0, 7]);
        assert_eq!(flow_hash(ether_type::IPV4, &packet), there);
        assert_ne!(there & 0xffff, 0);
        // A header that is cut short has none.
        for (kind, least) in [(ether_type::IPV4, 24), (ether_type::IPV6, 44)] {
            let mut bytes: [u8; 44] = std::array::from_fn(|at| at as u8 * 5);
            (bytes[0], bytes[9]) = (0x45, ip_proto::UDP);
            bytes[6] = if kind == ether_type::IPV6 { ip_proto::UDP } else { 0 };
            bytes[7] = 0;
            assert_ne!(flow_hash(kind, &bytes[..least]), 0);
            assert_eq!(flow_hash(kind, &bytes[..least - 1]), 0);
            assert_eq!(entry(&table, kind, &bytes[..least - 1]), 0);
        }
    }
}
