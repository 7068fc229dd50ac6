//! Step: elements that run as fused chains.
//!
//! A chain is the longest path through the graph whose classes are those of a compiled chain
//! ([`castanet_element::node::fused`]), in order. It does not go on into an element to which more than
//! few packets also come from elsewhere ([`entries`](super::entries)); no element is in two chains. Where
//! the compiled chain divides at its last element, all outputs are followed whose classes are those of its branches.

use super::Graph;
use super::assign::Assignment;
use super::bypass::{self, Bypass};
use super::entries::main_entries;
use castanet_element::class::Role;
use castanet_element::flow::Flow;
use castanet_element::node::fused::{
    ChainMember, ChainSpec, Fusion, MAX_BRANCHES, MAX_STAGES, StagePlace, StageSpec,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Elements that run as fused chains, and sources that hand packets past elements.
#[derive(Default)]
pub struct FusionPlan {
    pub(crate) chains: Vec<ChainPlan>,
    pub(crate) bypasses: Vec<Bypass>,
}

/// A fused chain.
#[derive(Clone)]
pub(crate) struct ChainPlan {
    /// Those that have these classes, in order of preference.
    pub(crate) fusions: Vec<&'static Fusion>,
    /// In order, branch by branch.
    pub(crate) members: Vec<ChainMember>,
    /// By branch: the output that leads there.
    pub(crate) branch_ports: Vec<u8>,
}

impl FusionPlan {
    /// Gives up chains in which elements move between workers with different tasks, or some move
    /// and others do not.
    pub(crate) fn keep_together(&mut self, plan: &Assignment) {
        let with = |member: &ChainMember| plan[member.node].moves_with;
        let same = |chain: &ChainPlan| chain.members.windows(2).all(|m| with(&m[0]) == with(&m[1]));
        self.chains.retain(same);
    }

    /// Gives up chains and bypasses of elements to which packets come one at a time.
    pub(crate) fn leave_out_single(&mut self, plan: &Assignment) {
        self.chains.retain(|chain| !chain.members.iter().any(|member| plan[member.node].single));
        for Bypass { from, ways, .. } in &mut self.bypasses {
            let is_single = |element: usize| plan[element].single;
            ways.retain(|path| !is_single(*from) && !path.elements().any(is_single));
        }
        self.bypasses.retain(|bypass| !bypass.ways.is_empty());
    }
}

/// Finds the chains: those of the most elements first, until none is left; of equal ones that of the
/// first fusion, and of its elements the first.
pub fn find(graph: &Graph, fusions: &[&'static Fusion]) -> FusionPlan {
    let compiled: Vec<_> = fusions.iter().map(|fusion| (*fusion, (fusion.spec)())).collect();
    let mut free = vec![true; graph.elements.len()];
    let entries = main_entries(graph);
    let search = |fusion: usize, node: usize, free: &[bool]| {
        let (fusion, spec): &(_, ChainSpec) = &compiled[fusion];
        // One that was compiled for a single element is for certain arguments of it.
        let least = if spec.stages.len() == 1 && spec.branch.is_empty() { 1 } else { 2 };
        let graph = (graph, &entries[..]);
        chain_from(node, graph, (fusion, spec), free).filter(|chain| chain.members.len() >= least)
    };
    let heads = |fusion| (0..free.len()).map(move |node| (fusion, node));
    let mut candidates: BinaryHeap<_> = (0..compiled.len())
        .flat_map(heads)
        .filter_map(|at| Some((search(at.0, at.1, &free)?.members.len(), Reverse(at))))
        .collect();
    let mut plan = FusionPlan { chains: Vec::new(), bypasses: bypass::find(graph) };
    while let Some((length, Reverse((fusion, node)))) = candidates.pop() {
        // Chains taken since may have left less of it.
        let Some(mut chain) = search(fusion, node, &free) else { continue };
        if chain.members.len() != length {
            candidates.push((chain.members.len(), Reverse((fusion, node))));
            continue;
        }
        let others = (fusion + 1..compiled.len()).filter_map(|other| search(other, node, &free));
        let same = others.filter(|other| other.members == chain.members);
        let fusions: Vec<_> = same.flat_map(|other| other.fusions).collect();
        chain.fusions.extend(fusions);
        chain.members.iter().for_each(|member| free[member.node] = false);
        plan.chains.push(chain);
    }
    plan
}

/// The chain of a fusion that begins with element `node`; `free` says which elements are in none yet, and `entries` by
/// which edge most packets come to each.
fn chain_from(
    node: usize,
    (graph, entries): (&Graph, &[Option<usize>]),
    (fusion, spec): (&'static Fusion, &ChainSpec),
    free: &[bool],
) -> Option<ChainPlan> {
    let first = |node, port| ChainMember { place: StagePlace::default(), node, port, next_port: 0 };
    let trunk = Search { graph, stages: &spec.stages, free, entries };
    let mut members = trunk.longest(first(node, 0), None)?;
    let mut branch_ports = Vec::new();
    if !spec.branch.is_empty() {
        let search = Search { graph, stages: &spec.branch, free, entries };
        let fork = members.last()?.node;
        let mut edges = graph.leaving[fork].clone();
        edges.retain(|&edge| graph.edges[edge].flow != Flow::Pull);
        edges.sort_by_key(|&edge| graph.edges[edge].from.port);
        for via in edges {
            let edge = &graph.edges[via];
            let Some(found) = search.longest(first(edge.to.node, edge.to.port), Some(via)) else {
                continue;
            };
            if branch_ports.len() == MAX_BRANCHES {
                break;
            }
            branch_ports.push(edge.from.port as u8);
            let branch = branch_ports.len() as u8;
            let place = |member: ChainMember| StagePlace { branch, ..member.place };
            members.extend(found.into_iter().map(|it| ChainMember { place: place(it), ..it }));
        }
        // Without branches it is a chain of another fusion.
        if branch_ports.is_empty() {
            return None;
        }
    }
    Some(ChainPlan { fusions: vec![fusion], members, branch_ports })
}

/// A stage before the chain divides.
fn at(stage: usize) -> StagePlace {
    StagePlace { branch: 0, stage: stage as u8 }
}

/// The data of a search for chains.
struct Search<'a> {
    graph: &'a Graph,
    stages: &'a [StageSpec],
    /// By element: whether it is in no chain yet.
    free: &'a [bool],
    /// By element: the edge by which most packets come.
    entries: &'a [Option<usize>],
}

impl Search<'_> {
    /// The longest chain from `member` on, as its stage or a later one if those between may be
    /// absent; `via` is the edge from the member before it, if there is one.
    fn longest(&self, member: ChainMember, via: Option<usize>) -> Option<Vec<ChainMember>> {
        let class = self.graph.elements[member.node].class.spec.class;
        for stage in usize::from(member.place.stage)..self.stages.len().min(MAX_STAGES) {
            if self.stages[stage].class == class {
                let member = ChainMember { place: at(stage), ..member };
                let open = self.stages[stage].open;
                return self.fits(member.node, via).then(|| self.onward(member, open)).flatten();
            }
            if !self.stages[stage].optional {
                return None;
            }
        }
        None
    }

    /// The longest chain that begins with `member`, which fits its stage.
    fn onward(&self, member: ChainMember, open: bool) -> Option<Vec<ChainMember>> {
        let mut best: Option<Vec<ChainMember>> = None;
        for &via in &self.graph.leaving[member.node] {
            let edge = &self.graph.edges[via];
            if edge.flow == Flow::Pull || !(edge.from.port == 0 || open) {
                continue;
            }
            let place = at(usize::from(member.place.stage) + 1);
            let next = ChainMember { place, node: edge.to.node, port: edge.to.port, next_port: 0 };
            let Some(rest) = self.longest(next, Some(via)) else { continue };
            if rest.len() >= best.as_ref().map_or(1, Vec::len) {
                let first = ChainMember { next_port: edge.from.port as u8, ..member };
                best = Some(std::iter::once(first).chain(rest).collect());
            }
        }
        let over =
            self.stages[usize::from(member.place.stage) + 1..].iter().all(|spec| spec.optional);
        best.or(over.then(|| vec![member]))
    }

    /// Whether the element can be in a chain, as its first or a later one.
    fn fits(&self, node: usize, via: Option<usize>) -> bool {
        let through = self.graph.elements[node].class.role == Role::Through;
        let pushed = self.graph.in_edges(node).all(|edge| edge.flow != Flow::Pull);
        let is_main = via.is_none() || self.entries[node] == via;
        self.free[node] && through && pushed && is_main
    }
}
