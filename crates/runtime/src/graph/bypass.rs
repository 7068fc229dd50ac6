//! Of the step `fuse`: sources that hand packets without descriptors to another element
//! ([`Cx::bypass`](castanet_element::cx::Cx::bypass)).

use super::{Edge, Graph};
use crate::graph::target::Target;
use castanet_element::element::ByteAccess;
use castanet_element::flow::Flow;
use castanet_packet::BurstSummary;
use std::collections::HashSet;

/// The most ways of a source's packets that are known.
const MOST_WAYS: usize = 64;

/// A source, and the ways of its packets to elements that take them without descriptors, at least one.
pub(crate) struct Bypass {
    pub(crate) from: usize,
    pub(crate) ways: Vec<BypassPath>,
    /// Whether these are all.
    pub(crate) are_all: bool,
}

/// The elements behind a source, up to one that takes packets without descriptors.
#[derive(Clone)]
pub(crate) struct BypassPath {
    /// Those between, in order. None decides by bytes that one before it writes, nor by what is known of a burst
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
    /// The number of bytes that packets must have for it to handle them, in this loan.
    pub(crate) length: usize,
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
    sources.filter_map(|from| bypass_from(graph, from)).collect()
}

/// The ways of a source's packets; `None` if there is none.
fn bypass_from(graph: &Graph, source: usize) -> Option<Bypass> {
    let mut leaving = graph.out_edges(source).filter(|edge| edge.flow != Flow::Pull);
    let (Some(first), None) = (leaving.next(), leaving.next()) else { return None };
    let (past, ways) = (Vec::new(), Vec::new());
    let mut search = Search { graph, source, past, dead: HashSet::new(), ways, is_cut: false };
    search.onward(first.to);
    let Search { ways, is_cut, .. } = search;
    (!ways.is_empty()).then_some(Bypass { from: source, ways, are_all: !is_cut })
}

/// A search for the ways of a source's packets.
struct Search<'a> {
    graph: &'a Graph,
    source: usize,
    past: Vec<PassedElement>,
    /// Elements from which no way leads on, or on the way that is followed now, each with whether one before it writes,
    /// and whether bursts are unknown then.
    dead: HashSet<(usize, bool, bool)>,
    /// Those that were found.
    ways: Vec<BypassPath>,
    /// Whether there were too many to look for others.
    is_cut: bool,
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

    /// Adds the ways of packets that come to `target`, behind those in `past`; `false` if there is none.
    fn onward(&mut self, target: Target) -> bool {
        let graph = self.graph;
        let (source, it) = (&graph.elements[self.source].class, &graph.elements[target.node]);
        if source.bypass.contains(&it.class.spec.class) && it.outputs.is_empty() {
            self.ways.push(BypassPath { past: self.past.clone(), to: target.node });
            return true;
        }
        let Some(passage) = self.passage(target) else { return false };
        let place = (target.node, self.writes(), self.is_unknown());
        if !self.dead.insert(place) {
            return false;
        }
        let mut leads_on = false;
        for (to, outputs) in self.branches(target.node, passage) {
            let same = self.pushed(target.node).filter(|edge| edge.to == to).count();
            self.past.push(PassedElement {
                element: target.node,
                passage,
                counts_handled: it.class.counts_handled,
                keeps_order: same > outputs.len(),
                outputs,
                length: 0,
                bytes: 0,
                pending: 0,
                position: 0,
                passed: None,
            });
            self.is_cut |= self.ways.len() == MOST_WAYS;
            leads_on |= !self.is_cut && self.onward(to);
            self.past.pop();
        }
        if leads_on {
            self.dead.remove(&place);
        }
        leads_on
    }

    /// How packets that come to `target` are handed past it; `None` if they are not.
    fn passage(&self, target: Target) -> Option<Passage> {
        let source = &self.graph.elements[self.source].class;
        let class = &self.graph.elements[target.node].class;
        let passage = match class.byte_access {
            ByteAccess::None if class.counts_only => Passage::Counted,
            _ if !source.lends_bytes => return None,
            ByteAccess::None if class.passes_bursts => Passage::AsBursts,
            ByteAccess::None => return None,
            access => Passage::Handled(access),
        };
        // One that decides by what others write would come too late. Packets of other inputs are handled otherwise.
        let is_fit = match passage {
            Passage::AsBursts => !self.is_unknown(),
            _ => !(passage.reads() && self.writes()),
        };
        (is_fit && target.port == 0).then_some(passage)
    }

    /// Where packets may go on behind an element, each with the outputs that lead there, in order.
    fn branches(&self, element: usize, passage: Passage) -> Vec<(Target, Vec<u8>)> {
        // Packets of another exit than the first are not what later elements take them for.
        let has_many = self.graph.elements[element].class.open_outputs;
        let decides = passage.reads() && !passage.writes() && has_many;
        let mut branches: Vec<(Target, Vec<u8>)> = Vec::new();
        for edge in self.pushed(element).filter(|edge| decides || edge.from.port == 0) {
            let Ok(output) = u8::try_from(edge.from.port) else { return Vec::new() };
            match branches.iter_mut().find(|(to, _)| *to == edge.to) {
                Some((_, outputs)) => outputs.push(output),
                None => branches.push((edge.to, vec![output])),
            }
        }
        branches.iter_mut().for_each(|(_, outputs)| outputs.sort_unstable());
        branches
    }

    /// The edges by which an element pushes packets.
    fn pushed(&self, element: usize) -> impl Iterator<Item = &Edge> {
        self.graph.out_edges(element).filter(|edge| edge.flow != Flow::Pull)
    }
}
