//! Builds workers from a plan.

use super::calls::{HandlerIndex, find_calls};
use super::console::{ConsoleFanout, ProgramWaker};
use super::costs::CpuLoad;
use super::inspect::Inspections;
use super::plan::{ConfigPlan, ErrorStyle, plan, report, warn};
use super::setup_builder::SetupBuilder;
use super::{ControlState, Options, ProgramRun, Router, RunningConfig, WorkerSet};
use super::{global, handlers};
use crate::cores::Cores;
use crate::graph::assign::AccountPlan;
use crate::graph::target::Target;
use crate::graph::{Graph, assign, fuse};
use crate::worker::chain::FusedChain;
use crate::worker::driver::{DriverEvent, ProgramId};
use crate::worker::slot::{Slot, WorkerGraph};
use crate::worker::ways::BypassWays;
use crate::worker::{Accounts, Tasks, Worker, inbox};
use castanet_element::account::KeptPackets;
use castanet_element::args::ScopedNames;
use castanet_element::class::{Library, Nodes, Program, Role};
use castanet_element::control::{ControlWaker, ProgramWait};
use castanet_element::declaration::ElementDeclarations;
use castanet_element::error::ArgError;
use castanet_element::exec::{ExecState, OutputGroups, RandomNumbers};
use castanet_element::flow::Flow;
use castanet_element::frames::Frames;
use castanet_element::node::RoleNode;
use castanet_element::node::fused::{ChainMember, ChainPart};
use castanet_element::shared::SharedState;
use castanet_element::time::{Clock, Time};
use castanet_lang::{Diagnostic, Diagnostics, FlatGraph};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// Resources that all configurations of a router have in common.
pub(super) struct RuntimeContext {
    pub(super) clock: Arc<Clock>,
    /// The pools; `None` before the first configuration, which maps them.
    pub(super) frames: Option<Frames>,
    pub(super) notify: Sender<DriverEvent>,
    pub(super) console: Arc<ConsoleFanout>,
    /// Configurations that the router has had before.
    pub(super) replaced: u64,
    /// State that elements share, as far as the configuration before has it.
    pub(super) shared: SharedState,
}

/// A configuration that is ready to be initialised.
pub(super) struct BuiltConfig {
    pub(super) config: RunningConfig,
    pub(super) frames: Frames,
    pub(super) workers: WorkerSet,
    pub(super) programs: Vec<ProgramRun>,
    pub(super) cores: Cores,
    /// Signals to the process, each with the element of a program that waits for it.
    pub(super) armed: Vec<(i32, usize)>,
}

impl Router {
    /// Builds a router from the text of a configuration. The error has all messages, with their
    /// lines.
    pub fn from_text(text: &str, library: &Library, options: &Options) -> Result<Router, String> {
        let (flat, mut found, sources) = library.flatten("config", text);
        let router = match found.has_errors() {
            true => None,
            false => Router::build(&flat, library, options, &mut found),
        };
        router.ok_or_else(|| found.render_rich(&sources, false))
    }

