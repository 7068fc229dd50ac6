//! `TimeRange`: from when to when.

use super::time_span::seconds;
use castanet_engine::prelude::*;

/// Remembers the earliest and the latest of all packets' time stamps.
///
/// ```click
/// in -> r :: TimeRange -> out
/// = r.first 0.0
/// > in  1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// > in  1.0.0.2 > 2.0.0.2 udp ; time 1000000001.5
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000003.000000000
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1000000001.500000000
/// = r.first 1000000001.500000000
/// = r.last 1000000003.000000000
/// = r.range 1000000001.500000000 1000000003.000000000
/// = r.interval 1.500000000
/// ! r.reset
/// = r.last 0.0
/// ```
#[derive(Element)]
#[element(room = "trace")]
pub struct TimeRange {
    /// Whether time stamps only grow; they need not be compared then, but there is no gain here.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    simple: bool,
}

/// The earliest and the latest.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset)]
pub struct Range {
    range: Option<(i64, i64)>,
}

#[handlers]
impl Range {
    /// The earliest.
    #[read]
    fn first(&self) -> String {
        self.range.map_or("0.0".into(), |(first, _)| seconds(first))
    }
    /// The latest.
    #[read]
    fn last(&self) -> String {
        self.range.map_or("0.0".into(), |(_, last)| seconds(last))
    }
    /// Both, with a space in between.
    #[read]
    fn range(&self) -> String {
        format!("{} {}", self.first(), self.last())
    }
    /// How long from the one to the other.
    #[read]
    fn interval(&self) -> String {
        self.range.map_or("0.0".into(), |(first, last)| seconds(last - first))
    }
}

impl PerPacket for TimeRange {
    type On = on::Any;
    type Local = Range;
    type Fate = ();
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, range: &mut Range, packet: &mut Packet) {
        let time = packet.timestamp();
        let (first, last) = range.range.unwrap_or((time, time));
        range.range = Some((first.min(time), last.max(time)));
    }
}
