//! `UnstripTransportHeader`: restores a stripped transport header.

use crate::ip::transport::unstrip;
use castanet_element::prelude::*;

/// Restores the stripped transport header of each packet.
///
/// Packets whose transport header was not stripped or not marked stay as they
/// are.
///
/// ```click
/// in -> StripTCPHeader -> UnstripTransportHeader -> Truncate(4) -> out
/// > in  1.0.0.1:258 > 2.0.0.2:772 tcp
/// < out hex 01 02 03 04 ; network -20
/// ```
/// ```click
/// in -> UnstripTransportHeader -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp
/// > in  hex 61
/// < out 1.0.0.1:5 > 2.0.0.2:6 tcp
/// < out hex 61
/// ```
#[derive(Element)]
#[element(room = "edit", headers = Unknown)]
pub struct UnstripTransportHeader;

impl PerPacket for UnstripTransportHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        unstrip(packet);
    }
}