    /// Builds a router, or adds all errors to `found`; nothing is started half. Warnings are in
    /// `found` either way.
    pub fn build(
        flat: &FlatGraph,
        library: &Library,
        options: &Options,
        found: &mut Diagnostics,
    ) -> Option<Router> {
        let (notify, notices) = channel();
        let clock = Arc::new(match options.simulated {
            true => Clock::simulated_from(options.simulated_from, options.simulated_tick),
            false if options.can_warp => Clock::warpable(),
            false => Clock::real(),
        });
        let mut planned = plan(flat, library, &options.cores(), options.error_style, found);
        planned.set_order(options.order);
        let console = Arc::new(ConsoleFanout::new(options.console.clone()));
        let shared = SharedState::default();
        let context = RuntimeContext { clock, frames: None, notify, console, replaced: 0, shared };
        let mut built = construct(flat, planned, options, &context, found)?;
        if !built.begin_all(&context, found) {
            return None;
        }
        built.config.assigned.accounts.iter().for_each(AccountPlan::apply_limits);
        built.config.text.clone_from(&options.text);
        built.config.shared = context.shared;
        built.config.classes = library.names().collect();
        let control = ControlState {
            clock: context.clock,
            frames: built.frames,
            console: context.console,
            pin: options.pin.then_some(built.cores),
            patience: options.patience,
            load: CpuLoad::new(),
            hot_swap: None,
            takes_hotconfig: false,
            order: options.order,
            wakes_services: false,
            panics: BTreeMap::new(),
            next: None,
            start_errors: String::new(),
            programs: built.programs,
            away: Vec::new(),
            armed: built.armed,
            raised: Vec::new(),
            default_action: |_| (),
            notices,
            notify: context.notify,
            stops: 0,
            has_waiting_workers: false,
            ending: None,
            calling: 0,
            inspections: Inspections::default(),
        };
        Some(Router { config: built.config, workers: built.workers, control })
    }

    /// By element: what it does as a stage of a fused chain, as a Rust expression
    /// ([`PerPacket::native`](castanet_element::element::PerPacket::native)). Opens no file or device.
    pub fn natives(planned: &ConfigPlan, options: &Options) -> Vec<Option<String>> {
        let names = planned.names(options.interfaces);
        let (shared, mut found) = (SharedState::default(), Diagnostics::new());
        let parts = make_all(planned, &names, &shared, Time::default(), options, &mut found);
        let native = |nodes: &Nodes| nodes.first()?.through()?.native();
        parts.nodes.iter().map(native).collect()
    }
}

/// Builds a configuration without opening anything. `planned` is the plan of `flat`; its errors are
/// in `found` already.
pub(super) fn construct(
    flat: &FlatGraph,
    planned: ConfigPlan,
    options: &Options,
    context: &RuntimeContext,
    found: &mut Diagnostics,
) -> Option<BuiltConfig> {
    // Click checks arguments only where the connections are right.
    if options.error_style == ErrorStyle::Click && found.has_errors() {
        return None;
    }
    let arguments = planned.graph.elements.iter().map(|it| it.config.as_str());
    let files = options.handler_files.of(arguments);
    let names = planned.names(options.interfaces).with_files(files);
    let mut parts =
        make_all(&planned, &names, &context.shared, context.clock.peek(), options, found);
    if found.has_errors() {
        return None;
    }
    let mut fail = |what: &str, error: &dyn Display| {
        found.push(Diagnostic::error(None, format!("cannot {what}: {error}")));
    };
    let frames = match &context.frames {
        Some(frames) => frames.clone(),
        None => Frames::new(options.frames, options.memory, planned.queues())
            .map_err(|e| fail("make frames", &e))
            .ok()?,
    };
    parts.programs.iter_mut().for_each(|run| run.id.configuration = context.replaced);
    let ConfigPlan { graph, assigned, fused, cores, .. } = planned;
    let fused = if options.fuse { fused } else { fuse::FusionPlan::default() };
    let workers = assemble(&graph, &assigned, &fused, parts.nodes, &frames, context, options)
        .map_err(|e| fail("start workers", &e))
        .ok()?;
    Some(BuiltConfig {
        config: RunningConfig {
            random: random(&assigned, assigned.workers, options),
            replaced: context.replaced,
            rewritten: vec![None; graph.elements.len()],
            callers: vec![false; graph.elements.len()],
            graph: graph.with_declarations(parts.declarations),
            assigned,
            names,
            shared: SharedState::default(),
            flat_text: castanet_lang::print::flat(flat),
            text: None,
            shown: vec![None; flat.elements.len()],
            requirements: flat.requirements.clone(),
            classes: Vec::new(),
            packages: options.packages,
            error_style: options.error_style,
        },
        frames,
        workers: WorkerSet::Idle(workers),
        programs: parts.programs,
        cores,
        armed: Vec::new(),
    })
}

