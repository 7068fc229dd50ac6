//! `SetAnnoByte`: sets a byte of the annotations.

use castanet_element::prelude::*;

/// Sets a byte of each packet's annotations.
///
/// ```click
/// in -> s :: SetAnnoByte(PAINT, 7) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 7
/// = s.anno 16
/// = s.value 7
/// ! s.value 9
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 9
/// ```
#[derive(Clone, Element)]
#[element(room = "annotate", methods)]
pub struct SetAnnoByte {
    /// The byte, by name or offset.
    #[arg]
    anno: AnnoAt<1>,
    /// The value to set, 0 to 255.
    #[arg(live)]
    value: u8,
}

#[handlers]
impl SetAnnoByte {
    /// The offset of the byte.
    #[read]
    fn anno(&self) -> usize {
        self.anno.0
    }
}

impl PerPacket for SetAnnoByte {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        self.anno.set(packet, self.value);
    }
}
