//! `Burster`: pulls a burst of packets at regular intervals.

use castanet_element::prelude::*;

/// Pulls a burst of packets at regular intervals and pushes them on.
///
/// The first pull takes place one interval after the start. An interval in which there is no packet
/// is not made up for.
///
/// ```click
/// in -> q :: Queue -> Burster(500ms, 2) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// = q.length 3
/// + 500ms
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// + 500ms
/// < out 1.0.0.3 > 2.0.0.2 udp
/// ```
#[derive(Element, Args)]
#[element(room = "shape", args = Burster, ports = "1/1", processing = "l/h")]
pub struct Burster {
    /// Time between bursts.
    #[arg]
    interval: Duration,
    /// Maximum number of packets per interval.
    #[arg(default = 1, range = 1..)]
    burst: u32,
}

/// The time of the next pull, and the rest of the current burst.
#[derive(Default, Local)]
pub struct BursterState {
    due: Time,
    left: u32,
}

impl Build for Burster {
    type Args = Burster;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.interval.is_zero() {
            true => Err(ArgError::new("it wants a time").click("bad interval").at("INTERVAL")),
            false => Ok(args),
        }
    }
}

impl Source for Burster {
    type Local = BursterState;
    type Fate = ();

    fn can_take_state(&self, _: &Burster) -> bool {
        true
    }

    fn init(&self, state: &mut BursterState, cx: &mut Cx) -> Result<(), ArgError> {
        state.due = cx.now() + self.interval;
        Ok(())
    }

    fn produce(&self, state: &mut BursterState, n: usize, cx: &mut Cx) -> NextRun {
        if cx.now() >= state.due {
            (state.left, state.due) = (self.burst, cx.now() + self.interval);
        }
        if state.left > 0 {
            let batch = cx.pull(0, n.min(state.left as usize));
            // The engine asks for up to `n` packets; a longer BURST takes several calls.
            state.left = if batch.is_empty() { 0 } else { state.left - batch.len() as u32 };
            cx.emit_batch((), batch);
        }
        if state.left > 0 { NextRun::Again } else { NextRun::At(state.due) }
    }
}
