//! Hot swap: another configuration in place of the running one.
//!
//! All that can fail is done while the old configuration runs on: parsing, building, and the
//! opening of resources that only the new one has. Then the workers stop between two bursts,
//! elements of the same name and class hand over their state, and the new workers go on. Frames,
//! clock and devices stay, so packets wait meanwhile in the queues of the devices.

use super::build::{BuiltConfig, RuntimeContext, construct};
use super::plan::plan;
use super::worker_set::WorkerSet;
use super::{DriverEvent, Options, PacketOrder, Router, RunningConfig, accounts};
use crate::console::Console;
use crate::graph::Graph;
use crate::worker::{Worker, slot};
use castanet_element::class::{Library, Role};
use castanet_element::error::ArgError;
use castanet_element::fate::DISCARDED;
use castanet_element::node::{AnyConfig, Node};
use castanet_lang::{Diagnostics, FlatGraph};
use std::sync::Arc;

/// Parses a text and calls `build` with its flat configuration; returns all errors as one text.
pub type ConfigReader =
    Box<dyn FnMut(&str, &mut dyn FnMut(&FlatGraph, &mut Diagnostics)) -> Result<(), String> + Send>;

/// Source of configurations that replace a running one.
pub struct HotSwapSource {
    /// Their classes.
    pub library: Library,
    /// Options as for the first configuration; the numbers of workers and of frames stay.
    pub options: Options,
    /// Parses a configuration.
    pub read: ConfigReader,
}

/// A configuration that is initialised and waits to replace the running one.
pub(super) struct PendingConfig {
    built: BuiltConfig,
    /// By element: the running element that it continues.
    before: Vec<Option<Predecessor>>,
}

/// The running element that a new one continues.
pub(super) struct Predecessor {
    /// Its index.
    pub(super) element: usize,
    /// Whether arguments or position differ.
    changed: bool,
    /// The configuration of the running element for which the new one was made.
    seen: Option<AnyConfig>,
    /// The configuration under which the new element goes on, where that is not its own.
    config: Option<AnyConfig>,
}

impl Router {
    /// Sets what makes configurations for [`Router::replace_with`].
    pub fn set_hot_swap_source(&mut self, hot_swap: HotSwapSource) {
        self.control.hot_swap = Some(hot_swap);
    }

    /// Allows `write hotconfig`, which reads texts by this source.
    pub fn allow_replacements(&mut self, hot_swap: HotSwapSource) {
        self.set_hot_swap_source(hot_swap);
        self.control.takes_hotconfig = true;
    }

    /// How often the configuration was replaced.
    pub fn replaced(&self) -> u64 {
        self.config.replaced
    }

    /// Whether another configuration waits to replace this one.
    pub fn is_replaced(&self) -> bool {
        self.control.next.is_some()
    }

    /// Whether `write hotconfig` is allowed.
    pub fn is_replaceable(&self) -> bool {
        self.control.takes_hotconfig
    }

    /// The errors of elements that could not start in the last hot swap, a line each; forgets them.
    pub fn take_start_errors(&mut self) -> String {
        std::mem::take(&mut self.control.start_errors)
    }

    /// Prepares a configuration to replace this one at the next opportunity, instead of another
    /// that still waits. If it is wrong or cannot be initialised, the running one stays as it is.
    pub(super) fn prepare(&mut self, text: &str) -> Result<(), ArgError> {
        self.prepare_by(|read, build| read(text, build).map(|()| text.to_owned()))
    }

    /// The same with a configuration that `read` reads: it calls its parameter with the flat
    /// configuration, and returns the text as it was written, or all errors as one text.
    ///
    /// # Errors
    /// Those of `read`, or this router has no [`HotSwapSource`].
    pub fn replace_with(
        &mut self,
        read: impl FnOnce(&mut dyn FnMut(&FlatGraph, &mut Diagnostics)) -> Result<String, String>,
    ) -> Result<(), ArgError> {
        self.prepare_by(|_, build| read(build))
    }

