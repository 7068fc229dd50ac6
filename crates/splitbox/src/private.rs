//! ψ_priv: a network function whose matches and actions are numbers (paper, section 3.4), and its
//! traversal.

mod chains;

pub(crate) use chains::{ChainPosition, Chains};

use crate::bits::{Bits, Ternary};
use crate::function::{NetworkFunction, Node, NodeId};
use std::collections::HashMap;

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

/// The tree as processors have it: they know projections and which packets match, and neither
/// matches nor actions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrivateFunction {
    projections: Vec<Bits>,
    /// By match: the index of its projection.
    matches: Vec<usize>,
    nodes: Vec<PrivateNode>,
    chains: Chains,
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
        let by_match: Vec<usize> = all.map(index).collect();
        let chains = Chains::new(&nodes, &by_match);
        (PrivateFunction { projections, matches: by_match, nodes, chains }, matches)
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

    /// The tree for a traversal by projections, whose actions are those of
    /// [`PrivateFunction::traverse`], in the same order.
    #[inline]
    pub(crate) fn chains(&self) -> &Chains {
        &self.chains
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
            let (mut plain, mut by_projections) = (Vec::new(), Vec::new());
            private.traverse(|id| matches[id as usize].matches(header), |it| plain.push(it));
            let (chains, mut steps) = (private.chains(), 0);
            let mut at = chains.root();
            while let Some(position) = at {
                let step = chains.step(position, |projection| {
                    assert!(chains.projections(position).contains(&(projection as u32)));
                    let own = (0..matches.len()).filter(|&id| private.matches()[id] == projection);
                    own.map(|id| id as MatchId).find(|&id| matches[id as usize].matches(header))
                });
                by_projections.extend(step.action);
                at = step.next;
                steps += 1;
            }
            prop_assert_eq!(plain, by_projections);
            prop_assert!(steps <= chains.longest());
        }
    }

    #[test]
    fn the_longest_traversal_of_a_list_has_one_step_and_of_stages_one_each() {
        let policy = |(at, value)| Policy {
            condition: Ternary::ANY.with(at, 4, value),
            action: Ternary::ANY,
        };
        let policies: Vec<Policy> = [(0, 1), (4, 2), (0, 3), (8, 4)].map(policy).to_vec();
        let longest =
            |function: &NetworkFunction| PrivateFunction::new(function).0.chains().longest();
        assert_eq!(longest(&NetworkFunction::first_match(policies.clone())), 1);
        assert_eq!(longest(&NetworkFunction::first_match(Vec::new())), 0);
        let node = |policy, matched, otherwise| Node::Match { policy, matched, otherwise };
        let nodes = vec![node(0, 2, 1), node(1, 2, 2), node(2, 4, 3), node(3, 4, 4), Node::Leaf];
        let stages =
            NetworkFunction::new(policies, nodes).expect("identity actions do not overlap");
        assert_eq!(longest(&stages), 2);
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
