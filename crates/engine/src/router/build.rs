//! From a plan to workers that are ready to run.

use super::calls::find_calls;
use super::costs::Load;
use super::overheard::Overheard;
use super::places::Places;
use super::plan::{Planned, Wording, plan, report, say};
use super::{Bell, Crew, Notice, Options, ProgramId, Router, Run};
use crate::args::{ArgError, Names};
use crate::board::Board;
use crate::class::{Library, Nodes, Program, Role};
use crate::cores::Cores;
use crate::element::{Said, Step};
use crate::frames::Frames;
use crate::graph::{Flow, Graph, assign, fuse};
use crate::node::fused::{MAX_STAGES, Member};
use crate::node::{Pass, Slot, Target};
use crate::time::{Clock, Time};
use crate::worker::core::Core;
use crate::worker::{Tasks, Worker, mailbox};
use castanet_lang::{Diagnostic, Diagnostics, FlatGraph};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// What all configurations of a router have in common.
pub(super) struct Ground {
    pub(super) clock: Arc<Clock>,
    pub(super) frames: Frames,
    pub(super) notify: Sender<Notice>,
    pub(super) console: Arc<Overheard>,
    /// How many configurations there were before.
    pub(super) replaced: u64,
    /// What the elements of this one share, as far as it was there before.
    pub(super) board: Board,
}

/// A configuration, ready to begin.
pub(super) struct Built {
    pub(super) graph: Graph,
    pub(super) assigned: assign::Plan,
    pub(super) checksums: Vec<bool>,
    pub(super) names: Names,
    pub(super) flat_text: String,
    pub(super) requirements: Vec<String>,
    pub(super) crew: Crew,
    pub(super) programs: Vec<Run>,
    pub(super) cores: Cores,
    /// Which programs wait for which signals to the process.
    pub(super) armed: Vec<(i32, usize)>,
}

impl Router {
    /// Builds a router, or says everything that is wrong; nothing is started
    /// half. Warnings are in `found` either way.
    pub fn build(
        flat: &FlatGraph,
        library: &Library,
        options: &Options,
        found: &mut Diagnostics,
    ) -> Option<Router> {
        let (notify, notices) = channel();
        let clock = Arc::new(match options.simulated {
            true => Clock::simulated_from(options.simulated_from, options.simulated_tick),
            false => Clock::real(),
        });
        let planned = plan(flat, library, &options.cores(), options.wording, found);
        let frames = Frames::new(options.frames, options.memory, planned.queues());
        let frames = frames.map_err(|e| {
            found.push(Diagnostic::error(None, format!("cannot make frames: {e}")));
        });
        let console = Arc::new(Overheard::new(options.console.clone()));
        let (frames, board) = (frames.ok()?, Board::default());
        let ground = Ground { clock, frames, notify, console, replaced: 0, board };
        let mut built = construct(flat, planned, options, &ground, found)?;
        if !built.begin_all(&ground, options, found) {
            return None;
        }
        Some(Router {
            replaced: 0,
            replacements: None,
            next: None,
            board: ground.board,
            rewritten: vec![None; built.graph.elements.len()],
            callers: vec![false; built.graph.elements.len()],
            graph: built.graph,
            assigned: built.assigned,
            checksums: built.checksums,
            names: built.names,
            flat_text: built.flat_text,
            text: options.text.clone(),
            classes: library.names().collect(),
            packages: options.packages,
            wording: options.wording,
            armed: built.armed,
            requirements: built.requirements,
            crew: built.crew,
            programs: built.programs,
            away: Vec::new(),
            clock: ground.clock,
            console: ground.console,
            frames: ground.frames,
            pin: options.pin.then_some(built.cores),
            notices,
            notify: ground.notify,
            stops: 0,
            load: Load::new(),
            ending: None,
            calling: 0,
            raised: Vec::new(),
            default_action: |_| (),
        })
    }