    fn prepare_by(
        &mut self,
        read: impl FnOnce(
            &mut ConfigReader,
            &mut dyn FnMut(&FlatGraph, &mut Diagnostics),
        ) -> Result<String, String>,
    ) -> Result<(), ArgError> {
        let Some(mut how) = self.control.hot_swap.take() else {
            return Err(ArgError::new("this router's configuration cannot be replaced"));
        };
        // The other one must not have a device open that this one wants.
        if self.control.next.take().is_some() {
            self.leave(|_| false);
        }
        let HotSwapSource { library, options, read: reader } = &mut how;
        let text = read(reader, &mut |flat, found| {
            self.control.next = self.build_next(flat, library, options, found);
        });
        self.control.hot_swap = Some(how);
        let text = text.map_err(ArgError::new)?;
        if let Some(next) = &mut self.control.next {
            next.built.config.text = Some(text);
        }
        Ok(())
    }

    fn build_next(
        &mut self,
        flat: &FlatGraph,
        library: &Library,
        options: &Options,
        found: &mut Diagnostics,
    ) -> Option<PendingConfig> {
        let context = RuntimeContext {
            clock: self.control.clock.clone(),
            frames: Some(self.control.frames.clone()),
            notify: self.control.notify.clone(),
            console: self.control.console.clone(),
            replaced: self.config.replaced + 1,
            shared: self.config.shared.successor(),
        };
        // Pinned workers stay on their cores, which this thread does not use meanwhile.
        let cores = self.control.pin.clone().unwrap_or_else(|| options.cores());
        let mut planned = plan(flat, library, &cores, options.error_style, found);
        planned.set_order(options.order);
        accounts::take_memory(&mut planned.assigned.accounts, &self.config.assigned.accounts);
        if let Some(short) = self.control.frames.lacking(planned.queues()) {
            found.push(short);
        }
        let mut built = construct(flat, planned, options, &context, found)?;
        let before = self.predecessors(&mut built);
        let continued = continued(&before, self.config.graph.elements.len());
        self.leave(|it| !continued[it]);
        built.begin(|it| before[it].is_none(), &context, found);
        if found.has_errors() {
            self.leave(|_| false);
        }
        built.config.shared = context.shared;
        (!found.has_errors()).then_some(PendingConfig { built, before })
    }

    /// Tells elements that have queues of a device whether a pending configuration may claim these.
    fn leave(&mut self, offered: impl Fn(usize) -> bool) {
        let each = |it: &usize| self.config.graph.elements[*it].class.per_worker;
        let told: Vec<(usize, bool)> = (0..self.config.graph.elements.len())
            .filter(each)
            .map(|it| (it, offered(it)))
            .collect();
        if !told.is_empty() {
            self.workers.ask_all(move |worker| {
                for (it, offered) in told {
                    slot::at_mut(&mut worker.graph.slots, it)
                        .into_iter()
                        .for_each(|node| node.offer_claims(offered));
                }
            });
        }
    }

    /// By element of `built`: the running element that it continues.
    fn predecessors(&mut self, built: &mut BuiltConfig) -> Vec<Option<Predecessor>> {
        let (configs, elements) = (self.configurations(), 0..built.config.graph.elements.len());
        let one = |it| {
            let before = self.predecessor(built, it, &configs)?;
            self.program_continues(built, it, before.element).then_some(before)
        };
        elements.map(one).collect()
    }

    /// Whether the program of an element, if it has one, continues that of a running element.
    fn program_continues(&self, built: &BuiltConfig, it: usize, element: usize) -> bool {
        let Some(now) = built.programs.iter().find(|run| run.element == it) else { return true };
        let there = self.control.programs.iter().find(|run| run.element == element);
        let config = there.map(|run| run.program.config()).or_else(|| {
            // The program that has requested the hot swap.
            self.control.away.iter().find(|away| away.0 == element).map(|away| away.1.clone())
        });
        config.is_some_and(|config| now.program.can_take_state(&config))
    }