impl BuiltConfig {
    /// Initialises the elements that are `new`, in the order of the file; where one fails, it is
    /// not initialised on further workers. Checks that the handlers that elements call exist.
    pub(super) fn begin(
        &mut self,
        new: impl Fn(usize) -> bool,
        context: &RuntimeContext,
        found: &mut Diagnostics,
    ) {
        for element in 0..self.config.graph.elements.len() {
            let begins = self.config.assigned.begins(&self.config.graph, element);
            let mut workers = begins.into_iter().filter(|_| new(element));
            let _payment = self.config.assigned.payment(element);
            let begin = |worker| self.workers.idle(worker).map_or(Ok(()), |it| it.begin(element));
            let begun = workers.try_for_each(begin).and_then(|()| {
                let program = self.programs.iter_mut().find(|run| run.element == element);
                program.filter(|_| new(element)).map_or(Ok(()), |run| {
                    let signals = run.program.signals().iter();
                    self.armed.extend(signals.map(|&signal| (signal, element)));
                    let (driver, console) = (context.notify.clone(), context.console.clone());
                    let waker = ProgramWaker { program: run.id, driver, console };
                    run.program.init(ControlWaker::new(waker))
                })
            });
            let RunningConfig { graph, assigned, names, .. } = &self.config;
            let global_writes = global::WRITES;
            let programs = &self.programs;
            let handlers = HandlerIndex { graph, assigned, programs, failed: &[], global_writes };
            let found_calls = |()| find_calls(&handlers, names, element);
            if let Err(error) = begun.and_then(found_calls) {
                self.refuse(element, error, found);
            }
        }
    }

    /// Adds the error of an element that cannot be initialised or started.
    fn refuse(&self, element: usize, error: ArgError, found: &mut Diagnostics) {
        let RunningConfig { graph, error_style, .. } = &self.config;
        report(graph, element, "initializing", vec![error], *error_style, found);
    }

    /// Initialises and then starts all elements of the first configuration; returns whether all
    /// could be started.
    fn begin_all(&mut self, context: &RuntimeContext, found: &mut Diagnostics) -> bool {
        self.begin(|_| true, context, found);
        if found.has_errors() {
            return false;
        }
        for (element, error) in self.start(0..self.config.graph.elements.len()) {
            self.refuse(element, error, found);
        }
        self.run_emitted();
        !found.has_errors()
    }

    /// Starts elements, in the order of the file; returns those that failed.
    pub(super) fn start(
        &mut self,
        elements: impl Iterator<Item = usize>,
    ) -> Vec<(usize, ArgError)> {
        let mut failed = Vec::new();
        for element in elements {
            let mut workers = self.config.assigned.begins(&self.config.graph, element).into_iter();
            let _payment = self.config.assigned.payment(element);
            let start = |worker| self.workers.idle(worker).map_or(Ok(()), |it| it.start(element));
            failed.extend(workers.try_for_each(start).err().map(|error| (element, error)));
        }
        failed
    }

    /// Tells element `it` that it has taken over state.
    pub(super) fn resume(&mut self, it: usize) {
        let home = self.config.assigned[it].home;
        self.workers.idle(home).into_iter().for_each(|worker| worker.resume(it));
    }

    /// Pushes the batches that elements emitted while they started: no packet moves before that.
    pub(super) fn run_emitted(&mut self) {
        for worker in 0..self.workers.len() {
            self.workers.idle(worker).into_iter().for_each(Worker::run_emitted);
        }
    }
}

/// The handlers and reasons to drop that an element has beside those of its class.
pub(super) fn declarations(nodes: &[RoleNode]) -> ElementDeclarations {
    nodes.first().map(|node| node.node().declarations()).unwrap_or_default()
}

