//! `TruncateFCS`: removes the frame check sequence of Ethernet frames.

use castanet_element::packet::anno::EXTRA_LENGTH;
use castanet_element::prelude::*;

/// Removes the frame check sequence of Ethernet frames: their last four bytes.
///
/// If the extra length annotation says that more than four bytes of the frame were cut off before, the frame
/// check sequence was among them, and the element subtracts its length from the annotation.
///
/// ```click
/// in -> Truncate(6) -> TruncateFCS -> l :: CheckLength(6, EXTRA_LENGTH true) -> out;  l[1] -> long
/// > in   hex 01 02 03 04 05 06
/// > in   hex 01 02 03 04 05 06 07 08 09 0a 0b
/// > in   hex 01 02 03 04 05 06 07 08 09 0a
/// > in   hex 01 02 03
/// < out  hex 01 02
/// < long hex 01 02 03 04 05 06
/// < out  hex 01 02
/// < out  hex
/// ```
/// ```click
/// in -> Truncate(6) -> TruncateFCS(EXTRA_LENGTH false) -> out
/// > in  hex 01 02 03 04 05 06 07 08 09 0a 0b
/// < out hex 01 02
/// ```
#[derive(Element)]
#[element(room = "ether")]
pub struct TruncateFCS {
    /// Whether the extra length annotation counts.
    #[arg(keyword, default = true)]
    extra_length: bool,
}

/// Length of the frame check sequence, in bytes.
const FCS_LEN: u32 = 4;

impl PerPacket for TruncateFCS {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let extra = packet.anno_u32(EXTRA_LENGTH);
        if self.extra_length && extra > FCS_LEN {
            packet.set_anno_u32(EXTRA_LENGTH, extra - FCS_LEN);
        } else {
            packet.cut(packet.len().saturating_sub(FCS_LEN as usize));
        }
    }
}