    fn predecessor(
        &self,
        built: &mut BuiltConfig,
        it: usize,
        configs: &[Option<AnyConfig>],
    ) -> Option<Predecessor> {
        let new = &built.config.graph.elements[it];
        let element =
            alike(&built.config, it, &self.config).or(self.config.graph.find(&new.name))?;
        let old = &self.config.graph.elements[element];
        if !std::ptr::eq(new.class.spec, old.class.spec) {
            return None;
        }
        if new.class.role == Role::Control {
            return Some(Predecessor { element, changed: false, seen: None, config: None });
        }
        let names = built.config.names.of(&new.name);
        let same = new.config == old.config && names.declares_like(self.config.names.of(&old.name));
        let stays = same && self.same_place(built, it, element);
        // Only elements with queues of a device depend on their position.
        let continued = stays || same && !new.class.per_worker;
        let (seen, home) = (configs[element].clone(), built.config.assigned[it].home);
        let node = slot::at(&built.workers.idle(home)?.graph.slots, it)?;
        let continues = || seen.as_ref().is_some_and(|config| node.can_take_state(config));
        if !(continued || continues()) {
            return None;
        }
        let mut before = Predecessor { element, changed: !stays, seen, config: None };
        before.config = self.prepared(&before, node);
        Some(before)
    }

    /// The configuration under which `node` continues the running element, where that is not the
    /// node's own.
    fn prepared(&self, before: &Predecessor, node: &dyn Node) -> Option<AnyConfig> {
        // Changes of handlers stay.
        let stays = !before.changed && self.config.rewritten[before.element].is_some();
        before.seen.as_ref().filter(|_| !stays).and_then(|seen| node.merged_config(seen))
    }

    /// Merges configurations anew where handlers have written to the running element since.
    fn prepare_anew(&mut self, built: &mut BuiltConfig, before: &mut [Option<Predecessor>]) {
        let mut configs = self.configurations();
        for (it, before) in before.iter_mut().enumerate() {
            let Some(before) = before else { continue };
            let now = configs[before.element].take();
            let (Some(seen), Some(now)) = (&mut before.seen, now) else { continue };
            if Arc::ptr_eq(seen, &now) {
                continue;
            }
            *seen = now;
            let home = built.config.assigned[it].home;
            let node =
                built.workers.idle(home).and_then(|worker| slot::at(&worker.graph.slots, it));
            before.config = node.and_then(|node| self.prepared(before, node));
        }
    }

    /// Whether two elements of one class have as many ports, the same workers and the same queues.
    fn same_place(&self, built: &BuiltConfig, new: usize, old: usize) -> bool {
        let ports = |graph: &Graph, it: usize| {
            (graph.elements[it].inputs.len(), graph.elements[it].outputs.len())
        };
        let (now, before) = (&built.config.assigned, &self.config.assigned);
        ports(&built.config.graph, new) == ports(&self.config.graph, old)
            && now[new].workers == before[old].workers
            && now[new].queue_shares == before[old].queue_shares
            && now[new].device_queues == before[old].device_queues
            && now[new].may_leave_checksums == before[old].may_leave_checksums
    }

    /// The present configuration of each element.
    fn configurations(&mut self) -> Vec<Option<AnyConfig>> {
        let count = self.config.graph.elements.len();
        let all = self.workers.ask(0, move |worker| {
            let config = |it| slot::at(&worker.graph.slots, it).map(|node| node.config());
            (0..count).map(config).collect()
        });
        all.unwrap_or_else(|_| vec![None; count])
    }

    /// Runs programs that need not wait. A pending configuration is put in place before any program
    /// goes on. Returns whether anything was done.
    pub(super) fn step_programs(&mut self) -> bool {
        self.replace() | self.run_programs() | self.replace()
    }

    /// Puts the pending configuration in place of the running one; returns whether there was one.
    pub(super) fn replace(&mut self) -> bool {
        if self.control.next.is_none() {
            return false;
        }
        let runs = self.halt();
        // Packets on their way may call handlers of the running configuration; a handler may
        // prepare yet another configuration.
        self.make_all_calls();
        (0..self.workers.len()).for_each(|worker| {
            self.workers.idle(worker).into_iter().for_each(Worker::finish_remainders);
        });
        let Some(PendingConfig { mut built, mut before }) = self.control.next.take() else {
            self.go_on(runs);
            return true;
        };
        // Programs that end here do not end the new configuration.
        self.control.ending = None;
        self.defer_events();
        self.end_others(&before);
        // A configuration that an element has requested in its cleanup was made to follow the old
        // one.
        self.control.next = None;
        self.prepare_anew(&mut built, &mut before);
        self.hand_over_programs(&mut built, &before);
        self.hand_over(&mut built, &before);
        self.hand_over_callers(&mut built, &before);
        self.start(&mut built, &before);
        // The old workers are dropped when the new ones run: that may take time.
        let _old = self.install_config(built, &before);
        self.inspect_anew();
        if self.control.order != PacketOrder::Bursts {
            self.run_drivers();
        }
        self.go_on(runs);
        true
    }

