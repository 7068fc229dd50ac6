//! Handler calls that elements make on their packets' way.

use super::build::BuiltConfig;
use super::handlers::{declared, has, missing};
use super::swap::Predecessor;
use super::{ProgramRun, Router, global};
use crate::graph::{Graph, assign};
use crate::worker::Worker;
use crate::worker::calls::CallRequest;
use castanet_element::args::ScopedNames;
use castanet_element::error::ArgError;
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
    graph: &Graph,
    assigned: &assign::Assignment,
    programs: &[ProgramRun],
    names: &ScopedNames,
    element: usize,
) -> Result<(), ArgError> {
    let it = &graph.elements[element];
    let calls = it.class.factory.calls.and_then(|find| find(&it.config, names.of(&it.name)));
    for (argument, handler) in calls.unwrap_or_default() {
        let path = in_scope(graph, &it.name, &handler);
        find(graph, assigned, programs, &path).map_err(|error| match argument {
            Some(argument) => error.at(argument),
            None => error,
        })?;
    }
    Ok(())
}

/// Checks that there is a write handler of that name.
fn find(
    graph: &Graph,
    assigned: &assign::Assignment,
    programs: &[ProgramRun],
    path: &str,
) -> Result<(), ArgError> {
    let (element, name) = global::split(path);
    if element.is_empty() {
        return match global::knows(global::WRITES, name) {
            true => Ok(()),
            false => Err(global::no_write(name, global::WRITES)),
        };
    }
    let it = graph.find(element).ok_or_else(|| no_element(graph, element))?;
    let handlers = declared(graph, assigned, it);
    let program = programs.iter().find(|run| run.element == it);
    match has(&handlers, name, true)
        || program.is_some_and(|run| run.program.has_handler(name, true))
    {
        true => Ok(()),
        false => Err(missing(graph, it, name, true, &handlers)),
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
