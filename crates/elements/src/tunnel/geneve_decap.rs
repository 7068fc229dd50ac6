//! `GeneveDecap`: removes Geneve headers.

use super::network_identifier::NetworkIdentifier;
use super::tunnel_protocol::TunnelPayload;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::Geneve;
use castanet_element::wire::geneve::GeneveError;

/// Removes the Geneve header from each packet, with its options.
///
/// The packets begin with a Geneve header (RFC 8926). The element sets the aggregate annotation to
/// the network identifier (VNI). It ignores options, and drops packets whose options a receiver has
/// to understand.
///
/// ```click
/// in -> d :: GeneveDecap -> out; d[1] -> four; d[2] -> six
/// > in  hex 00 00 65 58 00 00 07 00 61 62
/// > in  hex 01 00 08 00 00 00 07 00 aa aa aa aa 63
/// > in  hex 00 00 86 dd 00 00 07 00 64
/// > in  hex 00 00 88 47 00 00 07 00 65
/// > in  hex 00 80 65 58 00 00 07 00 66
/// > in  hex 01 40 65 58 00 00 07 00 aa aa aa aa 67
/// > in  hex 01 00 65 58 00 00 07 00 aa
/// < out hex 61 62
/// < four hex 63
/// < six hex 64
/// = d.drops.other_protocol 1
/// = d.drops.control 1
/// = d.drops.critical_options 1
/// = d.drops.malformed 1
/// ```
///
/// ```click
/// in -> d :: GeneveDecap(7) -> out
/// > in  hex 00 00 65 58 00 00 07 00 61
/// > in  hex 00 00 65 58 00 00 08 00 62
/// < out hex 61
/// = d.drops.other_network 1
/// = d.vni 7
/// ! d.vni 8
/// > in  hex 00 00 65 58 00 00 08 00 62
/// < out hex 62
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel")]
pub struct GeneveDecap {
    /// The network identifier that packets have to have; without it, any.
    #[arg(live)]
    vni: Option<NetworkIdentifier>,
}

#[derive(Fate)]
pub enum GeneveDecapExit {
    /// Ethernet frames from the network.
    Ethernet,
    /// IPv4 packets from the network.
    #[optional]
    Ip,
    /// IPv6 packets from the network.
    #[optional]
    Ip6,
    /// Packets with a truncated header or truncated options, and those of another version than 0.
    #[drop]
    Malformed,
    /// Control packets, which are not for the network.
    #[drop]
    Control,
    /// Packets with options that a receiver has to understand. Have the other end send none.
    #[drop]
    CriticalOptions,
    /// Packets of another network than `VNI`.
    #[drop]
    OtherNetwork,
    /// Packets of a protocol that is neither IP nor Ethernet.
    #[drop]
    OtherProtocol,
}

impl PerPacket for GeneveDecap {
    type On = on::Any;
    type Local = ();
    type Fate = GeneveDecapExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> GeneveDecapExit {
        let inside = match Geneve::payload(packet.bytes()) {
            Ok(inside) => inside,
            Err(GeneveError::Malformed) => return GeneveDecapExit::Malformed,
            Err(GeneveError::Control) => return GeneveDecapExit::Control,
            Err(GeneveError::CriticalOptions) => return GeneveDecapExit::CriticalOptions,
        };
        if self.vni.is_some_and(|wanted| wanted.0 != inside.vni) {
            return GeneveDecapExit::OtherNetwork;
        }
        let Some(payload) = TunnelPayload::of(inside.protocol) else {
            return GeneveDecapExit::OtherProtocol;
        };
        packet.pull_front(inside.offset);
        packet.set_anno_u32(anno::AGGREGATE, inside.vni);
        match payload {
            TunnelPayload::Ethernet => GeneveDecapExit::Ethernet,
            TunnelPayload::Ip => GeneveDecapExit::Ip,
            TunnelPayload::Ip6 => GeneveDecapExit::Ip6,
        }
    }
}
