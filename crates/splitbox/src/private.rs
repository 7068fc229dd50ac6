//! ψ_priv: a network function whose matches and actions are numbers (paper, section 3.4), and its
//! traversal by projections.

use crate::bits::{Bits, Ternary};
use crate::function::{NetworkFunction, Node, NodeId};
use std::collections::{BTreeMap, HashMap};

mod parts;

pub use parts::PrivateFunctionError;

/// Number of a distinct match.
pub type MatchId = u32;
/// Number of an action, which is that of its policy.
pub type ActionId = u32;

/// A node of the private tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivateNode {
    /// The traversal ends.
    Leaf,
    /// The packet is compared with a match.
    Match {
        /// The match.
        id: MatchId,
        /// The action for packets that match.
        action: ActionId,
        /// The node for packets that match.
        matched: NodeId,
        /// The node for all others.
        otherwise: NodeId,
    },
}

/// Nodes that a packet visits as long as none of them matches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Chain {
    /// In order.
    nodes: Vec<NodeId>,
    /// The chain and the position at which packets go on that match none; `None` at a leaf.
    next: Option<ChainPosition>,
    /// By projection that occurs: positions by match, in order.
    positions: Vec<(usize, Vec<(MatchId, u32)>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ChainPosition {
    chain: usize,
    position: u32,
}

/// The tree as processors have it: they know projections and which packets match, and neither
/// matches nor actions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrivateFunction {
    projections: Vec<Bits>,
    /// By match: the index of its projection.
    matches: Vec<usize>,
    nodes: Vec<PrivateNode>,
    chains: Vec<Chain>,
    /// By node: where packets that come to it go on.
    heads: Vec<Option<ChainPosition>>,
}

impl PrivateFunction {
    /// The private function of a network function, and its distinct matches by number.
    pub fn new(function: &NetworkFunction) -> (PrivateFunction, Vec<Ternary>) {
        let (mut matches, mut ids) = (Vec::new(), HashMap::new());
        let nodes: Vec<PrivateNode> = function
            .nodes()
            .iter()
            .map(|node| match *node {
                Node::Leaf => PrivateNode::Leaf,
                Node::Match { policy, matched, otherwise } => {
                    let condition = function.policies()[policy].condition;
                    let id = *ids.entry(condition).or_insert_with(|| {
                        matches.push(condition);
                        matches.len() as MatchId - 1
                    });
                    PrivateNode::Match { id, action: policy as ActionId, matched, otherwise }
                }
            })
            .collect();
        let all = matches.iter().map(Ternary::projection);
        let mut projections: Vec<Bits> = all.clone().collect();
        projections.sort_unstable();
        projections.dedup();
        let index = |of: Bits| projections.partition_point(|it| *it < of);
        let by_match = all.map(index).collect();
        let mut private = PrivateFunction {
            projections,
            matches: by_match,
            heads: vec![None; nodes.len()],
            nodes,
            chains: Vec::new(),
        };
        private.build_chains();
        (private, matches)
    }

    /// Puts each node into one chain: the root, and the nodes that follow a match, begin chains.
    fn build_chains(&mut self) {
        let follows = self.nodes.iter().filter_map(|node| match *node {
            PrivateNode::Match { matched, .. } => Some(matched),
            PrivateNode::Leaf => None,
        });
        let starts: Vec<NodeId> = std::iter::once(0).chain(follows).collect();
        for start in starts {
            let (mut chain, index) = (Chain::default(), self.chains.len());
            let mut node = start;
            while let PrivateNode::Match { otherwise, .. } = self.nodes[node] {
                if self.heads[node].is_some() {
                    chain.next = self.heads[node];
                    break;
                }
                let position = chain.nodes.len() as u32;
                self.heads[node] = Some(ChainPosition { chain: index, position });
                chain.nodes.push(node);
                node = otherwise;
            }
            if !chain.nodes.is_empty() {
                self.index_chain(&mut chain);
                self.chains.push(chain);
            }
        }
    }

    fn index_chain(&self, chain: &mut Chain) {
        let mut positions: BTreeMap<usize, Vec<(MatchId, u32)>> = BTreeMap::new();
        for (position, &node) in chain.nodes.iter().enumerate() {
            if let PrivateNode::Match { id, .. } = self.nodes[node] {
                let projection = self.matches[id as usize];
                positions.entry(projection).or_default().push((id, position as u32));
            }
        }
        positions.values_mut().for_each(|list| list.sort_unstable());
        chain.positions = positions.into_iter().collect();
    }

    /// The distinct projections.
    pub fn projections(&self) -> &[Bits] {
        &self.projections
    }

    /// By match: the index of its projection.
    pub fn matches(&self) -> &[usize] {
        &self.matches
    }

