//! `Pad`: extends packets to a minimum length.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Pads packets to a minimum length with zero bytes.
///
/// Without a length it extends each packet by the number of bytes in its
/// `EXTRA_LENGTH` annotation. The annotation is then zero.
///
/// ```click
/// in -> Pad(8, MAXLENGTH 10) -> out
/// > in  eth hex 01 02 03 04 05 06
/// > in  eth hex 01 02 03 04 05 06 07 08 09
/// > in  eth hex 01 02 03 04 05 06 07 08 09 0a 0b
/// < out eth hex 01 02 03 04 05 06 00 00
/// < out eth hex 01 02 03 04 05 06 07 08 09
/// < out eth hex 01 02 03 04 05 06 07 08 09 0a
/// ```
///
/// ```click
/// in -> Paint(2, ANNO 28) -> Pad -> out
/// > in  eth hex 01 02
/// < out eth hex 01 02 00 00
/// ```
///
/// ```click
/// RandomSeed(5)
/// in -> Pad(8, RANDOM true) -> out
/// > in  eth hex 01 02
/// < out eth hex 01 02 1b dd 2a 23 00 00
/// ```
#[derive(Element)]
#[element(room = "edit", headers = Pass)]
pub struct Pad {
    /// The minimum length of packets, in bytes.
    #[arg]
    length: Option<PacketLength>,
    /// An argument of Click without effect: added bytes are zero unless RANDOM is true.
    #[arg(keyword, name = "ZERO", default = true)]
    _zero: bool,
    /// Whether added bytes are random, four at a time; less than four at the end are zero.
    #[arg(keyword, default = false)]
    random: bool,
    /// An argument of FastClick without effect: no packet is reported.
    #[arg(keyword, name = "VERBOSE", default = false)]
    _verbose: bool,
    /// The maximum length of packets, to which longer ones are cut; no limit if 0.
    #[arg(keyword, default = 0)]
    maxlength: u32,
}

/// The argument LENGTH.
#[derive(Clone, Copy)]
pub struct PacketLength(u32);

impl FromArg for PacketLength {
    const SYNTAX: &'static str = "a length up to 1048576";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let all = ..=Packet::MAX_ARG_LEN;
        castanet_element::args::within(text, names, &all, Self::SYNTAX).map(PacketLength)
    }
}

impl PerBatch for Pad {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const CAN_PASS: bool = true;

    fn can_pass(&self, _: &mut (), packet: &mut Packet) -> bool {
        let fits = self.maxlength == 0 || packet.len() <= self.maxlength as usize;
        fits && packet.anno_u32(anno::EXTRA_LENGTH) == 0 && self.missing(packet) == 0
    }

    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in &mut batch {
            let missing = self.missing(packet);
            packet.set_anno_u32(anno::EXTRA_LENGTH, 0);
            if missing > 0 {
                packet.put_back(missing);
            }
            if self.random {
                let added = packet.len() - missing;
                // As in FastClick, bytes beyond the last four stay zero.
                let words = added..added + missing / 4 * 4;
                cx.random_numbers().fill(packet.bytes_mut().get_mut(words).unwrap_or_default());
            }
            if self.maxlength > 0 {
                packet.cut(self.maxlength as usize);
            }
        }
        cx.emit_batch((), batch);
    }
}

impl Pad {
    /// Number of bytes that a packet lacks.
    #[inline]
    fn missing(&self, packet: &Packet) -> usize {
        match self.length {
            Some(PacketLength(length)) => (length as usize).saturating_sub(packet.len()),
            // Packets are limited in length; the annotation is not.
            None => {
                let extra = packet.anno_u32(anno::EXTRA_LENGTH) as usize;
                extra.min((u16::MAX as usize).saturating_sub(packet.len()))
            }
        }
    }
}
