//! `StripToNetworkHeader`: removes the bytes before the network header.

use castanet_element::prelude::*;

/// Strips the bytes before the network header of each packet.
///
/// If the header itself was stripped, it is restored.
///
/// ```click
/// in -> MarkIPHeader(14) -> StripToNetworkHeader -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; network 0
/// ```
///
/// ```click
/// in -> Strip(20) -> StripToNetworkHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  hex 01 02
/// < out 1.0.0.1 > 2.0.0.2 udp ; network 0
/// < out hex ; length 0
/// ```
#[derive(Element)]
#[element(room = "edit")]
pub struct StripToNetworkHeader;

impl PerPacket for StripToNetworkHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        match packet.network_offset() {
            Some(offset) if offset > 0 => _ = packet.pull_front(offset as usize),
            Some(offset) if offset < 0 => _ = packet.push_front(offset.unsigned_abs()),
            _ => {}
        }
    }
}
