//! `TimedUnqueue`: from pull to push, every so often.

use castanet_engine::prelude::*;

/// Pulls a few packets every so often and pushes them on.
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
#[derive(Clone, Element)]
#[element(room = "shape", ports = "1/1", processing = "l/h")]
pub struct TimedUnqueue {
    /// Time between pulls.
    #[arg]
    interval: Duration,
    /// How many packets to pull each time.
    #[arg(default = 1)]
    burst: u32,
}

/// When the next pull is due.
#[derive(Default, Local)]
pub struct Next {
    due: Time,
    left: u32,
}

impl Source for TimedUnqueue {
    type Local = Next;
    type Fate = ();

    fn ask(&self, next: &mut Next, n: usize, cx: &mut Cx) -> Asked {
        let now = cx.now();
        if now >= next.due {
            next.left = self.burst;
        }
        let batch = cx.pull(0, n.min(next.left as usize));
        if batch.is_empty() && next.left == self.burst {
            return Asked::Empty;
        }
        if next.left == self.burst {
            next.due = now + self.interval;
        }
        // A burst that is longer than what is asked for goes in several.
        next.left = if batch.is_empty() { 0 } else { next.left - batch.len() as u32 };
        cx.emit_batch((), batch);
        if next.left > 0 { Asked::Again } else { Asked::At(next.due) }
    }
}
