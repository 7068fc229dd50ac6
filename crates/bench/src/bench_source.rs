//! `BenchSource`: packets as devices hand them over, each in a fresh frame.

use super::traffic::{FLOWS, Frames, Traffic, frames_of};
use castanet_element::prelude::*;

/// Makes packets, in frames of the pool; the element that sends them drops them, and the frames go
/// back.
///
/// With a number of bursts it calls [`mark_burst`] before each burst, and asks the router to stop
/// after the last.
///
/// ```click
/// BenchSource -> out
/// ```
#[derive(Element)]
pub(crate) struct BenchSource {
    /// Number of bursts to make; without end if there is none.
    #[arg(keyword)]
    bursts: Option<u64>,
    /// Kind of packets.
    #[arg(keyword, default = Traffic::Plain)]
    traffic: Traffic,
    /// Number of the set of hosts; sources with different numbers make different flows.
    #[arg(keyword, default = 0)]
    set: u64,
}

/// Marks the beginning of a burst in a trace of the program, where `cargo xtask contention` finds
/// this function by its name. Under valgrind, where one thread runs at a time, it is the next
/// thread's turn then.
#[inline(never)]
fn mark_burst() {
    std::thread::yield_now();
}

/// Pause of the source when there are no frames.
const FAMINE: Duration = Duration::from_micros(10);

/// Index of the next frame of the traffic.
#[derive(Default, Local)]
pub(crate) struct BenchSourceState {
    templates: Option<Frames>,
    next: usize,
    /// Bursts made.
    #[read]
    count: u64,
}

impl Source for BenchSource {
    type Local = BenchSourceState;
    type Fate = ();

    fn init(&self, supply: &mut BenchSourceState, _: &mut Cx) -> Result<(), ArgError> {
        supply.templates = Some(frames_of(self.traffic, FLOWS, self.set));
        Ok(())
    }

    fn produce(&self, supply: &mut BenchSourceState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(templates) = &supply.templates else { return NextRun::Done };
        match self.bursts {
            Some(bursts) if supply.count >= bursts => return NextRun::Done,
            Some(_) => mark_burst(),
            None => {}
        }
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
        supply.count += 1;
        if self.bursts == Some(supply.count) {
            cx.stop();
        }
        NextRun::Again
    }
}
