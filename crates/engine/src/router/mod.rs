//! A whole router: built from a flat configuration, run, read, written, ended.

mod build;
mod calls;
mod costs;
mod crew;
mod desk;
mod global;
mod handlers;
mod moving;
mod overheard;
mod places;
mod plan;
mod reconfigure;
mod run;
mod swap;
mod tasks;

pub use crate::worker::visits::{Bill, Cost};
pub use moving::{Loads, TaskLoad};
pub use plan::{Planned, Wording, plan};
pub use run::{Outcome, Report, Watcher};
pub use swap::{Reader, Replacements};

use crate::args::Names;
use crate::board::Board;
use crate::class::Program;
use crate::cores::Cores;
use crate::element::Step;
use crate::files::HandlerFiles;
use crate::frames::Frames;
use crate::graph::{Graph, assign};
use crate::node::Rewritten;
use crate::time::{Clock, SIMULATED_START, Time};
use crate::worker::{Console, Worker};
use castanet_packet::Pool;
use crew::Crew;
use overheard::Overheard;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// What a worker or a signal tells the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// An element asks the router to stop.
    StopRequested,
    /// Packets of a worker wait for a handler to be called.
    Call(usize),
    /// A program's bell was rung.
    Rung(ProgramId),
    /// The user does: nobody is asked.
    Interrupted,
    /// A signal came that some program has asked for ([`Router::signals`]).
    Signal(i32),
}

/// A control program, whatever configuration it is in by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramId {
    /// The number of the configuration that it began in.
    configuration: u64,
    /// Its element there.
    element: usize,
}

/// Wakes a control program from another thread, while the router runs.
#[derive(Clone)]
pub struct Bell {
    program: ProgramId,
    line: Sender<Notice>,
    console: Arc<Overheard>,
}

impl Bell {
    /// Wakes it.
    pub fn ring(&self) {
        // After the router's end nobody is there to be woken.
        _ = self.line.send(Notice::Rung(self.program));
    }

    /// Has `hear` called with all lines that elements write from now on, by
    /// whichever thread writes them, until it says `false`; it must not wait for
    /// anything.
    pub fn overhear(&self, hear: impl Fn(&str) -> bool + Send + Sync + 'static) {
        self.console.overhear(Box::new(hear));
    }
}

/// How to build and run a router.
#[derive(Clone)]
pub struct Options {
    /// How many workers.
    pub workers: usize,
    /// Whether the driver moves the clock (`--simtime`).
    pub simulated: bool,
    /// When simulated time begins.
    pub simulated_from: Time,
    /// By how many nanoseconds simulated time moves whenever somebody looks at
    /// it (`--simtick`).
    pub simulated_tick: i64,
    /// How many packets sources are asked for at once.
    pub burst: usize,
    /// How many frames there are for devices; as many as those that are found need if not given.
    pub frames: Option<usize>,
    /// How many bytes packets may take that elements keep, beside those; a quarter of the memory if
    /// not given.
    pub memory: Option<u64>,
    /// Whether each worker stays on a core of its own.
    pub pin: bool,
    /// The cores to use, in order; those that the process may use if empty.
    pub cores: Vec<usize>,
    /// Whether elements in a row may run as one pass; for comparisons only.
    pub fuse: bool,
    /// Where lines that elements write go.
    pub console: Arc<dyn Console>,
    /// Asks the machine for an interface's address.
    pub interfaces: Option<InterfaceResolver>,
    /// Which files handlers may name.
    pub handler_files: HandlerFiles,
    /// In whose words errors are written.
    pub wording: Wording,
    /// The configuration as it was written, for the handler `config`.
    pub text: Option<String>,
    /// What `require(package NAME)` finds, for the handler `packages`.
    pub packages: &'static [&'static str],
}

/// Asks the machine for an interface's address.
pub type InterfaceResolver = fn(&str, crate::args::AddressKind) -> Option<String>;

