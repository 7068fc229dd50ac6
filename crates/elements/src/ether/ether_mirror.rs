//! `EtherMirror`: swaps the source and destination Ethernet addresses.

use super::for_each_header;
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// Swaps the source and destination addresses in the Ethernet header of each packet.
///
/// ```click
/// in -> EtherMirror -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:2 > 0:0:0:0:0:1 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "ether")]
pub struct EtherMirror;

impl PerPacket for EtherMirror {
    type On = on::Ether;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Writes;

    fn byte_length(&self) -> Option<usize> {
        Some(Ethernet::LEN)
    }

    #[inline]
    fn write_bytes(&self, _: &mut (), bytes: &mut BurstBytes) {
        for_each_header(bytes, Ethernet::mirror);
    }

    #[inline]
    fn packet(&self, _: &mut (), mut frame: Ether) {
        frame.mirror();
    }
}
