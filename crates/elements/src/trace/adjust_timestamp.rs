//! `AdjustTimestamp`: adds a time to time stamps.

use super::signed_time::SignedTime;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Adds a time, which may be negative, to each packet's time stamp.
///
/// A time stamp of zero is not changed, unless ALL. With FIRST the first time stamp
/// annotation changes instead: that of the first of the packets that this one represents.
///
/// ```click
/// in -> a :: AdjustTimestamp(-1.5) -> out;  zero -> AdjustTimestamp(2, ALL true) -> out2
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// > in   1.0.0.2 > 2.0.0.2 udp
/// > zero 1.0.0.3 > 2.0.0.2 udp
/// < out  1.0.0.1 > 2.0.0.2 udp ; time 1000000001.500000000
/// < out  1.0.0.2 > 2.0.0.2 udp
/// < out2 1.0.0.3 > 2.0.0.2 udp ; time 2.000000000
/// = a.time -1.500000
/// ! a.time +1
/// = a.time 1.000000
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// < out  1.0.0.1 > 2.0.0.2 udp ; time 1000000004.000000000
/// ```
#[derive(Clone, Element)]
#[element(room = "trace")]
pub struct AdjustTimestamp {
    /// The time to add, in seconds or with a unit.
    #[arg(live, default = SignedTime(0), shown = "0")]
    time: SignedTime,
    /// Whether to change the first time stamp annotation instead.
    #[arg(keyword, default = false)]
    first: bool,
    /// Whether to change time stamps of zero, too.
    #[arg(keyword, default = false)]
    all: bool,
}

impl PerPacket for AdjustTimestamp {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let time = match self.first {
            true => packet.anno_u64(anno::FIRST_TIMESTAMP) as i64,
            false => packet.timestamp(),
        };
        if time == 0 && !self.all {
            return;
        }
        let time = time.saturating_add(self.time.0);
        match self.first {
            true => packet.set_anno_u64(anno::FIRST_TIMESTAMP, time as u64),
            false => packet.set_timestamp(time),
        }
    }
}
