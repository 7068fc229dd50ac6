//! Handlers: commands that workers run between two bursts.

use super::accounts::account_handlers;
use super::calls::{HandlerIndex, no_element};
use super::costs::CYCLES;
use super::tasks::task_handlers;
use super::{DriverEvent, Router, global, reconfigure};
use crate::graph::{Element, Graph, assign};
use crate::worker::slot;
use castanet_element::class::{Program, Role, SIGNAL};
use castanet_element::error::ArgError;
use castanet_element::exec::Counters;
use castanet_element::fate::{DISCARDED, DROP, MAX_OUTPUTS};
use castanet_element::handler::{DeferredWork, HandlerDoc, ReadRequest, TextChunk, Value};
use castanet_element::node::{AnyConfig, Node, NodeAnswer};
use castanet_lang::nearest;

/// The handler that changes arguments.
const CONFIG: HandlerDoc =
    HandlerDoc { name: "config", doc: "Other arguments, under which the element goes on." };

/// Write handlers that most elements have.
pub const COMMON_WRITES: &[HandlerDoc] =
    &[CONFIG, HandlerDoc { doc: "Counts the element's cycles from zero.", ..CYCLES }];

/// Read handlers that every element has.
pub const COMMON_READS: &[HandlerDoc] = &[
    HandlerDoc { name: "class", doc: "The element's class." },
    HandlerDoc { name: "name", doc: "The element's name." },
    HandlerDoc { name: "config", doc: "The element's arguments." },
    HandlerDoc {
        name: "ports",
        doc: "The element's ports, push or pull (`~`: as its neighbours), with what they are \
              connected to.",
    },
    HandlerDoc { name: "handlers", doc: "The element's handlers." },
    HandlerDoc { name: "icounts", doc: "Packets at each input, one number a line." },
    HandlerDoc { name: "ocounts", doc: "Packets at each output, one number a line." },
    HandlerDoc { name: "drops", doc: "Packets dropped here: reason and number, one a line." },
    CYCLES,
    HandlerDoc { name: "workers", doc: "The workers whose packets can come here." },
    HandlerDoc {
        name: "full_push",
        doc: "Whether packets come here on the worker that made them, past no queue.",
    },
    HandlerDoc {
        name: "is_fullpush",
        doc: "Whether packets come here by push all the way from their sources.",
    },
    HandlerDoc { name: "home_thread", doc: "The worker that runs the element's task or timer." },
    HandlerDoc {
        name: "mt_safe",
        doc: "Whether several workers may run the element at once: true, always.",
    },
    HandlerDoc {
        name: "passing_threads",
        doc: "The workers that can bring packets here, pushing or pulling, as ranges: `0,2-3`.",
    },
    HandlerDoc {
        name: "spawning_threads",
        doc: "The workers that run the element's own tasks, as ranges.",
    },
];

impl Router {
    /// Reads `element.handler`, or a global handler; words after the name are the handler's
    /// parameter.
    pub fn read(&mut self, handler: &str) -> Result<String, ArgError> {
        let (path, param) = handler.split_once(char::is_whitespace).unwrap_or((handler, ""));
        let (element, name) = global::split(path);
        if element.is_empty() {
            return self.read_global(name);
        }
        let element = self.element(element)?;
        self.read_element(element, name, param.trim())
    }

