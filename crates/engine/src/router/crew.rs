//! The workers: at hand before and after a run, on their threads during it.

use crate::cores::{Cores, roam};
use crate::worker::{Shared, Worker, run_thread};
use nix::sched::CpuSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The workers of a router.
pub(super) enum Crew {
    /// At hand: the control thread runs them itself (simulated time, tests)
    /// or has not sent them off yet.
    Here(Vec<Worker>),
    /// On threads of their own.
    Away {
        /// How to reach them.
        shared: Arc<Vec<Shared>>,
        /// Set when they are to come back.
        stop: Arc<AtomicBool>,
        /// Their threads.
        threads: Vec<JoinHandle<Worker>>,
        /// How long to look for an answer before sleeping.
        alert: Duration,
        /// Where this thread might run before it kept off their cores.
        roamed: Option<CpuSet>,
    },
}

/// A worker that does not answer for this long is stuck in an element.
const PATIENCE: Duration = Duration::from_secs(10);
/// Workers at work mostly answer after a burst. Who sleeps meanwhile has to be woken, which
/// would cost the worker some microseconds; who looks all the time takes as many from a worker,
/// unless there is a core left.
const ALERT: Duration = Duration::from_micros(20);
/// Room for a long chain of pulls.
const STACK: usize = 64 << 20;

/// What a worker answers; looks for it for some time before sleeping.
fn awaited<T>(reply: &Receiver<T>, alert: Duration) -> Option<T> {
    let asked = Instant::now();
    while asked.elapsed() < alert {
        match reply.try_recv() {
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
            answer => return answer.ok(),
        }
    }
    reply.recv_timeout(PATIENCE).ok()
}

impl Crew {
    /// A worker that is at hand.
    pub(super) fn here(&mut self, index: usize) -> Option<&mut Worker> {
        match self {
            Crew::Here(workers) => workers.get_mut(index),
            Crew::Away { .. } => None,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Crew::Here(workers) => workers.len(),
            Crew::Away { shared, .. } => shared.len(),
        }
    }

    /// Runs `errand` on a worker between two bursts and brings the answer;
    /// `None` if the worker is gone or stuck.
    pub(super) fn ask<T: Send + 'static>(
        &mut self,
        index: usize,
        errand: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Crew::Here(workers) => workers.get_mut(index).map(errand),
            Crew::Away { shared, alert, .. } => {
                // With its room made here: the worker has better things to do.
                let (answer, reply) = sync_channel(1);
                shared.get(index)?.send(Box::new(move |worker| _ = answer.send(errand(worker))));
                awaited(&reply, *alert)
            }
        }
    }

    /// Sends the workers to threads of their own.
    pub(super) fn send_off(&mut self, pin: Option<&Cores>) -> std::io::Result<()> {
        let Crew::Here(workers) = self else { return Ok(()) };
        let Some(shared) = workers.first().map(|w| w.shared.clone()) else { return Ok(()) };
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for worker in std::mem::take(workers) {
            let (stop, index, cores) = (stop.clone(), worker.index, pin.cloned());
            let thread = std::thread::Builder::new()
                .name(format!("castanet-{index}"))
                .stack_size(STACK)
                .spawn(move || {
                    if let Some(cores) = cores {
                        cores.pin(index);
                    }
                    let worker = run_thread(worker, &stop);
                    castanet_packet::Pool::flush_thread();
                    worker
                })?;
            threads.push(thread);
        }
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let alert = if cores > threads.len() { ALERT } else { Duration::ZERO };
        let roamed = pin.and_then(Cores::keep_off);
        *self = Crew::Away { shared, stop, threads, alert, roamed };
        Ok(())
    }

    /// Calls the workers back; how many of them died on the way.
    pub(super) fn call_back(&mut self) -> usize {
        let Crew::Away { shared, stop, threads, roamed, .. } = self else { return 0 };
        roamed.iter().for_each(|cores| _ = roam(cores));
        stop.store(true, Ordering::Release);
        shared.iter().for_each(|s| s.send(Box::new(|_| ())));
        let sent = threads.len();
        let mut workers: Vec<Worker> =
            std::mem::take(threads).into_iter().filter_map(|t| t.join().ok()).collect();
        let lost = sent - workers.len();
        // What has just moved between workers may not have arrived yet.
        while workers.iter_mut().any(Worker::read_mail) {}
        *self = Crew::Here(workers);
        lost
    }
}
