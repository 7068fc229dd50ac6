//! `SetCRC32`: appends a CRC-32 to packets.

use castanet_element::prelude::*;
use castanet_element::wire::crc32;

/// Appends the CRC-32 of each packet's bytes, for `CheckCRC32`.
///
/// The checksum is that of AAL5 and bzip2, most significant byte first, as in Click.
///
/// ```click
/// in -> SetCRC32 -> out
/// > in  hex 31 32 33 34 35 36 37 38 39
/// < out hex 31 32 33 34 35 36 37 38 39 fc 89 19 18
/// ```
#[derive(Element)]
#[element(room = "ether")]
pub struct SetCRC32;

impl PerPacket for SetCRC32 {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let sum = crc32::of(packet.bytes());
        packet.put_back(sum.len()).copy_from_slice(&sum);
    }
}
