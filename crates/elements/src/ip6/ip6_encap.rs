//! `IP6Encap`: one IPv6 header for all.

use crate::ip::encap::{Destination6, Fit, Protocol};
use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv6Header;

/// Puts an IPv6 header before each packet.
///
/// Where DST is `DST_ANNO` packets go where their IPv6 destination annotation
/// says; otherwise it is set to DST.
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
#[element(room = "ip6", gives = "ip6")]
pub struct IP6Encap {
    /// What follows the header, by name or number.
    #[arg]
    proto: Protocol,
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
    type Fate = Fit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> Fit {
        let Ok(len) = u16::try_from(packet.len()) else { return Fit::TooLong };
        let dst = self.dst.of(packet);
        let mut header = Ipv6Header::new(self.proto.number(), self.src, dst, len);
        header.set_hop_limit(self.hlim);
        header.set_traffic_class(self.class);
        packet.push_front(Ipv6Header::LEN).copy_from_slice(header.bytes());
        packet.set_network_header(0, Ipv6Header::LEN);
        Fit::Encapsulated
    }
}
