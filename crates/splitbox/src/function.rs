//! Network functions: binary trees of policies (paper, section 3.3).

use crate::bits::{Bits, Ternary};
use std::fmt::{Display, Formatter};

/// A match and the action for packets that match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// μ: which packets match.
    pub condition: Ternary,
    /// α: what is done with them.
    pub action: Ternary,
}

/// Index of a node.
pub type NodeId = usize;

/// A node of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// The evaluation ends.
    Leaf,
    /// A packet is compared with the match of a policy.
    Match {
        /// Index of the policy.
        policy: usize,
        /// The node for packets that match, after the action.
        matched: NodeId,
        /// The node for all others.
        otherwise: NodeId,
    },
}

/// A network function: policies, and the tree in which they are asked. Node 0 is the root, and the
/// children of a node come behind it; several nodes may have a child in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkFunction {
    policies: Vec<Policy>,
    nodes: Vec<Node>,
}

/// A network function that cannot be computed privately, or is no tree (paper, section 3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionError {
    /// There is no node.
    Empty,
    /// A node's child is missing or does not come behind it.
    Child {
        /// The node.
        node: NodeId,
    },
    /// A node's policy is missing.
    Policy {
        /// The node.
        node: NodeId,
    },
    /// Two actions of one path change the same bits.
    Overlap {
        /// The node of the later action.
        node: NodeId,
        /// Its policy.
        policy: usize,
    },
    /// A match tests bits that an earlier action of its path changes. All matches see the packet as
    /// it came.
    Chaining {
        /// The node of the match.
        node: NodeId,
        /// Its policy.
        policy: usize,
    },
}

impl Display for FunctionError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            FunctionError::Empty => write!(f, "the function has no node"),
            FunctionError::Child { node } => {
                write!(f, "a child of node {node} does not come behind it")
            }
            FunctionError::Policy { node } => write!(f, "node {node} has no policy"),
            FunctionError::Overlap { policy, .. } => {
                let policy = policy + 1;
                write!(
                    f,
                    "the action of policy {policy} changes bits that an earlier action changes"
                )
            }
            FunctionError::Chaining { policy, .. } => {
                let policy = policy + 1;
                write!(f, "the match of policy {policy} tests bits that an earlier action changes")
            }
        }
    }
}

impl std::error::Error for FunctionError {}

impl NetworkFunction {
    /// A function of policies in a tree.
    ///
    /// # Errors
    /// The first node at which the tree breaks a rule.
    pub fn new(policies: Vec<Policy>, nodes: Vec<Node>) -> Result<NetworkFunction, FunctionError> {
        let function = NetworkFunction { policies, nodes };
        function.check().map(|()| function)
    }

    /// A list of policies, of which the first that matches is the last to be asked: a firewall's
    /// rules (paper, figure 19a).
    pub fn first_match(policies: Vec<Policy>) -> NetworkFunction {
        let count = policies.len();
        let node = |policy| Node::Match { policy, matched: count, otherwise: policy + 1 };
        let nodes = (0..count).map(node).chain([Node::Leaf]).collect();
        NetworkFunction { policies, nodes }
    }

    /// The policies.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// The nodes; the first one is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Evaluates the function on a header string (paper, algorithm 1).
    pub fn evaluate(&self, header: Bits) -> Bits {
        let (mut node, mut result) = (0, header);
        while let Node::Match { policy, matched, otherwise } = self.nodes[node] {
            let policy = &self.policies[policy];
            node = match policy.condition.matches(header) {
                true => {
                    result = policy.action.apply(result);
                    matched
                }
                false => otherwise,
            };
        }
        result
    }

    fn check(&self) -> Result<(), FunctionError> {
        if self.nodes.is_empty() {
            return Err(FunctionError::Empty);
        }
        // By node; a node comes behind its parents.
        let mut arrivals = vec![Arrivals::default(); self.nodes.len()];
        arrivals[0].add(Paths { changed: Bits::ZERO, known: Ternary::ANY });
        for (node, &it) in self.nodes.iter().enumerate() {
            let Node::Match { policy: index, matched, otherwise } = it else { continue };
            let policy = self.policies.get(index).ok_or(FunctionError::Policy { node })?;
            if matched.min(otherwise) <= node || matched.max(otherwise) >= self.nodes.len() {
                return Err(FunctionError::Child { node });
            }
            let acts = policy.action.projection();
            for paths in std::mem::take(&mut arrivals[node]).0 {
                if let Some(after) = paths.without(&policy.condition) {
                    arrivals[otherwise].add(after);
                }
                let Some(known) = paths.known.and(&policy.condition) else { continue };
                if policy.condition.projection().overlaps(&paths.changed) {
                    return Err(FunctionError::Chaining { node, policy: index });
                }
                if acts.overlaps(&paths.changed) {
                    return Err(FunctionError::Overlap { node, policy: index });
                }
                arrivals[matched].add(Paths { changed: paths.changed | acts, known });
            }
        }
        Ok(())
    }
}

/// Paths to a node whose actions change the same bits.
#[derive(Clone, Copy)]
struct Paths {
    changed: Bits,
    /// Bits of all packets that take one of these paths, as far as matches tell.
    known: Ternary,
}

