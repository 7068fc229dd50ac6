//! `UnstripTCPHeader`: restores a stripped TCP header.

use crate::ip::transport::unstrip;
use castanet_element::prelude::*;

/// Restores the stripped TCP header of each packet.
///
/// The header begins at the transport header offset. Packets whose transport
/// header was not stripped or not marked stay as they are.
///
/// ```click
/// in -> StripTCPHeader -> UnstripTCPHeader -> Truncate(4) -> out
/// > in  1.0.0.1:258 > 2.0.0.2:772 tcp "abc"
/// < out hex 01 02 03 04 ; network -20
/// ```
/// ```click
/// in -> StripTCPHeader -> UnstripTCPHeader -> UnstripIPHeader -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp ipopt 0x01010100 tcpopt mss1460 "abc"
/// < out 1.0.0.1:5 > 2.0.0.2:6 tcp ipopt 0x01010100 tcpopt mss1460 "abc" ; network 0
/// ```
/// ```click
/// in -> UnstripTCPHeader -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp
/// > in  1.0.0.1 > 2.0.0.2 tcp frag 8
/// > in  hex 61
/// < out 1.0.0.1:5 > 2.0.0.2:6 tcp
/// < out 1.0.0.1 > 2.0.0.2 tcp frag 8
/// < out hex 61
/// ```
#[derive(Element)]
#[element(room = "tcp")]
pub struct UnstripTCPHeader;

impl PerPacket for UnstripTCPHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        unstrip(packet);
    }
}
