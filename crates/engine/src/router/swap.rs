//! Another configuration in place of the one that runs (hot swap).
//!
//! All that can fail is done while the old one runs on: reading, building, and
//! the opening of what only the new one has. Then the workers stop between two
//! bursts, elements of the same name and class hand over what they keep, and
//! the new workers go on. Frames, clock and devices stay as they are, so packets
//! wait for as long as that takes, in the queues of the devices.

use super::build::{Built, Ground, construct};
use super::crew::Crew;
use super::plan::plan;
use super::{Notice, Options, Router};
use crate::args::ArgError;
use crate::board::Board;
use crate::class::{Library, Role};
use crate::graph::Graph;
use crate::node::{self, Node, Rewritten, THROWN};
use crate::worker::{Console, Worker};
use castanet_lang::{Diagnostics, FlatGraph};
use std::sync::Arc;

/// Reads a text, hands what it means to `build`, and says everything that was
/// wrong.
pub type Reader =
    Box<dyn FnMut(&str, &mut dyn FnMut(&FlatGraph, &mut Diagnostics)) -> Result<(), String> + Send>;

/// How configurations are made that replace a running one.
pub struct Replacements {
    /// Their classes.
    pub library: Library,
    /// As for the first one; the number of workers and of frames stays.
    pub options: Options,
    /// Makes a flat configuration of a text.
    pub read: Reader,
}

/// A configuration that has opened all it needs, and waits for its turn.
pub(super) struct Next {
    /// As it was written.
    text: String,
    built: Built,
    board: Board,
    /// By element: from which of the present ones it takes over.
    before: Vec<Option<Before>>,
}

/// What an element takes over.
pub(super) struct Before {
    /// From which element.
    pub(super) element: usize,
    /// Whether with other arguments, or in another place.
    changed: bool,
    /// The configuration of that element for which the next one was made.
    seen: Option<Rewritten>,
    /// The configuration under which it goes on, where that is not the one it was built with.
    config: Option<Rewritten>,
}

impl Router {
    /// Lets `write hotconfig` replace the configuration.
    pub fn allow_replacements(&mut self, replacements: Replacements) {
        self.replacements = Some(replacements);
    }

    /// Whether another configuration waits to replace this one.
    pub(super) fn is_replaced(&self) -> bool {
        self.next.is_some()
    }

    /// Whether `write hotconfig` does that.
    pub fn is_replaceable(&self) -> bool {
        self.replacements.is_some()
    }

    /// Prepares a configuration to replace this one at the next opportunity, in place of another
    /// that still waits; if it is wrong or cannot be opened, what runs stays as it is.
    pub(super) fn prepare(&mut self, text: &str) -> Result<(), ArgError> {
        let Some(mut how) = self.replacements.take() else {
            return Err(ArgError::new("this router's configuration cannot be replaced"));
        };
        // Another that still waits must not have a device open that this one wants.
        if self.next.take().is_some() {
            self.leave(|_| false);
        }
        let Replacements { library, options, read } = &mut how;
        let read = read(text, &mut |flat, found| {
            self.next = self.build_next(text, flat, library, options, found);
        });
        self.replacements = Some(how);
        read.map_err(ArgError::new)
    }

    fn build_next(
        &mut self,
        text: &str,
        flat: &FlatGraph,
        library: &Library,
        options: &Options,
        found: &mut Diagnostics,
    ) -> Option<Next> {
        let ground = Ground {
            clock: self.clock.clone(),
            frames: self.frames.clone(),
            notify: self.notify.clone(),
            console: self.console.clone(),
            replaced: self.replaced + 1,
            board: self.board.successor(),
        };
        // Workers that have cores stay there, and those are not this thread's meanwhile.
        let cores = self.pin.clone().unwrap_or_else(|| options.cores());
        let planned = plan(flat, library, &cores, options.wording, found);
        if let Some(short) = self.frames.lacking(planned.queues()) {
            found.push(short);
        }
        let mut built = construct(flat, planned, options, &ground, found)?;
        let before = self.predecessors(&mut built);
        let goes_on = goes_on(&before, self.graph.elements.len());
        self.leave(|it| !goes_on[it]);
        built.begin(|it| before[it].is_none(), &ground, options, found);
        if found.has_errors() {
            self.leave(|_| false);
        }
        (!found.has_errors()).then(|| Next {
            text: text.to_owned(),
            built,
            board: ground.board,
            before,
        })
    }

