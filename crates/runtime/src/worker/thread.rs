//! A worker on a thread of its own: it runs while there is work and sleeps
//! while there is none.

use super::{TurnOutcome, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Busy turns between two looks at the file descriptors.
const TURNS_PER_LOOK: u32 = 32;

/// Runs a worker until `stop` is set; returns it.
pub(crate) fn run(mut worker: Worker, stop: &Arc<AtomicBool>) -> Worker {
    let mut turns = 0u32;
    // A packet that is written on its way takes a frame as others on their way do.
    worker.exec.frames.pool.use_for_copies();
    worker.accounts.iter_mut().for_each(|accounts| accounts.begin_thread());
    while !stop.load(Ordering::Acquire) {
        match worker.turn() {
            TurnOutcome::Ran => {
                turns += 1;
                let busy = worker.tasks.ready() > 0;
                if busy && turns.is_multiple_of(TURNS_PER_LOOK) && worker.inbox.watches() {
                    look(&mut worker, Some(Duration::ZERO));
                }
            }
            TurnOutcome::Calls => {
                worker.rest();
                worker.announce();
                look(&mut worker, None);
            }
            TurnOutcome::Idle(until) => {
                let time = until.map(|t| worker.clock.real_delay(t - worker.clock.peek()));
                look(&mut worker, time);
            }
        }
    }
    worker
}

fn look(worker: &mut Worker, time: Option<Duration>) {
    let shared = &worker.shared[worker.index];
    let tasks = &mut worker.tasks;
    worker.inbox.sleep(shared, time, |task| tasks.wake(task));
}
