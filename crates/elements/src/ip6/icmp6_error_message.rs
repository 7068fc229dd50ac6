//! How `ICMP6Error` puts its message around a packet.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Icmp, Ipv6Header, icmp6, ip_proto};
use castanet_kit::icmp6_error;

/// What an error says, apart from what it is about.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    pub(crate) src: Ipv6Addr,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) pmtu: u32,
}

impl Message {
    /// Makes `packet`, from `to` to `about`, the error about itself.
    pub(crate) fn wrap(&self, packet: &mut Packet, to: Ipv6Addr, about: Ipv6Addr, now: Time) {
        let (pointer, gateway) = (packet.anno_u8(anno::ICMP_PARAMPROB), packet.dst6());
        match packet.network_offset() {
            Some(at @ 1..) => _ = packet.pull_front(at.unsigned_abs()),
            Some(at) => _ = packet.push_front(at.unsigned_abs()),
            None => {}
        }
        if self.kind == icmp6::REDIRECT {
            quote_in_option(packet);
            packet.push_front(16).copy_from_slice(&about.octets());
            packet.push_front(16).copy_from_slice(&gateway.octets());
        } else {
            packet.truncate(icmp6_error::quote_len(packet.len(), Icmp::LEN));
        }

        let mut header = Icmp([0; Icmp::LEN]);
        header.set_kind(self.kind);
        header.set_code(self.code);
        match (self.kind, self.code) {
            (icmp6::TOO_BIG, _) => header.set_rest(self.pmtu),
            (icmp6::PARAMETER_PROBLEM, _) => header.set_rest(pointer.into()),
            _ => {}
        }
        let len = Icmp::LEN + packet.len();
        let mut ip = Ipv6Header::new(ip_proto::ICMPV6, self.src, to, len as u16);
        ip.set_hop_limit(icmp6::ND_HOP_LIMIT);
        header.update_checksum_v6(ip.pseudo(ip_proto::ICMPV6, len), packet.bytes());
        packet.push_front(Icmp::LEN).copy_from_slice(header.bytes());
        packet.push_front(Ipv6Header::LEN).copy_from_slice(ip.bytes());

        packet.set_annotations([0; anno::SIZE]);
        packet.set_packet_type(PacketType::Host);
        packet.clear_mac_header();
        packet.set_network_header(0, Ipv6Header::LEN);
        packet.set_timestamp(now.0);
        packet.set_dst6(to);
        packet.set_fix_ip_src(true);
    }
}

/// Makes `packet` the option of a redirect that quotes it (RFC 4861, 4.6.3).
fn quote_in_option(packet: &mut Packet) {
    /// The header of the option, and the two addresses before it.
    const OPTION: usize = icmp6::RedirectedHeader::LEN;
    const ADDRESSES: usize = 32;
    let room = icmp6_error::quote_len(packet.len(), Icmp::LEN + ADDRESSES + OPTION);
    packet.truncate(room);
    let padding = room.next_multiple_of(8) - room;
    packet.put_back(padding);
    let option = icmp6::RedirectedHeader::new(packet.len());
    packet.push_front(OPTION).copy_from_slice(option.bytes());
}
