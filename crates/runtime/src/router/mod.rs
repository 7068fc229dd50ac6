//! A router: built from a flat configuration, run, read, written, replaced, dismantled.

use crate::worker::driver::{DriverEvent, ProgramId};

mod accounts;
mod build;
mod calls;
mod check;
mod console;
mod control;
mod costs;
mod devices;
mod drops;
mod global;
mod handlers;
mod inspect;
mod liveness;
mod memory_limits;
mod metrics;
mod migration;
mod observation;
mod plan;
mod reconfigure;
mod run;
mod service;
mod setup_builder;
mod state_transfer;
mod swap;
mod tasks;
mod threads;
mod worker_set;

pub use crate::graph::order::PacketOrder;
pub use crate::worker::{StateChange, StatePlace, StatePosition};
pub use accounts::{READS as ACCOUNT_READS, WRITES as ACCOUNT_WRITES};
pub use castanet_element::exec::{ElementCost, RunCost};
pub use check::CheckedConfig;
pub use drops::DropRecord;
pub use global::{READS as GLOBAL_READS, WRITES as GLOBAL_WRITES};
pub use handlers::{COMMON_READS, COMMON_WRITES};
pub use inspect::{CapturePlaceName, CaptureProgress, CaptureRequest, TraceProgress, TraceRequest};
pub use liveness::LivenessProbe;
pub use memory_limits::{READS as MEMORY_READS, WRITES as MEMORY_WRITES};
pub use metrics::MetricValue;
pub use observation::{CostSample, ElementObservation, Observation, QueueLength};
pub use plan::{ConfigPlan, ErrorStyle, plan};
pub use run::{RunOutcome, TeardownReport};
pub use service::{PeriodicService, REQUESTS_PER_SECOND, Service, Watcher};
pub use state_transfer::StatePlaces;
pub use swap::{ConfigReader, HotSwapSource};
pub use tasks::{READS as TASK_READS, WRITES as TASK_WRITES};

use crate::console::Console;
use crate::cores::{Cores, allowed};
use crate::graph::{Graph, assign};
use crate::worker::Worker;
use castanet_element::args::ScopedNames;
use castanet_element::class::Program;
use castanet_element::control::ProgramWait;
use castanet_element::exec::RandomNumbers;
use castanet_element::files::HandlerFiles;
use castanet_element::frames::Frames;
use castanet_element::node::AnyConfig;
use castanet_element::resource::Resource;
use castanet_element::shared::SharedState;
use castanet_element::time::{Clock, SIMULATED_START, Time};
use castanet_packet::Pool;
use console::ConsoleFanout;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use worker_set::WorkerSet;

/// Options to build and run a router.
#[derive(Clone)]
pub struct Options {
    /// Number of workers.
    pub workers: usize,
    /// Whether the driver moves the clock (`--simtime`).
    pub simulated: bool,
    /// When simulated time begins.
    pub simulated_from: Time,
    /// Nanoseconds by which simulated time moves at each look at the clock (`--simtick`).
    pub simulated_tick: i64,
    /// Whether the speed of the clock can be changed, in real time.
    pub can_warp: bool,
    /// Packets that sources produce at once.
    pub burst: usize,
    /// How many packets of a task are on their way at a time.
    pub order: PacketOrder,
    /// Frames for devices; as many as the devices need if not given.
    pub frames: Option<usize>,
    /// Bytes for packets that elements keep, beside those frames; a quarter of the memory if not
    /// given.
    pub memory: Option<u64>,
    /// Time after which a worker that answers no command is taken to be stuck in an element.
    pub patience: Duration,
    /// Whether each worker is pinned to a core.
    pub pin: bool,
    /// The cores to use, in order; those that the process may use if empty.
    pub cores: Vec<usize>,
    /// Whether elements run as fused chains; for comparisons only.
    pub fuse: bool,
    /// The destination of lines that elements write.
    pub console: Arc<dyn Console>,
    /// Looks up the addresses of interfaces.
    pub interfaces: Option<InterfaceResolver>,
    /// The files that handlers may name.
    pub handler_files: HandlerFiles,
    /// Style of error messages.
    pub error_style: ErrorStyle,
    /// The configuration as it was written, for the handler `config`.
    pub text: Option<String>,
    /// Names for `require(package NAME)`, and for the handler `packages`.
    pub packages: &'static [&'static str],
}

/// Looks up an address of an interface.
pub type InterfaceResolver = fn(&str, castanet_element::args::AddressKind) -> Option<String>;

impl Options {
    /// The cores of the workers.
    pub(crate) fn cores(&self) -> Cores {
        Cores::here(self.workers, &self.cores)
    }

    /// One worker, real time, and defaults for the rest.
    pub fn new(console: Arc<dyn Console>) -> Options {
        Options {
            workers: 1,
            simulated: false,
            simulated_from: SIMULATED_START,
            simulated_tick: 0,
            can_warp: false,
            burst: castanet_packet::BURST,
            order: PacketOrder::Bursts,
            frames: None,
            memory: None,
            patience: Duration::from_secs(10),
            pin: false,
            cores: Vec::new(),
            fuse: true,
            console,
            interfaces: None,
            handler_files: HandlerFiles::default(),
            error_style: ErrorStyle::Castanet,
            text: None,
            packages: &[],
        }
    }
}

