//! Rates of traffic by address, in more detail where there is more: a tree with a level for each byte.
//!
//! The arithmetic, the bounds and the form of the listing are those of Click's `IPRateMonitor`.

use crate::ewma::DirectEwma;
use crate::units::fixed_point;
use std::net::Ipv4Addr;

/// Fraction bits of an average.
const SCALE: u32 = 10;
/// An average of events in an epoch, in which the latest has weight 1/32.
type Average = DirectEwma<5, SCALE>;

/// An epoch, in nanoseconds.
const EPOCH: u64 = 8_000_000;
/// Epochs in a second.
pub const EPOCHS: u64 = 125;
/// Bytes that a counter counts for.
const COUNTER_BYTES: usize = 40;
/// Bytes that a table counts for: 256 places and its links.
const TABLE_BYTES: usize = 2080;
/// Counters of a table, one for each value of a byte.
const COUNTERS: usize = 256;

/// The number of the epoch at a time in nanoseconds.
pub fn epoch(nanos: u64) -> u64 {
    nanos / EPOCH
}

/// The direction of a packet, and so the address that it counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the address.
    Forward,
    /// To the address.
    Reverse,
}

/// Rates of both directions, forward first.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    epoch: u64,
    totals: [u64; 2],
    averages: [Average; 2],
}

impl Rates {
    fn advance(&mut self, epoch: u64) {
        if epoch <= self.epoch {
            return;
        }
        for (average, total) in self.averages.iter_mut().zip(&mut self.totals) {
            average.update(std::mem::take(total));
            average.update_n(0, epoch - self.epoch - 1);
        }
        self.epoch = epoch;
    }

    /// Events a second of both directions.
    fn per_second(&self) -> [u64; 2] {
        self.averages.map(|average| average.scaled().saturating_mul(EPOCHS) >> SCALE)
    }

    fn is_zero(&self) -> bool {
        self.averages.iter().all(|average| average.scaled() == 0)
    }
}

/// The rates of the addresses that begin with certain bytes.
#[derive(Debug)]
struct Counter {
    rates: Rates,
    /// The table of the next byte.
    next: Option<usize>,
    /// There is no such table before this epoch.
    closed_until: u64,
}

/// The counters of one byte behind certain others.
#[derive(Debug)]
struct Table {
    /// The table and the byte of the counter above; none for the first byte.
    parent: Option<(usize, u8)>,
    counters: Vec<Option<Counter>>,
}

/// The tables of a monitor.
#[derive(Debug)]
pub struct RateTree {
    /// The tables; a place without one is free.
    tables: Vec<Option<Table>>,
    /// The tables but the first, from the oldest on.
    ages: Vec<usize>,
    bytes: usize,
    last_fold: Option<u64>,
}

/// The bound of a monitor without one of its own, so that a flood does not take all memory.
pub const UNLIMITED: usize = 256 << 20;

/// The arguments of a monitor.
#[derive(Clone, Copy, Debug)]
pub struct RateLimits {
    /// Events a second from which on a counter has a table behind it.
    pub threshold: u64,
    /// Most bytes of memory.
    pub memory: usize,
}

/// One packet.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// The address that it counts for.
    pub address: Ipv4Addr,
    /// Whether it comes from there or goes there.
    pub direction: Direction,
    /// Its number of events; none if it only reads the rates.
    pub events: Option<u64>,
    /// The epoch in which it came.
    pub epoch: u64,
}

impl Default for RateTree {
    fn default() -> Self {
        let mut tree = RateTree { tables: Vec::new(), ages: Vec::new(), bytes: 0, last_fold: None };
        tree.add_table(None);
        tree
    }
}

