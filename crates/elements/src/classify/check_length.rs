//! `CheckLength`: filters packets by their length.

use castanet_element::packet::anno::EXTRA_LENGTH;
use castanet_element::prelude::*;

/// Filters packets by length: longer ones leave by output 1 or are dropped.
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
    /// Maximum length of packets that pass, in bytes.
    #[arg(live)]
    length: u32,
    /// Whether the `EXTRA_LENGTH` annotation counts too.
    #[arg(keyword, default = false)]
    extra_length: bool,
}

#[derive(Fate)]
pub enum CheckLengthExit {
    /// Packets up to the maximum length.
    Fits,
    /// Packets longer than the maximum.
    #[optional]
    TooLong,
}

impl PerPacket for CheckLength {
    type On = on::Any;
    type Local = ();
    type Fate = CheckLengthExit;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> CheckLengthExit {
        let extra = if self.extra_length { packet.anno_u32(EXTRA_LENGTH) as usize } else { 0 };
        match packet.len() + extra > self.length as usize {
            true => CheckLengthExit::TooLong,
            false => CheckLengthExit::Fits,
        }
    }
}
