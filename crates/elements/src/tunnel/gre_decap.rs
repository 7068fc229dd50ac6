//! `GREDecap`: removes GRE headers.

use super::tunnel_protocol::TunnelPayload;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::gre::{GreError, GreHeader};

/// Removes the GRE header from each packet.
///
/// The packets begin with a GRE header of version 0 (RFC 2784); `StripIPHeader` removes the IP
/// header before it. The element checks the checksum if there is one, and skips a sequence number
/// (RFC 2890) without a look. It sets the aggregate annotation to the key, or to 0 without one.
///
/// ```click
/// in -> d :: GREDecap -> out; d[1] -> six; d[2] -> eth
/// > in  hex 00 00 08 00 61 62
/// > in  hex a0 00 65 58 99 3d 00 00 00 00 00 07 61 62
/// > in  hex 10 00 86 dd 00 00 00 09 63
/// > in  hex 80 00 08 00 00 00 00 00 61
/// > in  hex 00 00 88 47 61
/// > in  hex 00 01 08 00 61
/// > in  hex 20 00 08 00 00
/// < out hex 61 62
/// < eth hex 61 62
/// < six hex 63
/// = d.drops.bad_checksum 1
/// = d.drops.other_protocol 1
/// = d.drops.malformed 2
/// ```
///
/// ```click
/// in -> d :: GREDecap(KEY 7) -> out
/// > in  hex 20 00 08 00 00 00 00 07 61
/// > in  hex 20 00 08 00 00 00 00 08 61
/// > in  hex 00 00 08 00 61
/// < out hex 61
/// = d.drops.other_key 2
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel")]
pub struct GREDecap {
    /// The key that packets have to have; without it, any key or none.
    #[arg(keyword, live)]
    key: Option<u32>,
}

#[derive(Fate)]
pub enum GREDecapExit {
    /// IPv4 packets from the tunnel.
    Ip,
    /// IPv6 packets from the tunnel.
    #[optional]
    Ip6,
    /// Ethernet frames from the tunnel.
    #[optional]
    Ethernet,
    /// Packets with a truncated header, of another version than 0, or with bits that have to be zero.
    #[drop]
    Malformed,
    /// Packets whose checksum is wrong.
    #[drop]
    BadChecksum,
    /// Packets without the key of `KEY`. Give both ends of the tunnel the same key.
    #[drop]
    OtherKey,
    /// Packets of a protocol that is neither IP nor Ethernet.
    #[drop]
    OtherProtocol,
}

impl PerPacket for GREDecap {
    type On = on::Any;
    type Local = ();
    type Fate = GREDecapExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> GREDecapExit {
        let (header, len) = match GreHeader::read(packet.bytes()) {
            Ok(read) => read,
            Err(GreError::Malformed) => return GREDecapExit::Malformed,
            Err(GreError::Checksum) => return GREDecapExit::BadChecksum,
        };
        if self.key.is_some() && header.key != self.key {
            return GREDecapExit::OtherKey;
        }
        let Some(payload) = TunnelPayload::of(header.protocol) else {
            return GREDecapExit::OtherProtocol;
        };
        packet.pull_front(len);
        packet.set_anno_u32(anno::AGGREGATE, header.key.unwrap_or(0));
        match payload {
            TunnelPayload::Ip => GREDecapExit::Ip,
            TunnelPayload::Ip6 => GREDecapExit::Ip6,
            TunnelPayload::Ethernet => GREDecapExit::Ethernet,
        }
    }
}
