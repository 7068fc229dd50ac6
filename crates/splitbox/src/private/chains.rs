//! Chains: the traversal of the tree from match to match.

use super::{ActionId, MatchId, PrivateNode};
use crate::function::NodeId;
use std::ops::Range;

/// Nodes that a packet visits one after the other as long as none of them matches.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Chain {
    /// The projections that occur, each once.
    projections: Vec<u32>,
    /// Where packets go on that match none; `None` at a leaf.
    next: Option<ChainPosition>,
}

/// A node, by its position in its chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ChainPosition {
    chain: u32,
    position: u32,
}

/// A node, as one of those that have a match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Occurrence {
    at: ChainPosition,
    action: ActionId,
    /// Where packets go on that match.
    next: Option<ChainPosition>,
}

/// The occurrences of a match. The first one is here, as most matches occur once, and a search for
/// them takes one cache line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    first: Occurrence,
    others: Range<u32>,
}

/// A step of the traversal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// The action of the first node of the chain that matches.
    pub(crate) action: Option<ActionId>,
    /// Where the packet goes on; `None` at a leaf.
    pub(crate) next: Option<ChainPosition>,
}

/// A tree as chains, each node in one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chains {
    chains: Vec<Chain>,
    root: Option<ChainPosition>,
    /// By match: its occurrences; `None` if no packet comes to one.
    places: Vec<Option<Place>>,
    /// By match: its occurrences but for the first one, in order.
    others: Vec<Occurrence>,
    longest: usize,
}

impl Chains {
    /// The chains of a tree: the root, and nodes that follow a match, begin chains. `projections` has
    /// the projection of each match.
    pub(crate) fn new(nodes: &[PrivateNode], projections: &[usize]) -> Chains {
        // By node: its position; `None` for leaves and for nodes that have none yet.
        let mut heads: Vec<Option<ChainPosition>> = vec![None; nodes.len()];
        let mut chains: Vec<Chain> = Vec::new();
        let follows = nodes.iter().filter_map(|node| match *node {
            PrivateNode::Match { matched, .. } => Some(matched),
            PrivateNode::Leaf => None,
        });
        for start in std::iter::once(0).chain(follows) {
            let mut chain = Chain { projections: Vec::new(), next: None };
            let (mut node, mut count) = (start, 0);
            while let PrivateNode::Match { id, otherwise, .. } = nodes[node] {
                if heads[node].is_some() {
                    chain.next = heads[node];
                    break;
                }
                heads[node] = Some(ChainPosition { chain: chains.len() as u32, position: count });
                chain.projections.push(projections[id as usize] as u32);
                count += 1;
                node = otherwise;
            }
            if count > 0 {
                chain.projections.sort_unstable();
                chain.projections.dedup();
                chains.push(chain);
            }
        }
        let (places, others) = places(nodes, &heads, projections.len());
        let longest = longest(nodes, &heads);
        Chains { chains, root: heads[0], places, others, longest }
    }

    /// Where the traversal begins; `None` if the tree is a leaf.
    #[inline]
    pub(crate) fn root(&self) -> Option<ChainPosition> {
        self.root
    }

    /// The maximum number of steps from the root to a leaf.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// The projections that a step from a position depends on.
    #[inline]
    pub(crate) fn projections(&self, at: ChainPosition) -> &[u32] {
        &self.chains[at.chain as usize].projections
    }

    /// Goes from a position to the first node of the chain that matches, and on to the next chain.
    /// `find` answers which match of a projection the packet has, which is one at most, as matches
    /// of one projection exclude each other.
    #[inline]
    pub(crate) fn step(
        &self,
        at: ChainPosition,
        mut find: impl FnMut(usize) -> Option<MatchId>,
    ) -> Step {
        let chain = &self.chains[at.chain as usize];
        let own =
            chain.projections.iter().filter_map(|&it| self.occurrence(find(it as usize)?, at));
        match own.min_by_key(|it| it.at.position) {
            Some(first) => Step { action: Some(first.action), next: first.next },
            None => Step { action: None, next: chain.next },
        }
    }

    /// The first occurrence of a match from a position on, in the same chain.
    #[inline]
    fn occurrence(&self, id: MatchId, at: ChainPosition) -> Option<&Occurrence> {
        let Place { first, others } = self.places[id as usize].as_ref()?;
        let is_own = |it: &&Occurrence| it.at.chain == at.chain;
        if first.at >= at {
            return Some(first).filter(is_own);
        }
        let others = &self.others[others.start as usize..others.end as usize];
        others.get(others.partition_point(|it| it.at < at)).filter(is_own)
    }

    /// Loads the occurrences of a match into the cache, and returns a number that depends on it.
    #[inline]
    pub(crate) fn touch(&self, id: MatchId) -> u32 {
        self.places.get(id as usize).map_or(0, |it| it.as_ref().map_or(0, |it| it.first.action))
    }
}

/// The occurrences of all matches.
fn places(
    nodes: &[PrivateNode],
    heads: &[Option<ChainPosition>],
    matches: usize,
) -> (Vec<Option<Place>>, Vec<Occurrence>) {
    let occurrence = |(node, head): (&PrivateNode, &Option<ChainPosition>)| match *node {
        PrivateNode::Match { id, action, matched, .. } => {
            Some((id, Occurrence { at: (*head)?, action, next: heads[matched] }))
        }
        PrivateNode::Leaf => None,
    };
    let mut all: Vec<_> = nodes.iter().zip(heads).filter_map(occurrence).collect();
    all.sort_unstable_by_key(|(id, it)| (*id, it.at));
    let (mut places, mut others) = (vec![None; matches], Vec::new());
    for own in all.chunk_by(|a, b| a.0 == b.0) {
        let start = others.len() as u32;
        others.extend(own[1..].iter().map(|it| it.1));
        let place = Place { first: own[0].1, others: start..others.len() as u32 };
        places[own[0].0 as usize] = Some(place);
    }
    (places, others)
}

/// The maximum number of steps from the root to a leaf. The children of a node come behind it.
fn longest(nodes: &[PrivateNode], heads: &[Option<ChainPosition>]) -> usize {
    let chain = |node: NodeId| heads[node].map(|it| it.chain);
    let mut steps = vec![0; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        if let PrivateNode::Match { matched, otherwise, .. } = *node {
            let stays = usize::from(chain(otherwise) != chain(at));
            steps[at] = (1 + steps[matched]).max(stays + steps[otherwise]);
        }
    }
    steps[0]
}
