//! The steps before building, kept so that `explain` can print each.

use crate::args::{ArgError, Names};
use crate::class::Library;
use crate::element::Facts;
use crate::graph::{Graph, assign, carries, classes, ports};
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
    /// What information elements declare.
    pub facts: Facts,
    /// Who runs what.
    pub assigned: assign::Plan,
}

/// Goes through the steps; everything wrong is in `found`.
pub fn plan(
    flat: &Flat,
    library: &Library,
    workers: usize,
    wording: Wording,
    found: &mut Diagnostics,
) -> Planned {
    let mut graph = classes::name(flat, library, found);
    ports::resolve(&mut graph, found);
    let mut facts = Facts::default();
    for (i, it) in graph.elements.iter().enumerate() {
        let Some(declare) = it.class.declare else { continue };
        if let Err(errors) = declare(&it.config, &Names::default(), &mut facts) {
            report(&graph, i, errors, wording, found);
        }
    }
    let mut warnings = Diagnostics::new();
    let carries = carries::follow(&graph, &mut warnings);
    if wording == Wording::Castanet {
        found.append(warnings);
    }
    check_homes(&graph, &facts, found);
    let assigned = assign::assign(&graph, &facts, workers);
    Planned { graph, carries, facts, assigned }
}

/// `StaticThreadSched` must name elements or compounds that exist.
fn check_homes(graph: &Graph, facts: &Facts, found: &mut Diagnostics) {
    for (name, _) in &facts.homes {
        let inside = format!("{name}/");
        let known = graph.elements.iter().any(|e| e.name == *name || e.name.starts_with(&inside));
        if !known {
            let all = graph.elements.iter().map(|e| e.name.as_str());
            let near = castanet_lang::nearest(name, all);
            found.push(
                Diagnostic::error(None, format!("StaticThreadSched: no element named '{name}'"))
                    .with_maybe_help(near.map(|n| format!("did you mean '{n}'?"))),
            );
        }
    }
}

/// Adds what is wrong with the arguments of one element.
pub(crate) fn report(
    graph: &Graph,
    element: usize,
    errors: Vec<ArgError>,
    wording: Wording,
    found: &mut Diagnostics,
) {
    let it = &graph.elements[element];
    if wording == Wording::Click {
        let context = format!("While configuring '{}':", graph.label(element));
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
