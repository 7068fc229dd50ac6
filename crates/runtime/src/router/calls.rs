//! Handler calls that elements make on their packets' way.

use super::build::BuiltConfig;
use super::handlers::{declared, has, missing};
use super::swap::Predecessor;
use super::{ProgramRun, Router, global};
use crate::graph::{self, Graph, assign};
use crate::worker::Worker;
use crate::worker::calls::CallRequest;
use castanet_element::args::ScopedNames;
use castanet_element::control::ProgramReference;
use castanet_element::error::ArgError;
use castanet_element::handler::HandlerDoc;
use castanet_lang::nearest;

/// Calls that may wait for each other, each made by packets of the call before.
const MOST_NESTED: u32 = 64;

impl Router {
    /// Makes the calls for which packets of a worker wait, until all packets have come to their
    /// end.
    pub(super) fn make_calls(&mut self, worker: usize) {
        let mut call = self.workers.ask(worker, Worker::next_call);
        while let Ok(Some(request)) = call {
            let output = self.make(&request);
            call = self.workers.ask(worker, move |worker| worker.go_on(output));
        }
    }

    /// The same for all workers.
    pub(super) fn make_all_calls(&mut self) {
        (0..self.workers.len()).for_each(|worker| self.make_calls(worker));
    }

    /// Makes one call; returns the output that it answers, where it decides about one. Errors are
    /// not reported.
    fn make(&mut self, request: &CallRequest) -> Option<usize> {
        if self.control.calling == MOST_NESTED {
            return None;
        }
        self.control.calling += 1;
        let CallRequest { element, handler, value, decides } = request;
        let output = match decides {
            true => {
                let answer = self.call_program(*element, handler, value, true);
                answer.and_then(Result::ok).and_then(|output| output.parse().ok())
            }
            false => {
                let path = in_scope(
                    &self.config.graph,
                    &self.config.graph.elements[*element].name,
                    handler,
                );
                _ = self.write(&path, value);
                None
            }
        };
        self.control.calling -= 1;
        output
    }
}

impl Router {
    /// Has packets come one at a time to an element that a handler gives a call, as to elements
    /// whose arguments have one.
    pub(super) fn let_call(&mut self, element: usize) {
        if std::mem::replace(&mut self.config.callers[element], true) {
            return;
        }
        self.config.assigned.send_singly_to(&self.config.graph, element);
        let single = self.config.assigned.single();
        self.workers.ask_all(move |worker| worker.send_singly(&single));
    }

    /// By element of another configuration: whether it continues one that a handler has given a
    /// call.
    pub(super) fn callers_of(&self, before: &[Option<Predecessor>]) -> Vec<bool> {
        let calls = |before: &Predecessor| self.config.callers[before.element];
        before.iter().map(|before| before.as_ref().is_some_and(calls)).collect()
    }

    /// Has packets come one at a time to elements that continue with such calls.
    pub(super) fn hand_over_callers(
        &self,
        built: &mut BuiltConfig,
        before: &[Option<Predecessor>],
    ) {
        let callers = self.callers_of(before);
        for element in (0..callers.len()).filter(|&element| callers[element]) {
            built.config.assigned.send_singly_to(&built.config.graph, element);
            for worker in 0..built.workers.len() {
                let worker = built.workers.idle(worker);
                worker.into_iter().for_each(|it| it.send_singly(&built.config.assigned.single()));
            }
        }
    }
}

/// Checks that the handlers exist that an element calls.
pub(super) fn find_calls(
    handlers: &HandlerIndex,
    names: &ScopedNames,
    element: usize,
) -> Result<(), ArgError> {
    let it = &handlers.graph.elements[element];
    let calls = it.class.factory.calls.and_then(|find| find(&it.config, names.of(&it.name)));
    for (argument, handler) in calls.unwrap_or_default() {
        let path = in_scope(handlers.graph, &it.name, &handler);
        handlers.find(&path, true).map_err(|error| match argument {
            Some(argument) => error.at(argument),
            None => error,
        })?;
    }
    Ok(())
}

