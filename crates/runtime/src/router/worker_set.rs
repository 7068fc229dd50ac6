//! The workers of a router: idle before and after a run, on threads during it.

use crate::cores::{Cores, roam};
use crate::worker::{Worker, WorkerHandle, run_thread};
use castanet_element::error::ArgError;
use nix::sched::CpuSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The workers of a router.
pub(super) enum WorkerSet {
    /// Not on threads: the control thread runs them itself (simulated time, tests), or has not
    /// started the threads yet.
    Idle(Vec<Worker>),
    /// On threads of their own.
    Running {
        /// Handles to reach them.
        shared: Arc<Vec<WorkerHandle>>,
        /// Set when the threads are to end.
        stop: Arc<AtomicBool>,
        /// Their threads.
        threads: Vec<JoinHandle<Worker>>,
        /// How the control thread waits for replies.
        waits: ReplyWait,
        /// CPU affinity of the control thread before it kept off their cores.
        affinity_before: Option<CpuSet>,
    },
}

/// Polling time of the control thread. Workers mostly reply after a burst: to wake a sleeping
/// thread would cost the worker some microseconds; to poll takes as many from a worker, unless a
/// core is left over.
const SPIN: Duration = Duration::from_micros(20);
/// Stack of a worker, for long chains of pulls.
const STACK: usize = 64 << 20;

/// How the control thread waits for the reply of a worker.
#[derive(Clone, Copy)]
pub(super) struct ReplyWait {
    /// Time for which it polls before it sleeps.
    spin: Duration,
    /// Time after which a worker is taken to be stuck in an element.
    patience: Duration,
}

impl ReplyWait {
    fn receive<T>(self, worker: usize, reply: &Receiver<T>) -> Result<T, ArgError> {
        let asked = Instant::now();
        while asked.elapsed() < self.spin {
            match reply.try_recv() {
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                answer => return answer.map_err(|_| lost(worker)),
            }
        }
        reply.recv_timeout(self.patience).map_err(|error| match error {
            RecvTimeoutError::Disconnected => lost(worker),
            RecvTimeoutError::Timeout => {
                let patience = self.patience.as_secs_f64();
                ArgError::new(format!("worker {worker} has not answered for {patience} s"))
                    .help("an element keeps it from its commands")
            }
        })
    }
}

/// The error about a worker whose thread has ended.
fn lost(worker: usize) -> ArgError {
    ArgError::new(format!("worker {worker} was lost to a panic"))
}

/// Sends a command to a worker; returns the channel of the reply.
fn send<T: Send + 'static>(
    handle: &WorkerHandle,
    command: impl FnOnce(&mut Worker) -> T + Send + 'static,
) -> Receiver<T> {
    // The channel's slot is allocated here, not on the worker.
    let (answer, reply) = sync_channel(1);
    handle.send(Box::new(move |worker| _ = answer.send(command(worker))));
    reply
}

impl WorkerSet {
    /// A worker, while they are idle.
    pub(super) fn idle(&mut self, index: usize) -> Option<&mut Worker> {
        match self {
            WorkerSet::Idle(workers) => workers.get_mut(index),
            WorkerSet::Running { .. } => None,
        }
    }

    /// Number of workers.
    pub(super) fn len(&self) -> usize {
        match self {
            WorkerSet::Idle(workers) => workers.len(),
            WorkerSet::Running { shared, .. } => shared.len(),
        }
    }

    /// Runs `command` on a worker between two bursts and returns its result.
    ///
    /// # Errors
    /// The worker is gone or stuck. A stuck one runs the command when it goes on.
    pub(super) fn ask<T: Send + 'static>(
        &mut self,
        index: usize,
        command: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Result<T, ArgError> {
        match self {
            WorkerSet::Idle(workers) => {
                workers.get_mut(index).map(command).ok_or_else(|| lost(index))
            }
            WorkerSet::Running { shared, waits, .. } => {
                let handle = shared.get(index).ok_or_else(|| lost(index))?;
                waits.receive(index, &send(handle, command))
            }
        }
    }

