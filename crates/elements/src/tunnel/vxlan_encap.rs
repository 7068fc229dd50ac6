//! `VXLANEncap`: prepends VXLAN headers.

use super::network_identifier::NetworkIdentifier;
use castanet_element::prelude::*;
use castanet_element::wire::Vxlan;

/// Prepends a VXLAN header to each Ethernet frame.
///
/// The header is that of RFC 7348. `UDPIPEncap(SRC, SPORT, DST, 4789)` prepends the UDP and IP
/// headers.
///
/// ```click
/// in -> e :: VXLANEncap(7) -> out
/// > in  hex 61 62
/// < out hex 08 00 00 00 00 00 07 00 61 62
/// ! e.vni 66051
/// = e.vni 66051
/// > in  hex 61
/// < out hex 08 00 00 00 01 02 03 00 61
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel")]
pub struct VXLANEncap {
    /// VXLAN network identifier (VNI).
    #[arg(live)]
    vni: NetworkIdentifier,
}

impl PerPacket for VXLANEncap {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        packet.push_front(Vxlan::LEN).copy_from_slice(Vxlan::new(self.vni.0).bytes());
    }
}
