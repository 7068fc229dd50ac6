//! `CheckLength`: short enough or not.

use castanet_engine::packet::anno::EXTRA_LENGTH;
use castanet_engine::prelude::*;

/// Passes packets up to a length on and sends longer ones to output 1, or drops them.
///
/// ```click
/// in -> c :: CheckLength(28) -> out;  c[1] -> long
/// > in   1.0.0.1 > 2.0.0.2 udp len 28
/// > in   1.0.0.1 > 2.0.0.2 udp len 29
/// < out  1.0.0.1 > 2.0.0.2 udp len 28
/// < long 1.0.0.1 > 2.0.0.2 udp len 29
/// ! c.length 29
/// = c.length 29
/// > in   1.0.0.1 > 2.0.0.2 udp len 29
/// < out  1.0.0.1 > 2.0.0.2 udp len 29
/// ```
#[derive(Clone, Element)]
#[element(room = "classify")]
pub struct CheckLength {
    /// The longest packet to pass on, in bytes.
    #[arg(live)]
    length: u32,
    /// Whether the extra length annotation counts too.
    #[arg(keyword, default = false)]
    extra_length: bool,
}

#[derive(Fate)]
pub enum Length {
    /// Packets that are short enough.
    Fits,
    /// Packets that are longer.
    #[optional]
    TooLong,
}

impl PerPacket for CheckLength {
    type On = on::Any;
    type Local = ();
    type Fate = Length;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Length {
        let extra = if self.extra_length { packet.anno_u32(EXTRA_LENGTH) as usize } else { 0 };
        match packet.len() + extra > self.length as usize {
            true => Length::TooLong,
            false => Length::Fits,
        }
    }
}