/// A program of the control thread, and the event for which it waits.
struct ProgramRun {
    id: ProgramId,
    element: usize,
    program: Box<dyn Program>,
    waits: ProgramWait,
}

/// A router that is ready to run, runs, or has run.
pub struct Router {
    config: RunningConfig,
    workers: WorkerSet,
    control: ControlState,
}

/// The configuration of a router, with what handlers have changed in it.
struct RunningConfig {
    /// Configurations that the router has had before this one.
    replaced: u64,
    graph: Graph,
    assigned: assign::Assignment,
    names: ScopedNames,
    /// State that elements share.
    shared: SharedState,
    /// Random numbers of the control thread.
    random: RandomNumbers,
    /// By element: its configuration as a handler has changed it, if one has.
    rewritten: Vec<Option<AnyConfig>>,
    /// By element: its arguments with the values that handlers have given some of them, if they have.
    shown: Vec<Option<String>>,
    /// By element: whether a handler has given it a call to make on its packets' way.
    callers: Vec<bool>,
    /// The flat configuration.
    flat_text: String,
    /// The configuration as it was written, if that is known.
    text: Option<String>,
    requirements: Vec<String>,
    /// Names of the classes that the configuration may use.
    classes: Vec<&'static str>,
    packages: &'static [&'static str],
    error_style: ErrorStyle,
}

/// State of the control thread.
struct ControlState {
    clock: Arc<Clock>,
    frames: Frames,
    console: Arc<ConsoleFanout>,
    /// The cores that workers are pinned to, if they are.
    pin: Option<Cores>,
    /// Time after which a worker that answers no command is taken to be stuck in an element.
    patience: Duration,
    load: costs::CpuLoad,
    /// Makes configurations that replace this one, where there can be any.
    hot_swap: Option<HotSwapSource>,
    /// Whether handlers may replace this configuration.
    takes_hotconfig: bool,
    /// How many packets of a task are on their way at a time.
    order: PacketOrder,
    /// Whether services are to run a step.
    wakes_services: bool,
    /// By element, in whatever configuration it was: panics that no service has taken.
    panics: BTreeMap<String, u64>,
    /// The configuration that is to replace this one.
    next: Option<swap::PendingConfig>,
    /// Errors of elements that could not start in the last hot swap, a line each.
    start_errors: String,
    programs: Vec<ProgramRun>,
    /// Programs that run at the moment, away from the list, with their elements.
    away: Vec<(usize, AnyConfig)>,
    /// Signals to the process, each with the element of a program that waits for it.
    armed: Vec<(i32, usize)>,
    /// Signals that programs have sent to this process and other programs of it wait for.
    raised: Vec<i32>,
    /// The action of a signal for which no program waits.
    default_action: fn(i32),
    notices: Receiver<DriverEvent>,
    notify: Sender<DriverEvent>,
    /// Stop requests that no program has taken.
    stops: u32,
    /// Whether workers may wait for a decision about a stop request.
    has_waiting_workers: bool,
    /// The exit status, once the router is to end.
    ending: Option<i32>,
    /// Depth of handler calls of elements that wait for each other.
    calling: u32,
    /// Traces and captures of clients.
    inspections: inspect::Inspections,
}

impl Router {
    /// The graph it runs.
    pub fn graph(&self) -> &Graph {
        &self.config.graph
    }
    /// The assignment of elements to workers.
    pub fn assigned(&self) -> &assign::Assignment {
        &self.config.assigned
    }
    /// The resources outside of the process that its elements need, each with its element.
    pub fn resources(&self) -> Vec<(usize, Resource)> {
        crate::graph::resources::find(&self.config.graph, &self.config.names)
    }
    /// The clock of its elements.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.control.clock
    }
    /// The device pool.
    pub fn pool(&self) -> &Pool {
        &self.control.frames.pool
    }
    /// The storage pool.
    pub fn storage(&self) -> &Pool {
        &self.control.frames.storage
    }
    /// Signals to the process for which programs wait.
    pub fn signals(&self) -> Vec<i32> {
        let mut signals: Vec<i32> = self.control.armed.iter().map(|&(signal, _)| signal).collect();
        signals.sort_unstable();
        signals.dedup();
        signals
    }
    /// Sets the action of a signal for which programs have waited and wait no more.
    pub fn default_action(&mut self, action: fn(i32)) {
        self.control.default_action = action;
    }
    /// Whether the calling thread has no core beside those of workers, so that what it does takes their time.
    pub fn shares_cores(&self) -> bool {
        let allowed = allowed();
        match &self.control.pin {
            Some(cores) => allowed.iter().all(|&core| cores.contains(core)),
            None => allowed.len() <= self.workers.len(),
        }
    }
    /// Sends events to the driver, for signal handlers.
    pub fn line(&self) -> Sender<DriverEvent> {
        self.control.notify.clone()
    }
    /// A worker, while workers do not run on threads.
    pub fn worker(&mut self, index: usize) -> Option<&mut Worker> {
        match &mut self.workers {
            WorkerSet::Idle(workers) => workers.get_mut(index),
            WorkerSet::Running { .. } => None,
        }
    }
}
