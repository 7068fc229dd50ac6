//! `Block`: filters packets by their rate annotation.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Filters packets by their rate annotation: rates above a threshold go to output 1.
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
    /// Highest rate that passes; all packets pass if 0.
    #[arg(live)]
    thresh: u32,
}

#[derive(Fate)]
pub enum BlockExit {
    /// Packets whose rate is at most the threshold.
    Passed,
    /// Packets whose rate exceeds the threshold.
    Blocked,
}

impl PerPacket for Block {
    type On = on::Any;
    type Local = ();
    type Fate = BlockExit;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> BlockExit {
        match self.thresh == 0 || packet.anno_u32(anno::FWD_RATE) <= self.thresh {
            true => BlockExit::Passed,
            false => BlockExit::Blocked,
        }
    }
}