    /// Runs `command` on every worker and returns the results, by worker; all have the command
    /// before the first reply is awaited.
    pub(super) fn ask_all<T: Send + 'static>(
        &mut self,
        command: impl FnOnce(&mut Worker) -> T + Clone + Send + 'static,
    ) -> Vec<Result<T, ArgError>> {
        match self {
            WorkerSet::Idle(workers) => {
                workers.iter_mut().map(|worker| Ok(command.clone()(worker))).collect()
            }
            WorkerSet::Running { shared, waits, .. } => {
                let replies: Vec<_> =
                    shared.iter().map(|handle| send(handle, command.clone())).collect();
                let answers = replies.iter().enumerate();
                answers.map(|(index, reply)| waits.receive(index, reply)).collect()
            }
        }
    }

    /// Has the first worker, if it is on a thread, run commands only, or go on.
    pub(super) fn pause_first(&mut self, is_paused: bool) {
        if let WorkerSet::Running { .. } = self {
            // One that is gone or stuck runs no element.
            _ = self.ask(0, move |worker| worker.is_paused = is_paused);
        }
    }

    /// Sends every worker a command without waiting for the replies; none if they are idle.
    pub(super) fn probe(&self) -> Vec<Receiver<()>> {
        match self {
            WorkerSet::Idle(_) => Vec::new(),
            WorkerSet::Running { shared, .. } => {
                shared.iter().map(|handle| send(handle, |_| ())).collect()
            }
        }
    }

    /// Starts a thread for each worker.
    pub(super) fn start_threads(
        &mut self,
        pin: Option<&Cores>,
        patience: Duration,
    ) -> std::io::Result<()> {
        let WorkerSet::Idle(workers) = self else { return Ok(()) };
        let Some(shared) = workers.first().map(|w| w.shared.clone()) else { return Ok(()) };
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for worker in std::mem::take(workers) {
            match spawn_thread(worker, stop.clone(), pin.cloned()) {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    // The router cannot run with some of its workers.
                    let waits = ReplyWait { spin: Duration::ZERO, patience };
                    *self =
                        WorkerSet::Running { shared, stop, threads, waits, affinity_before: None };
                    self.join_threads();
                    return Err(e);
                }
            }
        }
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let spin = if cores > threads.len() { SPIN } else { Duration::ZERO };
        let affinity_before = pin.and_then(Cores::keep_off);
        let waits = ReplyWait { spin, patience };
        *self = WorkerSet::Running { shared, stop, threads, waits, affinity_before };
        Ok(())
    }

    /// Ends the threads; returns how many workers were lost to a panic.
    pub(super) fn join_threads(&mut self) -> usize {
        let WorkerSet::Running { shared, stop, threads, affinity_before, .. } = self else {
            return 0;
        };
        affinity_before.iter().for_each(|cores| _ = roam(cores));
        stop.store(true, Ordering::Release);
        shared.iter().for_each(|s| s.send(Box::new(|_| ())));
        let sent = threads.len();
        let mut workers: Vec<Worker> =
            std::mem::take(threads).into_iter().filter_map(|t| t.join().ok()).collect();
        let lost = sent - workers.len();
        // A migration may still be under way.
        while workers.iter_mut().any(Worker::run_commands) {}
        *self = WorkerSet::Idle(workers);
        lost
    }
}

/// Starts the thread of a worker, which returns the worker when `stop` is set.
fn spawn_thread(
    worker: Worker,
    stop: Arc<AtomicBool>,
    cores: Option<Cores>,
) -> std::io::Result<JoinHandle<Worker>> {
    let index = worker.index;
    let thread = std::thread::Builder::new().name(format!("castanet-{index}")).stack_size(STACK);
    thread.spawn(move || {
        if let Some(cores) = cores {
            cores.pin(index);
        }
        let worker = run_thread(worker, &stop);
        castanet_packet::Pool::flush_thread();
        worker
    })
}
