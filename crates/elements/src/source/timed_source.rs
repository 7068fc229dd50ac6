//! `TimedSource`: a packet every so often.

use super::copies::{self, Ending, Pattern};
use castanet_engine::prelude::*;

/// Makes a packet every so often.
///
/// ```click
/// s :: TimedSource(INTERVAL 0.25, DATA abcd, LIMIT 3) -> out
/// = s.count 0
/// + 250ms
/// < out eth hex 61 62 63 64 ; time 1000000000.250000000
/// = s.interval 250ms
/// ! s.interval 1s
/// + 5s
/// < out eth hex 61 62 63 64 ; time 1000000000.500000000
/// < out eth hex 61 62 63 64 ; time 1000000001.500000000
/// ! s.reset
/// < out eth hex 61 62 63 64 ; time 1000000005.250000000
/// ! s.active false
/// + 5s
/// = s.count 1
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "source", args = TimedSource, processing = "h/h")]
pub struct TimedSource {
    /// Time from packet to packet.
    #[arg(live, default = Duration::from_millis(500))]
    interval: Duration,
    /// Contents of the packets.
    #[arg(live, default = Data::from("A packet of this source holds this text, of sixty-four bytes or more."))]
    data: Data,
    /// How many packets to make in all; no limit if negative.
    #[arg(keyword, live, default = -1)]
    limit: i64,
    /// Whether to make packets.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Bytes free before the contents.
    #[arg(keyword, live, default = 28, range = ..=65535)]
    headroom: usize,
}

/// What has been made so far, and when the next is due.
#[derive(Default, Local)]
#[local(methods)]
pub struct Made {
    /// Packets.
    #[read]
    count: u64,
    pattern: Pattern,
    ending: Ending,
    next: Option<Time>,
}

#[handlers]
impl Made {
    /// Counts from zero again.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.count = 0;
        Ok(())
    }
}

impl Build for TimedSource {
    type Args = TimedSource;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.interval.is_zero() {
            true => Err(ArgError::new("bad interval").at("INTERVAL")),
            false => Ok(args),
        }
    }
}

impl Source for TimedSource {
    type Local = Made;
    type Fate = ();

    fn continues(&self, _: &TimedSource) -> bool {
        true
    }

    fn begin(&self, made: &mut Made, cx: &mut Cx) -> Result<(), ArgError> {
        made.next = Some(cx.now() + self.interval);
        Ok(())
    }

    fn ask(&self, made: &mut Made, _: usize, cx: &mut Cx) -> Asked {
        let now = cx.now();
        if !self.active {
            made.next = None;
            return Asked::Done;
        }
        // Who was idle makes the next packet at once.
        let due = made.next.unwrap_or(now);
        if due > now {
            return Asked::At(due);
        }
        if copies::left(self.limit, made.count) == 0 {
            made.next = None;
            return made.ending.now(self.stop, None, cx);
        }
        made.ending.not_yet();
        if cx.grant(1) == 0 {
            return Asked::Empty;
        }
        let bytes = made.pattern.of(&self.data, -1);
        made.count += copies::emit(bytes, self.headroom, Some(now), 1, cx) as u64;
        let next = due + self.interval.max(Duration::from_nanos(1));
        made.next = Some(next);
        Asked::At(next)
    }
}
