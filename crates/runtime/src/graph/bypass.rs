//! Of the step `fuse`: sources that hand packets without descriptors to another element
//! ([`Cx::bypass`](castanet_element::cx::Cx::bypass)).

use super::Graph;
use crate::graph::target::Target;
use castanet_element::element::ByteAccess;
use castanet_element::flow::Flow;
use castanet_packet::BurstSummary;
use std::collections::HashSet;

/// A source, and the way of its packets to the element that takes them without descriptors.
pub(crate) struct Bypass {
    pub(crate) from: usize,
    pub(crate) path: BypassPath,
}

/// The elements behind a source, up to one that takes packets without descriptors.
#[derive(Clone)]
pub(crate) struct BypassPath {
    /// Those between, in order. None decides by bytes behind one that writes to them, nor by what is known of a burst
    /// behind one after which it may not be true: so all have decided before anything is written, and nothing is written to
    /// packets that take another way.
    pub(crate) past: Vec<PassedElement>,
    /// The one that takes the packets.
    pub(crate) to: usize,
}

/// An element past which packets may be handed.
#[derive(Clone)]
pub(crate) struct PassedElement {
    pub(crate) element: usize,
    pub(crate) passage: Passage,
    /// Whether it counts packets whose bytes it has handled.
    pub(crate) counts_handled: bool,
    /// Its outputs that lead on, in order.
    pub(crate) outputs: Vec<u8>,
    /// Whether packets of another output come to the same input, in their order among those that are handed past it.
    pub(crate) keeps_order: bool,
    /// Bytes of the packets that have come to it since it counted them, where elements handle bytes, and of the
    /// burst that they handle.
    pub(crate) bytes: u64,
    pub(crate) pending: u64,
    /// Where packets of that burst start behind it.
    pub(crate) position: usize,
    /// The summary of the last burst that has passed it, in the same loan.
    pub(crate) passed: Option<BurstSummary>,
}

/// How packets are handed past an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// It counts them.
    Counted,
    /// As bursts that pass it as they are.
    AsBursts,
    /// It handles their bytes.
    Handled(ByteAccess),
}

impl Passage {
    /// Whether the element decides by bytes.
    fn reads(self) -> bool {
        matches!(self, Passage::Handled(access) if access.reads())
    }

    /// Whether the element writes to bytes.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Passage::Handled(access) if access.writes())
    }
}

impl BypassPath {
    /// Whether elements between the two do more than count packets.
    pub(crate) fn handles_bytes(&self) -> bool {
        self.past.iter().any(|it| it.passage != Passage::Counted)
    }

    /// The elements behind the source.
    pub(crate) fn elements(&self) -> impl Iterator<Item = usize> {
        self.past.iter().map(|it| it.element).chain([self.to])
    }
}

impl PassedElement {
    /// Whether packets of these fates, at least one, in any of which these bits are set, all go on.
    #[inline]
    pub(crate) fn leads_on(&self, bits: u8, fates: &[u8]) -> bool {
        let (Some(&first), Some(&last)) = (self.outputs.first(), self.outputs.last()) else {
            return false;
        };
        if bits == 0 {
            return first == 0;
        }
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
    /// Elements from which no way leads on, each with whether one before it writes, and whether bursts are unknown then.
    dead: HashSet<(usize, bool, bool)>,
}

impl Search<'_> {
    /// Whether an element on the way writes.
    fn writes(&self) -> bool {
        self.past.iter().any(|it| it.passage.writes())
    }

    /// Whether what is known of bursts may no longer be true once elements on the way have written.
    fn is_unknown(&self) -> bool {
        self.past.iter().any(|it| it.passage == Passage::Handled(ByteAccess::Writes))
    }

    /// The element that takes packets which come to `target`; those between are in `past` then.
    fn onward(&mut self, target: Target) -> Option<usize> {
        let source = &self.graph.elements[self.source].class;
        let it = &self.graph.elements[target.node];
        if source.bypass.contains(&it.class.spec.class) && it.outputs.is_empty() {
            return Some(target.node);
        }
        let passage = match it.class.byte_access {
            ByteAccess::None if it.class.counts_only => Passage::Counted,
            _ if !source.lends_bytes => return None,
            ByteAccess::None if it.class.passes_bursts => Passage::AsBursts,
            ByteAccess::None => return None,
            access => Passage::Handled(access),
        };
        // One that decides by what others write would come too late.
        let is_fit = match passage {
            Passage::AsBursts => !self.is_unknown(),
            _ => !(passage.reads() && self.writes()),
        };
        let place = (target.node, self.writes(), self.is_unknown());
        if !is_fit || !self.dead.insert(place) {
            return None;
        }
        // Packets of another exit than the first are not what later elements take them for.
        let decides = passage.reads() && !passage.writes() && it.class.open_outputs;
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
                passage,
                counts_handled: it.class.counts_handled,
                outputs,
                keeps_order,
                bytes: 0,
                pending: 0,
                position: 0,
                passed: None,
            });
            let found = self.onward(to);
            if found.is_none() {
                self.past.pop();
            }
            found
        })
    }
}
