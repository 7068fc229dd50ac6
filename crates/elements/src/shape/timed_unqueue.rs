//! `TimedUnqueue`: pulls packets at regular intervals.

use castanet_element::prelude::*;

/// Pulls up to BURST packets per interval and pushes them on.
///
/// ```click
/// in -> q :: Queue -> u :: TimedUnqueue(INTERVAL 1s, BURST 2) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// = q.length 3
/// + 1s
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// + 1s
/// < out 1.0.0.4 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", args = TimedUnqueue, ports = "1/1", processing = "l/h")]
pub struct TimedUnqueue {
    /// Time between bursts.
    #[arg]
    interval: Duration,
    /// Maximum number of packets per interval.
    #[arg(default = 1)]
    burst: u32,
}

impl Build for TimedUnqueue {
    type Args = TimedUnqueue;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        let error = ArgError::new("BURST: it wants 1 or more").click("bad BURST");
        (args.burst > 0).then_some(args).ok_or(error)
    }
}

/// The time of the next pull, and the rest of the current burst.
#[derive(Default, Local)]
pub struct TimedUnqueueState {
    due: Time,
    left: u32,
}

impl Source for TimedUnqueue {
    type Local = TimedUnqueueState;
    type Fate = ();

    fn packets_a_turn(&self) -> usize {
        self.burst as usize
    }

    fn produce(&self, state: &mut TimedUnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        let now = cx.now();
        if now >= state.due {
            state.left = self.burst;
        }
        let batch = cx.pull(0, n.min(state.left as usize));
        if batch.is_empty() && state.left == self.burst {
            return NextRun::Empty;
        }
        if state.left == self.burst {
            state.due = now + self.interval;
        }
        // The engine asks for up to `n` packets; a longer BURST takes several calls.
        state.left = if batch.is_empty() { 0 } else { state.left - batch.len() as u32 };
        cx.emit_batch((), batch);
        if state.left > 0 { NextRun::Again } else { NextRun::At(state.due) }
    }
}
