//! `GeneveEncap`: prepends Geneve headers.

use super::network_identifier::NetworkIdentifier;
use super::tunnel_protocol::TunnelProtocol;
use castanet_element::prelude::*;
use castanet_element::wire::{Geneve, ether_type};

/// Prepends a Geneve header to each packet.
///
/// The header is that of RFC 8926, without options. `UDPIPEncap(SRC, SPORT, DST, 6081)` prepends
/// the UDP and IP headers.
///
/// ```click
/// in -> e :: GeneveEncap(7) -> out
/// > in  hex 61 62
/// < out hex 00 00 65 58 00 00 07 00 61 62
/// ! e.vni 66051
/// = e.vni 66051
/// > in  hex 61
/// < out hex 00 00 65 58 01 02 03 00 61
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel")]
pub struct GeneveEncap {
    /// Virtual network identifier (VNI).
    #[arg(live)]
    vni: NetworkIdentifier,
    /// Protocol of the packets: `ip`, `ip6`, `ethernet`, or an EtherType.
    #[arg(keyword, default = TunnelProtocol(ether_type::TRANSPARENT_ETHERNET), shown = "ethernet")]
    protocol: TunnelProtocol,
}

impl PerPacket for GeneveEncap {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let header = Geneve::new(self.vni.0, self.protocol.0);
        packet.push_front(Geneve::LEN).copy_from_slice(header.bytes());
    }
}
