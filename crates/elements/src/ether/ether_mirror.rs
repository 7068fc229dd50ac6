//! `EtherMirror`: swaps the source and destination Ethernet addresses.

use castanet_element::prelude::*;

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

    #[inline]
    fn packet(&self, _: &mut (), mut frame: Ether) {
        frame.mirror();
    }
}
