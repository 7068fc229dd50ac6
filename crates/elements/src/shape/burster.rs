//! `Burster`: from pull to push, some every so often.

use castanet_engine::prelude::*;

/// Pulls up to so many packets every so often and pushes them on.
///
/// The first time is one interval after the start, and an interval in which
/// nothing was there is over.
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
    /// Time between pulls.
    #[arg]
    interval: Duration,
    /// How many packets to pull each time.
    #[arg(default = 1, range = 1..)]
    burst: u32,
}

/// When the next pull is due.
#[derive(Default, Local)]
pub struct Next {
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
    type Local = Next;
    type Fate = ();

    fn continues(&self, _: &Burster) -> bool {
        true
    }

    fn begin(&self, next: &mut Next, cx: &mut Cx) -> Result<(), ArgError> {
        next.due = cx.now() + self.interval;
        Ok(())
    }

    fn ask(&self, next: &mut Next, n: usize, cx: &mut Cx) -> Asked {
        if cx.now() >= next.due {
            (next.left, next.due) = (self.burst, cx.now() + self.interval);
        }
        if next.left > 0 {
            let batch = cx.pull(0, n.min(next.left as usize));
            // A burst that is longer than what is asked for goes in several.
            next.left = if batch.is_empty() { 0 } else { next.left - batch.len() as u32 };
            cx.emit_batch((), batch);
        }
        if next.left > 0 { Asked::Again } else { Asked::At(next.due) }
    }
}