    /// Traverses the tree node by node (paper, algorithm Private Traversal): `is_match` compares a
    /// packet with a match, `act` gets the action of each match that it finds.
    pub fn traverse(
        &self,
        mut is_match: impl FnMut(MatchId) -> bool,
        mut act: impl FnMut(ActionId),
    ) {
        let mut at = 0;
        while let PrivateNode::Match { id, action, matched, otherwise } = self.nodes[at] {
            at = match is_match(id) {
                true => {
                    act(action);
                    matched
                }
                false => otherwise,
            };
        }
    }

    /// Traverses the tree by projections: `find` answers which match of a projection the packet has,
    /// which is one at most, as matches of one projection exclude each other. It is asked at most
    /// once for each projection, and its answers stay in `found`, a buffer of the caller. The actions
    /// are those of [`PrivateFunction::traverse`], in the same order.
    pub fn traverse_by_projections(
        &self,
        found: &mut Vec<Option<Option<MatchId>>>,
        mut find: impl FnMut(usize) -> Option<MatchId>,
        mut act: impl FnMut(ActionId),
    ) {
        found.clear();
        found.resize(self.projections.len(), None);
        let mut at = self.heads.first().copied().flatten();
        while let Some(ChainPosition { chain, position }) = at {
            let chain = &self.chains[chain];
            let first = chain.positions.iter().filter_map(|(projection, list)| {
                let id = (*found[*projection].get_or_insert_with(|| find(*projection)))?;
                let next = list.partition_point(|&it| it < (id, position));
                list.get(next).filter(|it| it.0 == id).map(|it| it.1)
            });
            let Some(first) = first.min() else {
                at = chain.next;
                continue;
            };
            let node = chain.nodes[first as usize];
            let PrivateNode::Match { action, matched, .. } = self.nodes[node] else { return };
            act(action);
            at = self.heads[matched];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits;
    use crate::function::Policy;
    use proptest::prelude::*;

    /// Trees over eight bits: matches of one or two bits, children anywhere behind the node.
    fn functions() -> impl Strategy<Value = NetworkFunction> {
        let policy = (0..8_usize, 0..8_usize, any::<[bool; 2]>()).prop_map(|(a, b, bits)| Policy {
            condition: Ternary::ANY.with(a, 1, bits[0].into()).with(b, 1, bits[1].into()),
            action: Ternary::ANY,
        });
        let node = (any::<prop::sample::Index>(), any::<[prop::sample::Index; 2]>());
        (prop::collection::vec(policy, 1..20), prop::collection::vec(node, 0..24)).prop_map(
            |(policies, nodes)| {
                let count = nodes.len();
                let node = |(at, (policy, children)): (usize, _)| {
                    let (policy, children): (prop::sample::Index, [prop::sample::Index; 2]) =
                        (policy, children);
                    let [matched, otherwise] = children.map(|it| at + 1 + it.index(count - at));
                    Node::Match { policy: policy.index(policies.len()), matched, otherwise }
                };
                let nodes = nodes.into_iter().enumerate().map(node).chain([Node::Leaf]).collect();
                NetworkFunction::new(policies, nodes).expect("identity actions do not overlap")
            },
        )
    }

    proptest! {
        #[test]
        fn projections_find_what_nodes_find(function in functions(), byte: u8) {
            let (private, matches) = PrivateFunction::new(&function);
            let mut header = Bits::ZERO;
            header.put(0, 8, byte.into());
            let (mut plain, mut by_projections, mut asked) = (Vec::new(), Vec::new(), Vec::new());
            private.traverse(|id| matches[id as usize].matches(header), |it| plain.push(it));
            let find = |projection: usize| {
                asked.push(projection);
                let own = (0..matches.len()).filter(|&id| private.matches()[id] == projection);
                own.map(|id| id as MatchId).find(|&id| matches[id as usize].matches(header))
            };
            let mut found = Vec::new();
            private.traverse_by_projections(&mut found, find, |it| by_projections.push(it));
            prop_assert_eq!(plain, by_projections);
            asked.sort_unstable();
            let count = asked.len();
            asked.dedup();
            prop_assert_eq!(asked.len(), count, "each projection is asked once");
        }
    }

    #[test]
    fn equal_matches_have_one_number() {
        let policy = |value| Policy {
            condition: Ternary::ANY.with(0, 4, value),
            action: Ternary::ANY.with(8, 4, value),
        };
        let list = [1, 2, 1].map(policy).to_vec();
        let (private, matches) = PrivateFunction::new(&NetworkFunction::first_match(list));
        assert_eq!((private.projections().len(), matches.len()), (1, 2));
    }
}
