//! Of the step `fuse`: sources that hand packets without descriptors to another element
//! ([`Cx::bypass`](castanet_element::cx::Cx::bypass)).

use super::Graph;
use crate::graph::target::Target;
use castanet_element::element::ByteAccess;
use castanet_element::flow::Flow;
use std::collections::HashSet;

/// A source, and the way of its packets to the element that takes them without descriptors.
pub(crate) struct Bypass {
    pub(crate) from: usize,
    pub(crate) path: BypassPath,
}

/// The elements behind a source, up to one that takes packets without descriptors.
#[derive(Clone)]
pub(crate) struct BypassPath {
    /// Those between, in order. One that decides by bytes comes before all that write to them: so nothing is
    /// written to packets that take another way.
    pub(crate) past: Vec<PassedElement>,
    /// The one that takes the packets.
    pub(crate) to: usize,
}

/// An element past which packets may be handed.
#[derive(Clone)]
pub(crate) struct PassedElement {
    pub(crate) element: usize,
    /// Its access to their bytes; none if it only counts packets.
    pub(crate) access: ByteAccess,
    /// Its outputs that lead on, in order.
    pub(crate) outputs: Vec<u8>,
    /// Whether packets of another output come to the same input, in their order among those that are handed past it.
    pub(crate) keeps_order: bool,
    /// Bytes of the packets that have come to it since it counted them, where elements handle bytes, and of the
    /// burst that they handle.
    pub(crate) bytes: u64,
    pub(crate) pending: u64,
}

impl BypassPath {
    /// Whether elements between the two handle bytes.
    pub(crate) fn handles_bytes(&self) -> bool {
        self.past.iter().any(|it| it.access != ByteAccess::None)
    }

    /// The elements behind the source.
    pub(crate) fn elements(&self) -> impl Iterator<Item = usize> {
        self.past.iter().map(|it| it.element).chain([self.to])
    }
}

impl PassedElement {
    /// Whether packets of these fates, at least one, all go on.
    #[inline]
    pub(crate) fn leads_on(&self, fates: &[u8]) -> bool {
        let (Some(&first), Some(&last)) = (self.outputs.first(), self.outputs.last()) else {
            return false;
        };
        // Two loops, each of which the compiler makes one of vectors.
        let least = fates.iter().fold(u8::MAX, |least, &fate| least.min(fate));
        let most = fates.iter().fold(0, |most, &fate| fate.max(most));
        let has_gaps = usize::from(last - first) >= self.outputs.len();
        least >= first
            && most <= last
            && (!has_gaps || fates.iter().all(|fate| self.outputs.contains(fate)))
    }
}

/// Finds the sources whose packets go to an element that takes them without descriptors.
pub(super) fn find(graph: &Graph) -> Vec<Bypass> {
    let sources =
        (0..graph.elements.len()).filter(|&it| !graph.elements[it].class.bypass.is_empty());
    sources.filter_map(|from| Some(Bypass { from, path: path(graph, from)? })).collect()
}

/// The way of a source's packets.
fn path(graph: &Graph, source: usize) -> Option<BypassPath> {
    let mut leaving = graph.out_edges(source).filter(|edge| edge.flow != Flow::Pull);
    let (first, None) = (leaving.next()?, leaving.next()) else { return None };
    let mut search = Search { graph, source, past: Vec::new(), dead: HashSet::new() };
    let to = search.onward(first.to)?;
    Some(BypassPath { past: search.past, to })
}

/// A search for the way of a source's packets.
struct Search<'a> {
    graph: &'a Graph,
    source: usize,
    past: Vec<PassedElement>,
    /// Elements from which no way leads on, each with whether one before it writes.
    dead: HashSet<(usize, bool)>,
}

impl Search<'_> {
    /// Whether an element on the way writes.
    fn writes(&self) -> bool {
        self.past.iter().any(|it| it.access == ByteAccess::Writes)
    }

    /// The element that takes packets which come to `target`; those between are in `past` then.
    fn onward(&mut self, target: Target) -> Option<usize> {
        let source = &self.graph.elements[self.source].class;
        let it = &self.graph.elements[target.node];
        if source.bypass.contains(&it.class.spec.class) && it.outputs.is_empty() {
            return Some(target.node);
        }
        let access = if source.lends_bytes { it.class.byte_access } else { ByteAccess::None };
        let is_fit = match access {
            ByteAccess::None => it.class.counts_only,
            // Else it would come too late where packets take another way.
            ByteAccess::Reads => !self.writes(),
            ByteAccess::Writes => true,
        };
        let place = (target.node, self.writes());
        if !is_fit || !self.dead.insert(place) {
            return None;
        }
        // Packets of another exit than the first are not what later elements take them for.
        let decides = access == ByteAccess::Reads && it.class.open_outputs;
        let edges = || self.graph.out_edges(target.node).filter(|edge| edge.flow != Flow::Pull);
        let mut ways: Vec<(Target, Vec<u8>)> = Vec::new();
        for edge in edges().filter(|edge| decides || edge.from.port == 0) {
            let output = u8::try_from(edge.from.port).ok()?;
            match ways.iter_mut().find(|(to, _)| *to == edge.to) {
                Some((_, outputs)) => outputs.push(output),
                None => ways.push((edge.to, vec![output])),
            }
        }
        ways.into_iter().find_map(|(to, mut outputs)| {
            outputs.sort_unstable();
            let keeps_order = edges().filter(|edge| edge.to == to).count() > outputs.len();
            self.past.push(PassedElement {
                element: target.node,
                access,
                outputs,
                keeps_order,
                bytes: 0,
                pending: 0,
            });
            let found = self.onward(to);
            if found.is_none() {
                self.past.pop();
            }
            found
        })
    }
}