    /// Goes as far as building goes without opening a file or a device.
    pub fn check(flat: &FlatGraph, library: &Library, options: &Options, found: &mut Diagnostics) {
        let planned = plan(flat, library, &options.cores(), options.wording, found);
        let system = options.interfaces.map(|ask| Arc::new(ask) as _);
        let names = Names::new(&planned.facts.addresses, system);
        let parts = make_all(&planned, &names, &Board::default(), Time::default(), options, found);
        let Planned { graph, assigned, .. } = &planned;
        for element in 0..if found.has_errors() { 0 } else { graph.elements.len() } {
            if let Err(error) = find_calls(graph, assigned, &parts.programs, &names, element) {
                report(graph, element, "initializing", vec![error], options.wording, found);
            }
        }
    }
}

/// Goes as far as building goes without opening anything; `planned` is made of `flat`, and what
/// was wrong with it is in `found` already.
pub(super) fn construct(
    flat: &FlatGraph,
    planned: Planned,
    options: &Options,
    ground: &Ground,
    found: &mut Diagnostics,
) -> Option<Built> {
    // Click looks at arguments only where the connections are right.
    if options.wording == Wording::Click && found.has_errors() {
        return None;
    }
    let system = options.interfaces.map(|ask| Arc::new(ask) as _);
    let arguments = planned.graph.elements.iter().map(|it| it.config.as_str());
    let files = options.handler_files.of(arguments);
    let names = Names::new(&planned.facts.addresses, system).with_files(files);
    let mut parts = make_all(&planned, &names, &ground.board, ground.clock.now(), options, found);
    if found.has_errors() {
        return None;
    }
    for run in &mut parts.programs {
        run.id.configuration = ground.replaced;
    }
    let Planned { graph, assigned, fused, cores, checksums, .. } = planned;
    let fused = if options.fuse { fused } else { fuse::Plan::default() };
    match assemble(&graph, &assigned, &fused, parts.nodes, ground, options) {
        Ok(workers) => Some(Built {
            graph,
            assigned,
            checksums,
            names,
            flat_text: castanet_lang::print::flat(flat),
            requirements: flat.requirements.clone(),
            crew: Crew::Here(workers),
            programs: parts.programs,
            cores,
            armed: Vec::new(),
        }),
        Err(e) => {
            found.push(Diagnostic::error(None, format!("cannot start workers: {e}")));
            None
        }
    }
}

impl Built {
    /// Lets elements that are `new` open what they need, in the order of the file; where one
    /// fails, it is not asked on other workers. The handlers must be there that any of them calls.
    pub(super) fn begin(
        &mut self,
        new: impl Fn(usize) -> bool,
        ground: &Ground,
        options: &Options,
        found: &mut Diagnostics,
    ) {
        for element in 0..self.graph.elements.len() {
            let begins = self.assigned.begins(&self.graph, element);
            let mut workers = begins.into_iter().filter(|_| new(element));
            let begin = |worker| self.crew.here(worker).map_or(Ok(()), |it| it.begin(element));
            let begun = workers.try_for_each(begin).and_then(|()| {
                let program = self.programs.iter_mut().find(|run| run.element == element);
                program.filter(|_| new(element)).map_or(Ok(()), |run| {
                    let signals = run.program.signals().iter();
                    self.armed.extend(signals.map(|&signal| (signal, element)));
                    let (line, console) = (ground.notify.clone(), ground.console.clone());
                    run.program.begin(Bell { program: run.id, line, console })
                })
            });
            let found_calls =
                |()| find_calls(&self.graph, &self.assigned, &self.programs, &self.names, element);
            if let Err(error) = begun.and_then(found_calls) {
                report(&self.graph, element, "initializing", vec![error], options.wording, found);
            }
        }
    }
}

impl Built {
    /// Lets all elements begin, and then start, where none replaces others; whether they could.
    fn begin_all(&mut self, ground: &Ground, options: &Options, found: &mut Diagnostics) -> bool {
        self.begin(|_| true, ground, options, found);
        if found.has_errors() {
            return false;
        }
        for (element, error) in self.start(0..self.graph.elements.len()) {
            report(&self.graph, element, "initializing", vec![error], options.wording, found);
        }
        self.run_emitted();
        !found.has_errors()
    }