/// The handlers and reasons to drop that each element has beside those of its class. A handler with the
/// name of one that the element has already is an error.
fn all_declarations(
    planned: &ConfigPlan,
    nodes: &[Nodes],
    options: &Options,
    found: &mut Diagnostics,
) -> Vec<ElementDeclarations> {
    let of = |(it, nodes): (usize, &Nodes)| {
        let own = declarations(nodes);
        if own.reads.is_empty() && own.writes.is_empty() {
            return own;
        }
        let known = handlers::declared(&planned.graph, &planned.assigned, it);
        let taken = own.handlers().filter(|&(name, write)| handlers::has(&known, name, write));
        let error = |(name, _)| {
            ArgError::new(format!("the handler '{name}' that it declares is one of its class"))
                .help("give it another name")
        };
        let errors: Vec<ArgError> = taken.map(error).collect();
        if !errors.is_empty() {
            report(&planned.graph, it, "configuring", errors, options.error_style, found);
        }
        own
    };
    nodes.iter().enumerate().map(of).collect()
}

/// The nodes of each element, one for each worker, and the programs.
pub(super) struct Parts {
    nodes: Vec<Nodes>,
    pub(super) programs: Vec<ProgramRun>,
    /// By element: its handlers and reasons to drop beside those of its class.
    pub(super) declarations: Vec<ElementDeclarations>,
    /// By element: whether it could not be made.
    pub(super) failed: Vec<bool>,
}

impl Parts {
    /// Adds a program; one program at most is a driver.
    fn add(
        &mut self,
        element: usize,
        program: Box<dyn Program>,
        started: Time,
    ) -> Result<(), Vec<ArgError>> {
        if program.is_driver() && self.programs.iter().any(|run| run.program.is_driver()) {
            let error = ArgError::new("another element drives the router already");
            return Err(vec![error.click("router has more than one driver script")]);
        }
        let id = ProgramId { configuration: 0, element };
        self.programs.push(ProgramRun { id, element, program, waits: ProgramWait::At(started) });
        Ok(())
    }
}

/// Makes the nodes of all elements, and the programs; opens nothing.
pub(super) fn make_all(
    planned: &ConfigPlan,
    names: &ScopedNames,
    shared: &SharedState,
    started: Time,
    options: &Options,
    found: &mut Diagnostics,
) -> Parts {
    let graph = &planned.graph;
    let assigned = &planned.assigned;
    let warnings = RefCell::default();
    let places = SetupBuilder { graph, assigned, names, shared, started, warnings };
    let workers = options.workers.max(1);
    let mut parts = Parts {
        nodes: Vec::new(),
        programs: Vec::new(),
        declarations: Vec::new(),
        failed: Vec::new(),
    };
    for (i, it) in graph.elements.iter().enumerate() {
        let payment = assigned.payment(i);
        let made = places.at(i, |setup| match (it.class.role, it.class.factory.program) {
            (Role::Info, _) => Ok(Vec::new()),
            (role, Some(make)) => make(&it.config, setup).and_then(|program| {
                parts.add(i, program, started)?;
                match role {
                    Role::Control => Ok(Vec::new()),
                    _ => (it.class.factory.make)(&it.config, setup, workers),
                }
            }),
            _ => (it.class.factory.make)(&it.config, setup, workers),
        });
        drop(payment);
        warn(graph, i, places.warnings.take(), options.error_style, found);
        parts.failed.push(made.is_err());
        parts.nodes.push(made.unwrap_or_else(|errors: Vec<ArgError>| {
            report(graph, i, "configuring", errors, options.error_style, found);
            Vec::new()
        }));
    }
    parts.declarations = all_declarations(planned, &parts.nodes, options, found);
    parts
}