    /// Writes `element.handler`, or a global handler.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<(), ArgError> {
        let (element, name) = global::split(handler);
        if element.is_empty() {
            return self.write_global(name, value);
        }
        let element = self.element(element)?;
        if self.config.graph.elements[element].class.called_by.contains(&name)
            && !value.trim().is_empty()
        {
            self.let_call(element);
        }
        self.write_element(element, name, value)
    }

    /// Whether there is such a handler.
    pub fn has_handler(&self, handler: &str, write: bool) -> bool {
        self.handler_index().has(handler, write)
    }

    /// Checks that there is such a handler; the words behind its name are its parameter.
    ///
    /// # Errors
    /// There is no such element, or it has no such handler to read (or to write).
    pub fn find_handler(&self, handler: &str, write: bool) -> Result<(), ArgError> {
        self.handler_index().find(handler.split_whitespace().next().unwrap_or_default(), write)
    }

    fn handler_index(&self) -> HandlerIndex<'_> {
        HandlerIndex {
            graph: &self.config.graph,
            assigned: &self.config.assigned,
            programs: &self.control.programs,
            failed: &[],
            global_writes: self.global_writes(),
        }
    }

    fn element(&self, name: &str) -> Result<usize, ArgError> {
        self.config.graph.find(name).ok_or_else(|| no_element(&self.config.graph, name))
    }

    fn program(&self, element: usize) -> Option<&dyn Program> {
        self.control.programs.iter().find(|run| run.element == element).map(|run| &*run.program)
    }

    /// Whether a read handler is only for the router's own programs.
    pub fn is_private(&self, handler: &str) -> bool {
        handler.split_once('.').is_some_and(|(element, name)| {
            let element = self.config.graph.find(element);
            element.is_some_and(|it| self.config.graph.elements[it].class.private.contains(&name))
        })
    }

    /// Every handler of an element: its documentation, and whether it writes.
    pub fn handlers_of(&self, element: usize) -> Vec<(HandlerDoc, bool)> {
        declared(&self.config.graph, &self.config.assigned, element)
    }
    fn read_element(&mut self, it: usize, name: &str, param: &str) -> Result<String, ArgError> {
        let class = self.config.graph.elements[it].class;
        // An element's own `drops`, as a Queue has, comes before the common one.
        let own = class.role != Role::Control && (class.reads)().iter().any(|h| h.name == name);
        if !own && let Some(text) = self.read_common(it, name)? {
            return Ok(text);
        }
        if !own && let Some(text) = self.read_task(it, name)? {
            return Ok(text);
        }
        if class.shows_signal && name == SIGNAL.name {
            return self.read_signal(it);
        }
        if let Some(text) = self.read_memory(it, name) {
            return Ok(text);
        }
        if let Some(text) = self.read_account(it, name)? {
            return Ok(text);
        }
        if let Some(answer) = self.call_program(it, name, param, false) {
            return answer;
        }
        let value = match class.role {
            Role::Control => self.read_program(it, name, param),
            _ => self.read_nodes(it, name, param)?,
        };
        value.map(|v| v.to_string()).ok_or_else(|| self.no_handler(it, name, false))
    }

    pub(super) fn read_program(&self, it: usize, name: &str, param: &str) -> Option<Value> {
        let now = self.control.clock.peek();
        self.program(it)?.read(name, &ReadRequest { now, param, from: 0 })
    }

    /// Reads the configuration, or the state of each worker, and merges the values.
    fn read_nodes(
        &mut self,
        it: usize,
        name: &str,
        param: &str,
    ) -> Result<Option<Value>, ArgError> {
        let home = self.config.assigned[it].home;
        let mut value = match self.ask_node(it, home, name, param, 0)? {
            Some(NodeAnswer::Own(value)) => value,
            Some(NodeAnswer::Common(Value::Chunk(first))) => {
                return self.read_chunks(it, name, param, first).map(Some);
            }
            Some(NodeAnswer::Common(value)) => return Ok(Some(value)),
            // The control thread computes the value: workers have packets to process.
            Some(NodeAnswer::Config(config)) => {
                let request = ReadRequest { now: self.control.clock.peek(), param, from: 0 };
                let read_config = self.config.graph.elements[it].class.factory.read_config;
                return Ok(read_config(&config, name, &request));
            }
            None => return Ok(None),
        };
        for worker in (0..self.workers.len()).filter(|&w| w != home) {
            if let Some(NodeAnswer::Own(other)) = self.ask_node(it, worker, name, param, 0)? {
                value = value.merge(other);
            }
        }
        Ok(Some(value))
    }

    /// Reads the chunks of a text behind the first, from the element's home.
    fn read_chunks(
        &mut self,
        it: usize,
        name: &str,
        param: &str,
        first: TextChunk,
    ) -> Result<Value, ArgError> {
        let TextChunk { mut text, mut next, finish } = first;
        while let Some(from) = next.take() {
            let home = self.config.assigned[it].home;
            if let Some(NodeAnswer::Common(Value::Chunk(chunk))) =
                self.ask_node(it, home, name, param, from)?
            {
                text += &chunk.text;
                // A chunk that does not move on would never end.
                next = chunk.next.filter(|&next| next > from);
            }
        }
        Ok(Value::Text(finish(text)))
    }

    /// The answer of one worker's node.
    fn ask_node(
        &mut self,
        it: usize,
        worker: usize,
        name: &str,
        param: &str,
        from: u64,
    ) -> Result<Option<NodeAnswer>, ArgError> {
        let (name, param, now) = (name.to_owned(), param.to_owned(), self.control.clock.peek());
        self.workers.ask(worker, move |worker| {
            worker.bill(it);
            let request = ReadRequest { now, param: &param, from };
            let answer = slot::at(&worker.graph.slots, it)?.read(&name, &request);
            let declared =
                || slot::at_mut(&mut worker.graph.slots, it)?.read_declared(&name, &request);
            answer.or_else(declared)
        })
    }

    fn read_common(&mut self, it: usize, name: &str) -> Result<Option<String>, ArgError> {
        if let Some(reason) = name.strip_prefix("drops.") {
            let counts = self.drops(it)?;
            let count = counts.into_iter().find(|(n, _)| n == reason);
            return Ok(count.map(|(_, n)| n.to_string()));
        }
        let element = &self.config.graph.elements[it];
        // Click's elements that count drops themselves have one number here.
        if name == "drops" && (element.class.reads)().iter().any(|h| h.name == name) {
            return Ok(None);
        }
        Ok(Some(match name {
            "class" => element.source.class.clone(),
            "name" => element.name.clone(),
            "config" => self.config.shown[it].as_ref().unwrap_or(&element.config).clone(),
            "ports" => self.ports_text(it),
            "icounts" | "ocounts" => {
                let counts = self.port_counts(it, name == "icounts")?;
                counts.iter().fold(String::new(), |s, n| s + n + "\n")
            }
            "cycles" => self.cycles_text(it),
            "workers" => {
                let workers: Vec<String> =
                    self.config.assigned.reaching(it).map(|worker| worker.to_string()).collect();
                workers.join(" ")
            }
            "full_push" => self.config.graph.is_full_push(it).to_string(),
            "handlers" => {
                let all = self.listed_handlers(it);
                all.iter().fold(String::new(), |s, (n, kind)| s + n + "\t" + kind + "\n")
            }
            "drops" => {
                let shown = self.drops(it)?.into_iter().filter(|(_, n)| *n > 0);
                shown.fold(String::new(), |s, (reason, n)| s + &format!("{reason} {n}\n"))
            }
            _ => return Ok(self.read_threads(it, name)),
        }))
    }

    /// Handlers of an element, each as `r`, `w` or `rw`, in order; `pattern_` by its numbers.
    fn listed_handlers(&mut self, it: usize) -> Vec<(String, &'static str)> {
        let element = &self.config.graph.elements[it];
        let mut all: Vec<(String, &str)> = Vec::new();
        let mut shown = self.handlers_of(it);
        shown.retain(|(doc, _)| !element.class.private.contains(&doc.name));
        let shown = shown.iter().map(|(doc, writes)| (doc.name, *writes));
        for (name, writes) in shown.chain(element.declarations.handlers()) {
            match all.iter_mut().find(|(n, _)| *n == name) {
                Some(entry) => entry.1 = "rw",
                None => all.push((name.to_owned(), if writes { "w" } else { "r" })),
            }
        }
        let more = self.program(it).map(|program| program.more_handlers());
        all.extend(more.unwrap_or_default().into_iter().map(|name| (name, "r")));
        let mut listed = Vec::new();
        for (name, kind) in all {
            match name.strip_suffix('_') {
                Some(base) => listed.extend(self.numbers_of(it, base).map(|name| (name, kind))),
                None => listed.push((name, kind)),
            }
        }
        listed.sort_unstable();
        listed
    }

    /// `pattern0`, `pattern1` and so on, as many as have a value, but no more than outputs.
    fn numbers_of(&mut self, it: usize, base: &str) -> impl Iterator<Item = String> + use<> {
        let base = base.to_owned();
        let mut has_value = |n: &usize| {
            let value = self.read_element(it, &format!("{base}{n}"), "");
            value.is_ok_and(|value| !value.trim().is_empty())
        };
        let count = (0..MAX_OUTPUTS).take_while(|n| has_value(n)).count();
        (0..count).map(move |n| format!("{base}{n}"))
    }

    /// Dropped packets of an element by reason.
    fn drops(&mut self, it: usize) -> Result<Vec<(String, u64)>, ArgError> {
        let counters = self.exact_counters(it)?;
        Ok(drop_counts(&self.config.graph.elements[it], &counters))
    }

    fn write_element(&mut self, it: usize, name: &str, value: &str) -> Result<(), ArgError> {
        let _payment = self.config.assigned.payment(it);
        let own = (self.config.graph.elements[it].class.writes)().iter().any(|h| h.name == name);
        if name == CYCLES.name && !own {
            self.reset_cycles(Some(it));
            return Ok(());
        }
        if let Some(done) = self.call_program(it, name, value, true) {
            return done.map(drop);
        }
        if self.config.graph.elements[it].class.role == Role::Control {
            let run = self.control.programs.iter_mut().find(|run| run.element == it);
            if let Some(done) = run.and_then(|run| run.program.write(name, value)) {
                return done.map_err(|e| e.of_handler(name));
            }
            return Err(self.no_handler(it, name, true));
        }
        if name == CONFIG.name && reconfigure::may(self.config.graph.elements[it].class) {
            return self.reconfigure(it, value);
        }
        if let Some(done) = (!own).then(|| self.write_task(it, name, value)).flatten() {
            return done;
        }
        if let Some(done) = self.write_memory(it, name, value) {
            return done;
        }
        if let Some(done) = self.write_account(it, name, value) {
            return done;
        }
        match self.rewritten(it, name, value)? {
            // The old configuration is dropped here, not on a worker: that may take time.
            Some((_old, config)) => {
                self.config.rewritten[it] = Some(config.clone());
                self.show_written(it, name, value.trim());
                let done = self.workers.ask_all(move |worker| worker.install(it, config));
                done.into_iter().collect()
            }
            None => self.change(it, name, value),
        }
    }

    /// The configuration, and a changed one. The control thread makes it: workers have packets to
    /// process.
    fn rewritten(
        &mut self,
        it: usize,
        name: &str,
        value: &str,
    ) -> Result<Option<(AnyConfig, AnyConfig)>, ArgError> {
        let class = self.config.graph.elements[it].class;
        if !(class.writes)().iter().any(|doc| numbered_as(doc.name, name)) {
            return Ok(None);
        }
        let Some(config) = self.config_of(it)? else { return Ok(None) };
        // Arguments have no blanks around them, as lines of clients do.
        let names = self.config.names.of(&self.config.graph.elements[it].name);
        let new = (class.factory.write_config)(&config, name, value.trim(), names);
        new.map(|new| Ok((config, new.map_err(|e| e.of_handler(name))?))).transpose()
    }

    /// The present configuration of an element, with the changes of handlers.
    pub(super) fn config_of(&mut self, it: usize) -> Result<Option<AnyConfig>, ArgError> {
        if let Some(config) = &self.config.rewritten[it] {
            return Ok(Some(config.clone()));
        }
        self.workers.ask(self.config.assigned[it].home, move |worker| {
            Some(slot::at(&worker.graph.slots, it)?.config())
        })
    }

    fn change(&mut self, it: usize, name: &str, value: &str) -> Result<(), ArgError> {
        let home = self.config.assigned[it].home;
        let others = (0..self.workers.len()).filter(|&w| w != home);
        for worker in std::iter::once(home).chain(others).collect::<Vec<_>>() {
            let (text, what) = (value.to_owned(), name.to_owned());
            let wakes = (self.config.graph.elements[it].class.runs_timer)(name);
            let done = self.workers.ask(worker, move |worker| {
                worker.bill(it);
                let node = slot::at_mut(&mut worker.graph.slots, it)?;
                let declared = |node: &mut dyn Node| {
                    let done = node.write_declared(&what, &text)?;
                    Some((done.map(DeferredWork::from), 0))
                };
                let (done, thrown) = node.change(&what, &text).or_else(|| declared(node))?;
                let shares = node.is_shared();
                worker.exec.count_drops(it, DISCARDED, thrown);
                worker.revive(it);
                if wakes {
                    worker.wake(it);
                }
                Some((done, shares))
            });
            if wakes {
                self.make_calls(worker);
            }
            let (done, shares) = done?.ok_or_else(|| self.no_handler(it, name, true))?;
            done.and_then(DeferredWork::run).map_err(|e| e.of_handler(name))?;
            if shares {
                // The one state is changed; tasks of the element may be on any worker.
                let revived = self.workers.ask_all(move |worker| worker.revive(it));
                revived.into_iter().collect::<Result<(), ArgError>>()?;
                break;
            }
        }
        if (self.config.graph.elements[it].class.stops)(name) {
            // A stop request of the element: a driver program may refuse it.
            _ = self.control.notify.send(DriverEvent::StopRequested);
        }
        Ok(())
    }

    fn no_handler(&self, it: usize, name: &str, write: bool) -> ArgError {
        missing(&self.config.graph, it, name, write, &self.handlers_of(it))
    }

    /// The counters of one element on each worker.
    fn counters_by_worker(&mut self, it: usize) -> Vec<Result<Counters, ArgError>> {
        self.workers.ask_all(move |worker| worker.exec.counters[it].clone())
    }

    /// The counters of one element, summed over all workers.
    pub(super) fn exact_counters(&mut self, it: usize) -> Result<Counters, ArgError> {
        self.counters_by_worker(it).into_iter().sum()
    }

    /// The counters of one element, summed over the workers that answer.
    pub fn counters(&mut self, it: usize) -> Counters {
        self.counters_by_worker(it).into_iter().flatten().sum()
    }

    /// The counters of every element, summed over all workers.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn all_counters(&mut self) -> Result<Vec<Counters>, ArgError> {
        let mut sums = vec![Counters::default(); self.config.graph.elements.len()];
        for theirs in self.workers.ask_all(|worker| worker.exec.counters.clone()) {
            sums.iter_mut().zip(&theirs?).for_each(|(sum, counters)| sum.add(counters));
        }
        Ok(sums)
    }

    /// Drops of an element by reason, from its counters.
    pub fn losses(&self, it: usize, counts: &Counters) -> Vec<(String, u64)> {
        let mut losses = drop_counts(&self.config.graph.elements[it], counts);
        losses.retain(|&(_, n)| n > 0);
        losses
    }

    /// Packets that an element keeps.
    pub fn held(&mut self, it: usize) -> usize {
        let theirs = self.workers.ask_all(move |worker| {
            slot::at(&worker.graph.slots, it).map(|node| (node.held(), node.is_shared()))
        });
        let theirs: Vec<_> =
            theirs.into_iter().map(|it| it.ok().flatten().unwrap_or_default()).collect();
        match theirs.get(self.config.assigned[it].home) {
            Some(&(held, true)) => held,
            _ => theirs.iter().map(|(held, _)| held).sum(),
        }
    }
}

