//! The tables under test: the table of flows, and a hash map with a scan.

use super::BURST;
use castanet_kit::conntrack::{self, Entry, Slot, Tuple4};
use castanet_kit::seed::Seed;
use rapidhash::RapidHashMap;

/// A table of flows.
pub(super) trait FlowStore {
    /// Bytes that are kept of each flow.
    const KEPT: usize;
    fn new(flows: usize) -> Self;
    fn clear(&mut self);
    fn insert(&mut self, key: Tuple4);
    /// Finds a burst, counts a packet of each, and says how many there were.
    fn find_all(&mut self, keys: &[Tuple4]) -> usize;
    /// As `find_all`, with a lookup for each flow.
    fn find_each(&mut self, keys: &[Tuple4]) -> usize;
    /// Ends some flows, all of which are silent, and says how many.
    fn expire(&mut self, most: usize) -> usize;
    fn len(&self) -> usize;
    fn memory(&self) -> usize;
}

/// State of a flow.
#[derive(Default)]
pub(super) struct FlowState {
    packets: u32,
}

impl Entry for FlowState {
    type Key = Tuple4;
}

/// When flows end, and when they have ended, in nanoseconds.
const ENDS: u64 = 30_000_000_000;
const OVER: u64 = 2 * ENDS;

/// Castanet's table.
pub(super) struct Table {
    flows: conntrack::Table<FlowState>,
    found: [Slot; BURST],
    now: u64,
}

impl FlowStore for Table {
    const KEPT: usize = size_of::<FlowState>();

    fn new(flows: usize) -> Table {
        let found = [Slot::NONE; BURST];
        Table { flows: conntrack::Table::with_seed(flows, Seed::fixed()), found, now: 0 }
    }

    fn clear(&mut self) {
        *self = Table::new(self.flows.limit());
    }

    fn insert(&mut self, key: Tuple4) {
        // There is room for as many as are inserted.
        _ = self.flows.insert(key, FlowState::default(), self.now + ENDS, self.now);
    }

    fn find_all(&mut self, keys: &[Tuple4]) -> usize {
        let Table { flows, found, now } = self;
        let found = &mut found[..keys.len()];
        flows.find_all(keys, found);
        let mut count = 0;
        for (id, _) in found.iter().filter_map(|slot| slot.entry()) {
            flows.set_deadline(id, *now + ENDS).packets += 1;
            count += 1;
        }
        count
    }

    fn find_each(&mut self, keys: &[Tuple4]) -> usize {
        let mut count = 0;
        for key in keys {
            if let Some((id, _)) = self.flows.find(key) {
                self.flows.set_deadline(id, self.now + ENDS).packets += 1;
                count += 1;
            }
        }
        count
    }

    fn expire(&mut self, most: usize) -> usize {
        let mut count = 0;
        // Time goes on for the next filling.
        if self.flows.expire(self.now + OVER, most, |_, _, _| count += 1) {
            self.now += OVER;
        }
        count
    }

    fn len(&self) -> usize {
        self.flows.len()
    }

    fn memory(&self) -> usize {
        self.flows.memory()
    }
}

/// A hash map, and when flows end beside what is kept of them.
pub(super) struct Map(RapidHashMap<Tuple4, (FlowState, u64)>);

impl FlowStore for Map {
    const KEPT: usize = size_of::<FlowState>();

    fn new(_: usize) -> Map {
        Map(RapidHashMap::default())
    }

    fn clear(&mut self) {
        *self = Map::new(0);
    }

    fn insert(&mut self, key: Tuple4) {
        self.0.insert(key, (FlowState::default(), ENDS));
    }

    fn find_all(&mut self, keys: &[Tuple4]) -> usize {
        self.find_each(keys)
    }

    fn find_each(&mut self, keys: &[Tuple4]) -> usize {
        let mut count = 0;
        for key in keys {
            if let Some((seen, ends)) = self.0.get_mut(key) {
                (seen.packets, *ends) = (seen.packets + 1, ENDS);
                count += 1;
            }
        }
        count
    }

    fn expire(&mut self, _: usize) -> usize {
        let before = self.0.len();
        self.0.retain(|_, (_, ends)| *ends > OVER);
        before - self.0.len()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(Tuple4, (FlowState, u64))>()
    }
}