    /// Stops the workers' threads; returns whether they ran.
    pub(super) fn halt(&mut self) -> bool {
        let runs = matches!(self.workers, WorkerSet::Running { .. });
        if self.workers.join_threads() > 0 {
            self.control.console.chatter("a worker was lost to a panic outside any element\n");
        }
        runs
    }

    /// Starts the workers' threads again, if they ran.
    pub(super) fn go_on(&mut self, ran: bool) {
        if ran
            && let Err(e) =
                self.workers.start_threads(self.control.pin.as_ref(), self.control.patience)
        {
            self.control.console.chatter(&format!("cannot start a worker: {e}\n"));
            self.control.ending.get_or_insert(1);
        }
    }

    /// Handles the last events of elements. Their stop requests were meant for the old
    /// configuration.
    fn defer_events(&mut self) {
        let said: Vec<DriverEvent> = self.control.notices.try_iter().collect();
        for notice in said {
            match notice {
                DriverEvent::StopRequested => {}
                // The driver is this thread.
                _ => _ = self.control.notify.send(notice),
            }
        }
    }

    /// Cleans up the elements that no new one continues, while all others can still take their
    /// packets.
    fn end_others(&mut self, before: &[Option<Predecessor>]) {
        let continued = continued(before, self.config.graph.elements.len());
        self.end_those(|it| !continued[it]);
    }

    /// Moves the state of elements, their counters and their timers.
    fn hand_over(&mut self, built: &mut BuiltConfig, before: &[Option<Predecessor>]) {
        for (it, before) in before.iter().enumerate() {
            let Some(Predecessor { element, changed, config, .. }) = before else { continue };
            let (element, changed) = (*element, *changed);
            let class = built.config.graph.elements[it].class;
            let (now, then) = (built.config.assigned[it].home, self.config.assigned[element].home);
            // Changes of handlers stay; there is no merged configuration then.
            let rewritten = self.config.rewritten[element].as_ref().filter(|_| !changed);
            let config = rewritten.or(config.as_ref());
            for worker in 0..built.workers.len() {
                // Timers and files belong to the state of the home worker.
                let from = match worker {
                    _ if class.per_worker || now == then => worker,
                    worker if worker == now => then,
                    worker if worker == then => now,
                    worker => worker,
                };
                let (Some(new), Some(old)) = (built.workers.idle(worker), self.workers.idle(from))
                else {
                    continue;
                };
                move_element((old, element), (new, it), worker == now, config);
            }
        }
    }

    /// Starts the new elements, and tells those with other arguments that they have taken over
    /// state. It is too late to refuse elements that fail: their errors are written, and are the
    /// answer to a client that has asked for the hot swap.
    fn start(&mut self, built: &mut BuiltConfig, before: &[Option<Predecessor>]) {
        let fresh = (0..before.len()).filter(|&it| before[it].is_none());
        self.control.start_errors.clear();
        for (element, error) in built.start(fresh) {
            let label = built.config.graph.label(element);
            let line = format!("{label}: {}\n", self.words(&error));
            self.control.console.chatter(&line);
            self.control.start_errors += &line;
        }
        let changed = |it: &usize| before[*it].as_ref().is_some_and(|before| before.changed);
        (0..before.len()).filter(changed).for_each(|it| built.resume(it));
        built.run_emitted();
    }

    fn hand_over_programs(&mut self, built: &mut BuiltConfig, before: &[Option<Predecessor>]) {
        for new in &mut built.programs {
            let Some(Predecessor { element, .. }) = before[new.element] else { continue };
            let Some(old) = self.control.programs.iter_mut().find(|run| run.element == element)
            else {
                continue;
            };
            new.program.inherit(&mut *old.program);
            (new.id, new.waits) = (old.id, old.waits);
        }
    }

