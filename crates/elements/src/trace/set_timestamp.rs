//! `SetTimestamp`: when a packet was seen.

use castanet_engine::packet::anno::FIRST_TIMESTAMP;
use castanet_engine::prelude::*;

/// Sets each packet's timestamp, to the time of its burst if no other is given.
///
/// ```click
/// in -> SetTimestamp -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000000.000000000
/// + 1.5s
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000001.500000000
/// ```
///
/// ```click
/// in -> SetTimestamp(7.5) -> SetTimestamp(9, FIRST true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 7.500000000
/// ```
#[derive(Element)]
#[element(room = "trace")]
pub struct SetTimestamp {
    /// The time to set; now if not given.
    #[arg]
    timestamp: Option<Timestamp>,
    /// Whether to set the first timestamp annotation instead.
    #[arg(keyword, default = false)]
    first: bool,
    /// As FastClick has it; here packets of a burst have one time anyway.
    #[arg(keyword, default = true)]
    #[allow(dead_code)]
    per_batch: bool,
}

/// The time that the packets of this burst get.
#[derive(Default, Local)]
pub struct Stamp {
    nanoseconds: i64,
}

impl PerPacket for SetTimestamp {
    type On = on::Any;
    type Local = Stamp;
    type Fate = ();

    #[inline]
    fn burst(&self, stamp: &mut Stamp, now: Time) {
        let given = self.timestamp.map(|time| time.0);
        stamp.nanoseconds = given.unwrap_or(now.0);
    }

    #[inline]
    fn packet(&self, stamp: &mut Stamp, packet: &mut Packet) {
        match self.first {
            false => packet.set_timestamp(stamp.nanoseconds),
            true => packet.set_anno_u64(FIRST_TIMESTAMP, stamp.nanoseconds as u64),
        }
    }
}
