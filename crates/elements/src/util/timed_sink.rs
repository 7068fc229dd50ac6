//! `TimedSink`: discards a packet at regular intervals.

use castanet_element::prelude::*;

/// Pulls and discards a packet at regular intervals.
///
/// ```click
/// in -> q :: Queue -> s :: TimedSink(INTERVAL 0.25)
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// = q.length 2
/// + 250ms
/// = q.length 1
/// = s.interval 250ms
/// + 250ms
/// = q.length 0
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "util", args = TimedSink, ports = "1/0", processing = "l/l")]
pub struct TimedSink {
    /// Time between two packets.
    #[arg(live, default = Duration::from_millis(500))]
    interval: Duration,
}

/// The time of the next pull.
#[derive(Default, Local)]
pub struct TimedSinkState {
    due: Time,
}

impl Build for TimedSink {
    type Args = TimedSink;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.interval.is_zero() {
            true => Err(ArgError::new("bad interval").at("INTERVAL")),
            false => Ok(args),
        }
    }
}

impl Source for TimedSink {
    type Local = TimedSinkState;
    type Fate = Never;

    fn can_take_state(&self, _: &TimedSink) -> bool {
        true
    }

    fn init(&self, state: &mut TimedSinkState, cx: &mut Cx) -> Result<(), ArgError> {
        state.due = cx.now() + self.interval;
        Ok(())
    }

    fn produce(&self, state: &mut TimedSinkState, _: usize, cx: &mut Cx) -> NextRun {
        if state.due <= cx.now() {
            let batch = cx.pull(0, 1);
            cx.consume(batch);
            state.due = cx.now() + self.interval.max(Duration::from_nanos(1));
        }
        NextRun::At(state.due)
    }
}
