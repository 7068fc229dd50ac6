//! `Resize`: adds or removes bytes at both ends of packets.

use castanet_element::prelude::*;

/// Adds bytes at the front and the back of each packet, or removes them if negative.
///
/// Bytes added at the front are those that stood before the packet, as with `Unstrip`; bytes added
/// at the back are zero. A packet that is shorter than the number of bytes to remove becomes empty.
///
/// ```click
/// in -> Strip(2) -> r :: Resize(2, -1) -> out
/// > in  hex 01 02 03 04
/// > in  hex 01 02
/// < out hex 01 02 03
/// < out hex 01 02
/// = r.head 2
/// = r.tail -1
/// ! r.head -1
/// ! r.tail 1
/// > in  hex 01 02 03 04
/// < out hex 04 00
/// ```
#[derive(Clone, Element)]
#[element(room = "edit")]
pub struct Resize {
    /// Number of bytes to add at the front, or to remove if negative.
    #[arg(live, default = 0, range = -MOST..=MOST, syntax = "a number from -65535 to 65535")]
    head: i32,
    /// Number of bytes to add at the back, or to remove if negative.
    #[arg(live, default = 0, range = -MOST..=MOST, syntax = "a number from -65535 to 65535")]
    tail: i32,
}

/// The most bytes to add or remove.
const MOST: i32 = 65535;

impl PerPacket for Resize {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let (head, tail) = (self.head.unsigned_abs() as usize, self.tail.unsigned_abs() as usize);
        match self.tail < 0 {
            true => packet.cut(packet.len().saturating_sub(tail)),
            false => _ = packet.put_back(tail),
        }
        match self.head < 0 {
            true => _ = packet.pull_front(head.min(packet.len())),
            false => _ = packet.push_front(head),
        }
    }
}
