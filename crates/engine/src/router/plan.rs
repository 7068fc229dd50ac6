//! The steps before building, kept so that `explain` can print each.

use crate::args::{ArgError, Names};
use crate::class::Library;
use crate::cores::Cores;
use crate::element::{Facts, Said};
use crate::frames::Sizes;
use crate::graph::devices::{self, Device};
use crate::graph::{
    Graph, assign, carries, checksums, classes, fuse, in_scope, order, ports, watch,
};
use castanet_lang::{Diagnostic, Diagnostics, FlatGraph};

/// In whose words errors about arguments are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wording {
    /// Where, what, and what would be right.
    Castanet,
    /// Click's, for programs that read them.
    Click,
}

/// A graph with all that follows from it before anything is built.
pub struct Planned {
    /// Elements, ports, processing.
    pub graph: Graph,
    /// What each edge carries.
    pub carries: carries::Plan,
    /// By element: whether packets may leave it with checksums left to who
    /// sends them.
    pub checksums: Vec<bool>,
    /// What information elements declare.
    pub facts: Facts,
    /// By element: the device that it stands for.
    pub devices: Vec<Option<Device>>,
    /// The cores of the workers.
    pub cores: Cores,
    /// Who runs what.
    pub assigned: assign::Plan,
    /// Which elements run as one pass.
    pub fused: fuse::Plan,
}

impl Planned {
    /// How many queues of devices elements use.
    pub(crate) fn queues(&self) -> usize {
        self.assigned.device_queues(&self.devices)
    }

    /// The sizes of the pools that a router of this configuration has, with these options.
    pub fn sizes(&self, frames: Option<usize>, memory: Option<u64>) -> Result<Sizes, String> {
        Sizes::of(frames, memory, self.queues())
    }
}

/// Goes through the steps; everything wrong is in `found`.
pub fn plan(
    flat: &FlatGraph,
    library: &Library,
    cores: &Cores,
    wording: Wording,
    found: &mut Diagnostics,
) -> Planned {
    let mut graph = classes::name(flat, library, found);
    ports::resolve(&mut graph, wording == Wording::Click, found);
    let mut facts = Facts::default();
    for (i, it) in graph.elements.iter().enumerate() {
        let Some(declare) = it.class.declare else { continue };
        let before = (facts.homes.len(), facts.tickets.len());
        let declared = declare(&it.config, &Names::default(), &mut facts);
        let mut errors = declared.err().unwrap_or_default();
        let homes = facts.homes[before.0..].iter_mut().map(|(name, _)| name);
        let tickets = facts.tickets[before.1..].iter_mut().map(|(name, _)| name);
        for name in homes.chain(tickets) {
            match in_scope(&graph, &it.name, name) {
                Some(full) => *name = full,
                None => errors.push(unknown_home(&graph, name)),
            }
        }
        facts.said.drain(..).for_each(|said| say(&graph, i, said, wording, found));
        if !errors.is_empty() {
            report(&graph, i, "configuring", errors, wording, found);
        }
    }
    let mut warnings = Diagnostics::new();
    let carries = carries::follow(&graph, &mut warnings);
    if wording == Wording::Castanet {
        found.append(warnings);
    }
    let devices = devices::find(&graph, &facts);
    let mut assigned = assign::assign(&graph, &facts, &devices, cores);
    watch(&graph, &mut assigned, wording, found);
    assigned.send_singly(order::single(&graph));
    let mut fused = fuse::find(&graph, library.fusions());
    fused.keep_together(&assigned.with);
    fused.leave_out(&assigned.single);
    let checksums = checksums::may_leave(&graph);
    let cores = cores.clone();
    Planned { graph, carries, checksums, facts, devices, cores, assigned, fused }
}

/// Adds what an element has to say.
pub(super) fn say(
    graph: &Graph,
    element: usize,
    said: Said,
    wording: Wording,
    found: &mut Diagnostics,
) {
    let (it, label) = (&graph.elements[element], graph.label(element));
    let context = format!("While configuring '{label}':");
    found.push(match (said, wording) {
        (Said::Message(text), Wording::Castanet) => Diagnostic::note(it.span, text),
        (Said::Warning(text), Wording::Castanet) => Diagnostic::warning(it.span, text),
        (Said::Message(text), Wording::Click) => {
            Diagnostic::note(it.span, context).with_note(None, text)
        }
        (Said::Warning(text), Wording::Click) => {
            Diagnostic::note(it.span, context).with_note(None, format!("warning: {text}"))
        }
    });
}

/// Finds the stores that elements watch; who waits for room there is woken when
/// packets are taken out.
fn watch(graph: &Graph, assigned: &mut assign::Plan, wording: Wording, found: &mut Diagnostics) {
    for (i, it) in graph.elements.iter().enumerate() {
        let named = it.class.watch.and_then(|find| find(&it.config, &Names::default()));
        match named.map(|named| watch::stores(graph, i, &named)) {
            Some(Ok(stores)) => assigned.watch(i, stores),
            Some(Err(errors)) => report(graph, i, "initializing", errors, wording, found),
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

/// Adds what is wrong with one element; `doing` is what was being done.
pub(crate) fn report(
    graph: &Graph,
    element: usize,
    doing: &str,
    errors: Vec<ArgError>,
    wording: Wording,
    found: &mut Diagnostics,
) {
    let it = &graph.elements[element];
    if wording == Wording::Click {
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
