//! Order and shape of a tree for a traffic profile: fewest expected matches.

mod branches;
mod list;

use super::{CompiledPolicy, Profile};
use crate::bits::{Bits, Ternary};
use crate::function::{NetworkFunction, Node, NodeId, Policy};
use std::collections::HashMap;

/// Shape of the trees that may come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TreeShape {
    /// Lists as they are, in another order.
    #[default]
    Lists,
    /// With branches: matches that several policies of a list have in common are asked first, so that
    /// other packets skip them. Processors see the projections of these matches too.
    Branches,
}

/// The effect of an order on the packets of a profile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OrderReport {
    /// Matches that a packet was compared with on average.
    pub before: f64,
    /// The same of the new tree; never more.
    pub after: f64,
    /// Policies of the tree before.
    pub policies_before: usize,
    /// Policies of the new tree.
    pub policies_after: usize,
}

/// Maximum length of a list that is ordered as a whole; longer ones are ordered piece by piece.
const MAX_LIST: usize = 2048;
/// Maximum number of different header strings of a profile that count: the most frequent ones.
const MAX_SAMPLES: usize = 4096;
/// The end of the function in place of a list.
const END: usize = usize::MAX;

/// A policy of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Item {
    policy: Policy,
    /// The list of packets that match.
    matched: usize,
    /// The policy of the old function.
    origin: usize,
}

/// Policies that packets meet one after the other as long as none of them matches.
#[derive(Clone, Debug)]
struct List {
    items: Vec<Item>,
    /// The list of packets that match none.
    rest: usize,
}

/// A part of a tree.
#[derive(Clone, Debug)]
enum Part {
    Item(Item),
    /// Parts that only packets that match go through; then all packets go on.
    Group(Ternary, Vec<Part>),
}

/// Samples with their numbers.
type Samples = Vec<(Bits, u64)>;

/// A tree with the same results for every packet, and fewer expected matches for the packets of a
/// profile: policies without effect are removed, and two policies change places where no packet
/// matches both, or where their actions are the same.
pub fn order(
    policy: &CompiledPolicy,
    profile: &Profile,
    shape: TreeShape,
) -> (CompiledPolicy, OrderReport) {
    let function = &policy.function;
    let tested = |bits, it: &Policy| bits | it.condition.projection();
    let tested = function.policies().iter().fold(Bits::ZERO, tested);
    let samples = profile.masked(tested, MAX_SAMPLES);
    let mut lists = lists(function);
    let arrivals = arrivals(&lists, &samples);
    let mut trees = vec![Vec::new(); lists.len()];
    let mut resolved: Vec<usize> = (0..lists.len()).collect();
    // Targets are behind the lists that have them.
    for at in (0..lists.len()).rev() {
        let resolve = |target: usize| resolved.get(target).copied().unwrap_or(END);
        let list = &mut lists[at];
        list.items.iter_mut().for_each(|it| it.matched = resolve(it.matched));
        list.rest = resolve(list.rest);
        (list.items, trees[at]) = best_tree(list, &arrivals[at], shape);
        if list.items.is_empty() {
            resolved[at] = list.rest;
        }
    }
    let root = resolved.first().copied().unwrap_or(END);
    remove_unreachable(&mut trees, &lists, root);
    let new = rebuild(policy, &lists, &trees, root);
    let new = new.unwrap_or_else(|| policy.clone());
    let report = OrderReport {
        before: expected_matches(function, &samples),
        after: expected_matches(&new.function, &samples),
        policies_before: function.policies().len(),
        policies_after: new.function.policies().len(),
    };
    (new, report)
}

/// The lists of a function: the root, nodes that matches lead to, and nodes with several parents begin
/// them.
fn lists(function: &NetworkFunction) -> Vec<List> {
    let nodes = function.nodes();
    let (mut is_head, mut parents) = (vec![false; nodes.len()], vec![0_usize; nodes.len()]);
    let mut is_reachable = vec![false; nodes.len()];
    (is_head[0], is_reachable[0]) = (true, true);
    // The number of the node in its list.
    let mut depth = vec![0_usize; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        let (true, Node::Match { matched, otherwise, .. }) = (is_reachable[at], *node) else {
            continue;
        };
        (is_reachable[matched], is_reachable[otherwise]) = (true, true);
        is_head[matched] = true;
        parents[otherwise] += 1;
        depth[otherwise] = depth[at] + 1;
        is_head[otherwise] |= parents[otherwise] > 1 || depth[otherwise].is_multiple_of(MAX_LIST);
    }
    let is_match = |at: NodeId| matches!(nodes[at], Node::Match { .. });
    let heads: Vec<NodeId> = (0..nodes.len()).filter(|&at| is_head[at] && is_match(at)).collect();
    let ids: HashMap<NodeId, usize> = heads.iter().enumerate().map(|(id, &at)| (at, id)).collect();
    let id = |node: NodeId| ids.get(&node).copied().unwrap_or(END);
    let list = |&head: &NodeId| {
        let (mut items, mut at) = (Vec::new(), head);
        while let Node::Match { policy, matched, otherwise } = nodes[at] {
            let item =
                Item { policy: function.policies()[policy], matched: id(matched), origin: policy };
            items.push(item);
            at = otherwise;
            if is_head[at] {
                break;
            }
        }
        List { items, rest: id(at) }
    };
    heads.iter().map(list).collect()
}

