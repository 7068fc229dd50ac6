//! `HostEtherFilter`: frames that a network card would keep.

use castanet_engine::prelude::*;
use castanet_engine::wire::Ethernet;

/// Passes on the Ethernet frames that are for this host, and says which kind each is.
///
/// Acts as a card with address ETHER does: sets the packet type annotation to
/// host, broadcast, multicast or otherhost, and filters frames for others.
///
/// ```click
/// in -> f :: HostEtherFilter(0:0:0:0:0:1, DROP_OWN true) -> out;  f[1] -> filtered
/// > in       eth 0:0:0:0:0:2 > 0:0:0:0:0:1 1.0.0.2 > 1.0.0.1 udp
/// > in       eth 0:0:0:0:0:2 > ff:ff:ff:ff:ff:ff 1.0.0.2 > 1.0.0.1 udp
/// > in       eth 0:0:0:0:0:2 > 1:0:5e:0:0:1 1.0.0.2 > 224.0.0.1 udp
/// > in       eth 0:0:0:0:0:2 > 0:0:0:0:0:3 1.0.0.2 > 1.0.0.3 udp
/// > in       eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 1.0.0.2 udp
/// > in       hex 00 01
/// < out      eth 0:0:0:0:0:2 > 0:0:0:0:0:1 1.0.0.2 > 1.0.0.1 udp ; type host
/// < out      eth 0:0:0:0:0:2 > ff:ff:ff:ff:ff:ff 1.0.0.2 > 1.0.0.1 udp ; type broadcast
/// < out      eth 0:0:0:0:0:2 > 1:0:5e:0:0:1 1.0.0.2 > 224.0.0.1 udp ; type multicast
/// < filtered eth 0:0:0:0:0:2 > 0:0:0:0:0:3 1.0.0.2 > 1.0.0.3 udp ; type otherhost
/// < filtered eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 1.0.0.2 udp ; type host
/// = f.drops.short 1
/// ! f.ether 0:0:0:0:0:3
/// = f.ether 00-00-00-00-00-03
/// > in       eth 0:0:0:0:0:2 > 0:0:0:0:0:3 1.0.0.2 > 1.0.0.3 udp
/// < out      eth 0:0:0:0:0:2 > 0:0:0:0:0:3 1.0.0.2 > 1.0.0.3 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "ether")]
pub struct HostEtherFilter {
    /// This host's address.
    #[arg(live)]
    ether: MacAddr,
    /// Whether to filter frames from ETHER.
    #[arg(default = false)]
    drop_own: bool,
    /// Whether to filter frames for other hosts.
    #[arg(default = true)]
    drop_other: bool,
    /// Where the Ethernet header begins, in bytes.
    #[arg(keyword, default = 0)]
    offset: u16,
}

/// Where frames go.
#[derive(Fate)]
pub enum Kept {
    /// Frames for this host, and unless DROP_OTHER all others.
    Kept,
    /// Frames for others and, with DROP_OWN, from this host.
    #[optional]
    Filtered,
    /// Packets shorter than an Ethernet header.
    #[drop]
    Short,
}

impl PerPacket for HostEtherFilter {
    type On = on::Any;
    type Local = ();
    type Fate = Kept;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Kept {
        let bytes = packet.bytes().get(self.offset.into()..).unwrap_or_default();
        let Some((header, _)) = Ethernet::from_prefix(bytes) else { return Kept::Short };
        let (src, dst) = (header.src(), header.dst());
        if self.drop_own && src == self.ether {
            return Kept::Filtered;
        }
        let kind = match dst {
            dst if dst == self.ether => PacketType::Host,
            MacAddr::BROADCAST => PacketType::Broadcast,
            dst if dst.is_multicast() => PacketType::Multicast,
            _ => PacketType::OtherHost,
        };
        packet.set_packet_type(kind);
        let filtered = self.drop_other && kind == PacketType::OtherHost;
        if filtered { Kept::Filtered } else { Kept::Kept }
    }
}