    /// Lets elements that have begun change what is not their own, in the order of the file;
    /// those that could not.
    pub(super) fn start(
        &mut self,
        elements: impl Iterator<Item = usize>,
    ) -> Vec<(usize, ArgError)> {
        let mut failed = Vec::new();
        for element in elements {
            let mut workers = self.assigned.begins(&self.graph, element).into_iter();
            let start = |worker| self.crew.here(worker).map_or(Ok(()), |it| it.start(element));
            failed.extend(workers.try_for_each(start).err().map(|error| (element, error)));
        }
        failed
    }

    /// Lets element `it` see to what it has from another's place.
    pub(super) fn resume(&mut self, it: usize) {
        let home = self.assigned.homes[it];
        self.crew.here(home).into_iter().for_each(|worker| worker.resume(it));
    }

    /// Runs what elements emitted when they started or resumed: nobody before that.
    pub(super) fn run_emitted(&mut self) {
        for worker in 0..self.crew.len() {
            self.crew.here(worker).into_iter().for_each(Worker::run_emitted);
        }
    }
}

/// The nodes of every element, one for each worker, and the programs.
struct Parts {
    nodes: Vec<Nodes>,
    programs: Vec<Run>,
}

impl Parts {
    /// Adds a program; of those that drive there may be one.
    fn add(
        &mut self,
        element: usize,
        program: Box<dyn Program>,
        started: Time,
    ) -> Result<(), Vec<ArgError>> {
        if program.drives() && self.programs.iter().any(|run| run.program.drives()) {
            let error = ArgError::new("another element drives the router already");
            return Err(vec![error.click("router has more than one driver script")]);
        }
        let id = ProgramId { configuration: 0, element };
        self.programs.push(Run { id, element, program, waits: Step::At(started) });
        Ok(())
    }
}

fn make_all(
    planned: &Planned,
    names: &Names,
    board: &Board,
    started: Time,
    options: &Options,
    found: &mut Diagnostics,
) -> Parts {
    let graph = &planned.graph;
    let (assigned, checksums) = (&planned.assigned, &planned.checksums);
    let warnings = RefCell::default();
    let places = Places { graph, assigned, checksums, names, board, started, warnings };
    let workers = options.workers.max(1);
    let mut parts = Parts { nodes: Vec::new(), programs: Vec::new() };
    for (i, it) in graph.elements.iter().enumerate() {
        let made = places.at(i, |setup| match (it.class.role, it.class.program) {
            (Role::Info, _) => Ok(Vec::new()),
            (role, Some(make)) => make(&it.config, setup).and_then(|program| {
                parts.add(i, program, started)?;
                match role {
                    Role::Control => Ok(Vec::new()),
                    _ => (it.class.make)(&it.config, setup, workers),
                }
            }),
            _ => (it.class.make)(&it.config, setup, workers),
        });
        for text in places.warnings.take() {
            say(graph, i, Said::Warning(text), options.wording, found);
        }
        parts.nodes.push(made.unwrap_or_else(|errors: Vec<ArgError>| {
            report(graph, i, "configuring", errors, options.wording, found);
            Vec::new()
        }));
    }
    parts
}

/// The workers, with all that they run.
fn assemble(
    graph: &Graph,
    assigned: &assign::Plan,
    fused: &fuse::Plan,
    nodes: Vec<Nodes>,
    ground: &Ground,
    options: &Options,
) -> std::io::Result<Vec<Worker>> {
    let pairs: std::io::Result<Vec<_>> = places(assigned).map(mailbox::pair).collect();
    let (shared, mailboxes): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
    let shared = Arc::new(shared);
    let mut by_worker = slots(graph, assigned, nodes, mailboxes.len());
    by_worker.iter_mut().for_each(|slots| fuse(slots, fused));
    let labels: Arc<[String]> = (0..graph.elements.len()).map(|it| graph.label(it)).collect();
    let core = |index, elements| {
        let seed = match assigned.seed {
            Some(seed) => seed.wrapping_add(index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            None => seed(index, options.simulated),
        };
        let at_home = assigned.homes.iter().map(|&home| home == index).collect();
        let core = Core::new(elements, ground.frames.clone(), options.burst, seed);
        Core { worker: index, at_home, labels: labels.clone(), ..core }
    };
    let worker = |(index, (slots, mailbox)): (usize, (Vec<Slot>, _))| Worker {
        index,
        core: core(index, slots.len()),
        slots,
        tasks: Tasks::new(&assigned.tasks[index], &assigned.away[index], |element| {
            assigned.tickets[element]
        }),
        clock: ground.clock.clone(),
        console: ground.console.clone(),
        shared: shared.clone(),
        mailbox,
        meter: None,
        stop_line: ground.notify.clone(),
    };
    Ok(by_worker.into_iter().zip(mailboxes).enumerate().map(worker).collect())
}

/// By worker: how many tasks it has or may come to have.
fn places(assigned: &assign::Plan) -> impl Iterator<Item = usize> + '_ {
    assigned.tasks.iter().zip(&assigned.away).map(|(here, away)| here.len() + away.len())
}