/// By list: the samples that come to it.
fn arrivals(lists: &[List], samples: &Samples) -> Vec<Samples> {
    let mut arrivals = vec![Samples::new(); lists.len()];
    for &(string, count) in samples {
        let mut at = 0;
        while let Some(List { items, rest }) = lists.get(at) {
            arrivals[at].push((string, count));
            let matching = items.iter().find(|it| it.policy.condition.matches(string));
            at = matching.map_or(*rest, |it| it.matched);
        }
    }
    arrivals
}

/// The policies and the tree of a list with the fewest matches for samples; of equals, that with the fewest
/// policies. A policy without effect may stay, if many packets need no further match behind it.
fn best_tree(list: &List, samples: &Samples, shape: TreeShape) -> (Vec<Item>, Vec<Part>) {
    let reachable = list::reachable(&list.items);
    let effective = list::effective(&reachable, list.rest);
    let mut trees = Vec::new();
    for items in [effective, reachable] {
        let arranged = list::arrange(&items, samples);
        for items in [items, arranged] {
            if shape == TreeShape::Branches {
                trees.push((items.clone(), branches::grouped(&items, samples)));
            }
            let tree = items.iter().copied().map(Part::Item).collect();
            trees.push((items, tree));
        }
    }
    let costs = |(_, tree): &(_, Vec<Part>)| (branches::matches(tree, samples), size(tree));
    trees.into_iter().min_by_key(costs).unwrap_or_default()
}

/// Empties the trees of lists that no packet comes to, as the policies that led to them are gone.
fn remove_unreachable(trees: &mut [Vec<Part>], lists: &[List], root: usize) {
    let mut is_reachable = vec![false; lists.len()];
    let reach = |is_reachable: &mut Vec<bool>, at: usize| {
        is_reachable.get_mut(at).into_iter().for_each(|it| *it = true);
    };
    reach(&mut is_reachable, root);
    for (at, list) in lists.iter().enumerate() {
        if is_reachable[at] {
            reach(&mut is_reachable, list.rest);
            list.items.iter().for_each(|it| reach(&mut is_reachable, it.matched));
        } else {
            trees[at].clear();
        }
    }
}

/// The function of trees; `None` if it is no function.
fn rebuild(
    policy: &CompiledPolicy,
    lists: &[List],
    trees: &[Vec<Part>],
    root: usize,
) -> Option<CompiledPolicy> {
    let sizes = trees.iter().map(|tree| size(tree));
    let starts: Vec<NodeId> = sizes
        .scan(0, |next, size| {
            *next += size;
            Some(*next - size)
        })
        .collect();
    let leaf: NodeId = trees.iter().map(|tree| size(tree)).sum();
    let start = |list: usize| starts.get(list).copied().unwrap_or(leaf);
    debug_assert!(root == END || start(root) == 0);
    let mut output = Output { nodes: Vec::new(), policies: Vec::new(), origins: Vec::new() };
    for (list, tree) in lists.iter().zip(trees) {
        output.put(tree, start(list.rest), &start);
    }
    let Output { mut nodes, policies, origins } = output;
    nodes.push(Node::Leaf);
    let function = NetworkFunction::new(policies, nodes).ok()?;
    let ranges = origins.iter().map(|&at| policy.ranges.get(at).cloned().unwrap_or_default());
    Some(CompiledPolicy { function, header_bits: policy.header_bits, ranges: ranges.collect() })
}

/// Number of policies of a tree.
fn size(parts: &[Part]) -> usize {
    let of = |part: &Part| match part {
        Part::Item(_) => 1,
        Part::Group(_, inner) => 1 + size(inner),
    };
    parts.iter().map(of).sum()
}

/// The nodes and policies of a function that is being built.
struct Output {
    nodes: Vec<Node>,
    policies: Vec<Policy>,
    origins: Vec<usize>,
}

impl Output {
    /// Appends a tree, behind which packets go on at `end`.
    fn put(&mut self, parts: &[Part], end: NodeId, start: &impl Fn(usize) -> NodeId) {
        for (at, part) in parts.iter().enumerate() {
            let policy = self.policies.len();
            let after = policy + size(&parts[at..=at]);
            let otherwise = if at + 1 == parts.len() { end } else { after };
            match part {
                Part::Item(item) => {
                    self.push(item.policy, item.origin, start(item.matched), otherwise);
                }
                Part::Group(condition, inner) => {
                    let condition = Policy { condition: *condition, action: Ternary::ANY };
                    self.push(condition, first_origin(inner), policy + 1, otherwise);
                    self.put(inner, otherwise, start);
                }
            }
        }
    }

    fn push(&mut self, it: Policy, origin: usize, matched: NodeId, otherwise: NodeId) {
        self.nodes.push(Node::Match { policy: self.policies.len(), matched, otherwise });
        self.policies.push(it);
        self.origins.push(origin);
    }
}

fn first_origin(parts: &[Part]) -> usize {
    match parts.first() {
        Some(Part::Item(item)) => item.origin,
        Some(Part::Group(_, inner)) => first_origin(inner),
        None => 0,
    }
}

/// Matches that a sample is compared with on average.
fn expected_matches(function: &NetworkFunction, samples: &Samples) -> f64 {
    let count = |string: Bits| {
        let (mut node, mut count) = (0, 0_u64);
        while let Node::Match { policy, matched, otherwise } = function.nodes()[node] {
            count += 1;
            let is_match = function.policies()[policy].condition.matches(string);
            node = if is_match { matched } else { otherwise };
        }
        count
    };
    let packets: u64 = samples.iter().map(|it| it.1).sum();
    let all: u64 = samples.iter().map(|&(string, number)| number * count(string)).sum();
    if packets == 0 { 0.0 } else { all as f64 / packets as f64 }
}

#[cfg(test)]
mod tests;