    /// Tells elements that have queues of a device whether others may claim these, because they
    /// end before those start.
    fn leave(&mut self, leaving: impl Fn(usize) -> bool) {
        let each = |it: &usize| self.graph.elements[*it].class.each;
        let told: Vec<(usize, bool)> =
            (0..self.graph.elements.len()).filter(each).map(|it| (it, leaving(it))).collect();
        for worker in 0..if told.is_empty() { 0 } else { self.crew.len() } {
            let told = told.clone();
            self.crew.ask(worker, move |worker| {
                for (it, leaving) in told {
                    node::at_mut(&mut worker.slots, it)
                        .into_iter()
                        .for_each(|node| node.leave(leaving));
                }
            });
        }
    }

    /// By element of `built`: which of the present elements it goes on for.
    fn predecessors(&mut self, built: &mut Built) -> Vec<Option<Before>> {
        let (configs, elements) = (self.configurations(), 0..built.graph.elements.len());
        let one = |it| {
            let before = self.predecessor(built, it, &configs)?;
            self.program_continues(built, it, before.element).then_some(before)
        };
        elements.map(one).collect()
    }

    /// Whether the program of an element, if it has one, goes on where another
    /// element's stands.
    fn program_continues(&self, built: &Built, it: usize, element: usize) -> bool {
        let Some(now) = built.programs.iter().find(|run| run.element == it) else { return true };
        let there = self.programs.iter().find(|run| run.element == element);
        let config = there.map(|run| run.program.config()).or_else(|| {
            // The program that asks for all this.
            self.away.iter().find(|away| away.0 == element).map(|away| away.1.clone())
        });
        config.is_some_and(|config| now.program.continues(&config))
    }

    fn predecessor(
        &self,
        built: &mut Built,
        it: usize,
        configs: &[Option<Rewritten>],
    ) -> Option<Before> {
        let new = &built.graph.elements[it];
        let element = alike(&built.graph, it, &self.graph).or(self.graph.find(&new.name))?;
        let old = &self.graph.elements[element];
        if !std::ptr::eq(new.class.spec, old.class.spec) {
            return None;
        }
        if new.class.role == Role::Control {
            return Some(Before { element, changed: false, seen: None, config: None });
        }
        let same = new.config == old.config && self.names.declares_like(&built.names);
        let stays = same && self.same_place(built, it, element);
        // Only who has queues of a device depends on where it stands.
        let goes_on = stays || same && !new.class.each;
        let (seen, home) = (configs[element].clone(), built.assigned.homes[it]);
        let node = node::at(&built.crew.here(home)?.slots, it)?;
        let continues = || seen.as_ref().is_some_and(|config| node.continues(config));
        if !(goes_on || continues()) {
            return None;
        }
        let mut before = Before { element, changed: !stays, seen, config: None };
        before.config = self.prepared(&before, node);
        Some(before)
    }

    /// The configuration under which `node` goes on for the present element, where that is not the
    /// node's own.
    fn prepared(&self, before: &Before, node: &dyn Node) -> Option<Rewritten> {
        // What handlers have changed stays as it is.
        let stays = !before.changed && self.rewritten[before.element].is_some();
        before.seen.as_ref().filter(|_| !stays).and_then(|seen| node.prepare(seen))
    }

    /// Prepares configurations anew where handlers have written to the present element since the
    /// next one was made.
    fn prepare_anew(&mut self, built: &mut Built, before: &mut [Option<Before>]) {
        let mut configs = self.configurations();
        for (it, before) in before.iter_mut().enumerate() {
            let Some(before) = before else { continue };
            let now = configs[before.element].take();
            let (Some(seen), Some(now)) = (&mut before.seen, now) else { continue };
            if Arc::ptr_eq(seen, &now) {
                continue;
            }
            *seen = now;
            let home = built.assigned.homes[it];
            let node = built.crew.here(home).and_then(|worker| node::at(&worker.slots, it));
            before.config = node.and_then(|node| self.prepared(before, node));
        }
    }

    /// Whether two elements of one class have as many ports, the same workers
    /// and the same queues.
    fn same_place(&self, built: &Built, new: usize, old: usize) -> bool {
        let ports = |graph: &Graph, it: usize| {
            (graph.elements[it].inputs.len(), graph.elements[it].outputs.len())
        };
        let (now, before) = (&built.assigned, &self.assigned);
        ports(&built.graph, new) == ports(&self.graph, old)
            && now.vectors[new] == before.vectors[old]
            && now.shares[new] == before.shares[old]
            && now.used[new] == before.used[old]
            && built.checksums[new] == self.checksums[old]
    }

