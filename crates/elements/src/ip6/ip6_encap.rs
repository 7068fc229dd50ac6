//! `IP6Encap`: prepends an IPv6 header.

use crate::ip::encap::{Destination6, EncapExit, ProtocolNumber};
use castanet_element::prelude::*;
use castanet_element::wire::Ipv6Header;

/// Prepends an IPv6 header to each packet.
///
/// With DST `DST_ANNO` the destination address is that of the IPv6 destination
/// annotation; otherwise the element sets the annotation to DST.
///
/// ```click
/// in -> e :: IP6Encap(41, 9::1, 9::2, HLIM 7, CLASS 3) -> out
/// > in  1::1 > 2::2 udp
/// < out 9::1 > 9::2 proto 41 hop 7 class 3 [1::1 > 2::2 udp] ; dst6 9::2 network 0
/// ! e.src 9::3
/// = e.src 9::3
/// ! e.dst DST_ANNO
/// = e.dst DST_ANNO
/// > in  1::1 > 2::2 udp ; dst6 9::4
/// < out 9::3 > 9::4 proto 41 hop 7 class 3 [1::1 > 2::2 udp]
/// > in  1::1 > 2::2 udp len 65536
/// = e.drops.too_long 1
/// ```
#[derive(Clone, Element)]
#[element(room = "ip6", gives = "ip6", headers = Gives(FirstHeader::Ip6, MarkedHeader::Ip6))]
pub struct IP6Encap {
    /// Protocol of the payload (next header), by name or number.
    #[arg]
    proto: ProtocolNumber,
    /// Source address.
    #[arg(live)]
    src: Ipv6Addr,
    /// Destination address, or `DST_ANNO`.
    #[arg(live)]
    dst: Destination6,
    /// Hop limit.
    #[arg(keyword, default = 250)]
    hlim: u8,
    /// Traffic class.
    #[arg(keyword, default = 0)]
    class: u8,
}

impl PerPacket for IP6Encap {
    type On = on::Any;
    type Local = ();
    type Fate = EncapExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> EncapExit {
        let Ok(len) = u16::try_from(packet.len()) else { return EncapExit::TooLong };
        let dst = self.dst.set_and_get(packet);
        let mut header = Ipv6Header::new(self.proto.number(), self.src, dst, len);
        header.set_hop_limit(self.hlim);
        header.set_traffic_class(self.class);
        packet.push_front(Ipv6Header::LEN).copy_from_slice(header.bytes());
        packet.set_network_header(0, Ipv6Header::LEN);
        EncapExit::Encapsulated
    }
}
