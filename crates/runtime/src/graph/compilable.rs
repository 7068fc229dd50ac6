//! Chains of a graph that could be compiled, as `castanet build` does.
//!
//! A chain is a path of elements that can be stages of a fused chain
//! ([`Description::stage`](castanet_element::class::Description)) and of which each worker has a state
//! of its own. Of the paths in the graph the longest is taken first, as [`fuse::find`](super::fuse::find)
//! does with chains that are compiled. A path goes on behind an element with several outputs only
//! where one of them has a longer path behind it than all others: most packets may then be taken to
//! go there. No path goes on into an element to which more than few packets come from elsewhere, too
//! ([`entries`](super::entries)). Where a path ends at such an element, outputs with the same classes behind them become the
//! branches of its chain.

use super::Graph;
use super::entries::main_entries;
use castanet_element::class::{Class, Role, StageKind, StateSharing};
use castanet_element::flow::Flow;
use castanet_element::node::fused::{MAX_BRANCHES, MAX_STAGES};

/// A chain that could be compiled.
pub struct CompilableChain {
    /// Its elements in order, up to where it divides: two at least, or one before branches or one
    /// that decides by code for its arguments.
    pub members: Vec<usize>,
    /// Whether the last of these sends packets to several outputs.
    pub open: bool,
    /// The elements of its branches, each in order. Their classes are the same.
    pub branches: Vec<Vec<usize>>,
}

impl CompilableChain {
    /// The chain as [`fuse!`](castanet_element::fuse) takes it: the Rust types of its classes, each with
    /// the word before it, and with the name that `native` gives the code for all elements of a stage.
    pub fn stages(
        &self,
        graph: &Graph,
        mut native: impl FnMut(&[usize]) -> Option<String>,
    ) -> String {
        let mut text = String::new();
        let count = self.members.len() - usize::from(self.open);
        let (before, last) = self.members.split_at(count);
        let trunk: Vec<Vec<usize>> = before.iter().map(|&member| vec![member]).collect();
        list(&mut text, graph, &trunk, &mut native);
        if let [last] = last {
            text += "; ";
            text += &stage(graph, &[*last], &mut native);
        }
        if let Some(first) = self.branches.first() {
            text += " => ";
            let of = |n: usize| self.branches.iter().map(|branch| branch[n]).collect();
            let stages: Vec<Vec<usize>> = (0..first.len()).map(of).collect();
            list(&mut text, graph, &stages, &mut native);
        }
        text
    }

    /// All its elements, branch by branch.
    pub fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().chain(self.branches.iter().flatten()).copied()
    }
}

/// Adds stages, each with the word before it.
fn list(
    text: &mut String,
    graph: &Graph,
    stages: &[Vec<usize>],
    native: &mut impl FnMut(&[usize]) -> Option<String>,
) {
    for (n, members) in stages.iter().enumerate() {
        text.push_str(if n > 0 { ", " } else { "" });
        text.push_str(kind(graph, members[0]).map_or("", kind_word));
        text.push(' ');
        text.push_str(&stage(graph, members, native));
    }
}

/// A stage without the word before it; `members` has its element in each branch.
fn stage(
    graph: &Graph,
    members: &[usize],
    native: &mut impl FnMut(&[usize]) -> Option<String>,
) -> String {
    let path = graph.elements[members[0]].class.stage.map_or("", |stage| (stage.path)());
    native(members).map_or(path.to_owned(), |name| format!("{path} = {name}"))
}

fn kind(graph: &Graph, member: usize) -> Option<StageKind> {
    graph.elements[member].class.stage.map(|stage| stage.kind)
}

/// The word for a kind of stage in [`fuse!`](castanet_element::fuse).
pub fn kind_word(kind: StageKind) -> &'static str {
    match kind {
        StageKind::Packet => "packet",
        StageKind::Batch => "batch",
    }
}

