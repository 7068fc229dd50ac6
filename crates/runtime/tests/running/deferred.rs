//! Write handlers that leave some of their work to the control thread: packets flow meanwhile.

use crate::bed::{balance, build, clean, run_until};
use castanet_element::class::{Class, per_batch};
use castanet_element::handler::DeferredWork;
use castanet_element::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Passes packets on.
#[derive(Element)]
struct Watch;

#[derive(Default, Local)]
#[local(methods)]
struct WatchState {
    /// Number of packets that passed; the test that waits for them reads it, too.
    passed: Arc<AtomicU64>,
}

#[handlers]
impl WatchState {
    /// Waits until so many more packets have passed.
    #[write]
    fn wait_for(&mut self, more: &str) -> Result<DeferredWork, ArgError> {
        let passed = self.passed.clone();
        let end = passed.load(Relaxed) + u64::from_arg(more, &Names::default())?;
        Ok(DeferredWork::new(move || {
            while passed.load(Relaxed) < end {
                std::thread::yield_now();
            }
            Ok(())
        }))
    }

    /// Keeps its worker from everything else for so many milliseconds.
    #[write]
    fn stall(&mut self, milliseconds: &str) -> Result<(), ArgError> {
        let time = u64::from_arg(milliseconds, &Names::default())?;
        std::thread::sleep(Duration::from_millis(time));
        Ok(())
    }

    /// Fails when the worker has gone on.
    #[write]
    fn fail(&mut self, why: &str) -> Result<DeferredWork, ArgError> {
        let why = why.to_owned();
        Ok(DeferredWork::new(move || Err(ArgError::new(why))))
    }
}

impl PerBatch for Watch {
    type On = on::Any;
    type Local = WatchState;
    type Fate = ();
    // One handler waits for the packets of all workers.
    const SHARED: bool = true;
    fn batch(&self, watched: &mut WatchState, _: usize, batch: Batch, cx: &mut Cx) {
        watched.passed.fetch_add(batch.len() as u64, Relaxed);
        cx.emit_batch((), batch);
    }
}

pub(crate) static CLASSES: &[Class] = &[per_batch::<Watch>()];

/// Where the worker itself did the rest of the work, no packet would pass and this would not end.
#[test]
fn packets_flow_while_the_control_thread_does_the_rest() {
    for workers in [1, 2] {
        let mut router = build("Make(18446744073709551615) -> w :: Watch -> End", workers, false);
        run_until(&mut router, |router| {
            router.write("w.wait_for", "10000").unwrap();
            let error = router.write("w.fail", "no room").unwrap_err();
            assert!(error.message().contains("no room"), "{}", error.message());
            true
        });
        balance(&mut router);
        clean(router);
    }
}
