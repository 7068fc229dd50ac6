//! `CheckCRC32`: checks and removes the CRC-32 at the end of packets.

use castanet_element::prelude::*;
use castanet_element::wire::crc32;

/// Checks and removes the CRC-32 that `SetCRC32` has appended; drops packets where it is wrong.
///
/// Each worker reports the first packet that it drops.
///
/// ```click
/// in -> CheckCRC32 -> out;  bad -> c :: CheckCRC32 -> Discard
/// a -> SetCRC32 -> CheckCRC32 -> b
/// > in  hex 31 32 33 34 35 36 37 38 39 fc 89 19 18
/// < out hex 31 32 33 34 35 36 37 38 39
/// > bad hex 31 32 33 34 35 36 37 38 38 fc 89 19 18
/// > bad hex 31 32 33
/// ~ c :: CheckCRC32: CRC32 failed, len 13
/// = c.drops.wrong 1
/// = c.drops.short 1
/// > a 1.0.0.1 > 2.0.0.2 udp
/// < b 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "ether")]
pub struct CheckCRC32;

#[derive(Fate)]
pub enum CheckCRC32Exit {
    /// Packets with a correct checksum, which is removed.
    Right,
    /// Packets with a wrong checksum. Look for a bad link, or for an element that changes frames
    /// before this one.
    #[drop]
    Wrong,
    /// Packets shorter than a checksum (4 bytes).
    #[drop]
    Short,
}

/// The report of the first packet that a worker has dropped.
#[derive(Default, Local)]
pub struct CheckCRC32State {
    /// Its length in bytes.
    length: Option<usize>,
    is_reported: bool,
}

impl PerPacket for CheckCRC32 {
    type On = on::Any;
    type Local = CheckCRC32State;
    type Fate = CheckCRC32Exit;

    fn packet(&self, state: &mut CheckCRC32State, packet: &mut Packet) -> CheckCRC32Exit {
        let Some((bytes, sum)) = packet.bytes().split_last_chunk() else {
            state.length.get_or_insert(packet.len());
            return CheckCRC32Exit::Short;
        };
        if crc32::of(bytes) != *sum {
            state.length.get_or_insert(packet.len());
            return CheckCRC32Exit::Wrong;
        }
        let len = bytes.len();
        packet.cut(len);
        CheckCRC32Exit::Right
    }

    fn end_burst(&self, state: &mut CheckCRC32State, cx: &mut Cx) {
        if let Some(length) = state.length.filter(|_| !state.is_reported) {
            state.is_reported = true;
            cx.report(&format!("CRC32 failed, len {length}"));
        }
    }
}
