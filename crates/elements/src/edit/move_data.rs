//! `MoveData`: copies bytes within a packet.

use castanet_element::prelude::*;

/// Copies bytes within each packet from one offset to another.
///
/// A packet that does not have all source bytes is unchanged. One that ends before the
/// last destination byte is extended by zeros, or unchanged if GROW is false.
///
/// ```click
/// in -> MoveData(0, 2, 2) -> out;  in2 -> MoveData(DST_OFFSET 3, SRC_OFFSET 0, LENGTH 2) -> out2
/// > in   hex 01 02 03 04
/// > in   hex 01 02 03
/// < out  hex 03 04 03 04
/// < out  hex 01 02 03
/// > in2  hex 01 02 03
/// < out2 hex 01 02 03 01 02
/// ```
///
/// ```click
/// in -> MoveData(3, 0, 2, GROW false) -> out
/// > in  hex 01 02 03
/// > in  hex 01 02 03 04 05
/// < out hex 01 02 03
/// < out hex 01 02 03 01 02
/// ```
#[derive(Element)]
#[element(room = "edit")]
pub struct MoveData {
    /// Offset of the destination, in bytes.
    #[arg(range = ..=1048576)]
    dst_offset: u32,
    /// Offset of the source, in bytes.
    #[arg]
    src_offset: u32,
    /// Number of bytes to copy.
    #[arg]
    length: u32,
    /// Whether to extend packets that end before the last destination byte.
    #[arg(keyword, default = true)]
    grow: bool,
}

impl PerPacket for MoveData {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let (from, to) = (self.src_offset as usize, self.dst_offset as usize);
        let length = self.length as usize;
        if from + length > packet.len() {
            return;
        }
        if self.grow && to + length > packet.len() {
            packet.put_back(to + length - packet.len());
        }
        if to + length <= packet.len() {
            packet.bytes_mut().copy_within(from..from + length, to);
        }
    }
}
