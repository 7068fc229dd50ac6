//! From a plan to workers that are ready to run.

use super::plan::{Planned, Wording, plan, report};
use super::{Bell, Crew, Options, Router, Run};
use crate::args::{ArgError, Names};
use crate::class::{Library, Nodes, Role};
use crate::element::{Setup, Step};
use crate::graph::{Flow, Graph, assign, fuse};
use crate::node::fused::{MAX_STAGES, Member};
use crate::node::{Pass, Slot, Target};
use crate::time::{Clock, Time};
use crate::worker::core::Core;
use crate::worker::{Tasks, Worker, mailbox};
use castanet_lang::{Diagnostic, Diagnostics, Flat};
use castanet_packet::{Pool, PoolConfig};
use std::sync::Arc;
use std::sync::mpsc::channel;

impl Router {
    /// Builds a router, or says everything that is wrong; nothing is started
    /// half. Warnings are in `found` either way.
    pub fn build(
        flat: &Flat,
        library: &Library,
        options: &Options,
        found: &mut Diagnostics,
    ) -> Option<Router> {
        let planned = plan(flat, library, &options.cores(), options.wording, found);
        // Click looks at arguments only where the connections are right.
        if options.wording == Wording::Click && found.has_errors() {
            return None;
        }
        let system = options.interfaces.map(|ask| Arc::new(ask) as _);
        let names = Names::new(&planned.facts.addresses, system);
        let clock = Arc::new(match options.simulated {
            true => Clock::simulated_from(options.simulated_from, options.simulated_tick),
            false => Clock::real(),
        });
        let parts = make_all(&planned, &names, clock.now(), options, found);
        if found.has_errors() {
            return None;
        }
        let flat_text = castanet_lang::print::flat(flat);
        let requirements = flat.requirements.clone();
        let Planned { graph, assigned, fused, cores, .. } = planned;
        let fused = if options.fuse { fused } else { fuse::Plan::default() };
        let mut router = match assemble(graph, assigned, fused, names, parts, clock, options) {
            Ok(router) => router,
            Err(e) => {
                found.push(Diagnostic::error(None, format!("cannot start workers: {e}")));
                return None;
            }
        };
        router.pin = options.pin.then_some(cores);
        router.flat_text = flat_text;
        router.classes = library.names().collect();
        router.requirements = requirements;
        router.begin(options, found);
        if found.has_errors() { None } else { Some(router) }
    }

    /// Goes as far as building goes without opening a file or a device.
    pub fn check(flat: &Flat, library: &Library, options: &Options, found: &mut Diagnostics) {
        let planned = plan(flat, library, &options.cores(), options.wording, found);
        let system = options.interfaces.map(|ask| Arc::new(ask) as _);
        let names = Names::new(&planned.facts.addresses, system);
        make_all(&planned, &names, Time::default(), options, found);
    }

    /// Lets every element open what it needs, in the order of the file; where
    /// one fails, it is not asked on other workers.
    fn begin(&mut self, options: &Options, found: &mut Diagnostics) {
        for element in 0..self.graph.elements.len() {
            let mut workers = self.assigned.begins(&self.graph, element).into_iter();
            let begin = |worker| self.crew.here(worker).map_or(Ok(()), |it| it.begin(element));
            let begun = workers.try_for_each(begin).and_then(|()| {
                let bell = Bell { element, line: self.notify.clone() };
                let program = self.programs.iter_mut().find(|run| run.element == element);
                program.map_or(Ok(()), |run| run.program.begin(bell))
            });
            if let Err(error) = begun {
                report(&self.graph, element, "initializing", vec![error], options.wording, found);
            }
        }
    }
}

/// The nodes of every element, one for each worker, and the programs.
struct Parts {
    nodes: Vec<Nodes>,
    programs: Vec<Run>,
}

fn make_all(
    planned: &Planned,
    names: &Names,
    started: Time,
    options: &Options,
    found: &mut Diagnostics,
) -> Parts {
    let graph = &planned.graph;
    let mut parts = Parts { nodes: Vec::new(), programs: Vec::new() };
    for (i, it) in graph.elements.iter().enumerate() {
        let setup = Setup {
            name: &it.name,
            inputs: it.inputs.len(),
            outputs: it.outputs.len(),
            workers: &planned.assigned.vectors[i],
            alone: planned.assigned.vectors[i].iter().filter(|&&reaches| reaches).count() < 2,
            shares: &planned.assigned.shares[i],
            used: planned.assigned.used[i],
            may_leave_sums: planned.checksums[i],
            names,
            started,
        };
        let made = match (it.class.role, it.class.program) {
            (Role::Info, _) => Ok(Vec::new()),
            (_, Some(make)) => make(&it.config, &setup).map(|program| {
                parts.programs.push(Run { element: i, program, waits: Step::At(started) });
                Vec::new()
            }),
            _ => (it.class.make)(&it.config, &setup, options.workers.max(1)),
        };
        parts.nodes.push(made.unwrap_or_else(|errors: Vec<ArgError>| {
            report(graph, i, "configuring", errors, options.wording, found);
            Vec::new()
        }));
    }
    parts
}

fn assemble(
    graph: Graph,
    assigned: assign::Plan,
    fused: fuse::Plan,
    names: Names,
    parts: Parts,
    clock: Arc<Clock>,
    options: &Options,
) -> std::io::Result<Router> {
    let pool = Pool::new(PoolConfig { frames: options.frames, ..PoolConfig::default() })?;
    let (notify, notices) = channel();
    let pairs: std::io::Result<Vec<_>> =
        assigned.tasks.iter().map(|jobs| mailbox::pair(jobs.len())).collect();
    let (shared, mailboxes): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
    let shared = Arc::new(shared);
    let mut by_worker = slots(&graph, &assigned, parts.nodes, mailboxes.len());
    by_worker.iter_mut().for_each(|slots| fuse(slots, &fused));
    let core = |index, elements| {
        let seed = seed(index, options.simulated);
        let at_home = assigned.homes.iter().map(|&home| home == index).collect();
        let core = Core::new(elements, pool.clone(), options.burst, seed);
        Core { worker: index, at_home, ..core }
    };
    let worker = |(index, (slots, mailbox)): (usize, (Vec<Slot>, _))| Worker {
        index,
        core: core(index, slots.len()),
        slots,
        tasks: Tasks::new(assigned.tasks[index].iter().copied()),
        clock: clock.clone(),
        console: options.console.clone(),
        shared: shared.clone(),
        mailbox,
        stop_line: notify.clone(),
    };
    let workers = by_worker.into_iter().zip(mailboxes).enumerate().map(worker).collect();
    Ok(Router {
        graph,
        assigned,
        names,
        flat_text: String::new(),
        text: options.text.clone(),
        classes: Vec::new(),
        packages: options.packages,
        requirements: Vec::new(),
        crew: Crew::Here(workers),
        programs: parts.programs,
        clock,
        console: options.console.clone(),
        pool,
        pin: None,
        notices,
        notify,
        stops: 0,
        ending: None,
    })
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
        upstream,
        waiters: Vec::new(),
        pullers: Vec::new(),
        feeders: Vec::new(),
        stores: Vec::new(),
    }
}
