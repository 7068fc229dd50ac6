//! `UDPIPEncap`: prepends UDP and IPv4 headers.

use super::headers;
use crate::ip::encap::{Destination, EncapExit, IdCounter};
use castanet_element::args::UdpPort;
use castanet_element::prelude::*;

/// Prepends a UDP header and an IPv4 header to each packet.
///
/// With DST `DST_ANNO` the destination address is that of the destination
/// annotation; otherwise the element sets the annotation to DST. It counts the
/// identifications of the IPv4 headers from 0.
///
/// ```click
/// in -> e :: UDPIPEncap(1.0.0.1, 1234, 2.0.0.2, 53) -> out
/// > in  hex 61 62 63
/// < out 1.0.0.1:1234 > 2.0.0.2:53 udp ttl 250 "abc" ; dst 2.0.0.2 network 0
/// ! e.sport 99
/// ! e.dst DST_ANNO
/// = e.src 1.0.0.1
/// = e.dst DST_ANNO
/// = e.dport 53
/// > in  hex 61 62 63 ; dst 3.0.0.3
/// < out 1.0.0.1:99 > 3.0.0.3:53 udp ttl 250 id 1 "abc"
/// > in  1.0.0.1 > 2.0.0.2 udp len 65508
/// = e.drops.too_long 1
/// ```
/// ```click
/// in -> UDPIPEncap(1.0.0.1, 1234, 2.0.0.2, 53, CHECKSUM false) -> out
/// > in  hex 61 62 63
/// < out 1.0.0.1:1234 > 2.0.0.2:53 udp ttl 250 nocheck "abc"
/// ```
#[derive(Clone, Element)]
#[element(room = "udp", gives = "ip", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct UDPIPEncap {
    /// Source address.
    #[arg(live)]
    src: Ipv4Addr,
    /// Source port.
    #[arg(live)]
    sport: UdpPort,
    /// Destination address, or `DST_ANNO`.
    #[arg(live)]
    dst: Destination,
    /// Destination port.
    #[arg(live)]
    dport: UdpPort,
    /// Whether to compute the UDP checksum.
    #[arg(default = true)]
    checksum: bool,
}

impl PerPacket for UDPIPEncap {
    type On = on::Any;
    type Local = IdCounter;
    type Fate = EncapExit;
    // If two workers used one identification, a receiver could mix fragments of two packets.
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, ids: &mut IdCounter, packet: &mut Packet) -> EncapExit {
        let Some(len) = headers::total_len(packet) else { return EncapExit::TooLong };
        let dst = self.dst.set_and_get(packet);
        let (src, dst) = ((self.src, self.sport.0), (dst, self.dport.0));
        headers::push(packet, src, dst, (len, ids.next()), self.checksum)
    }
}