/// The workers, with their elements and tasks.
fn assemble(
    graph: &Graph,
    assigned: &assign::Assignment,
    fused: &fuse::FusionPlan,
    nodes: Vec<Nodes>,
    frames: &Frames,
    context: &RuntimeContext,
    options: &Options,
) -> std::io::Result<Vec<Worker>> {
    let pairs: std::io::Result<Vec<_>> = places(assigned).map(inbox::pair).collect();
    let (shared, inboxes): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
    let shared = Arc::new(shared);
    let mut by_worker = slots(graph, assigned, nodes, inboxes.len());
    let mut kept = kept_packets(graph, assigned, &by_worker).into_iter();
    by_worker.iter_mut().for_each(|slots| fuse(slots, fused));
    let labels: Arc<[String]> = (0..graph.elements.len()).map(|it| graph.label(it)).collect();
    let groups = (0..graph.elements.len()).map(|it| OutputGroups::of(&outputs(graph, it)));
    let output_groups: Arc<[_]> = groups.collect();
    let mut core = |index, elements| {
        let at_home = assigned.elements.iter().map(|it| it.home == index).collect();
        let core = ExecState::new(
            elements,
            frames.clone(),
            options.burst,
            random(assigned, index, options),
        );
        let (labels, output_groups) = (labels.clone(), output_groups.clone());
        let kept = kept.next().unwrap_or_default();
        let store_inputs = (!assigned.accounts.is_empty()).then(Vec::new);
        ExecState { worker: index, at_home, labels, output_groups, kept, store_inputs, ..core }
    };
    let worker = |(index, (slots, inbox)): (usize, (Vec<Slot>, _))| Worker {
        index,
        exec: core(index, slots.len()),
        graph: WorkerGraph::new(slots),
        tasks: Tasks::new(
            &assigned.tasks[index],
            &assigned.away[index],
            |element| assigned[element].tickets,
            |element| assigned[element].account,
            assigned.accounts.len(),
        ),
        clock: context.clock.clone(),
        console: context.console.clone(),
        shared: shared.clone(),
        inbox,
        meter: None,
        calling_task: None,
        sampler: None,
        accounts: Accounts::new(graph, assigned, &context.clock).map(Box::new),
        is_paused: false,
        in_order: options.order != super::PacketOrder::Bursts,
        awaits_decision: false,
        driver: context.notify.clone(),
    };
    Ok(by_worker.into_iter().zip(inboxes).enumerate().map(worker).collect())
}

/// By worker: number of tasks that it has or may come to have.
fn places(assigned: &assign::Assignment) -> impl Iterator<Item = usize> + '_ {
    assigned.tasks.iter().zip(&assigned.away).map(|(here, away)| here.len() + away.len())
}

/// The random numbers of a thread: those that a `RandomSeed` has seeded, or its own.
fn random(assigned: &assign::Assignment, thread: usize, options: &Options) -> RandomNumbers {
    let own = || RandomNumbers::own(seed(thread, options.simulated));
    assigned.random.clone().unwrap_or_else(own)
}

/// Seed of a worker's random numbers: the same in each simulated run.
fn seed(worker: usize, simulated: bool) -> u64 {
    let random = || {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(worker)
    };
    if simulated { 0x9e37_79b9_7f4a_7c15 + worker as u64 } else { random() }
}

/// The slots of all elements on each worker.
fn slots(
    graph: &Graph,
    assigned: &assign::Assignment,
    nodes: Vec<Nodes>,
    workers: usize,
) -> Vec<Vec<Slot>> {
    let mut by_worker: Vec<Vec<Slot>> = (0..workers).map(|_| Vec::new()).collect();
    for (element, nodes) in nodes.into_iter().enumerate() {
        let mut nodes = nodes.into_iter();
        for slots in &mut by_worker {
            slots.push(slot(graph, element, nodes.next(), &assigned[element]));
        }
    }
    by_worker
}