/// Simulated runs are the same every time; real ones are not.
fn seed(worker: usize, simulated: bool) -> u64 {
    let random = || {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(worker)
    };
    if simulated { 0x9e37_79b9_7f4a_7c15 + worker as u64 } else { random() }
}

/// Every element's place on every worker.
fn slots(
    graph: &Graph,
    assigned: &assign::Plan,
    nodes: Vec<Nodes>,
    workers: usize,
) -> Vec<Vec<Slot>> {
    let mut by_worker: Vec<Vec<Slot>> = (0..workers).map(|_| Vec::new()).collect();
    for (element, nodes) in nodes.into_iter().enumerate() {
        let mut nodes = nodes.into_iter();
        for slots in &mut by_worker {
            let mut slot = slot(graph, element);
            slot.node = nodes.next();
            slot.waiters.clone_from(&assigned.waiters[element]);
            slot.pullers.clone_from(&assigned.pullers[element]);
            slot.feeders.clone_from(&assigned.feeders[element]);
            slot.stores.clone_from(&assigned.stores[element]);
            slot.watched.clone_from(&assigned.watched[element]);
            slot.single = assigned.single[element];
            slots.push(slot);
        }
    }
    by_worker
}

/// Lets elements whose state is their worker's own run as one pass.
fn fuse(slots: &mut [Slot], plan: &fuse::Plan) {
    for row in &plan.rows {
        let own = |m: &Member| slots[m.node].node.as_ref().is_some_and(|node| !node.shares());
        if !row.members.iter().all(own) {
            continue;
        }
        let mut nodes: Vec<_> = (0..MAX_STAGES).map(|_| None).collect();
        let mut vias = [0; MAX_STAGES];
        for member in &row.members {
            nodes[usize::from(member.place)] = slots[member.node].node.take();
            vias[usize::from(member.place)] = member.via;
        }
        let Some(fused) = (row.fusion.build)(&mut nodes, &vias) else { continue };
        let head = row.members[0].node;
        for member in &row.members {
            slots[member.node].within = Some((head, member.place));
        }
        slots[head].pass = Some(Box::new(Pass { fused, members: row.members.clone() }));
    }
    for &(from, to) in &plan.straight {
        slots[from].straight = Some(to);
    }
}

/// An element's place, without its node.
fn slot(graph: &Graph, element: usize) -> Slot {
    let it = &graph.elements[element];
    let mut outputs = vec![None; it.outputs.len()];
    for edge in graph.out_edges(element).filter(|e| e.flow != Flow::Pull) {
        outputs[edge.from.port] = Some(edge.to);
    }
    let mut upstream: Vec<Option<Target>> = vec![None; it.inputs.len()];
    for edge in graph.in_edges(element).filter(|e| e.flow == Flow::Pull) {
        upstream[edge.to.port] = Some(edge.from);
    }
    Slot {
        node: None,
        pass: None,
        within: None,
        role: it.class.role,
        outputs,
        first_output: it.class.first_output,
        straight: None,
        upstream,
        waiters: Vec::new(),
        pullers: Vec::new(),
        feeders: Vec::new(),
        stores: Vec::new(),
        watched: Vec::new(),
        single: false,
    }
}
