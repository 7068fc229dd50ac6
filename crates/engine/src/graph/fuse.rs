//! Step: which elements in a row run as one pass over a burst.
//!
//! A row is as long as the longest way through the graph whose classes are
//! those of a compiled pass ([`crate::node::fused`]), in order. It does not go
//! on into an element that packets also come to from elsewhere, so that no
//! element is in two rows.
//!
//! Nor does a source hand packets over by a batch where the element next to it takes
//! what nobody has looked at ([`Cx::straight`](crate::cx::Cx::straight)).

use super::{Flow, Graph};
use crate::class::Role;
use crate::node::fused::{Fusion, MAX_STAGES, Member, Need};

/// Which elements run as one pass.
#[derive(Default)]
pub struct Plan {
    pub(crate) rows: Vec<Row>,
    /// Sources, and the elements next to them that take packets which nobody has looked at.
    pub(crate) straight: Vec<(usize, usize)>,
}

/// Elements that run as one pass.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) fusion: &'static Fusion,
    /// In order.
    pub(crate) members: Vec<Member>,
}

impl Plan {
    /// Gives up rows in which elements move between workers with different
    /// tasks, or some do and others do not. `with` says by element with whose.
    pub(crate) fn keep_together(&mut self, with: &[Option<usize>]) {
        let same = |row: &Row| row.members.windows(2).all(|m| with[m[0].node] == with[m[1].node]);
        self.rows.retain(same);
    }
}

impl Plan {
    /// Gives up what has elements to which packets come one at a time.
    pub(crate) fn leave_out(&mut self, single: &[bool]) {
        self.rows.retain(|row| !row.members.iter().any(|member| single[member.node]));
        self.straight.retain(|&(from, to)| !single[from] && !single[to]);
    }
}

/// Finds the rows: the longest first, until none is left.
pub fn find(graph: &Graph, fusions: &[&'static Fusion]) -> Plan {
    let compiled: Vec<_> = fusions.iter().map(|fusion| (*fusion, (fusion.needs)())).collect();
    let mut free = vec![true; graph.elements.len()];
    let mut plan = Plan::default();
    loop {
        let mut best: Option<Row> = None;
        for (fusion, needs) in &compiled {
            let search = Search { graph, needs, free: &free };
            for node in 0..graph.elements.len() {
                let members = search.longest(Member { place: 0, node, port: 0, via: 0 }, true);
                let members = members.unwrap_or_default();
                if members.len() > best.as_ref().map_or(1, |best| best.members.len()) {
                    best = Some(Row { fusion, members });
                }
            }
        }
        let Some(row) = best else {
            plan.straight = straight(graph);
            return plan;
        };
        row.members.iter().for_each(|member| free[member.node] = false);
        plan.rows.push(row);
    }
}

/// Finds the sources whose packets go straight to an element that takes them as they are.
fn straight(graph: &Graph) -> Vec<(usize, usize)> {
    let pairs = graph.elements.iter().enumerate().filter_map(|(source, it)| {
        let mut leaving = graph.out_edges(source).filter(|edge| edge.flow != Flow::Pull);
        let (edge, None) = (leaving.next()?, leaving.next()) else { return None };
        let to = &graph.elements[edge.to.node];
        let takes = it.class.straight.contains(&to.class.spec.class) && to.outputs.is_empty();
        takes.then_some((source, edge.to.node))
    });
    pairs.collect()
}

/// What a row is looked for in.
struct Search<'a> {
    graph: &'a Graph,
    needs: &'a [Need],
    /// By element: whether it is in no row yet.
    free: &'a [bool],
}

impl Search<'_> {
    /// The longest row from `member` on, as its stage or a later one if those
    /// between can be done without.
    fn longest(&self, member: Member, head: bool) -> Option<Vec<Member>> {
        if !self.fits(member.node, head) {
            return None;
        }
        let class = self.graph.elements[member.node].class.spec.class;
        for place in usize::from(member.place)..self.needs.len().min(MAX_STAGES) {
            if self.needs[place].class == class {
                let member = Member { place: place as u8, ..member };
                return self.onward(member, self.needs[place].open);
            }
            if !self.needs[place].optional {
                return None;
            }
        }
        None
    }

    /// The longest row that begins with `member`, which fits its stage.
    fn onward(&self, member: Member, open: bool) -> Option<Vec<Member>> {
        let mut best: Option<Vec<Member>> = None;
        for edge in self.graph.out_edges(member.node) {
            if edge.flow == Flow::Pull || !(edge.from.port == 0 || open) {
                continue;
            }
            let place = member.place + 1;
            let next = Member { place, node: edge.to.node, port: edge.to.port, via: 0 };
            let Some(rest) = self.longest(next, false) else { continue };
            if rest.len() >= best.as_ref().map_or(1, Vec::len) {
                let first = Member { via: edge.from.port as u8, ..member };
                best = Some(std::iter::once(first).chain(rest).collect());
            }
        }
        let over = self.needs[usize::from(member.place) + 1..].iter().all(|need| need.optional);
        best.or(over.then(|| vec![member]))
    }

    /// Whether the element can be in a row, as its first or another one.
    fn fits(&self, node: usize, head: bool) -> bool {
        let through = self.graph.elements[node].class.role == Role::Through;
        let mut entering = self.graph.in_edges(node);
        let pushed = self.graph.in_edges(node).all(|edge| edge.flow != Flow::Pull);
        let alone = head || (entering.next().is_some() && entering.next().is_none());
        self.free[node] && through && pushed && alone
    }
}
