//! `IP6Mirror`: swaps the source and destination of IPv6 packets.

use castanet_element::prelude::*;

/// Swaps the source and destination addresses and ports of IPv6 packets.
///
/// Checksums stay valid, because they do not depend on the order.
///
/// ```click
/// in -> IP6Mirror -> out
/// > in  [1::1]:1 > [2::2]:2 udp "data"
/// > in  [1::1]:1 > [2::2]:2 tcp seq 5 ack 6
/// > in  1::1 > 2::2 proto 9
/// < out [2::2]:2 > [1::1]:1 udp "data" ; dst6 2::2
/// < out [2::2]:2 > [1::1]:1 tcp seq 5 ack 6
/// < out 2::2 > 1::1 proto 9
/// ```
#[derive(Element)]
#[element(room = "ip6")]
pub struct IP6Mirror;

impl PerPacket for IP6Mirror {
    type On = on::Ipv6;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), mut ip: Ipv6) {
        let (src, dst) = (ip.src(), ip.dst());
        ip.set_src(dst);
        ip.set_dst(src);
        let packet = ip.into_packet();
        if let Some(mut tcp) = packet.tcp() {
            let (src, dst) = (tcp.src_port(), tcp.dst_port());
            tcp.set_src_port(dst);
            tcp.set_dst_port(src);
        } else if let Some(mut udp) = packet.udp() {
            udp.mirror();
        }
    }
}