/// Whether a handler has a name: its own, or with a number behind it.
fn numbered_as(handler: &str, name: &str) -> bool {
    handler == name || castanet_element::node::numbered(name).is_some_and(|(of, _)| of == handler)
}

/// Whether a handler is among these, by its own name or with a number behind it.
pub(super) fn has(handlers: &[(HandlerDoc, bool)], name: &str, write: bool) -> bool {
    handlers.iter().any(|(doc, writes)| *writes == write && numbered_as(doc.name, name))
}

/// Handlers of an element, those that all elements have included, each with whether it writes.
pub(super) fn declared(
    graph: &Graph,
    assigned: &assign::Assignment,
    element: usize,
) -> Vec<(HandlerDoc, bool)> {
    let class = graph.elements[element].class;
    let own = (class.reads)();
    let common = COMMON_READS.iter().copied().filter(|c| own.iter().all(|h| h.name != c.name));
    let reads = own.iter().copied().chain(common);
    let config = reconfigure::may(class).then_some(CONFIG);
    let own = (class.writes)();
    let cycles = own.iter().all(|h| h.name != CYCLES.name).then_some(CYCLES);
    let writes = own.into_iter().chain(config).chain(cycles);
    let declared = reads.map(|doc| (doc, false)).chain(writes.map(|doc| (doc, true)));
    let mut all: Vec<(HandlerDoc, bool)> = declared.collect();
    let of_runtime = task_handlers(assigned, element).chain(account_handlers(assigned, element));
    for (doc, write) in of_runtime {
        if all.iter().all(|(other, writes)| (other.name, *writes) != (doc.name, write)) {
            all.push((doc, write));
        }
    }
    all
}

