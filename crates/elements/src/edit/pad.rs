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
#[derive(Element)]
#[element(room = "edit", headers = Pass)]
pub struct Pad {
    /// The minimum length of packets, in bytes.
    #[arg]
    length: Option<PacketLength>,
    /// An argument of Click without effect: added bytes are always zero.
    #[arg(keyword, name = "ZERO", default = true)]
    _zero: bool,
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

impl PerPacket for Pad {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let extra = packet.anno_u32(anno::EXTRA_LENGTH) as usize;
        let missing = match self.length {
            Some(PacketLength(length)) => (length as usize).saturating_sub(packet.len()),
            // Packets are limited in length; the annotation is not.
            None => extra.min((u16::MAX as usize).saturating_sub(packet.len())),
        };
        if extra > 0 {
            packet.set_anno_u32(anno::EXTRA_LENGTH, 0);
        }
        if missing > 0 {
            packet.put_back(missing);
        }
        if self.maxlength > 0 {
            packet.cut(self.maxlength as usize);
        }
    }
}
