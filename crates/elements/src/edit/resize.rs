//! `Resize`: longer or shorter, at either end.

use castanet_engine::prelude::*;

/// Adds bytes in front of each packet and behind it, or takes some off if negative.
///
/// Bytes that are added are zero; a packet that is shorter than what is taken off has
/// nothing left.
///
/// ```click
/// in -> r :: Resize(2, -1) -> out
/// > in  hex 01 02 03
/// > in  hex 01
/// < out hex 00 00 01 02
/// < out hex 00 00
/// = r.head 2
/// = r.tail -1
/// ! r.head -1
/// ! r.tail 1
/// > in  hex 01 02 03
/// < out hex 02 03 00
/// ```
#[derive(Clone, Element)]
#[element(room = "edit")]
pub struct Resize {
    /// How many bytes to add in front.
    #[arg(live, default = 0, range = -MOST..=MOST)]
    head: i32,
    /// How many bytes to add behind.
    #[arg(live, default = 0, range = -MOST..=MOST)]
    tail: i32,
}

/// No packet is longer.
const MOST: i32 = 65535;

impl PerPacket for Resize {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let (head, tail) = (self.head.unsigned_abs() as usize, self.tail.unsigned_abs() as usize);
        match self.tail < 0 {
            true => packet.truncate(packet.len().saturating_sub(tail)),
            false => _ = packet.put_back(tail),
        }
        match self.head < 0 {
            true => _ = packet.pull_front(head.min(packet.len())),
            false => packet.push_front(head).fill(0),
        }
    }
}