    /// The present configuration of every element.
    fn configurations(&mut self) -> Vec<Option<Rewritten>> {
        let count = self.graph.elements.len();
        let all = self.crew.ask(0, move |worker| {
            let config = |it| node::at(&worker.slots, it).map(|node| node.config());
            (0..count).map(config).collect()
        });
        all.unwrap_or_else(|| vec![None; count])
    }

    /// Runs programs that need not wait, and puts a configuration that one of them, or a
    /// handler before, has asked for in place before any program goes on; whether anything
    /// was done.
    pub(super) fn step_programs(&mut self) -> bool {
        self.replace() | self.run_programs() | self.replace()
    }

    /// Puts the configuration that waits, if one does, in place of the present
    /// one; whether it did.
    fn replace(&mut self) -> bool {
        if self.next.is_none() {
            return false;
        }
        let runs = self.halt();
        // What is on its way has been promised the handlers of this configuration; one of them may
        // put yet another in the place of the next.
        self.make_all_calls();
        let Some(Next { text, mut built, board, mut before }) = self.next.take() else {
            self.go_on(runs);
            return true;
        };
        // Programs that end here cannot end what takes their place.
        self.ending = None;
        self.last_words();
        self.end_others(&before);
        // One that a last word has asked for was made to follow what has just ended.
        self.next = None;
        self.prepare_anew(&mut built, &mut before);
        self.hand_over_programs(&mut built, &before);
        self.hand_over(&mut built, &before);
        self.hand_over_callers(&mut built, &before);
        self.start(&mut built, &before);
        // The old ones end when the new ones run: that may take its time.
        let _old = self.take_place(built, &before);
        self.board = board;
        self.board.forget_before();
        self.text = Some(text);
        self.go_on(runs);
        true
    }

    /// Calls the workers back; whether they were away.
    pub(super) fn halt(&mut self) -> bool {
        let runs = matches!(self.crew, Crew::Away { .. });
        if self.crew.call_back() > 0 {
            self.console.chatter("a worker was lost to a panic outside any element\n");
        }
        runs
    }

    /// Sends them off again, if they were away.
    pub(super) fn go_on(&mut self, ran: bool) {
        if ran && let Err(e) = self.crew.send_off(self.pin.as_ref()) {
            self.console.chatter(&format!("cannot start a worker: {e}\n"));
            self.ending.get_or_insert(1);
        }
    }

    /// Does what elements have asked for last. Their wish to stop the router was
    /// meant for the configuration that ends here.
    fn last_words(&mut self) {
        let said: Vec<Notice> = self.notices.try_iter().collect();
        for notice in said {
            match notice {
                Notice::StopRequested => {}
                // Whoever receives it is here.
                _ => _ = self.notify.send(notice),
            }
        }
    }

    /// Ends the elements that nobody goes on for, while all others are there to
    /// take what they still have to give.
    fn end_others(&mut self, before: &[Option<Before>]) {
        let goes_on = goes_on(before, self.graph.elements.len());
        self.end_those(|it| !goes_on[it]);
    }

    /// Moves what elements keep, their counts and their timers.
    fn hand_over(&mut self, built: &mut Built, before: &[Option<Before>]) {
        for (it, before) in before.iter().enumerate() {
            let Some(Before { element, changed, config, .. }) = before else { continue };
            let (element, changed) = (*element, *changed);
            let class = built.graph.elements[it].class;
            let (now, then) = (built.assigned.homes[it], self.assigned.homes[element]);
            // What handlers have changed stays changed; there is no other configuration then.
            let rewritten = self.rewritten[element].as_ref().filter(|_| !changed);
            let config = rewritten.or(config.as_ref());
            for worker in 0..built.crew.len() {
                // The state at home is what timers and files go with.
                let from = match worker {
                    _ if class.each || now == then => worker,
                    worker if worker == now => then,
                    worker if worker == then => now,
                    worker => worker,
                };
                let (Some(new), Some(old)) = (built.crew.here(worker), self.crew.here(from)) else {
                    continue;
                };
                bequeath((old, element), (new, it), worker == now, config);
            }
        }
    }

