//! The elements of a worker, as far as one of them may reach the others.

use super::slot::WorkerGraph;
use super::transfer::pull_input;
use castanet_element::cx::{Cx, Peers};
use castanet_element::exec::ExecState;
use castanet_element::node::RoleNode;
use castanet_packet::{Batch, PacketTotals};
use std::any::Any;

impl WorkerGraph {
    /// Whether packets may be handed past the element.
    fn counts_only(&self, element: usize) -> bool {
        matches!(&self.slots[element].node, Some(RoleNode::Through(node)) if node.counts_only())
    }
}

impl Peers for WorkerGraph {
    fn pull(&mut self, exec: &mut ExecState, me: usize, input: usize, n: usize, into: &mut Batch) {
        match exec.cycles {
            None => pull_input::<false>(self, exec, me, input, n, into),
            Some(_) => pull_input::<true>(self, exec, me, input, n, into),
        }
    }

    fn bypass(&mut self, me: usize) -> Option<(usize, &mut dyn Any)> {
        if self.sees_all {
            return None;
        }
        let (&to, past) = self.slots[me].bypass.split_last()?;
        if !past.iter().all(|&element| self.counts_only(element)) {
            return None;
        }
        match self.slots[to].node.as_mut()? {
            RoleNode::Through(node) => Some((to, &mut **node)),
            _ => None,
        }
    }

    fn count_past(&mut self, exec: &mut ExecState, me: usize, totals: PacketTotals) {
        for place in 0..self.slots[me].bypass.len().saturating_sub(1) {
            let me = self.slots[me].bypass[place];
            exec.counters[me].input += totals.packets;
            exec.counters[me].output += totals.packets;
            if let Some(RoleNode::Through(node)) = &mut self.slots[me].node {
                node.count(totals, &mut Cx { exec: &mut *exec, me, peers: None });
            }
        }
    }

    fn room_below(&self, me: usize) -> usize {
        let stores = self.stores(&self.slots[me].stores);
        stores.map(|store| store.room()).max().unwrap_or(usize::MAX)
    }

    fn least_held_below(&self, me: usize) -> Option<usize> {
        self.stores(&self.slots[me].stores).map(|store| store.held()).min()
    }

    fn watched_room(&self, me: usize) -> usize {
        let stores = self.stores(&self.slots[me].watched);
        stores.map(|store| store.room()).min().unwrap_or(usize::MAX)
    }

    fn watched_held(&self, me: usize) -> usize {
        self.stores(&self.slots[me].watched).map(|store| store.held()).sum()
    }

    fn inputs(&self, me: usize) -> usize {
        self.slots[me].upstream.len()
    }
}
