//! `BenchSource`: packets as devices hand them over, each in a fresh frame.

use super::traffic::{FLOWS, Frames, Traffic, frames};
use castanet_element::prelude::*;

/// Makes packets without end, in frames of the pool; the element that sends them drops
/// them, and the frames go back.
///
/// ```click
/// BenchSource -> out
/// ```
#[derive(Element)]
pub(crate) struct BenchSource;

/// Pause of the source when there are no frames.
const FAMINE: Duration = Duration::from_micros(10);

/// Index of the next frame of the traffic.
#[derive(Default, Local)]
pub(crate) struct BenchSourceState {
    templates: Option<Frames>,
    next: usize,
}

impl Source for BenchSource {
    type Local = BenchSourceState;
    type Fate = ();

    fn init(&self, supply: &mut BenchSourceState, _: &mut Cx) -> Result<(), ArgError> {
        supply.templates = Some(frames(Traffic::Plain, FLOWS));
        Ok(())
    }

    fn produce(&self, supply: &mut BenchSourceState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(templates) = &supply.templates else { return NextRun::Done };
        let wanted = n.min(cx.burst()).min(cx.room());
        let n = cx.grant(wanted);
        if n == 0 && wanted > 0 {
            // No event tells that frames have come back from another worker.
            return NextRun::At(cx.now() + FAMINE);
        }
        let mut batch = Batch::new();
        batch.reserve(n);
        while batch.len() < n {
            let Some(packet) = cx.copy_in(&templates[supply.next % FLOWS]) else { break };
            supply.next += 1;
            batch.push(packet);
        }
        cx.emit_batch((), batch);
        NextRun::Again
    }
}
