//! `Truncate`: shortens packets to a maximum length.

use castanet_element::packet::anno::EXTRA_LENGTH;
use castanet_element::prelude::*;

/// Truncates packets to a maximum length.
///
/// The number of bytes removed is added to the extra length annotation, unless
/// EXTRA_LENGTH is false.
///
/// ```click
/// in -> t :: Truncate(4) -> out
/// > in  hex 01 02 03 04 05 06
/// > in  hex 01 02
/// < out hex 01 02 03 04 ; length 4
/// < out hex 01 02
/// = t.nbytes 4
/// ! t.nbytes 1
/// > in  hex 01 02
/// < out hex 01 ; length 1
/// = t.nbytes 1
/// ```
///
/// ```click
/// in -> Truncate(4, EXTRA_LENGTH true) -> c :: CheckLength(6, EXTRA_LENGTH true) -> out
/// > in  hex 01 02 03 04 05 06
/// > in  hex 01 02 03 04 05 06 07
/// < out hex 01 02 03 04
/// = c.drops.too_long 1
/// ```
#[derive(Clone, Element)]
#[element(room = "edit", methods, headers = Pass)]
pub struct Truncate {
    /// The maximum length, in bytes.
    #[arg]
    length: u32,
    /// Whether to add the number of bytes removed to the extra length annotation.
    #[arg(keyword, default = true)]
    extra_length: bool,
}

#[handlers]
impl Truncate {
    /// The maximum length, in bytes.
    #[read]
    fn nbytes(&self) -> String {
        self.length.to_string()
    }
    /// Sets the maximum length.
    #[write(nbytes)]
    fn set_nbytes(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let length = u32::from_arg(text, names).map_err(|e| e.click("expected integer"))?;
        Ok(Truncate { length, ..*self })
    }
}

impl PerPacket for Truncate {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        shorten(packet, self.length as usize, self.extra_length);
    }
}

/// Cuts a packet to `max` bytes, and adds the bytes removed to the extra length annotation if
/// `counts_rest` says so.
#[inline]
pub(crate) fn shorten(packet: &mut Packet, max: usize, counts_rest: bool) {
    if packet.len() <= max {
        return;
    }
    if counts_rest {
        let extra = packet.anno_u32(EXTRA_LENGTH).saturating_add((packet.len() - max) as u32);
        packet.set_anno_u32(EXTRA_LENGTH, extra);
    }
    packet.cut(max);
}
