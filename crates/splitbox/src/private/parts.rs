//! Private functions from their parts, such as those of a processor's file.

use super::{Chains, MatchId, PrivateFunction, PrivateNode};
use crate::bits::Bits;
use crate::function::NodeId;
use std::fmt::{Display, Formatter};

/// Parts that are no private function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivateFunctionError {
    /// There is no node.
    Empty,
    /// A node's child is missing or does not come behind it.
    Child {
        /// The node.
        node: NodeId,
    },
    /// A node's match is missing.
    Match {
        /// The node.
        node: NodeId,
    },
    /// A match's projection is missing.
    Projection {
        /// The match.
        id: MatchId,
    },
    /// The projections are not in order, or one occurs twice.
    Order,
}

impl Display for PrivateFunctionError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            PrivateFunctionError::Empty => write!(f, "the function has no node"),
            PrivateFunctionError::Child { node } => {
                write!(f, "a child of node {node} does not come behind it")
            }
            PrivateFunctionError::Match { node } => write!(f, "node {node} has no match"),
            PrivateFunctionError::Projection { id } => write!(f, "match {id} has no projection"),
            PrivateFunctionError::Order => write!(f, "the projections are not in order"),
        }
    }
}

impl std::error::Error for PrivateFunctionError {}

impl PrivateFunction {
    /// The function with these distinct projections in ascending order, the index of the projection
    /// of each match, and these nodes, of which the first is the root.
    ///
    /// # Errors
    /// The first part that refers to another that is missing, or breaks the order.
    pub fn from_parts(
        projections: Vec<Bits>,
        matches: Vec<usize>,
        nodes: Vec<PrivateNode>,
    ) -> Result<PrivateFunction, PrivateFunctionError> {
        if nodes.is_empty() {
            return Err(PrivateFunctionError::Empty);
        }
        if !projections.is_sorted_by(|a, b| a < b) {
            return Err(PrivateFunctionError::Order);
        }
        if let Some(id) = matches.iter().position(|&it| it >= projections.len()) {
            return Err(PrivateFunctionError::Projection { id: id as MatchId });
        }
        for (node, &it) in nodes.iter().enumerate() {
            let PrivateNode::Match { id, matched, otherwise, .. } = it else { continue };
            if id as usize >= matches.len() {
                return Err(PrivateFunctionError::Match { node });
            }
            if matched.min(otherwise) <= node || matched.max(otherwise) >= nodes.len() {
                return Err(PrivateFunctionError::Child { node });
            }
        }
        let chains = Chains::new(&nodes, &matches);
        Ok(PrivateFunction { projections, matches, nodes, chains })
    }

    /// The nodes; the first one is the root.
    pub fn nodes(&self) -> &[PrivateNode] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Ternary;
    use crate::function::{NetworkFunction, Policy};

    #[test]
    fn parts_make_the_same_function() {
        let policy = |n: u128| Policy {
            condition: Ternary::ANY.with(n as usize % 3, 8, n),
            action: Ternary::ANY,
        };
        let (private, _) =
            PrivateFunction::new(&NetworkFunction::first_match((0..9).map(policy).collect()));
        let PrivateFunction { projections, matches, nodes, .. } = private.clone();
        assert_eq!(PrivateFunction::from_parts(projections, matches, nodes), Ok(private));
    }

    #[test]
    fn parts_that_refer_to_nothing_are_refused() {
        let to = |id, matched, otherwise| PrivateNode::Match { id, action: 0, matched, otherwise };
        let all = [Bits::first(1), Bits::first(2)];
        let make = |projections: &[Bits], matches: &[usize], nodes: &[PrivateNode]| {
            PrivateFunction::from_parts(projections.into(), matches.into(), nodes.into())
                .map(|_| ())
        };
        let leaf = PrivateNode::Leaf;
        assert_eq!(make(&all, &[1, 0], &[to(1, 1, 1), leaf]), Ok(()));
        assert_eq!(make(&all, &[0], &[]), Err(PrivateFunctionError::Empty));
        let swapped = [all[1], all[0]];
        assert_eq!(make(&swapped, &[0], &[leaf]), Err(PrivateFunctionError::Order));
        let twice = [all[1], all[1]];
        assert_eq!(make(&twice, &[0], &[leaf]), Err(PrivateFunctionError::Order));
        let projection = Err(PrivateFunctionError::Projection { id: 1 });
        assert_eq!(make(&all, &[0, 2], &[leaf]), projection);
        let other = Err(PrivateFunctionError::Match { node: 0 });
        assert_eq!(make(&all, &[0], &[to(1, 1, 1), leaf]), other);
        for (matched, otherwise) in [(0, 1), (1, 0), (1, 2), (usize::MAX, 1)] {
            let child = Err(PrivateFunctionError::Child { node: 0 });
            assert_eq!(make(&all, &[0], &[to(0, matched, otherwise), leaf]), child);
        }
    }
}