/// Dropped packets of an element by reason; packets for an output that is not connected count under
/// its name.
pub(super) fn drop_counts(element: &Element, counters: &Counters) -> Vec<(String, u64)> {
    let count = |fate: u8| counters.drops[usize::from(DROP - fate)];
    let reasons = element.drop_reasons();
    let mut all: Vec<(String, u64)> = reasons.map(|(fate, name)| (name, count(fate))).collect();
    let class = element.class;
    for (port, fate) in class.outputs().enumerate() {
        all.push((fate.name.to_owned(), counters.open.get(port).copied().unwrap_or(0)));
    }
    for (port, &n) in counters.open.iter().enumerate().skip(class.outputs().count()) {
        all.push((format!("output_{port}"), n));
    }
    all
}

/// The error about a handler that an element does not have.
pub(super) fn missing(
    graph: &Graph,
    it: usize,
    name: &str,
    write: bool,
    handlers: &[(HandlerDoc, bool)],
) -> ArgError {
    let kind = if write { "write" } else { "read" };
    let known = handlers.iter().filter(|(_, writes)| *writes == write).map(|(doc, _)| doc.name);
    let label = graph.label(it);
    let error = ArgError::new(format!("'{label}' has no {kind} handler '{name}'"));
    let path = format!("{}.{name}", graph.elements[it].name);
    let error = match has(handlers, name, !write) {
        true if write => error.help(format!("'{path}' can only be read")),
        true => error.help(format!("'{path}' can only be written")),
        false => error,
    };
    unknown(error, &path, kind, name, &known.collect::<Vec<_>>())
}

/// The error about a handler that does not exist, with Click's words and the nearest name.
pub(super) fn unknown(
    error: ArgError,
    path: &str,
    kind: &str,
    name: &str,
    known: &[&str],
) -> ArgError {
    let error = error.click(format!("no '{path}' {kind} handler"));
    match nearest(name, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean '{near}'?")),
        None => error,
    }
}
