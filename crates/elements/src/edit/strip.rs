//! `Strip`: removes bytes from the front of packets.

use castanet_element::prelude::*;

/// Strips bytes from the front of each packet.
///
/// They stay in memory as headroom, and `Unstrip` restores them. A shorter
/// packet becomes empty.
///
/// ```click
/// in -> Strip(14) -> MarkIPHeader -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; mac -14
/// ```
///
/// ```click
/// in -> Strip(14) -> out
/// > in  hex 01 02 03
/// < out hex ; length 0
/// ```
#[derive(Element)]
#[element(room = "edit", headers = Strip)]
pub struct Strip {
    /// Number of bytes to strip.
    #[arg]
    length: u32,
}

impl PerPacket for Strip {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Moves;

    fn byte_length(&self) -> Option<usize> {
        Some(self.length as usize)
    }

    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, _: &mut [u8]) -> u8 {
        bytes.strip(self.length as usize);
        0
    }

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        Strip::strip(packet, self.length);
    }

    fn native(&self) -> Option<String> {
        Some(format!("Element::strip(packet, {})", self.length))
    }
}

impl Strip {
    /// Whether it strips this many bytes.
    pub(crate) fn has_length(&self, length: u32) -> bool {
        self.length == length
    }

    /// Strips `length` bytes, or all if there are fewer.
    #[inline(always)]
    pub fn strip(packet: &mut Packet, length: u32) {
        if !packet.pull_front(length as usize) {
            let all = packet.len();
            packet.pull_front(all);
        }
    }
}
