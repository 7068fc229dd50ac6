//! `UDPIP6Encap`: prepends UDP and IPv6 headers.

use crate::ip::encap::{Destination6, EncapExit};
use castanet_element::args::UdpPort;
use castanet_element::prelude::*;
use castanet_element::wire::checksum::Sum;
use castanet_element::wire::{Ipv6Header, Udp, ip_proto};

/// Prepends a UDP header and an IPv6 header to each packet.
///
/// With DST `DST_ANNO` the destination address is that of the IPv6 destination annotation; otherwise
/// the element sets the annotation to DST. The hop limit is 255.
///
/// ```click
/// in -> e :: UDPIP6Encap(9::1, 1234, 9::2, 53) -> out
/// > in  hex 61 62 63
/// < out [9::1]:1234 > [9::2]:53 udp hop 255 "abc" ; dst6 9::2 network 0
/// ! e.sport 99
/// ! e.dst DST_ANNO
/// = e.src 9::1
/// = e.sport 99
/// = e.dst DST_ANNO
/// = e.dport 53
/// > in  hex 61 62 63 ; dst6 9::4
/// < out [9::1]:99 > [9::4]:53 udp hop 255 "abc"
/// > in  1.0.0.1 > 2.0.0.2 udp len 65528
/// = e.drops.too_long 1
/// ```
#[derive(Clone, Element)]
#[element(room = "udp", gives = "ip6", headers = Gives(FirstHeader::Ip6, MarkedHeader::Ip6))]
pub struct UDPIP6Encap {
    /// Source address.
    #[arg(live)]
    src: Ipv6Addr,
    /// Source port.
    #[arg(live)]
    sport: UdpPort,
    /// Destination address, or `DST_ANNO`.
    #[arg(live)]
    dst: Destination6,
    /// Destination port.
    #[arg(live)]
    dport: UdpPort,
}

/// Hop limit of the packets.
const HOP_LIMIT: u8 = 255;

impl PerPacket for UDPIP6Encap {
    type On = on::Any;
    type Local = ();
    type Fate = EncapExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> EncapExit {
        let Ok(len) = u16::try_from(Udp::LEN + packet.len()) else { return EncapExit::TooLong };
        let (src, dst) = (self.src, self.dst.set_and_get(packet));
        let mut header = Ipv6Header::new(ip_proto::UDP, src, dst, len);
        header.set_hop_limit(HOP_LIMIT);
        packet.push_front(Ipv6Header::LEN + Udp::LEN);
        if let Some((ip, rest)) = Ipv6Header::from_prefix_mut(packet.bytes_mut())
            && let Some((udp, payload)) = Udp::from_prefix_mut(rest)
        {
            *ip = header;
            let addresses = Sum::new().slice(&src.octets()).slice(&dst.octets());
            udp.fill((self.sport.0, self.dport.0), Some(addresses), payload);
        }
        packet.set_network_header(0, Ipv6Header::LEN);
        EncapExit::Encapsulated
    }
}