impl Options {
    /// The cores of the workers.
    pub(crate) fn cores(&self) -> Cores {
        Cores::here(self.workers, &self.cores)
    }

    /// One worker, real time, and what the design page says for the rest.
    pub fn new(console: Arc<dyn Console>) -> Options {
        Options {
            workers: 1,
            simulated: false,
            simulated_from: SIMULATED_START,
            simulated_tick: 0,
            burst: castanet_packet::BURST,
            frames: None,
            memory: None,
            pin: false,
            cores: Vec::new(),
            fuse: true,
            console,
            interfaces: None,
            handler_files: HandlerFiles::default(),
            wording: Wording::Castanet,
            text: None,
            packages: &[],
        }
    }
}

/// A program of the control thread and what it waits for.
struct Run {
    id: ProgramId,
    element: usize,
    program: Box<dyn Program>,
    waits: Step,
}

/// A router that is ready to run, runs, or has run.
pub struct Router {
    /// How many configurations it has had before this one.
    replaced: u64,
    /// What may replace its configuration while it runs, if anything.
    replacements: Option<Replacements>,
    /// The configuration that is to replace this one.
    next: Option<swap::Next>,
    /// What elements share.
    board: Board,
    graph: Graph,
    assigned: assign::Plan,
    /// By element: whether packets may leave it with checksums left to others.
    checksums: Vec<bool>,
    /// By element: what handlers have made of its configuration, if they have.
    rewritten: Vec<Option<Rewritten>>,
    /// By element: whether a handler has given it a call to make on its packets' way.
    callers: Vec<bool>,
    names: Names,
    flat_text: String,
    text: Option<String>,
    classes: Vec<&'static str>,
    packages: &'static [&'static str],
    wording: Wording,
    /// Which programs wait for which signals to the process.
    armed: Vec<(i32, usize)>,
    requirements: Vec<String>,
    crew: Crew,
    programs: Vec<Run>,
    /// The programs at work, with their elements: away from the list meanwhile.
    away: Vec<(usize, Rewritten)>,
    clock: Arc<Clock>,
    console: Arc<Overheard>,
    frames: Frames,
    /// Where workers stay, if they do.
    pin: Option<Cores>,
    notices: Receiver<Notice>,
    notify: Sender<Notice>,
    stops: u32,
    load: costs::Load,
    /// Set when the router is to end, with its exit status.
    ending: Option<i32>,
    /// How many calls of elements wait for each other.
    calling: u32,
    /// Signals that programs have sent to this process and that others of its programs wait for.
    raised: Vec<i32>,
    /// The action of a signal for which no program waits.
    default_action: fn(i32),
}

impl Router {
    /// The graph it runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Who runs what.
    pub fn assigned(&self) -> &assign::Plan {
        &self.assigned
    }
    /// The time as its elements see it.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }
    /// The pool that devices take frames of.
    pub fn pool(&self) -> &Pool {
        &self.frames.pool
    }
    /// The pool that packets are moved to which are kept while devices need their frames.
    pub fn storage(&self) -> &Pool {
        &self.frames.storage
    }
    /// Signals to the process that programs wait for.
    pub fn signals(&self) -> Vec<i32> {
        let mut signals: Vec<i32> = self.armed.iter().map(|&(signal, _)| signal).collect();
        signals.sort_unstable();
        signals.dedup();
        signals
    }
    /// Says what a signal does that programs have waited for and wait for no more.
    pub fn default_action(&mut self, action: fn(i32)) {
        self.default_action = action;
    }
    /// A line to the driver, for signal handlers.
    pub fn line(&self) -> Sender<Notice> {
        self.notify.clone()
    }
    /// A worker, while the router does not run on threads of its own.
    pub fn worker(&mut self, index: usize) -> Option<&mut Worker> {
        match &mut self.crew {
            Crew::Here(workers) => workers.get_mut(index),
            Crew::Away { .. } => None,
        }
    }
}
