//! `SetTimestamp`: sets time stamps.

use castanet_element::packet::anno::FIRST_TIMESTAMP;
use castanet_element::prelude::*;

/// Sets each packet's timestamp, to the time of its burst unless a time is given.
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
    /// The time to set, in seconds since 1970; the time of the burst unless given.
    #[arg]
    timestamp: Option<Timestamp>,
    /// Whether to set the first timestamp annotation instead.
    #[arg(keyword, default = false)]
    first: bool,
    /// An argument of FastClick without effect: the packets of a burst have one time.
    #[arg(keyword, default = true)]
    #[allow(dead_code)]
    per_batch: bool,
}

/// The time for the packets of this burst.
#[derive(Default, Local)]
pub struct SetTimestampState {
    nanoseconds: i64,
}

impl PerPacket for SetTimestamp {
    type On = on::Any;
    type Local = SetTimestampState;
    type Fate = ();

    #[inline]
    fn begin_burst(&self, state: &mut SetTimestampState, now: Time) {
        let given = self.timestamp.map(|time| time.0);
        state.nanoseconds = given.unwrap_or(now.0);
    }

    #[inline]
    fn packet(&self, state: &mut SetTimestampState, packet: &mut Packet) {
        match self.first {
            false => packet.set_timestamp(state.nanoseconds),
            true => packet.set_anno_u64(FIRST_TIMESTAMP, state.nanoseconds as u64),
        }
    }
}