impl RateTree {
    /// Bytes of memory in use, as Click counts them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a packet, and returns the rates of the longest part of its address that has any,
    /// forward first, a second. `None` if there is no memory for a counter.
    pub fn update(
        &mut self,
        limits: &RateLimits,
        sample: &RateSample,
        random: impl FnMut() -> u64,
    ) -> Option<[u64; 2]> {
        let bytes = sample.address.octets();
        let (mut at, mut level) = (0, 0);
        loop {
            self.add_counter(
                limits,
                at,
                bytes[level],
                Rates { epoch: sample.epoch, ..Rates::default() },
            )?;
            let counter = self.counter_mut(at, bytes[level])?;
            if let Some(events) = sample.events {
                counter.rates.advance(sample.epoch);
                counter.rates.totals[sample.direction as usize] += events;
            }
            match counter.next.filter(|_| level + 1 < bytes.len()) {
                Some(next) => (at, level) = (next, level + 1),
                None => break,
            }
        }
        let counter = self.counter_mut(at, bytes[level])?;
        let (rates, closed_until) = (counter.rates, counter.closed_until);
        let per_second = rates.per_second();
        let is_fast = per_second.iter().any(|rate| *rate >= limits.threshold);
        let room = self.bytes + COUNTER_BYTES + TABLE_BYTES <= limits.memory;
        if closed_until < sample.epoch && is_fast && level + 1 < bytes.len() && room {
            let next = self.add_table(Some((at, bytes[level])));
            self.add_counter(limits, next, bytes[level + 1], rates);
            self.counter_mut(at, bytes[level])?.next = Some(next);
        }
        if sample.epoch - *self.last_fold.get_or_insert(sample.epoch) >= EPOCHS {
            self.last_fold = Some(sample.epoch);
            let share = self.bytes / 10 * 9;
            let memory = if limits.memory == UNLIMITED { share } else { limits.memory };
            self.fold(limits.threshold, memory, sample.epoch, random);
        }
        Some(per_second)
    }

    /// Removes tables of slow counters until no more than `memory` bytes are in use.
    pub fn shrink(&mut self, limits: &RateLimits, epoch: u64, mut random: impl FnMut() -> u64) {
        let mut threshold = limits.threshold;
        while self.bytes > limits.memory && !self.ages.is_empty() {
            self.fold(threshold, limits.memory, epoch, &mut random);
            threshold += (limits.threshold / 5).max(threshold / 8) + 1;
        }
    }

    /// Removes all counters.
    pub fn clear(&mut self) {
        *self = RateTree { last_fold: self.last_fold, ..RateTree::default() };
    }

    /// Has no table behind the first `level + 1` bytes of `address` until an epoch.
    pub fn close(&mut self, address: Ipv4Addr, level: usize, until: u64) {
        let bytes = address.octets();
        let mut at = 0;
        for byte in &bytes[..level] {
            let Some(next) = self.counter_mut(at, *byte).and_then(|it| it.next) else { return };
            at = next;
        }
        let Some(counter) = self.counter_mut(at, bytes[level]) else { return };
        counter.closed_until = until;
        if let Some(next) = counter.next.take() {
            self.remove_table(next);
        }
    }

    /// The rates at an epoch, a line for each counter with any, below that of the bytes before it.
    pub fn listing(&self, epoch: u64) -> String {
        let mut text = String::new();
        self.list(0, "", epoch, &mut text);
        text
    }

    fn list(&self, at: usize, before: &str, epoch: u64, text: &mut String) {
        let Some(table) = &self.tables[at] else { return };
        for (byte, counter) in table.counters.iter().enumerate() {
            let Some(counter) = counter.as_ref().filter(|it| !it.rates.is_zero()) else { continue };
            let name =
                if before.is_empty() { byte.to_string() } else { format!("{before}.{byte}") };
            let mut rates = counter.rates;
            rates.advance(epoch);
            let [forward, reverse] = rates
                .averages
                .map(|average| fixed_point(average.scaled().saturating_mul(EPOCHS), SCALE));
            *text += &format!("{name}\t{forward}\t{reverse}\n");
            if let Some(next) = counter.next {
                self.list(next, &format!("\t{name}"), epoch, text);
            }
        }
    }

    fn counter_mut(&mut self, table: usize, byte: u8) -> Option<&mut Counter> {
        self.tables[table].as_mut()?.counters[usize::from(byte)].as_mut()
    }

    /// Makes a counter if there is none. `None` if there is no memory for it.
    fn add_counter(
        &mut self,
        limits: &RateLimits,
        table: usize,
        byte: u8,
        rates: Rates,
    ) -> Option<()> {
        let place = &mut self.tables[table].as_mut()?.counters[usize::from(byte)];
        if place.is_none() {
            if self.bytes + COUNTER_BYTES > limits.memory {
                return None;
            }
            *place = Some(Counter { rates, next: None, closed_until: 0 });
            self.bytes += COUNTER_BYTES;
        }
        Some(())
    }

