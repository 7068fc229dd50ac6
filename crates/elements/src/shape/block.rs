//! `Block`: too frequent packets go aside.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// Sends packets whose rate annotation is above a threshold aside.
///
/// ```click
/// in -> b :: Block(5) -> out;  b[1] -> blocked
/// often -> Paint(6, ANNO 20) -> b
/// > in    1.0.0.1 > 2.0.0.2 udp len 60
/// > often 1.0.0.2 > 2.0.0.2 udp len 60
/// < out     1.0.0.1 > 2.0.0.2 udp len 60
/// < blocked 1.0.0.2 > 2.0.0.2 udp len 60
/// ! b.thresh 0
/// = b.thresh 0
/// > often 1.0.0.2 > 2.0.0.2 udp len 60
/// < out   1.0.0.2 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Element)]
#[element(room = "shape", processing = "h/h")]
pub struct Block {
    /// The highest rate that passes; all pass if 0.
    #[arg(live)]
    thresh: u32,
}

#[derive(Fate)]
pub enum Way {
    /// Packets that are rare enough.
    Passed,
    /// Packets that are too frequent.
    Blocked,
}

impl PerPacket for Block {
    type On = on::Any;
    type Local = ();
    type Fate = Way;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Way {
        match self.thresh == 0 || packet.anno_u32(anno::FWD_RATE) <= self.thresh {
            true => Way::Passed,
            false => Way::Blocked,
        }
    }
}