/// Why no element of a class can be in a compiled chain; `None` if it can.
pub fn reason_against(class: &Class) -> Option<&'static str> {
    match (class.role, class.stage, class.sharing) {
        (Role::Through, None, _) => Some("takes packets in batches"),
        (Role::Through, Some(_), StateSharing::PerWorker) => None,
        (Role::Through, Some(_), _) => Some("shares its state between workers"),
        (Role::Source | Role::Duplex, _, _) => Some("is asked for packets"),
        (Role::Store, _, _) => Some("keeps packets"),
        (Role::Info | Role::Control, _, _) => Some("has no packets"),
    }
}

/// Finds the chains: those of the most elements first, until none is left. `has_code` says which elements
/// have code for their arguments: one with several outputs gains by that alone.
pub fn find(graph: &Graph, has_code: impl Fn(usize) -> bool) -> Vec<CompilableChain> {
    let decides = |node: usize| graph.elements[node].class.open_outputs && has_code(node);
    let (free, entries) = (vec![true; graph.elements.len()], main_entries(graph));
    let mut search = Search { graph, free, entries };
    let mut chains = Vec::new();
    loop {
        let paths = (0..graph.elements.len()).map(|node| search.path(node));
        let count = |path: &Path| path.members.len() + path.branches.iter().flatten().count();
        // Of several the first.
        let gains = |path: &Path| count(path) > 1 || path.members.iter().any(|&it| decides(it));
        let Some(path) = paths.rev().filter(gains).max_by_key(count) else {
            return chains;
        };
        let all = path.members.iter().chain(path.branches.iter().flatten());
        all.for_each(|&member| search.free[member] = false);
        chains.extend(divided(graph, path, decides));
    }
}

/// Elements one after the other, and the branches behind the last of them.
struct Path {
    members: Vec<usize>,
    branches: Vec<Vec<usize>>,
}

/// A path as chains of at most [`MAX_STAGES`] members. One ends at the last element with several outputs,
/// where there is one. It has the rest as its only branch, if the path has no branches, and the rest at most
/// [`MAX_STAGES`] members, none with several outputs; the last chain has the path's branches.
fn divided(graph: &Graph, path: Path, decides: impl Fn(usize) -> bool) -> Vec<CompilableChain> {
    let is_open = |&member: &usize| graph.elements[member].class.open_outputs;
    let (mut rest, mut chains) = (&path.members[..], Vec::new());
    let has_branches = !path.branches.is_empty();
    while rest.len() > 1 || rest.first().is_some_and(|&it| has_branches || decides(it)) {
        let most = rest.len().min(MAX_STAGES);
        let count = match rest.len() > MAX_STAGES {
            true => rest[..most]
                .iter()
                .rposition(is_open)
                .filter(|&at| at > 0)
                .map_or(most, |at| at + 1),
            false => most,
        };
        let (members, after) = rest.split_at(count);
        let open = members.last().is_some_and(is_open);
        let fits = !after.is_empty() && after.len() <= MAX_STAGES && !after.iter().any(is_open);
        let (branches, after) = match open && fits && !has_branches {
            true => (vec![after.to_vec()], &[][..]),
            false => (Vec::new(), after),
        };
        chains.push(CompilableChain { members: members.to_vec(), open, branches });
        rest = after;
    }
    if let Some(last) = chains.last_mut()
        && has_branches
    {
        last.branches = path.branches;
    }
    chains
}

/// The data of a search for paths.
struct Search<'a> {
    graph: &'a Graph,
    /// By element: whether it is in no chain yet.
    free: Vec<bool>,
    /// By element: the edge by which most packets come.
    entries: Vec<Option<usize>>,
}

