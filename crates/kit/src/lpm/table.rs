//! Longest-prefix match tables, with numbers and with values of any type.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::fib::{Fib, Leaf, MAX_VALUE};
use super::rib::{Entry, Rib};
use crate::address::Address;

/// The result of [`Lpm::lookup_batch`] for addresses without a route.
pub const NONE: u32 = u32::MAX;

/// Tables with more prefixes than this get the large root, which saves a level and takes 256 KiB.
const SMALL: usize = 256;

/// Longest-prefix match from addresses, in host byte order, to numbers: `u32` for IPv4, `u128` for
/// IPv6.
///
/// A clone increments one counter for each 64 KiB of the original. Afterwards the first change of a
/// 64 KiB chunk (256 KiB for the root) on either side copies that chunk.
#[derive(Clone, Debug)]
pub struct Lpm<A = u32> {
    fib: Fib<A>,
    rib: Rib<A>,
}

impl<A: Address> Default for Lpm<A> {
    fn default() -> Self {
        Lpm::new()
    }
}

impl<A: Address> Lpm<A> {
    /// The largest number of a prefix; larger ones are truncated to it.
    pub const MAX_NUMBER: u32 = MAX_VALUE;

    /// An empty table.
    pub fn new() -> Self {
        Lpm { fib: Fib::new(false), rib: Rib::new() }
    }

    /// A table of these `(address, length, number)`; of equal prefixes the last counts.
    pub fn build(prefixes: impl IntoIterator<Item = (A, u32, u32)>) -> Self {
        let entries = prefixes.into_iter().map(|(a, l, v)| entry(a, l, v)).collect();
        let rib = Rib::build(entries);
        Lpm { fib: build_fib(&rib), rib }
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.rib.len()
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that lookups may access, in bytes.
    pub fn memory(&self) -> usize {
        self.fib.memory()
    }

    /// The number of the longest prefix that covers `address`.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<u32> {
        Some(self.number(address)).filter(|&number| number != NONE)
    }

    /// The number of the longest prefix that covers `address`, or [`NONE`].
    #[inline(always)]
    pub fn number(&self, address: A) -> u32 {
        self.fib.lookup(address)
    }

    /// Looks up many addresses at once, which hides memory latency; the number is [`NONE`] if there
    /// is no route. Stops at the end of the shorter slice.
    pub fn lookup_batch(&self, addresses: &[A], numbers: &mut [u32]) {
        self.fib.lookup_batch(addresses, numbers);
    }

    /// The number of exactly this prefix.
    pub fn get(&self, address: A, length: u32) -> Option<u32> {
        let Entry { address, length, .. } = entry(address, length, 0);
        self.rib.get(address, length)
    }

    /// Adds or replaces a prefix and returns its previous number.
    ///
    /// Bits of `address` beyond `length` are ignored, and lengths are limited to the address size.
    pub fn insert(&mut self, address: A, length: u32, number: u32) -> Option<u32> {
        let entry = entry(address, length, number);
        let old = self.rib.insert(entry);
        if self.rib.len() > SMALL && !self.fib.is_large() {
            self.fib = build_fib(&self.rib);
        } else {
            self.fib.insert(entry.address, entry.length, Leaf::new(entry.length, entry.value));
        }
        old
    }

    /// Removes a prefix and returns its number.
    pub fn remove(&mut self, address: A, length: u32) -> Option<u32> {
        let Entry { address, length, .. } = entry(address, length, 0);
        let old = self.rib.remove(address, length)?;
        let cover = self.rib.cover(address, length);
        let leaf = cover.map_or(Leaf::EMPTY, |c| Leaf::new(c.length, c.value));
        self.fib.remove(address, length, leaf);
        Some(old)
    }

    /// All `(address, length, number)` by address; those shorter than 8 bits come last.
    pub fn iter(&self) -> impl Iterator<Item = (A, u32, u32)> {
        self.rib.iter().map(|e| (e.address, e.length, e.value))
    }

    #[cfg(test)]
    pub(crate) fn nodes(&self) -> usize {
        self.fib.used()
    }
}

fn entry<A: Address>(address: A, length: u32, value: u32) -> Entry<A> {
    let length = length.min(A::BITS);
    Entry { address: address.prefix(length), length, value: value.min(MAX_VALUE) }
}

fn build_fib<A: Address>(rib: &Rib<A>) -> Fib<A> {
    let mut fib = Fib::new(rib.len() > SMALL);
    for e in rib.iter() {
        fib.insert(e.address, e.length, Leaf::new(e.length, e.value));
    }
    fib
}

/// Longest-prefix match from addresses to values. Each distinct value is stored once.
#[derive(Clone, Debug)]
pub struct Table<V, A = u32> {
    lpm: Lpm<A>,
    values: Arc<Values<V>>,
}