/// The errors about handlers and elements that the arguments of a program name.
pub(super) fn find_references(handlers: &HandlerIndex, run: &ProgramRun) -> Vec<ArgError> {
    let it = &handlers.graph.elements[run.element];
    let mut errors = Vec::new();
    for reference in run.program.references() {
        let (name, found) = match &reference {
            ProgramReference::Read(name) => (name, handlers.find_for(&it.name, name, false)),
            ProgramReference::Write(name) => (name, handlers.find_for(&it.name, name, true)),
            ProgramReference::Element(name) => {
                let is_there = graph::in_scope(handlers.graph, &it.name, name).is_some();
                let error = || no_element(handlers.graph, name);
                (name, if is_there { Ok(()) } else { Err(error()) })
            }
        };
        let Err(error) = found else { continue };
        let error = match place_of(name, &it.config) {
            Some(offset) => error.within(offset, name.len()),
            None => error,
        };
        // A script may name the same handler many times.
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

/// Where a text names a handler or an element first.
fn place_of(name: &str, text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_@/.".contains(c);
    let stands_alone = |&(at, _): &(usize, &str)| {
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    };
    text.match_indices(name).find(stands_alone).map(|(at, _)| at)
}

/// The handlers of a router, whether it runs or not.
#[derive(Clone, Copy)]
pub(super) struct HandlerIndex<'a> {
    pub(super) graph: &'a Graph,
    pub(super) assigned: &'a assign::Assignment,
    pub(super) programs: &'a [ProgramRun],
    /// By element: whether it could not be made, so that its handlers are not known.
    pub(super) failed: &'a [bool],
    /// Write handlers of the router itself.
    pub(super) global_writes: &'static [HandlerDoc],
}

impl HandlerIndex<'_> {
    /// Whether a handler exists.
    pub(super) fn has(&self, path: &str, write: bool) -> bool {
        let (element, name) = global::split(path);
        if element.is_empty() {
            return global::knows(if write { self.global_writes } else { global::READS }, name);
        }
        let Some(element) = self.graph.find(element) else { return false };
        has(&declared(self.graph, self.assigned, element), name, write)
            || (!write && name.starts_with("drops."))
            || self.graph.elements[element].declarations.has_handler(name, write)
            || self.program(element).is_some_and(|run| run.program.has_handler(name, write))
    }

    fn program(&self, element: usize) -> Option<&ProgramRun> {
        self.programs.iter().find(|run| run.element == element)
    }

    /// Checks that a handler exists.
    pub(super) fn find(&self, path: &str, write: bool) -> Result<(), ArgError> {
        if self.has(path, write) {
            return Ok(());
        }
        let (element, name) = global::split(path);
        if element.is_empty() {
            return Err(global::missing(name, write, self.global_writes));
        }
        let it = self.graph.find(element).ok_or_else(|| no_element(self.graph, element))?;
        let class = self.graph.elements[it].class;
        // The handlers of a program that could not be made are not known.
        let is_absent = class.factory.program.is_some() && self.failed.get(it) == Some(&true);
        if class.is_unknown() || is_absent {
            return Ok(());
        }
        Err(missing(self.graph, it, name, write, &declared(self.graph, self.assigned, it)))
    }

    /// Checks that a handler exists that a program names, if only in its own element.
    fn find_for(&self, program: &str, name: &str, write: bool) -> Result<(), ArgError> {
        let is_own = !name.contains('.') && self.has(&format!("{program}.{name}"), write);
        let path = || in_scope(self.graph, program, name);
        if is_own { Ok(()) } else { self.find(&path(), write) }
    }
}

/// The error about an element that does not exist, with the nearest name.
pub(super) fn no_element(graph: &Graph, name: &str) -> ArgError {
    let near = nearest(name, graph.elements.iter().map(|e| e.name.as_str()));
    let error = ArgError::new(format!("no element named '{name}'"));
    near.map_or(error.clone(), |n| error.help(format!("did you mean '{n}'?")))
}

/// The full name of a handler that `element` names: elements are looked up in its own compound
/// first, then in the compounds around it, as in Click. No name leads out of a sealed compound.
pub(super) fn in_scope(graph: &Graph, element: &str, handler: &str) -> String {
    let path = handler.split_whitespace().next().unwrap_or_default();
    let wanted = path.split_once('.').map(|(wanted, _)| wanted);
    let mut scope = element;
    while let Some((outer, _)) = scope.rsplit_once('/') {
        let is_there = |wanted: &str| graph.find(&format!("{outer}/{wanted}")).is_some();
        if wanted.is_some_and(is_there) || graph.is_sealed(outer) {
            return format!("{outer}/{handler}");
        }
        scope = outer;
    }
    handler.to_owned()
}
