//! The ICMPv6 message that `ICMP6Error` builds around a packet.

use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Ipv6Header, icmp6, ip_proto};
use castanet_kit::icmp6_error;

/// The fields of an error that do not depend on the packet.
#[derive(Clone, Copy)]
pub(crate) struct ErrorMessage {
    pub(crate) src: Ipv6Addr,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) pmtu: u32,
}

impl ErrorMessage {
    /// Turns `packet`, whose source is `to` and whose destination is `original_dst`, into the
    /// error about it.
    pub(crate) fn apply(
        &self,
        packet: &mut Packet,
        to: Ipv6Addr,
        original_dst: Ipv6Addr,
        now: Time,
    ) {
        let (pointer, gateway) = (packet.anno_u8(anno::ICMP_PARAMPROB), packet.dst6());
        match packet.network_offset() {
            Some(at @ 1..) => _ = packet.pull_front(at.unsigned_abs()),
            Some(at) => _ = packet.push_front(at.unsigned_abs()),
            None => {}
        }
        if self.kind == icmp6::REDIRECT {
            convert_to_redirected_header(packet);
            packet.push_front(16).copy_from_slice(&original_dst.octets());
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

        packet.clear_annotations();
        packet.set_packet_type(PacketType::Host);
        packet.clear_mac_header();
        packet.set_network_header(0, Ipv6Header::LEN);
        packet.set_timestamp(now.0);
        packet.set_dst6(to);
        packet.set_fix_ip_src(true);
    }
}

/// Turns `packet` into the redirected header option of a redirect (RFC 4861, 4.6.3).
fn convert_to_redirected_header(packet: &mut Packet) {
    const OPTION_LEN: usize = icmp6::RedirectedHeader::LEN;
    /// Length of the two addresses before the option.
    const ADDRESSES_LEN: usize = 32;
    let quote_len = icmp6_error::quote_len(packet.len(), Icmp::LEN + ADDRESSES_LEN + OPTION_LEN);
    packet.truncate(quote_len);
    let padding = quote_len.next_multiple_of(8) - quote_len;
    packet.put_back(padding);
    let option = icmp6::RedirectedHeader::new(packet.len());
    packet.push_front(OPTION_LEN).copy_from_slice(option.bytes());
}
