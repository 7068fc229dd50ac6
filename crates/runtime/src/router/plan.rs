//! The plan of a configuration: the steps before building, kept so that `explain` can print each.

use super::InterfaceResolver;
use crate::cores::Cores;
use crate::graph::assign::TaskPlacement;
use crate::graph::devices::{self};
use crate::graph::lints::{self, LintRemark};
use crate::graph::order::PacketOrder;
use crate::graph::{
    Graph, assign, carries, checksums, classes, fuse, headers, in_scope, order, ports, resources,
    watch,
};
use castanet_element::args::{DeclaredNames, Names, ScopedNames};
use castanet_element::class::Library;
use castanet_element::element::{ConfigNotice, Facts};
use castanet_element::error::ArgError;
use castanet_element::frames::PoolSizes;
use castanet_element::resource::Resource;
use castanet_lang::{Diagnostic, Diagnostics, FlatGraph};
use std::collections::HashSet;
use std::sync::Arc;

/// Style of errors about arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorStyle {
    /// Castanet's: position, error, help.
    Castanet,
    /// Click's, for programs that parse them.
    Click,
}

/// A graph with all that follows from it before elements are built.
pub struct ConfigPlan {
    /// Elements, ports, processing.
    pub graph: Graph,
    /// By edge: the kind of its packets.
    pub carries: Vec<carries::Carries>,
    /// Parts that are allowed, and rarely meant, but for those where packets are lost: of these, `plan`
    /// warns.
    pub lints: Vec<LintRemark>,
    /// Declarations of information elements.
    pub facts: Facts,
    /// The cores of the workers.
    pub cores: Cores,
    /// The assignment of elements to workers.
    pub assigned: assign::Assignment,
    /// Fused chains.
    pub fused: fuse::FusionPlan,
}

impl ConfigPlan {
    /// The resources outside of the process that elements need, each with its element.
    pub fn resources(&self) -> Vec<(usize, Resource)> {
        resources::find(&self.graph, &self.names(None))
    }

    /// The names that arguments of each element may use. `interfaces` looks up the addresses of interfaces.
    pub(crate) fn names(&self, interfaces: Option<InterfaceResolver>) -> ScopedNames {
        self.facts.names.resolved(interfaces.map(|ask| Arc::new(ask) as _))
    }

    /// Number of device queues that elements use.
    pub(crate) fn queues(&self) -> usize {
        self.assigned.device_queues()
    }

    /// Has tasks and packets take the order that the user wants.
    pub fn set_order(&mut self, order: PacketOrder) {
        self.assigned.set_order(&self.graph, order);
        self.fused.leave_out_single(&self.assigned);
    }

    /// The sizes of the pools that a router of this configuration has, with these options.
    pub fn sizes(&self, frames: Option<usize>, memory: Option<u64>) -> Result<PoolSizes, String> {
        PoolSizes::of(frames, memory, self.queues())
    }
}

/// Runs the steps; all errors are in `found`.
pub fn plan(
    flat: &FlatGraph,
    library: &Library,
    cores: &Cores,
    error_style: ErrorStyle,
    found: &mut Diagnostics,
) -> ConfigPlan {
    let mut graph = classes::name(flat, library, found);
    ports::resolve(&mut graph, error_style == ErrorStyle::Click, found);
    let facts = declared(&graph, cores, error_style, found);
    let carries = carries::follow(&graph);
    let mut lints = Vec::new();
    if error_style == ErrorStyle::Castanet {
        lints = lints::find(&graph, &headers::follow(&graph));
        let (urgent, others) = lints.into_iter().partition(|it| it.lint.is_urgent);
        let urgent: Vec<LintRemark> = urgent;
        urgent.into_iter().for_each(|it| found.push(it.warning));
        lints = others;
    }
    let devices = devices::find(&graph, &facts.names.resolved(None));
    let placement = match error_style {
        ErrorStyle::Castanet => TaskPlacement::FewestTasks,
        ErrorStyle::Click => TaskPlacement::FirstWorker,
    };
    let mut assigned = assign::assign(&graph, &facts, &devices, cores, placement);
    watch(&graph, &mut assigned, error_style, found);
    assigned.send_singly(order::single(&graph));
    let mut fused = fuse::find(&graph, library.fusions());
    fused.keep_together(&assigned);
    fused.leave_out_single(&assigned);
    let may_leave = checksums::may_leave(&graph);
    for (element, may_leave) in assigned.elements.iter_mut().zip(may_leave) {
        element.may_leave_checksums = may_leave;
    }
    let cores = cores.clone();
    ConfigPlan { graph, carries, lints, facts, cores, assigned, fused }
}