    fn add_table(&mut self, parent: Option<(usize, u8)>) -> usize {
        let counters = (0..COUNTERS).map(|_| None).collect();
        let free = self.tables.iter().position(Option::is_none).unwrap_or(self.tables.len());
        self.tables.resize_with(self.tables.len().max(free + 1), || None);
        self.tables[free] = Some(Table { parent, counters });
        self.bytes += TABLE_BYTES;
        if parent.is_some() {
            self.ages.push(free);
        }
        free
    }

    /// Removes a table with those behind it.
    fn remove_table(&mut self, at: usize) {
        let Some(table) = self.tables[at].take() else { return };
        self.ages.retain(|it| *it != at);
        self.bytes -= TABLE_BYTES;
        for counter in table.counters.into_iter().flatten() {
            self.bytes -= COUNTER_BYTES;
            counter.next.into_iter().for_each(|next| self.remove_table(next));
        }
        if let Some((above, byte)) = table.parent
            && let Some(counter) = self.counter_mut(above, byte)
        {
            counter.next = None;
        }
    }

    /// Removes tables behind counters whose averages, as scaled numbers, are below `threshold`, from
    /// either end of the list of ages, until less than `memory` bytes are in use.
    fn fold(&mut self, threshold: u64, memory: usize, epoch: u64, mut random: impl FnMut() -> u64) {
        let mut order = self.ages.clone();
        if random() & 1 == 1 {
            order.reverse();
        }
        for at in order {
            let parent = self.tables[at].as_ref().and_then(|table| table.parent);
            let Some((above, byte)) = parent else { continue };
            let Some(counter) = self.counter_mut(above, byte) else { continue };
            counter.rates.advance(epoch);
            if counter.rates.averages.iter().all(|average| average.scaled() < threshold) {
                self.remove_table(at);
                if self.bytes < memory {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RateLimits = RateLimits { threshold: 1000, memory: UNLIMITED };

    fn count(
        tree: &mut RateTree,
        limits: &RateLimits,
        address: [u8; 4],
        epoch: u64,
    ) -> Option<[u64; 2]> {
        let direction = Direction::Forward;
        let sample = RateSample { address: address.into(), direction, events: Some(100), epoch };
        tree.update(limits, &sample, || 0)
    }

    #[test]
    fn fast_addresses_get_tables_and_slow_ones_lose_them() {
        let mut tree = RateTree::default();
        assert_eq!(tree.bytes(), 2080);
        for epoch in 0..400 {
            count(&mut tree, &LIMITS, [1, 2, 3, 4], epoch);
        }
        // 100 events in 8 ms are 12 500 a second, which the average approaches.
        let rates = count(&mut tree, &LIMITS, [1, 2, 3, 4], 400).unwrap();
        assert!((12490..=12500).contains(&rates[0]) && rates[1] == 0, "{rates:?}");
        assert_eq!(tree.bytes(), 4 * (2080 + 40));
        let lines: Vec<_> =
            tree.listing(400).lines().map(|it| it.split(['\t', ' ']).count()).collect();
        assert_eq!(lines, [3, 4, 5, 6]);
        count(&mut tree, &LIMITS, [9, 0, 0, 1], 1000);
        assert_eq!(tree.bytes(), 2080 + 2 * 40);
        tree.clear();
        assert_eq!((tree.bytes(), tree.listing(1000)), (2080, String::new()));
    }

    #[test]
    fn memory_is_bounded_and_levels_can_be_closed() {
        let limits = RateLimits { threshold: 0, memory: 100 * 1024 };
        let mut tree = RateTree::default();
        for n in 0..2000u32 {
            let [_, _, high, low] = n.to_be_bytes();
            count(&mut tree, &limits, [low, high, low, high], u64::from(n) + 1);
            assert!(tree.bytes() <= limits.memory);
        }
        let small = RateLimits { memory: 20 * 1024, ..limits };
        tree.shrink(&small, 3000, || 1);
        assert!(tree.bytes() <= small.memory);
        tree.clear();
        for epoch in 3001..3010 {
            count(&mut tree, &limits, [1, 2, 3, 4], epoch);
        }
        tree.close([1, 2, 0, 0].into(), 1, 4000);
        assert_eq!(tree.bytes(), 2 * (2080 + 40));
        count(&mut tree, &limits, [1, 2, 3, 4], 3011);
        assert_eq!(tree.bytes(), 2 * (2080 + 40));
        count(&mut tree, &limits, [1, 2, 3, 4], 4001);
        assert_eq!(tree.bytes(), 3 * (2080 + 40));
    }
}
