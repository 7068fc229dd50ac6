//! The tables of a rewriter's mappings: one for all workers or, in Click's order, one for each.

use castanet_element::prelude::*;
use castanet_kit::nat::Table;

/// The tables of one rewriter's mappings, by worker; a single one is that of all workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerTables(Vec<RwShared<Table>>);

/// The bits of a position in the tables that are the position in one of them.
const POSITION_BITS: u32 = 48;

impl WorkerTables {
    /// The tables of the rewriter `owner`. In Click's order each worker has a table of its own, as each
    /// thread has in FastClick.
    pub(crate) fn new(setup: &Setup, owner: &str) -> WorkerTables {
        let own = |worker: usize| match worker {
            0 => setup.rw_shared(owner),
            worker => setup.rw_shared(&format!("{owner} worker {worker}")),
        };
        let tables = if setup.as_click { setup.workers.len().max(1) } else { 1 };
        WorkerTables((0..tables).map(own).collect())
    }

    /// The table of a worker.
    pub(crate) fn of(&self, worker: usize) -> RwShared<Table> {
        self.get(worker).cloned().unwrap_or_default()
    }

    /// As [`WorkerTables::of`], lent.
    pub(crate) fn get(&self, worker: usize) -> Option<&RwShared<Table>> {
        self.0.get(worker).or(self.0.first())
    }

    /// Lends each table in turn to change it.
    pub(crate) fn change_all(&self, mut change: impl FnMut(&mut Table)) {
        self.0.iter().for_each(|table| table.change(&mut change));
    }

    /// The sum of a count over all tables.
    pub(crate) fn sum(&self, mut count: impl FnMut(&Table) -> u64) -> u64 {
        self.0.iter().map(|table| table.read(&mut count)).sum()
    }

    /// The sums of counts over all tables, which have the same number of them.
    pub(crate) fn sums(&self, mut counts: impl FnMut(&Table) -> Vec<u64>) -> Vec<u64> {
        let add = |sums: Vec<u64>, more: Vec<u64>| match sums.is_empty() {
            true => more,
            false => sums.iter().zip(more).map(|(a, b)| a + b).collect(),
        };
        self.0.iter().map(|table| table.read(&mut counts)).fold(Vec::new(), add)
    }

    /// The first answer that a table has.
    pub(crate) fn find<R>(&self, mut ask: impl FnMut(&Table) -> Option<R>) -> Option<R> {
        self.0.iter().find_map(|table| table.read(&mut ask))
    }

    /// Reads a part of the tables, one after the other, from a position on: `read` gets the position in its
    /// table and returns that behind the part, `None` at the table's end. `None` behind the last table.
    pub(crate) fn read_part<R>(
        &self,
        from: u64,
        read: impl FnOnce(&Table, u64) -> (R, Option<u64>),
    ) -> Option<(R, Option<u64>)> {
        let number = from >> POSITION_BITS;
        let table = self.0.get(usize::try_from(number).ok()?)?;
        let (part, next) = table.read(|table| read(table, from & ((1 << POSITION_BITS) - 1)));
        let behind = (number + 1 < self.0.len() as u64).then_some((number + 1) << POSITION_BITS);
        Some((part, next.map(|next| number << POSITION_BITS | next).or(behind)))
    }
}
