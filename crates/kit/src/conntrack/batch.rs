//! The lookup of a burst.

use super::{Entry, Key, Slot, Table};

/// The keys of a burst, and the results of their lookup. A worker keeps one from burst to burst.
pub struct LookupBatch<K> {
    keys: Vec<K>,
    slots: Vec<Slot>,
}

impl<K> Default for LookupBatch<K> {
    fn default() -> Self {
        LookupBatch { keys: Vec::new(), slots: Vec::new() }
    }
}

impl<K: Key> LookupBatch<K> {
    /// Removes all keys.
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// Adds a key and returns its number.
    #[inline]
    pub fn push(&mut self, key: K) -> usize {
        self.keys.push(key);
        self.keys.len() - 1
    }

    /// Looks up all keys; see [`Table::find_all`].
    pub fn look_up<E: Entry<Key = K>>(&mut self, table: &Table<E>) {
        self.slots.clear();
        self.slots.resize(self.keys.len(), Slot::NONE);
        table.find_all(&self.keys, &mut self.slots);
    }

    /// All keys in order, each with the result of its lookup.
    #[inline]
    pub fn results(&self) -> impl Iterator<Item = (&K, Slot)> {
        self.keys.iter().zip(self.slots.iter().copied())
    }

    /// The key of a number.
    #[inline]
    pub fn key(&self, number: usize) -> K {
        self.keys[number]
    }

    /// The result of the lookup of a key.
    #[inline]
    pub fn slot(&self, number: usize) -> Slot {
        self.slots[number]
    }
}
