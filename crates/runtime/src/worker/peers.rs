//! The elements of a worker, as far as one of them may reach the others.

use super::bypass;
use super::slot::WorkerGraph;
use super::transfer::pull_input;
use castanet_element::bypass::BypassTarget;
use castanet_element::cx::Peers;
use castanet_element::exec::ExecState;
use castanet_element::time::Time;
use castanet_packet::{Batch, PacketTotals};

impl Peers for WorkerGraph {
    fn pull(&mut self, exec: &mut ExecState, me: usize, input: usize, n: usize, into: &mut Batch) {
        match exec.cycles {
            None => pull_input::<false>(self, exec, me, input, n, into),
            Some(_) => pull_input::<true>(self, exec, me, input, n, into),
        }
    }

    fn bypass(&mut self, me: usize, now: Time, lend: &mut dyn FnMut(BypassTarget) -> bool) -> bool {
        !self.sees_all && bypass::lend(&mut self.slots, me, now, lend)
    }

    fn count_past(&mut self, exec: &mut ExecState, me: usize, totals: PacketTotals) {
        bypass::count(&mut self.slots, exec, me, totals);
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
