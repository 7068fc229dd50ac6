//! `TimeRange`: records the range of time stamps.

use super::signed_time::seconds;
use castanet_element::prelude::*;

/// Records the earliest and the latest time stamp of all packets.
///
/// ```click
/// in -> r :: TimeRange -> out
/// = r.first 0.0
/// > in  1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// > in  1.0.0.2 > 2.0.0.2 udp ; time 1000000001.5
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000003.000000000
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1000000001.500000000
/// = r.first 1000000001.500000
/// = r.last 1000000003.000000
/// = r.range 1000000001.500000 1000000003.000000
/// = r.interval 1.500000
/// ! r.reset
/// = r.last 0.0
/// ```
#[derive(Element)]
#[element(room = "trace")]
pub struct TimeRange {
    /// An argument of Click without effect: that time stamps only increase.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    simple: bool,
}

/// The earliest and the latest time stamp.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset)]
pub struct TimeRangeState {
    range: Option<(i64, i64)>,
}

#[handlers]
impl TimeRangeState {
    /// The earliest time stamp.
    #[read]
    fn first(&self) -> String {
        self.range.map_or("0.0".into(), |(first, _)| seconds(first))
    }
    /// The latest time stamp.
    #[read]
    fn last(&self) -> String {
        self.range.map_or("0.0".into(), |(_, last)| seconds(last))
    }
    /// The earliest and the latest time stamp, separated by a space.
    #[read]
    fn range(&self) -> String {
        format!("{} {}", self.first(), self.last())
    }
    /// The time from the earliest to the latest time stamp.
    #[read]
    fn interval(&self) -> String {
        self.range.map_or("0.0".into(), |(first, last)| seconds(last - first))
    }
}

impl PerPacket for TimeRange {
    type On = on::Any;
    type Local = TimeRangeState;
    type Fate = ();
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, state: &mut TimeRangeState, packet: &mut Packet) {
        let time = packet.timestamp();
        let (first, last) = state.range.unwrap_or((time, time));
        state.range = Some((first.min(time), last.max(time)));
    }
}
