//! `TimedSource`: makes a packet at regular intervals.

use super::end_action::{self, EndAction};
use super::pattern::{self, Pattern};
use castanet_element::prelude::*;

/// Generates a packet at regular intervals.
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
#[element(room = "source", args = TimedSource, processing = "h/h", headers = Gives(FirstHeader::Unknown, MarkedHeader::None))]
pub struct TimedSource {
    /// Time between two packets.
    #[arg(live, default = Duration::from_millis(500))]
    interval: Duration,
    /// Contents of the packets.
    #[arg(live, default = Data::from("Random bullshit in a packet, at least 64 bytes long. Well, now it is."))]
    data: Data,
    /// Total number of packets to make; no limit if negative.
    #[arg(keyword, live, default = -1)]
    limit: i64,
    /// Whether the source makes packets.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Headroom of the packets in bytes.
    #[arg(keyword, live, default = 28, range = ..=65535)]
    headroom: usize,
}

/// Counter, cached contents and end of the source, and the time of the next packet.
#[derive(Default, Local)]
#[local(methods)]
pub struct TimedSourceState {
    /// Number of packets made since the last reset.
    #[read]
    #[portable]
    count: u64,
    pattern: Pattern,
    end_action: EndAction,
    next: Option<Time>,
}

#[handlers]
impl TimedSourceState {
    /// Resets the counter.
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
    type Local = TimedSourceState;
    type Fate = ();

    fn can_take_state(&self, _: &TimedSource) -> bool {
        true
    }

    fn init(&self, state: &mut TimedSourceState, cx: &mut Cx) -> Result<(), ArgError> {
        state.next = Some(cx.now() + self.interval);
        Ok(())
    }

    fn produce(&self, state: &mut TimedSourceState, _: usize, cx: &mut Cx) -> NextRun {
        let now = cx.now();
        if !self.active {
            state.next = None;
            return NextRun::Done;
        }
        // A source that was idle makes its next packet at once.
        let due = state.next.unwrap_or(now);
        if due > now {
            return NextRun::At(due);
        }
        if end_action::packets_left(self.limit, state.count) == 0 {
            state.next = None;
            return state.end_action.run(self.stop, None, cx);
        }
        state.end_action.rearm();
        if cx.grant(1) == 0 {
            return NextRun::Empty;
        }
        let bytes = state.pattern.bytes_of(&self.data, -1);
        state.count += pattern::emit(bytes, self.headroom, Some(now), 1, cx) as u64;
        let next = due + self.interval.max(Duration::from_nanos(1));
        state.next = Some(next);
        NextRun::At(next)
    }
}