    /// Starts the elements that go on for nobody, and lets those resume that go on under other
    /// arguments. It is too late to refuse those that cannot.
    fn start(&self, built: &mut Built, before: &[Option<Before>]) {
        let fresh = (0..before.len()).filter(|&it| before[it].is_none());
        for (element, error) in built.start(fresh) {
            let label = built.graph.label(element);
            self.console.chatter(&format!("{label}: {}\n", self.words(&error)));
        }
        let changed = |it: &usize| before[*it].as_ref().is_some_and(|before| before.changed);
        (0..before.len()).filter(changed).for_each(|it| built.resume(it));
        built.run_emitted();
    }

    fn hand_over_programs(&mut self, built: &mut Built, before: &[Option<Before>]) {
        for new in &mut built.programs {
            let Some(Before { element, .. }) = before[new.element] else { continue };
            let Some(old) = self.programs.iter_mut().find(|run| run.element == element) else {
                continue;
            };
            new.program.inherit(&mut *old.program);
            (new.id, new.waits) = (old.id, old.waits);
        }
    }

    /// Gives back the workers that were here before.
    fn take_place(&mut self, built: Built, before: &[Option<Before>]) -> Crew {
        let kept = |before: &Option<Before>| {
            let before = before.as_ref().filter(|before| !before.changed)?;
            self.rewritten[before.element].take()
        };
        let rewritten = before.iter().map(kept).collect();
        let callers = self.callers_of(before);
        let Built {
            graph,
            assigned,
            checksums,
            names,
            flat_text,
            requirements,
            mut crew,
            programs,
            armed,
            ..
        } = built;
        for worker in 0..crew.len() {
            if let (Some(new), Some(old)) = (crew.here(worker), self.crew.here(worker)) {
                new.core.panics = old.core.panics;
                if old.core.visits.is_some() {
                    new.count_cycles();
                }
            }
        }
        self.replaced += 1;
        self.stops = 0;
        self.graph = graph;
        self.assigned = assigned;
        self.checksums = checksums;
        self.rewritten = rewritten;
        self.callers = callers;
        self.names = names;
        self.flat_text = flat_text;
        self.requirements = requirements;
        self.programs = programs;
        self.armed = armed;
        std::mem::replace(&mut self.crew, crew)
    }
}

/// By element of the present configuration, of which there are so many: whether one goes on for it.
fn goes_on(before: &[Option<Before>], elements: usize) -> Vec<bool> {
    let mut goes_on = vec![false; elements];
    before.iter().flatten().for_each(|before| goes_on[before.element] = true);
    goes_on
}

/// The element of `before` that one without a name of its own goes on for, wherever
/// it has come to stand: the only one of its class and arguments, on either side.
fn alike(now: &Graph, it: usize, before: &Graph) -> Option<usize> {
    let one = &now.elements[it];
    let unnamed = |name: &str| name.contains('@');
    let only = |graph: &Graph| {
        let mut same = (0..graph.elements.len()).filter(|&other| {
            let other = &graph.elements[other];
            std::ptr::eq(other.class.spec, one.class.spec)
                && other.config == one.config
                && unnamed(&other.name)
        });
        same.next().filter(|_| same.next().is_none())
    };
    only(now).filter(|&only| only == it).and_then(|_| only(before))
}

/// Moves the state, the counts and the timer of one element from one worker to
/// another, with the configuration if handlers have changed it. State that all workers share
/// moves with that of the home.
fn bequeath(
    (old, before): (&mut Worker, usize),
    (new, it): (&mut Worker, usize),
    home: bool,
    changed: Option<&Rewritten>,
) {
    let Some(from) = node::at_mut(&mut old.slots, before) else { return };
    let Some(to) = node::at_mut(&mut new.slots, it) else { return };
    let thrown = match (home || !(from.shares() || to.shares()), changed) {
        (true, changed) => to.inherit(from, changed.cloned()),
        (false, Some(config)) => to.install(config.clone()),
        (false, None) => 0,
    };
    new.core.ledger[it] = std::mem::take(&mut old.core.ledger[before]);
    new.core.count_drops(it, THROWN, thrown);
    if let Some(visits) = &old.core.visits {
        new.count_cycles().costs[it] = visits.costs[before];
    }
    if let Some(time) = old.core.timers.of(before) {
        new.core.timers.set(it, time);
    }
}
