//! How `ICMPError` puts its message around a packet.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Icmp, Ipv4Header, icmp, ip_proto};
use castanet_kit::icmp_error::{self, Suppression};

/// What becomes of a packet.
#[derive(Fate)]
pub enum Reply {
    /// Errors.
    Error,
    /// Packets whose header is incomplete.
    #[drop]
    Malformed,
    /// ICMP errors.
    #[drop]
    AboutError,
    /// Packets to groups.
    #[drop]
    GroupDestination,
    /// Packets that the link sent to a group.
    #[drop]
    LinkGroup,
    /// Packets from what is no host's address.
    #[drop]
    BadSource,
    /// Fragments other than the first.
    #[drop]
    LaterFragment,
    /// Source-routed packets, which are not redirected.
    #[drop]
    RoutedRedirect,
}

impl From<Suppression> for Reply {
    fn from(silence: Suppression) -> Reply {
        match silence {
            Suppression::Malformed => Reply::Malformed,
            Suppression::AboutError => Reply::AboutError,
            Suppression::GroupDestination => Reply::GroupDestination,
            Suppression::LinkGroup => Reply::LinkGroup,
            Suppression::BadSource => Reply::BadSource,
            Suppression::LaterFragment => Reply::LaterFragment,
            Suppression::RoutedRedirect => Reply::RoutedRedirect,
        }
    }
}

/// What an error says, apart from what it is about.
pub(crate) struct Message {
    pub(crate) src: Ipv4Addr,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) mtu: usize,
    pub(crate) pmtu: u16,
    pub(crate) id: u16,
    pub(crate) now: Time,
}

/// Unreachable: fragmentation needed and DF set.
const NEED_FRAGMENT: u8 = 4;
/// Parameter problem: the pointer says where.
const AT_POINTER: u8 = 0;
/// What Click sends errors with.
const TTL: u8 = 200;

impl Message {
    /// Makes `packet` the error about itself; `dst` is where it came from.
    pub(crate) fn wrap(&self, packet: &mut Packet, dst: Ipv4Addr) {
        let pointer = packet.anno_u8(anno::ICMP_PARAMPROB);
        let points = (self.kind, self.code) == (icmp::PARAMETER_PROBLEM, AT_POINTER);
        let gateway = packet.dst();
        match packet.network_offset() {
            Some(at @ 1..) => _ = packet.pull_front(at.unsigned_abs()),
            Some(at) => _ = packet.push_front(at.unsigned_abs()),
            None => {}
        }
        let problem = points.then_some(usize::from(pointer));
        let route = icmp_error::reply_route(packet.bytes(), problem);
        let (options, options_len) = route.unwrap_or(([0; 40], 0));
        let options = options.get(..options_len).unwrap_or_default();
        packet.truncate(icmp_error::quote_len(packet.len(), self.mtu, options.len()));

        let mut header = Icmp([0; Icmp::LEN]);
        header.set_kind(self.kind);
        header.set_code(self.code);
        match self.kind {
            icmp::REDIRECT => header.set_rest(gateway.to_bits()),
            icmp::UNREACHABLE if self.code == NEED_FRAGMENT => header.set_seq(self.pmtu),
            _ if points => header.set_pointer(pointer),
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

        packet.set_annotations([0; anno::SIZE]);
        packet.set_packet_type(PacketType::Host);
        packet.clear_mac_header();
        packet.set_network_header(0, header_len);
        packet.set_timestamp(self.now.0);
        packet.set_dst(dst);
    }
}
