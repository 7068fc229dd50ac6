//! The ICMP message that `ICMPError` builds around a packet.

use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Ipv4Header, icmp, ip_proto};
use castanet_kit::icmp_error::{self, Suppression};

/// Exits of `ICMPError`.
#[derive(Fate)]
pub enum ICMPErrorExit {
    /// ICMP errors.
    Error,
    /// Packets with an incomplete header.
    #[drop]
    Malformed,
    /// Packets that are ICMP errors themselves.
    #[drop]
    AboutError,
    /// Packets to a broadcast or multicast address.
    #[drop]
    GroupDestination,
    /// Packets that arrived as link-level broadcasts or multicasts.
    #[drop]
    LinkGroup,
    /// Packets whose source is not the address of one host.
    #[drop]
    BadSource,
    /// Later fragments.
    #[drop]
    LaterFragment,
    /// Source-routed packets, about which no redirect is sent.
    #[drop]
    RoutedRedirect,
}

impl From<Suppression> for ICMPErrorExit {
    fn from(suppression: Suppression) -> ICMPErrorExit {
        match suppression {
            Suppression::Malformed => ICMPErrorExit::Malformed,
            Suppression::AboutError => ICMPErrorExit::AboutError,
            Suppression::GroupDestination => ICMPErrorExit::GroupDestination,
            Suppression::LinkGroup => ICMPErrorExit::LinkGroup,
            Suppression::BadSource => ICMPErrorExit::BadSource,
            Suppression::LaterFragment => ICMPErrorExit::LaterFragment,
            Suppression::RoutedRedirect => ICMPErrorExit::RoutedRedirect,
        }
    }
}

/// The fields of an error that do not depend on the packet.
pub(crate) struct ErrorMessage {
    pub(crate) src: Ipv4Addr,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) mtu: usize,
    pub(crate) pmtu: u16,
    pub(crate) id: u16,
    pub(crate) now: Time,
}

/// Code of "unreachable": fragmentation needed and DF set.
const FRAGMENTATION_NEEDED: u8 = 4;
/// Code of "parameter problem" whose pointer is valid.
const POINTER_CODE: u8 = 0;
/// TTL of errors, as in Click.
const TTL: u8 = 200;

impl ErrorMessage {
    /// Turns `packet` into the error about it; `dst` is its source, which gets the error.
    pub(crate) fn apply(&self, packet: &mut Packet, dst: Ipv4Addr) {
        let pointer = packet.anno_u8(anno::ICMP_PARAMPROB);
        let has_pointer = (self.kind, self.code) == (icmp::PARAMETER_PROBLEM, POINTER_CODE);
        let gateway = packet.dst();
        match packet.network_offset() {
            Some(at @ 1..) => _ = packet.pull_front(at.unsigned_abs()),
            Some(at) => _ = packet.push_front(at.unsigned_abs()),
            None => {}
        }
        let problem = has_pointer.then_some(usize::from(pointer));
        let route = icmp_error::reply_route(packet.bytes(), problem);
        let (options, options_len) = route.unwrap_or(([0; 40], 0));
        let options = options.get(..options_len).unwrap_or_default();
        packet.truncate(icmp_error::quote_len(packet.len(), self.mtu, options.len()));

        let mut header = Icmp([0; Icmp::LEN]);
        header.set_kind(self.kind);
        header.set_code(self.code);
        match self.kind {
            icmp::REDIRECT => header.set_rest(gateway.to_bits()),
            icmp::UNREACHABLE if self.code == FRAGMENTATION_NEEDED => header.set_seq(self.pmtu),
            _ if has_pointer => header.set_pointer(pointer),
            _ => {}
        }
        header.update_checksum(packet.bytes());
        packet.push_front(Icmp::LEN).copy_from_slice(header.bytes());

        let header_len = Ipv4Header::LEN + options.len();
        let total_len = (header_len + packet.len()) as u16;
        let mut ip = Ipv4Header::new(ip_proto::ICMP, self.src, dst, total_len);
        ip.set_header_len(header_len);
        ip.set_id(self.id);
        ip.set_ttl(TTL);
        ip.update_checksum(options);
        packet.push_front(options.len()).copy_from_slice(options);
        packet.push_front(Ipv4Header::LEN).copy_from_slice(ip.bytes());

        packet.clear_annotations();
        packet.set_packet_type(PacketType::Host);
        packet.clear_mac_header();
        packet.set_network_header(0, header_len);
        packet.set_timestamp(self.now.0);
        packet.set_dst(dst);
    }
}
