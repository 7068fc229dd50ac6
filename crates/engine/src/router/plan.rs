//! The steps before building, kept so that `explain` can print each.

use crate::args::{ArgError, Names};
use crate::class::Library;
use crate::cores::Cores;
use crate::element::Facts;
use crate::graph::devices::{self, Device};
use crate::graph::{Graph, assign, carries, checksums, classes, fuse, ports};
use castanet_lang::{Diagnostic, Diagnostics, Flat};

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

/// Goes through the steps; everything wrong is in `found`.
pub fn plan(
    flat: &Flat,
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
        let before = facts.homes.len();
        let declared = declare(&it.config, &Names::default(), &mut facts);
        let mut errors = declared.err().unwrap_or_default();
        for (name, _) in &mut facts.homes[before..] {
            match in_scope(&graph, &it.name, name) {
                Some(full) => *name = full,
                None => errors.push(unknown_home(&graph, name)),
            }
        }
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
    let assigned = assign::assign(&graph, &facts, &devices, cores);
    let fused = fuse::find(&graph, library.fusions());
    let checksums = checksums::may_leave(&graph);
    Planned { graph, carries, checksums, facts, devices, cores: cores.clone(), assigned, fused }
}

/// The element or compound that `name` means where `element` stands: in its
/// own compound first, then in those around it.
fn in_scope(graph: &Graph, element: &str, name: &str) -> Option<String> {
    let mut scope = element;
    loop {
        let outer = scope.rsplit_once('/').map(|(outer, _)| outer);
        let full = outer.map_or(name.to_owned(), |outer| format!("{outer}/{name}"));
        let inside = format!("{full}/");
        if graph.elements.iter().any(|e| e.name == full || e.name.starts_with(&inside)) {
            return Some(full);
        }
        scope = outer?;
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
