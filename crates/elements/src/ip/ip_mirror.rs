//! `IPMirror`: swaps the source and destination of IPv4 packets.

use castanet_element::prelude::*;

/// Swaps the source and destination addresses and ports of IPv4 packets.
///
/// It also swaps the sequence and acknowledgment numbers of TCP. Checksums stay
/// valid, because they do not depend on the order.
///
/// ```click
/// in -> IPMirror -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp seq 5 ack 6
/// > in  1.0.0.1 > 2.0.0.2 proto 9
/// < out 2.0.0.2:2 > 1.0.0.1:1 udp "data" ; dst 1.0.0.1
/// < out 2.0.0.2:2 > 1.0.0.1:1 tcp seq 6 ack 5
/// < out 2.0.0.2 > 1.0.0.1 proto 9
/// ```
/// ```click
/// in -> IPMirror(false) -> out
/// > in  1.0.0.1 > 2.0.0.2 proto 9
/// < out 2.0.0.2 > 1.0.0.1 proto 9 ; dst 2.0.0.2
/// ```
#[derive(Element)]
#[element(room = "ip")]
pub struct IPMirror {
    /// Whether to set the destination annotation to the new destination.
    #[arg(default = true)]
    dst_anno: bool,
}

impl PerPacket for IPMirror {
    type On = on::Ipv4;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), mut ip: Ipv4) {
        let (src, dst) = (ip.src(), ip.dst());
        let header = &mut *ip;
        header.set_src(dst);
        header.set_dst(src);
        let packet = ip.into_packet();
        if self.dst_anno {
            packet.set_dst(src);
        }
        if let Some(mut tcp) = packet.tcp() {
            tcp.mirror();
        } else if let Some(mut udp) = packet.udp() {
            udp.mirror();
        }
    }
}