/// The names of the host's interfaces; none where the system does not tell.
fn interfaces() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Gathers the declarations of information elements; names in them become names of the flat graph.
fn declared(
    graph: &Graph,
    cores: &Cores,
    error_style: ErrorStyle,
    found: &mut Diagnostics,
) -> Facts {
    let names = DeclaredNames::new(&graph.sealed);
    let interfaces = match graph.elements.iter().any(|it| it.class.factory.declare.is_some()) {
        true => interfaces(),
        false => Vec::new(),
    };
    let nodes = (0..cores.workers()).map(|worker| cores.of(worker).node).collect();
    let mut facts = Facts { names, interfaces, nodes, ..Facts::default() };
    let mut absent_threads = Vec::new();
    for (i, it) in graph.elements.iter().enumerate() {
        let Some(declare) = it.class.factory.declare else { continue };
        facts.names.enter(&it.name);
        let before = (facts.homes.len(), facts.tickets.len(), facts.alignments.len());
        let declared = declare(&it.config, &Names::default(), &mut facts);
        let mut errors = declared.err().unwrap_or_default();
        let threads = facts.homes[before.0..].iter().map(|(_, thread)| *thread);
        let absent = threads.filter(|&it| it >= cores.workers() && !cores.are_assumed());
        absent_threads.extend(absent.map(|thread| (i, thread)));
        let homes = facts.homes[before.0..].iter_mut().map(|(name, _)| (name, false));
        // In Click, tickets of no elements have no effect.
        let ignores = error_style == ErrorStyle::Click;
        let tickets = facts.tickets[before.1..].iter_mut().map(|(name, _)| (name, ignores));
        for (name, may_be_none) in homes.chain(tickets) {
            match in_scope(graph, &it.name, name) {
                Some(full) => *name = full,
                None if may_be_none => {}
                None => errors.push(unknown_home(graph, name)),
            }
        }
        for (name, _) in &mut facts.alignments[before.2..] {
            // As in Click, names of no elements have no effect.
            *name = in_scope(graph, &it.name, name).unwrap_or_default();
        }
        facts.accounts.iter_mut().for_each(|account| _ = account.element.get_or_insert(i));
        facts.limits.iter_mut().for_each(|limits| _ = limits.element.get_or_insert(i));
        facts.notices.drain(..).for_each(|notice| say(graph, i, notice, error_style, found));
        if !errors.is_empty() {
            report(graph, i, "configuring", errors, error_style, found);
        }
    }
    absent_threads.retain(|(_, thread)| !facts.contexts.iter().any(|(it, _)| it == thread));
    for (i, thread) in absent_threads {
        // As in Click, where it is taken as 0.
        let warning = format!("thread preference {thread} out of range");
        say(graph, i, ConfigNotice::Warning(warning), error_style, found);
    }
    name_accounts(graph, &mut facts, error_style, found);
    facts
}

/// Gives accounts and limits the names of the flat graph, but for those of `VStaticThreadSched`.
fn name_accounts(
    graph: &Graph,
    facts: &mut Facts,
    error_style: ErrorStyle,
    found: &mut Diagnostics,
) {
    let Facts { accounts, limits, contexts, .. } = facts;
    let mut name_all = |names: Vec<(&mut String, Option<usize>)>, what: &str| {
        let mut taken = HashSet::new();
        for (name, element) in names {
            let Some(i) = element else { continue };
            let full = match contexts.iter().any(|(_, context)| context == name) {
                true => Some(name.clone()),
                false => in_scope(graph, &graph.elements[i].name, name),
            };
            let error = match full {
                Some(full) if taken.insert(full.clone()) => {
                    *name = full;
                    continue;
                }
                Some(full) => ArgError::new(format!("'{full}' has {what} already")),
                None => unknown_home(graph, name),
            };
            report(graph, i, "configuring", vec![error], error_style, found);
        }
    };
    name_all(accounts.iter_mut().map(|it| (&mut it.name, it.element)).collect(), "an account");
    name_all(limits.iter_mut().map(|it| (&mut it.name, it.element)).collect(), "limits of memory");
}

