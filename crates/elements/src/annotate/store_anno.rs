//! `StoreAnno`: writes an annotation into the packet.

use castanet_element::packet::anno::{self, Anno};
use castanet_element::prelude::*;

/// Writes an annotation into the data of each packet, from an offset on.
///
/// A name stands for an annotation of its own size, `OFFSET/BYTES` for any bytes; they
/// are copied without conversion. Bytes beyond the end of the packet are not written,
/// unless GROW extends the packet.
///
/// ```click
/// in -> StoreAnno(1, PAINT) -> StoreAnno(2, DST_IP) -> out
/// > in  hex 01 02 03 04 ; paint 7 dst 10.0.0.1
/// < out hex 01 07 0a 00 ; paint 7 dst 10.0.0.1
/// ```
///
/// ```click
/// in -> StoreAnno(1, DST_IP, GROW true) -> out
/// > in  hex 01 ; dst 10.0.0.1
/// < out hex 01 0a 00 00 01 ; dst 10.0.0.1
/// ```
///
/// ```click
/// in -> StoreAnno(0) -> out
/// > in  hex 01 02 ; paint 7
/// < out hex 07 02 ; paint 7
/// ```
#[derive(Element)]
#[element(room = "annotate")]
pub struct StoreAnno {
    /// Offset in the packet, in bytes.
    #[arg(range = ..=1048576)]
    offset: u32,
    /// The annotation to write.
    #[arg(default = Anno { name: "PAINT", offset: anno::PAINT, size: 1 }, shown = "PAINT")]
    anno: Anno,
    /// Whether to extend packets that are too short.
    #[arg(keyword, default = false)]
    grow: bool,
}

impl PerPacket for StoreAnno {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let (offset, end) = (self.offset as usize, self.offset as usize + self.anno.size);
        if self.grow && packet.len() < end {
            packet.put_back(end - packet.len());
        }
        if offset < packet.len() {
            let all = packet.annotations();
            let bytes = all[self.anno.offset..].iter().take(self.anno.size);
            packet.bytes_mut()[offset..].iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
    }
}
