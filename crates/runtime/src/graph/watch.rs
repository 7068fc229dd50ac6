//! Step: the stores that elements watch.

use super::{Flow, Graph, in_scope};
use castanet_element::class::Role;
use castanet_element::error::ArgError;

/// The stores that `element` watches: those that it names, or else the nearest
/// ones, downstream if it pushes and upstream if it is pulled.
pub(crate) fn stores(
    graph: &Graph,
    element: usize,
    named: &[String],
) -> Result<Vec<usize>, Vec<ArgError>> {
    if named.is_empty() {
        let near = nearest(graph, element);
        let none = || vec![ArgError::new("there is no queue to watch").click("no nearby Queues")];
        // A class that is not known may be that of a queue.
        let is_known = graph.elements.iter().all(|it| !it.class.is_unknown());
        let may_be_none = graph.elements[element].class.may_watch_none || !is_known;
        return if near.is_empty() && !may_be_none { Err(none()) } else { Ok(near) };
    }
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for name in named {
        let full = in_scope(graph, &graph.elements[element].name, name);
        match full.and_then(|full| graph.find(&full)) {
            Some(store) if graph.elements[store].class.role == Role::Store => found.push(store),
            Some(_) => errors.push(
                ArgError::new(format!("'{name}' keeps no packets for others"))
                    .click(format!("'{name}' is not a Storage element"))
                    .at("QUEUES"),
            ),
            None => errors.push(ArgError::new(format!("no element named '{name}'")).at("QUEUES")),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// The first stores on each path from `element`.
fn nearest(graph: &Graph, element: usize) -> Vec<usize> {
    let down = graph.elements[element].outputs.first() != Some(&Flow::Pull);
    let next = |at: usize| -> Vec<usize> {
        match down {
            // Only packets of the first output are on their way to a queue.
            true => {
                let mine = graph.out_edges(at).filter(|e| at != element || e.from.port == 0);
                mine.map(|e| e.to.node).collect()
            }
            false => graph.in_edges(at).map(|e| e.from.node).collect(),
        }
    };
    let mut seen = vec![false; graph.elements.len()];
    let (mut work, mut found) = (next(element), Vec::new());
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        match graph.elements[at].class.role {
            Role::Store => found.push(at),
            _ => work.extend(next(at)),
        }
    }
    found.sort_unstable();
    found
}
