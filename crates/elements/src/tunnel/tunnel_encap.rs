//! `TunnelEncap`: puts Ethernet frames into a tunnel over IPv4.

use super::tunnel_argument::TunnelArgument;
use crate::ip::encap::{EncapExit, IdCounter};
use castanet_element::args::UdpPort;
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;
use castanet_kit::tunnel::OuterHeader;

/// Prepends the headers of a tunnel over IPv4 to each Ethernet frame, all at once.
///
/// The tunnel is `vxlan REMOTE VNI [PORT]` (RFC 7348), `geneve REMOTE VNI [PORT]` (RFC 8926) or `gre
/// REMOTE [KEY]` (RFC 2784, 2890). The element does the work of `VXLANEncap` and `UDPIPEncap` (or
/// `GREEncap` and `IPEncap`) in one step. UDP headers have no checksum, and, without
/// SPORT, one of 16384 source ports by the frame's flow, so that routers and receivers may spread flows over
/// several ways. The element counts the identifications of the IPv4 headers from 0, and sets the
/// destination annotation.
///
/// ```click
/// in -> e :: TunnelEncap(1.0.0.1, vxlan 2.0.0.2 7, SPORT 1234) -> out
/// > in  hex 61 62
/// < out 1.0.0.1:1234 > 2.0.0.2:4789 udp ttl 250 nocheck data 08000000000007006162 ; dst 2.0.0.2 network 0
/// ! e.tunnel geneve 3.0.0.3 8
/// = e.tunnel geneve 3.0.0.3 8
/// > in  hex 61 62
/// < out 1.0.0.1:1234 > 3.0.0.3:6081 udp ttl 250 id 1 nocheck data 00006558000008006162 ; dst 3.0.0.3
/// = e.src 1.0.0.1
/// ! e.src 1.0.0.9
/// ! e.tunnel gre 3.0.0.3 9
/// > in  hex 61 62
/// < out 1.0.0.9 > 3.0.0.3 proto 47 ttl 250 id 2 data 20006558000000096162
/// > in  1.0.0.1 > 2.0.0.2 udp len 65508
/// = e.drops.too_long 1
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel", args = TunnelEncapArgs, methods, gives = "ip", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct TunnelEncap {
    /// Address of this end.
    #[read]
    src: Ipv4Addr,
    /// The tunnel.
    #[read]
    tunnel: TunnelArgument,
    sport: Option<u16>,
    header: OuterHeader,
}

#[derive(Args)]
pub struct TunnelEncapArgs {
    /// Address of this end.
    #[arg]
    src: Ipv4Addr,
    /// The tunnel, with the address of the other end.
    #[arg]
    tunnel: TunnelArgument,
    /// UDP source port; without it, one by the flow of each frame.
    #[arg(keyword)]
    sport: Option<UdpPort>,
}

impl Build for TunnelEncap {
    type Args = TunnelEncapArgs;

    fn build(args: TunnelEncapArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(TunnelEncap::new(args.src, args.tunnel, args.sport.map(|port| port.0)))
    }
}

impl TunnelEncap {
    fn new(src: Ipv4Addr, tunnel: TunnelArgument, sport: Option<u16>) -> TunnelEncap {
        TunnelEncap { src, tunnel, sport, header: OuterHeader::new(src, &tunnel.0) }
    }
}

#[handlers]
impl TunnelEncap {
    /// Sets the address of this end.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(TunnelEncap::new(Ipv4Addr::from_arg(text, names)?, self.tunnel, self.sport))
    }

    /// Sets the tunnel.
    #[write(tunnel)]
    fn set_tunnel(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(TunnelEncap::new(self.src, TunnelArgument::from_arg(text, names)?, self.sport))
    }
}

impl PerPacket for TunnelEncap {
    type On = on::Any;
    type Local = IdCounter;
    type Fate = EncapExit;
    // If two workers used one identification, a receiver could mix fragments of two packets.
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, ids: &mut IdCounter, packet: &mut Packet) -> EncapExit {
        let Some(total_len) = self.header.total_len(packet.len()) else {
            return EncapExit::TooLong;
        };
        let frame = &mut *packet;
        self.header.push(
            move |len| {
                frame.push_front(len);
                frame.bytes_mut()
            },
            total_len,
            ids.next(),
            self.sport,
        );
        packet.set_dst(self.tunnel.0.remote);
        packet.mark_ipv4(0, Ipv4Header::LEN as u16, total_len);
        EncapExit::Encapsulated
    }
}