/// By worker: the packets that each element keeps, where an account counts them.
fn kept_packets(
    graph: &Graph,
    assigned: &assign::Assignment,
    by_worker: &[Vec<Slot>],
) -> Vec<Vec<Option<KeptPackets>>> {
    if assigned.accounts.is_empty() {
        return Vec::new();
    }
    let of = |element: usize| {
        let memory = assigned.accounts[assigned[element].account].memory.as_ref()?;
        // An element that can be a stage of a fused chain passes all packets on.
        let can_keep = graph.elements[element].class.stage.is_none();
        can_keep.then(|| KeptPackets::new(memory.clone()))
    };
    let common: Vec<_> = (0..graph.elements.len()).map(of).collect();
    let of_worker = |(worker, slots): (usize, &Vec<Slot>)| {
        let own = |(common, slot): (&Option<KeptPackets>, &Slot)| {
            let is_shared = slot.node.as_ref().is_none_or(|node| node.node().is_shared());
            let common = common.as_ref()?;
            Some(match is_shared || worker == 0 {
                true => common.clone(),
                false => KeptPackets::new(common.memory().clone()),
            })
        };
        common.iter().zip(slots).map(own).collect()
    };
    by_worker.iter().enumerate().map(of_worker).collect()
}

/// Puts elements whose state is not shared into fused chains.
fn fuse(slots: &mut [Slot], plan: &fuse::FusionPlan) {
    for chain in &plan.chains {
        let own =
            |m: &ChainMember| slots[m.node].node.as_ref().is_some_and(|it| !it.node().is_shared());
        if !chain.members.iter().all(own) {
            continue;
        }
        let mut parts = vec![ChainPart::new(0)];
        parts.extend(chain.branch_ports.iter().map(|&port| ChainPart::new(port)));
        for member in &chain.members {
            let (part, stage) = (&mut parts[usize::from(member.place.branch)], member.place.stage);
            part.nodes[usize::from(stage)] = slots[member.node].node.take();
            part.next_ports[usize::from(stage)] = member.next_port;
            part.elements[usize::from(stage)] = member.node;
        }
        let fitting = chain.fusions.iter().find(|fusion| (fusion.fits)(&parts));
        let Some(fusion) = fitting.or(chain.fusions.first()) else { continue };
        let Some(fused) = (fusion.build)(&mut parts) else { continue };
        let head = chain.members[0].node;
        for member in &chain.members {
            slots[member.node].within = Some((head, member.place));
        }
        let chain = FusedChain::new(fused, &chain.members, &chain.branch_ports, slots);
        slots[head].chain = chain.map(Box::new);
    }
    for bypass in &plan.bypasses {
        slots[bypass.from].bypass = Some(Box::new(BypassWays::new(bypass.ways.clone())));
    }
}

/// Where each output of an element pushes; `None` for pull outputs and open ones.
fn outputs(graph: &Graph, element: usize) -> Vec<Option<Target>> {
    let mut outputs = vec![None; graph.elements[element].outputs.len()];
    for edge in graph.out_edges(element).filter(|e| e.flow != Flow::Pull) {
        outputs[edge.from.port] = Some(edge.to);
    }
    outputs
}

/// The slot of an element on one worker.
fn slot(graph: &Graph, element: usize, node: Option<RoleNode>, plan: &assign::ElementPlan) -> Slot {
    let it = &graph.elements[element];
    let mut upstream: Vec<Option<Target>> = vec![None; it.inputs.len()];
    for edge in graph.in_edges(element).filter(|e| e.flow == Flow::Pull) {
        upstream[edge.to.port] = Some(edge.from);
    }
    Slot {
        node,
        chain: None,
        within: None,
        role: it.class.role,
        outputs: outputs(graph, element),
        first_output: it.class.first_output,
        bypass: None,
        upstream,
        waiters: plan.waiters.clone(),
        pullers: plan.pullers.clone(),
        feeders: plan.feeders.clone(),
        stores: plan.stores.clone(),
        watched: plan.watched.clone(),
        single: plan.single,
        one_a_turn: plan.one_a_turn,
        decides: it.class.role == Role::Through && it.class.factory.program.is_some(),
        captured: false,
        apart: false,
    }
}
