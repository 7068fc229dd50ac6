//! `HostEtherFilter`: filters Ethernet frames by destination address, as a network card does.

use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// Passes on Ethernet frames for this host and sets their packet type annotation.
///
/// The element works as a network card with address ETHER does: it sets the
/// annotation to host, broadcast, multicast or otherhost, and filters frames
/// for other hosts.
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
    /// Ethernet address of this host.
    #[arg(live)]
    ether: MacAddr,
    /// Whether to filter frames from ETHER.
    #[arg(default = false)]
    drop_own: bool,
    /// Whether to filter frames for other hosts.
    #[arg(default = true)]
    drop_other: bool,
    /// Offset of the Ethernet header, in bytes.
    #[arg(keyword, default = 0)]
    offset: u16,
}

/// Exits.
#[derive(Fate)]
pub enum HostEtherFilterExit {
    /// Frames for this host and, if DROP_OTHER is false, for other hosts.
    Kept,
    /// Frames for other hosts, if DROP_OTHER is true, and frames from ETHER, if DROP_OWN is true. If
    /// they were meant for this host, compare their address with ETHER and with the sender's neighbours.
    #[optional]
    Filtered,
    /// Packets shorter than an Ethernet header.
    #[drop]
    Short,
}

impl PerPacket for HostEtherFilter {
    type On = on::Any;
    type Local = ();
    type Fate = HostEtherFilterExit;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> HostEtherFilterExit {
        let bytes = packet.bytes().get(self.offset.into()..).unwrap_or_default();
        let Some((header, _)) = Ethernet::from_prefix(bytes) else {
            return HostEtherFilterExit::Short;
        };
        let (src, dst) = (header.src(), header.dst());
        if self.drop_own && src == self.ether {
            return HostEtherFilterExit::Filtered;
        }
        let kind = match dst {
            dst if dst == self.ether => PacketType::Host,
            MacAddr::BROADCAST => PacketType::Broadcast,
            dst if dst.is_multicast() => PacketType::Multicast,
            _ => PacketType::OtherHost,
        };
        packet.set_packet_type(kind);
        let filtered = self.drop_other && kind == PacketType::OtherHost;
        if filtered { HostEtherFilterExit::Filtered } else { HostEtherFilterExit::Kept }
    }
}