/// The values in use, by number.
#[derive(Clone, Debug)]
struct Values<V> {
    slots: Vec<V>,
    /// How many of these, the first ones, always have their numbers.
    first: usize,
    /// How many prefixes have each value, and one more for the first ones.
    counts: Vec<usize>,
    numbers: HashMap<V, u32>,
    free: Vec<u32>,
}

impl<V, A: Address> Default for Table<V, A> {
    fn default() -> Self {
        let values = Values {
            slots: Vec::new(),
            first: 0,
            counts: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
        };
        Table { lpm: Lpm::new(), values: Arc::new(values) }
    }
}

impl<V, A: Address> Table<V, A> {
    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.lpm.len()
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.lpm.is_empty()
    }

    /// The value of the longest prefix that covers `address`, in host byte order.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<&V> {
        self.value(self.lpm.number(address))
    }

    /// The table of numbers, which [`Table::value`] maps to values; for batches.
    pub fn lpm(&self) -> &Lpm<A> {
        &self.lpm
    }

    /// The value of a number from a lookup; `None` for [`NONE`].
    #[inline]
    pub fn value(&self, number: u32) -> Option<&V> {
        self.values.slots.get(number as usize)
    }

    /// The value of exactly this prefix.
    pub fn get(&self, address: A, length: u32) -> Option<&V> {
        self.value(self.lpm.get(address, length)?)
    }

    /// All `(address, length, value)`, in the order of [`Lpm::iter`].
    pub fn iter(&self) -> impl Iterator<Item = (A, u32, &V)> {
        self.lpm.iter().filter_map(|(a, l, n)| Some((a, l, self.value(n)?)))
    }
}

impl<V: Clone + Eq + Hash, A: Address> Table<V, A> {
    /// A table of these `(address, length, value)`; of equal prefixes the last counts.
    pub fn build(prefixes: impl IntoIterator<Item = (A, u32, V)>) -> Self {
        Table::default().filled(prefixes)
    }

    /// An empty table in which these values, all different, have the numbers from 0 on, whether a prefix has
    /// them or not.
    pub fn with_first(first: impl IntoIterator<Item = V>) -> Self {
        let mut table = Table::default();
        let values = Arc::make_mut(&mut table.values);
        first.into_iter().for_each(|value| _ = values.acquire(value));
        values.first = values.slots.len();
        table
    }

    /// The table with these `(address, length, value)` instead of its own; of equal prefixes the last counts.
    pub fn filled(mut self, prefixes: impl IntoIterator<Item = (A, u32, V)>) -> Self {
        let values = Arc::make_mut(&mut self.values);
        let numbered = prefixes.into_iter().map(|(a, l, v)| (a, l, values.acquire(v)));
        self.lpm = Lpm::build(numbered);
        let mut counts = vec![0; values.slots.len()];
        counts[..values.first].fill(1);
        self.lpm.iter().for_each(|(_, _, number)| counts[number as usize] += 1);
        // A replaced duplicate may have been the only prefix with its value.
        let unused = (0..counts.len()).filter(|&n| counts[n] == 0);
        let unused: Vec<u32> = unused.map(|n| n as u32).collect();
        values.counts = counts;
        unused.into_iter().for_each(|number| values.free_number(number));
        self
    }

    /// Adds or replaces a prefix and returns its previous value.
    ///
    /// More than [`Lpm::MAX_NUMBER`] different values cannot be distinguished.
    pub fn insert(&mut self, address: A, length: u32, value: V) -> Option<V> {
        let values = Arc::make_mut(&mut self.values);
        let number = values.acquire(value);
        let old = self.lpm.insert(address, length, number)?;
        Some(values.release(old))
    }

    /// Removes a prefix and returns its value.
    pub fn remove(&mut self, address: A, length: u32) -> Option<V> {
        let old = self.lpm.remove(address, length)?;
        Some(Arc::make_mut(&mut self.values).release(old))
    }
}

impl<V: Clone + Eq + Hash> Values<V> {
    /// The number of a value, with one more prefix counted.
    fn acquire(&mut self, value: V) -> u32 {
        if let Some(&number) = self.numbers.get(&value) {
            self.counts[number as usize] += 1;
            return number;
        }
        let number = self.free.pop().unwrap_or(self.slots.len() as u32).min(MAX_VALUE);
        if number as usize == self.slots.len() {
            self.slots.push(value.clone());
            self.counts.push(1);
        } else {
            self.slots[number as usize] = value.clone();
            self.counts[number as usize] += 1;
        }
        self.numbers.insert(value, number);
        number
    }

    fn release(&mut self, number: u32) -> V {
        let count = &mut self.counts[number as usize];
        *count -= 1;
        let value = self.slots[number as usize].clone();
        if *count == 0 {
            self.free_number(number);
        }
        value
    }

    fn free_number(&mut self, number: u32) {
        self.numbers.remove(&self.slots[number as usize]);
        self.free.push(number);
    }
}