impl Paths {
    /// The paths for packets that do not match; `None` if there are none.
    fn without(mut self, condition: &Ternary) -> Option<Paths> {
        if condition.contains(&self.known) {
            return None;
        }
        // If one bit alone decides, it is the opposite.
        let open = condition.projection() & !self.known.projection();
        if open.weight() == 1 && !condition.excludes(&self.known) {
            let opposite = Ternary::new(!condition.value(), open);
            self.known = self.known.and(&opposite).unwrap_or(self.known);
        }
        Some(self)
    }
}

/// The paths to a node, in groups that change different bits. So that the check takes polynomial time,
/// little is kept of many paths: the check may refuse a tree for a path that no packet takes, but
/// accepts none that is wrong.
#[derive(Clone, Default)]
struct Arrivals(Vec<Paths>);

/// Maximum number of groups of paths to a node.
const MAX_PATHS: usize = 64;

impl Arrivals {
    fn add(&mut self, new: Paths) {
        let Arrivals(all) = self;
        match all.iter_mut().find(|it| it.changed == new.changed) {
            Some(it) => it.known = it.known.common(&new.known),
            None => all.push(new),
        }
        if all.len() > MAX_PATHS {
            let merge = |all: Paths, it: Paths| Paths {
                changed: all.changed | it.changed,
                known: all.known.common(&it.known),
            };
            *all = all.drain(..).reduce(merge).into_iter().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(bit: usize, action: Ternary) -> Policy {
        Policy { condition: Ternary::ANY.with(bit, 1, 1), action }
    }

    fn header(bits: &[usize]) -> Bits {
        let mut header = Bits::ZERO;
        bits.iter().for_each(|&bit| header.set(bit));
        header
    }

    #[test]
    fn the_first_match_of_a_list_decides() {
        let actions = [Ternary::ANY.with(8, 4, 0b1001), Ternary::new(Bits::ZERO, !Bits::ZERO)];
        let list = vec![policy(0, actions[0]), policy(1, actions[1])];
        let function = NetworkFunction::first_match(list.clone());
        assert_eq!(NetworkFunction::new(list, function.nodes().to_vec()), Ok(function.clone()));
        assert_eq!(function.evaluate(header(&[0, 1])), header(&[0, 1, 8, 11]));
        assert_eq!(function.evaluate(header(&[1, 20])), Bits::ZERO);
        assert_eq!(function.evaluate(header(&[20])), header(&[20]));
    }

    #[test]
    fn packets_without_a_match_of_one_bit_have_the_opposite() {
        // 0: bit 0 or not; 1: for those with bit 0; 2: for all; 3: changes what 1 changes.
        let function = |last: Ternary| {
            let policies = vec![
                policy(0, Ternary::ANY),
                policy(1, Ternary::ANY.with(8, 1, 1)),
                Policy { condition: last, action: Ternary::ANY.with(8, 1, 0) },
            ];
            let nodes = vec![
                Node::Match { policy: 0, matched: 1, otherwise: 2 },
                Node::Match { policy: 1, matched: 2, otherwise: 2 },
                Node::Match { policy: 2, matched: 3, otherwise: 3 },
                Node::Leaf,
            ];
            NetworkFunction::new(policies, nodes).map(|_| ())
        };
        let overlap = Err(FunctionError::Overlap { node: 2, policy: 2 });
        assert_eq!(function(Ternary::ANY.with(0, 1, 0)), Ok(()));
        assert_eq!(function(Ternary::ANY.with(0, 1, 1)), overlap);
        assert_eq!(function(Ternary::ANY.with(1, 1, 0)), Ok(()));
        assert_eq!(function(Ternary::ANY), overlap);
    }

    #[test]
    fn trees_that_cannot_be_private_are_refused() {
        let chain = |first, second| {
            let nodes = vec![
                Node::Match { policy: 0, matched: 1, otherwise: 2 },
                Node::Match { policy: 1, matched: 2, otherwise: 2 },
                Node::Leaf,
            ];
            NetworkFunction::new(vec![first, second], nodes).map(|_| ())
        };
        let set = |bit| Ternary::ANY.with(bit, 1, 1);
        assert_eq!(chain(policy(0, set(8)), policy(1, set(9))), Ok(()));
        let overlap = chain(policy(0, set(8)), policy(1, set(8)));
        assert_eq!(overlap, Err(FunctionError::Overlap { node: 1, policy: 1 }));
        let chaining = chain(policy(0, set(8)), policy(8, set(9)));
        assert_eq!(chaining, Err(FunctionError::Chaining { node: 1, policy: 1 }));
        // The second match excludes the first, or tests a bit that must be what it is.
        let at =
            |value, bit| Policy { condition: Ternary::ANY.with(0, 2, value), action: set(bit) };
        assert_eq!(chain(at(1, 8), at(2, 8)), Ok(()));
        assert_eq!(chain(at(1, 2), Policy { condition: set(2).with(0, 2, 2), ..at(2, 9) }), Ok(()));
        assert_eq!(chain(at(1, 8), at(1, 8)), overlap);
        let bad = |nodes| NetworkFunction::new(vec![policy(0, set(8))], nodes).map(|_| ());
        assert_eq!(bad(vec![]), Err(FunctionError::Empty));
        let to = |policy, child| Node::Match { policy, matched: child, otherwise: child };
        assert_eq!(bad(vec![to(0, 0)]), Err(FunctionError::Child { node: 0 }));
        assert_eq!(bad(vec![to(0, 2), Node::Leaf]), Err(FunctionError::Child { node: 0 }));
        assert_eq!(bad(vec![to(1, 1), Node::Leaf]), Err(FunctionError::Policy { node: 0 }));
    }
}
