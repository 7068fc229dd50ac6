//! Packets that go between the router's own tasks and the elements of accounts.

use crate::graph::Graph;
use crate::graph::assign::Assignment;
use crate::graph::assign::accounts::{AccountBoundary, OWN, boundaries};
use castanet_element::class::Role;
use castanet_element::exec::{Counters, ExecState, StoreInput};

/// The places at which packets go between the router's own tasks and the elements of accounts.
#[derive(Default)]
pub(super) struct Crossings {
    /// By element: the account of a store into which the router's own tasks push packets, else [`OWN`].
    /// Stores say themselves what has come in, so that a run looks at those alone.
    stores: Vec<usize>,
    /// All other places, at whose counters each run looks.
    others: Vec<BoundaryCount>,
    /// The packets that the present run has moved.
    pub(super) found: Vec<CrossingCount>,
}

/// Packets at a boundary.
struct BoundaryCount {
    boundary: AccountBoundary,
    account: usize,
    seen: u64,
}

/// Packets that one run of the router's own tasks has moved for an account.
#[derive(Clone, Copy)]
pub(super) struct CrossingCount {
    pub(super) account: usize,
    pub(super) packets: u64,
    /// Packets that still find room in the account.
    pub(super) room: usize,
    /// Whether the account received them; else they were taken from it.
    pub(super) comes_in: bool,
}

impl Crossings {
    /// Those of a graph.
    pub(super) fn new(graph: &Graph, plan: &Assignment) -> Crossings {
        let mut stores = vec![OWN; graph.elements.len()];
        let mut others = Vec::new();
        for boundary in boundaries(graph, plan) {
            let account = plan[boundary.element].account;
            let is_store = graph.elements[boundary.element].class.role == Role::Store;
            match boundary.comes_in && is_store {
                true => stores[boundary.element] = account,
                false => others.push(BoundaryCount { boundary, account, seen: 0 }),
            }
        }
        Crossings { stores, others, found: Vec::new() }
    }

    /// Finds the packets that have crossed in the run that has just ended; returns how many.
    #[inline]
    pub(super) fn take(&mut self, exec: &mut ExecState) -> u64 {
        self.found.clear();
        for input in exec.store_inputs.iter().flatten() {
            let account = self.stores[input.element];
            if account != OWN {
                let StoreInput { packets, room, .. } = *input;
                self.found.push(CrossingCount { account, packets, room, comes_in: true });
            }
        }
        for it in &mut self.others {
            let count = it.boundary.count(&exec.counters);
            let packets = count.saturating_sub(std::mem::replace(&mut it.seen, count));
            if packets > 0 {
                let (account, comes_in) = (it.account, it.boundary.comes_in);
                let room = usize::MAX;
                self.found.push(CrossingCount { account, packets, room, comes_in });
            }
        }
        self.found.iter().map(|it| it.packets).sum()
    }

    /// Counts packets from the next run on.
    pub(super) fn begin(&mut self) {
        self.others.iter_mut().for_each(|it| it.seen = u64::MAX);
    }
}

impl AccountBoundary {
    /// Packets that have gone this way.
    fn count(self, counters: &[Counters]) -> u64 {
        let counters = &counters[self.element];
        if self.comes_in { counters.input } else { counters.output }
    }
}
