//! `ICMPPingEncap`: encapsulates packets in ICMP echo requests.

use crate::ip::encap::{EncapExit, IdCounter};
use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Ipv4Header, icmp, ip_proto};

/// Encapsulates each packet as the payload of an ICMP echo request (ping).
///
/// The sequence number and the IPv4 identification count from 1 and are never
/// 0.
///
/// ```click
/// in -> e :: ICMPPingEncap(1.0.0.1, 2.0.0.2, IDENTIFIER 7) -> out
/// > in  hex 61 62 63
/// < out 1.0.0.1 > 2.0.0.2 icmp ttl 255 id 1 type echo ident 7 seq 1 "abc" ; dst 2.0.0.2 network 0
/// ! e.dst 2.0.0.3
/// = e.src 1.0.0.1
/// > in  hex 61
/// < out 1.0.0.1 > 2.0.0.3 icmp ttl 255 id 2 type echo ident 7 seq 2 "a"
/// > in  1.0.0.1 > 2.0.0.2 udp len 65508
/// = e.drops.too_long 1
/// ```
#[derive(Clone, Element)]
#[element(room = "icmp", gives = "ip", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct ICMPPingEncap {
    /// Source address.
    #[arg(live)]
    src: Ipv4Addr,
    /// Destination address.
    #[arg(live)]
    dst: Ipv4Addr,
    /// Identifier of the echo requests.
    #[arg(keyword, default = 0)]
    identifier: u16,
}

/// Length of both headers, in bytes.
const HEADERS_LEN: usize = Ipv4Header::LEN + Icmp::LEN;

impl PerPacket for ICMPPingEncap {
    type On = on::Any;
    type Local = IdCounter;
    type Fate = EncapExit;
    // All workers share one sequence.
    const SHARED: bool = true;

    fn packet(&self, ids: &mut IdCounter, packet: &mut Packet) -> EncapExit {
        let Ok(len) = u16::try_from(HEADERS_LEN + packet.len()) else { return EncapExit::TooLong };
        let id = ids.next_nonzero();
        packet.push_front(HEADERS_LEN);
        if let Some((ip, rest)) = Ipv4Header::from_prefix_mut(packet.bytes_mut())
            && let Some((echo, payload)) = Icmp::from_prefix_mut(rest)
        {
            *ip = Ipv4Header::new(ip_proto::ICMP, self.src, self.dst, len);
            ip.set_ttl(255);
            ip.set_id(id);
            ip.update_checksum(&[]);
            echo.set_kind(icmp::ECHO);
            echo.set_code(0);
            echo.set_id(self.identifier);
            echo.set_seq(id);
            echo.update_checksum(payload);
        }
        packet.set_network_header(0, Ipv4Header::LEN);
        packet.set_dst(self.dst);
        EncapExit::Encapsulated
    }
}
