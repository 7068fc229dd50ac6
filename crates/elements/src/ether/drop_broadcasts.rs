//! `DropBroadcasts`: only what the link meant for this host.

use castanet_engine::prelude::*;

/// Drops packets that the link layer sent to everyone or to a group.
///
/// A router must not forward such packets (RFC 1812, 5.3.4).
///
/// ```click
/// in -> d :: DropBroadcasts -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// > in  1.0.0.1 > 2.0.0.2 udp ; type multicast
/// > in  1.0.0.1 > 2.0.0.2 udp ; type otherhost
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; type otherhost
/// = d.drops.group 2
/// ```
#[derive(Element)]
#[element(room = "ether")]
pub struct DropBroadcasts;

#[derive(Fate)]
pub enum For {
    /// Packets for one host.
    One,
    /// Link-level broadcasts and multicasts.
    #[drop]
    Group,
}

impl PerPacket for DropBroadcasts {
    type On = on::Any;
    type Local = ();
    type Fate = For;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> For {
        match packet.packet_type() {
            PacketType::Broadcast | PacketType::Multicast => For::Group,
            _ => For::One,
        }
    }
}
