//! `SetEtherAddress`: sets an annotation to a constant Ethernet address.

use castanet_element::prelude::*;

/// Sets an annotation to a constant Ethernet address.
///
/// ```click
/// in -> s :: SetEtherAddress(0:0:0:0:0:3, 16) -> StoreEtherAddress(OFFSET dst, ANNO 16) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:3 1.0.0.1 > 2.0.0.2 udp
/// = s.addr 00-00-00-00-00-03
/// ! s.addr 0:0:0:0:0:4
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:4 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "ether")]
pub struct SetEtherAddress {
    /// The address.
    #[arg(live)]
    addr: MacAddr,
    /// The annotation, of 6 bytes.
    #[arg]
    anno: AnnoAt<6>,
}

impl PerPacket for SetEtherAddress {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, (): &mut (), packet: &mut Packet) {
        packet.set_anno_bytes(self.anno.0, self.addr.octets());
    }
}