    /// Installs the new configuration; returns the old workers.
    fn install_config(&mut self, built: BuiltConfig, before: &[Option<Predecessor>]) -> WorkerSet {
        let kept = |before: &Option<Predecessor>| {
            let before = before.as_ref().filter(|before| !before.changed)?;
            self.config.rewritten[before.element].take()
        };
        let rewritten: Vec<Option<AnyConfig>> = before.iter().map(kept).collect();
        let shown = |before: &Option<Predecessor>| {
            let before = before.as_ref().filter(|before| !before.changed)?;
            self.config.shown[before.element].take()
        };
        let shown = before.iter().map(shown).collect();
        let callers = self.callers_of(before);
        let BuiltConfig { mut config, mut workers, programs, armed, .. } = built;
        accounts::keep_changes(&mut config, &self.config);
        for worker in 0..workers.len() {
            if let (Some(new), Some(old)) = (workers.idle(worker), self.workers.idle(worker)) {
                new.exec.panics = old.exec.panics;
                if let (Some(new), Some(old)) = (&mut new.accounts, &old.accounts) {
                    new.inherit(old, &config.assigned.accounts);
                }
                if old.exec.cycles.is_some() {
                    new.count_cycles();
                }
            }
        }
        config.rewritten = rewritten;
        config.shown = shown;
        config.callers = callers;
        config.classes = std::mem::take(&mut self.config.classes);
        config.shared.forget_before();
        self.config = config;
        self.control.stops = 0;
        self.control.programs = programs;
        self.control.armed = armed;
        std::mem::replace(&mut self.workers, workers)
    }
}

/// By running element, of which there are so many: whether a new one continues it.
fn continued(before: &[Option<Predecessor>], elements: usize) -> Vec<bool> {
    let mut continued = vec![false; elements];
    before.iter().flatten().for_each(|before| continued[before.element] = true);
    continued
}

/// The element of `before` that an element without a name of its own continues, wherever it stands
/// now: the only one of its class and arguments in both configurations, in the same scope of names.
fn alike(now: &RunningConfig, it: usize, before: &RunningConfig) -> Option<usize> {
    let one = &now.graph.elements[it];
    let scope = now.names.of(&one.name).scope();
    let unnamed = |name: &str| name.contains('@');
    let only = |config: &RunningConfig| {
        let mut same = (0..config.graph.elements.len()).filter(|&other| {
            let other = &config.graph.elements[other];
            std::ptr::eq(other.class.spec, one.class.spec)
                && other.config == one.config
                && unnamed(&other.name)
                && config.names.of(&other.name).scope() == scope
        });
        same.next().filter(|_| same.next().is_none())
    };
    only(now).filter(|&only| only == it).and_then(|_| only(before))
}

/// Moves the state, the counters and the timer of one element from one worker to another, with the
/// configuration if handlers have changed it. State that workers share moves with that of the home.
fn move_element(
    (old, before): (&mut Worker, usize),
    (new, it): (&mut Worker, usize),
    home: bool,
    changed: Option<&AnyConfig>,
) {
    let Some(from) = slot::at_mut(&mut old.graph.slots, before) else { return };
    let Some(to) = slot::at_mut(&mut new.graph.slots, it) else { return };
    let thrown = match (home || !(from.is_shared() || to.is_shared()), changed) {
        (true, changed) => to.inherit(from, changed.cloned()),
        (false, Some(config)) => to.install(config.clone()),
        (false, None) => 0,
    };
    new.exec.counters[it] = std::mem::take(&mut old.exec.counters[before]);
    new.exec.observers.examples.inherit(it, &mut old.exec.observers.examples, before);
    new.exec.count_drops(it, DISCARDED, thrown);
    if let Some(visits) = &old.exec.cycles {
        new.count_cycles().costs[it] = visits.costs[before];
    }
    if let Some(time) = old.exec.timers.of(before) {
        new.exec.timers.set(it, time);
    }
}