/// Adds a notice of an element.
fn say(
    graph: &Graph,
    element: usize,
    said: ConfigNotice,
    error_style: ErrorStyle,
    found: &mut Diagnostics,
) {
    let it = &graph.elements[element];
    match (said, error_style) {
        (ConfigNotice::Warning(text), _) => warn(graph, element, vec![text], error_style, found),
        (ConfigNotice::Message(text), ErrorStyle::Castanet) => {
            found.push(Diagnostic::note(it.span, text));
        }
        (ConfigNotice::Message(text), ErrorStyle::Click) => {
            found.push(Diagnostic::note(it.span, context(graph, element)).with_note(None, text));
        }
    }
}

/// Adds warnings of an element; in Click's form its context stands once before all of them.
pub(super) fn warn(
    graph: &Graph,
    element: usize,
    warnings: Vec<String>,
    error_style: ErrorStyle,
    found: &mut Diagnostics,
) {
    let span = graph.elements[element].span;
    match error_style {
        ErrorStyle::Castanet => {
            warnings.into_iter().for_each(|text| found.push(Diagnostic::warning(span, text)));
        }
        ErrorStyle::Click if warnings.is_empty() => {}
        ErrorStyle::Click => {
            let note = Diagnostic::note(span, context(graph, element));
            found.push(
                warnings
                    .iter()
                    .fold(note, |note, text| note.with_note(None, format!("warning: {text}"))),
            );
        }
    }
}

/// The line of Click before messages about an element's arguments.
fn context(graph: &Graph, element: usize) -> String {
    format!("While configuring '{}':", graph.label(element))
}

/// Finds the stores that elements watch; tasks that wait for room there are woken when packets are
/// taken out.
fn watch(
    graph: &Graph,
    assigned: &mut assign::Assignment,
    error_style: ErrorStyle,
    found: &mut Diagnostics,
) {
    for (i, it) in graph.elements.iter().enumerate() {
        let named = it.class.factory.watch.and_then(|find| find(&it.config, &Names::default()));
        match named.map(|named| watch::stores(graph, i, &named)) {
            Some(Ok(stores)) => assigned.watch(i, stores),
            Some(Err(errors)) => report(graph, i, "initializing", errors, error_style, found),
            None => {}
        }
    }
}

fn unknown_home(graph: &Graph, name: &str) -> ArgError {
    let error = ArgError::new(format!("no element named '{name}'"))
        .click(format!("'{name}' does not name an element"));
    match castanet_lang::nearest(name, graph.elements.iter().map(|e| e.name.as_str())) {
        Some(near) => error.help(format!("did you mean '{near}'?")),
        None => error,
    }
}

/// Adds the errors of one element; `doing` says what was being done.
pub(crate) fn report(
    graph: &Graph,
    element: usize,
    doing: &str,
    errors: Vec<ArgError>,
    error_style: ErrorStyle,
    found: &mut Diagnostics,
) {
    let it = &graph.elements[element];
    if error_style == ErrorStyle::Click {
        let context = format!("While {doing} '{}':", graph.label(element));
        let diagnostic = Diagnostic::error(it.span, context);
        let words = errors.iter().filter_map(ArgError::in_click_words);
        return found.push(words.fold(diagnostic, |d, text| d.with_note(None, text)));
    }
    for error in errors {
        let range = error.range.map_or(0..it.config.len(), |(from, len)| from..from + len);
        let span = it.source.span_of(range);
        let message = format!("{}: {}", graph.label(element), error.message());
        found.push(Diagnostic::error(span, message).with_maybe_help(error.hint));
    }
}
