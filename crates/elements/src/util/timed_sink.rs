//! `TimedSink`: ends a packet every so often.

use castanet_engine::prelude::*;

/// Pulls a packet every so often and ends it.
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
    /// Time from packet to packet.
    #[arg(live, default = Duration::from_millis(500))]
    interval: Duration,
}

/// When the next is due.
#[derive(Default, Local)]
pub struct Next {
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
    type Local = Next;
    type Fate = Never;

    fn continues(&self, _: &TimedSink) -> bool {
        true
    }

    fn begin(&self, next: &mut Next, cx: &mut Cx) -> Result<(), ArgError> {
        next.due = cx.now() + self.interval;
        Ok(())
    }

    fn ask(&self, next: &mut Next, _: usize, cx: &mut Cx) -> Asked {
        if next.due <= cx.now() {
            let batch = cx.pull(0, 1);
            cx.consume(batch);
            next.due = cx.now() + self.interval.max(Duration::from_nanos(1));
        }
        Asked::At(next.due)
    }
}