impl Search<'_> {
    /// The longest path that begins with an element, and the branches behind it.
    fn path(&self, node: usize) -> Path {
        let members = self.longest(node);
        let is_open = |&&last: &&usize| self.graph.elements[last].class.open_outputs;
        let branches = match members.last().filter(is_open) {
            Some(&last) => self.branches(last, &members),
            None => Vec::new(),
        };
        Path { members, branches }
    }

    /// The longest path that begins with an element; empty if the element can be in none.
    fn longest(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut next = self.is_stage(node).then_some(node);
        while let Some(node) = next.filter(|&node| self.free[node] && !path.contains(&node)) {
            path.push(node);
            next = self.onward(node);
        }
        path
    }

    /// The element behind `node` on the longest path, whether it is in a chain already or not.
    fn onward(&self, node: usize) -> Option<usize> {
        let depth = |edge| (self.depth(edge, MAX_STAGES), self.graph.edges[edge].to.node);
        let mut depths: Vec<(usize, usize)> = self.leaving(node).map(depth).collect();
        depths.sort_unstable_by(|a, b| b.cmp(a));
        match depths[..] {
            [(0, _), ..] | [] => None,
            [(one, _), (other, _), ..] if one == other => None,
            [(_, node), ..] => Some(node),
        }
    }

    /// The branches behind an element with several outputs: those of the classes that most of them have
    /// in common; none if no two have the same.
    fn branches(&self, node: usize, path: &[usize]) -> Vec<Vec<usize>> {
        let mut edges: Vec<usize> = self.leaving(node).collect();
        edges.sort_by_key(|&edge| self.graph.edges[edge].from.port);
        let branches = edges.iter().map(|&edge| self.branch(edge));
        let is_apart = |branch: &Vec<usize>| !branch.iter().any(|member| path.contains(member));
        let branches: Vec<Vec<usize>> =
            branches.filter(|branch| !branch.is_empty() && is_apart(branch)).collect();
        let classes = |branch: &Vec<usize>| -> Vec<&str> {
            branch.iter().map(|&it| self.graph.elements[it].class.spec.class).collect()
        };
        let like = |one: &Vec<usize>| {
            let equal = branches.iter().filter(|other| classes(other) == classes(one));
            equal.take(MAX_BRANCHES).cloned().collect::<Vec<_>>()
        };
        let groups = branches.iter().map(like).rev();
        groups
            .max_by_key(|group| group.len() * group[0].len())
            .filter(|group| group.len() > 1)
            .unwrap_or_default()
    }

    /// The elements behind an edge that packets go through one after the other by their first outputs.
    fn branch(&self, edge: usize) -> Vec<usize> {
        let mut branch = Vec::new();
        let mut next = Some(edge);
        while let Some(edge) = next.filter(|&edge| self.depth(edge, 1) > 0)
            && let node = self.graph.edges[edge].to.node
            && self.free[node]
            && !self.graph.elements[node].class.open_outputs
            && branch.len() < MAX_STAGES
            && !branch.contains(&node)
        {
            branch.push(node);
            next = self.leaving(node).next();
        }
        branch
    }

    /// The edges by which packets may go on in a chain.
    fn leaving(&self, node: usize) -> impl Iterator<Item = usize> {
        let (graph, open) = (self.graph, self.graph.elements[node].class.open_outputs);
        graph.leaving[node].iter().copied().filter(move |&edge| {
            let edge = &graph.edges[edge];
            edge.flow != Flow::Pull && (open || edge.from.port == 0)
        })
    }

    /// The length of the longest path behind an edge, as far as `most`: a circle has no end.
    fn depth(&self, edge: usize, most: usize) -> usize {
        let node = self.graph.edges[edge].to.node;
        if most == 0 || !self.is_stage(node) || self.entries[node] != Some(edge) {
            return 0;
        }
        let behind = self.leaving(node).map(|edge| self.depth(edge, most - 1));
        1 + behind.max().unwrap_or(0)
    }

    /// Whether an element can be a stage.
    fn is_stage(&self, node: usize) -> bool {
        let pushed = self.graph.in_edges(node).all(|edge| edge.flow != Flow::Pull);
        reason_against(self.graph.elements[node].class).is_none() && pushed
    }
}
