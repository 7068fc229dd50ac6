//! A map of bounded size with least-recently-used eviction.

use rapidhash::RapidHashMap;
use std::hash::Hash;

/// Entries by key, in the order of their last use. Operations on one entry take constant time.
#[derive(Clone, Debug)]
pub struct Lru<K, V> {
    index: RapidHashMap<K, u32>,
    nodes: Vec<Node<K, V>>,
    /// Indices of unused nodes.
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

#[derive(Clone, Debug)]
struct Node<K, V> {
    entry: Option<(K, V)>,
    older: u32,
    newer: u32,
}

/// No entry.
const NIL: u32 = u32::MAX;

impl<K, V> Default for Lru<K, V> {
    fn default() -> Self {
        let (index, nodes, free) = Default::default();
        Lru { index, nodes, free, oldest: NIL, newest: NIL }
    }
}

impl<K: Copy + Eq + Hash, V> Lru<K, V> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The value of a key, without counting as a use.
    pub fn peek(&self, key: &K) -> Option<&V> {
        let at = *self.index.get(key)?;
        self.nodes[at as usize].entry.as_ref().map(|(_, value)| value)
    }

    /// The least recently used entry, without counting as a use.
    pub fn peek_oldest(&self) -> Option<(&K, &V)> {
        let oldest = self.nodes.get(self.oldest as usize)?;
        oldest.entry.as_ref().map(|(key, value)| (key, value))
    }

    /// The value of a key, which becomes the most recently used.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = *self.index.get(key)?;
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
        self.nodes[at as usize].entry.as_mut().map(|(_, value)| value)
    }

    /// Adds an entry or replaces its value. If there are `capacity` entries already (at least one),
    /// the least recently used one is removed and returned.
    pub fn insert(&mut self, key: K, value: V, capacity: usize) -> Option<(K, V)> {
        if let Some(old) = self.get_mut(&key) {
            *old = value;
            return None;
        }
        let room = self.len() < capacity.clamp(1, NIL as usize);
        let displaced = if room { None } else { self.pop_oldest() };
        let node = Node { entry: Some((key, value)), older: NIL, newer: NIL };
        let at = self.free.pop().unwrap_or(self.nodes.len() as u32);
        match self.nodes.get_mut(at as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        self.index.insert(key, at);
        self.link(at);
        displaced
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.index.remove(key)?;
        self.unlink(at);
        self.free.push(at);
        self.nodes[at as usize].entry.take().map(|(_, value)| value)
    }

    /// Removes the least recently used entry.
    pub fn pop_oldest(&mut self) -> Option<(K, V)> {
        let key = self.nodes.get(self.oldest as usize)?.entry.as_ref()?.0;
        self.remove(&key).map(|value| (key, value))
    }

    /// Removes all entries for which `stays` is false.
    pub fn retain(&mut self, mut stays: impl FnMut(&K, &V) -> bool) {
        let entries = self.iter().filter(|(key, value)| !stays(key, value));
        let removed: Vec<K> = entries.map(|(key, _)| *key).collect();
        removed.iter().for_each(|key| drop(self.remove(key)));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = Lru::default();
    }

    /// All entries, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.nodes.iter().filter_map(|node| node.entry.as_ref().map(|(key, value)| (key, value)))
    }

    fn link(&mut self, at: u32) {
        let newest = std::mem::replace(&mut self.newest, at);
        match self.nodes.get_mut(newest as usize) {
            Some(node) => node.newer = at,
            None => self.oldest = at,
        }
        let node = &mut self.nodes[at as usize];
        (node.older, node.newer) = (newest, NIL);
    }

    fn unlink(&mut self, at: u32) {
        let Node { older, newer, .. } = self.nodes[at as usize];
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a list in the order of use.
        #[test]
        fn it_agrees_with_a_list(
            capacity in 1..6usize,
            steps in prop::collection::vec((0..4u8, 0..9u32), 0..200),
        ) {
            let (mut map, mut list) = (Lru::default(), Vec::<(u32, usize)>::new());
            for (n, (step, key)) in steps.into_iter().enumerate() {
                let at = list.iter().position(|it| it.0 == key);
                match step {
                    0 => {
                        let found = map.get_mut(&key).copied();
                        let used = at.map(|at| list.remove(at));
                        prop_assert_eq!(found, used.map(|it| it.1));
                        list.extend(used);
                    }
                    1 => {
                        let removed = at.map(|at| list.remove(at).1);
                        prop_assert_eq!(map.remove(&key), removed);
                    }
                    _ => {
                        at.map(|at| list.remove(at));
                        let displaced = (list.len() >= capacity).then(|| list.remove(0));
                        list.push((key, n));
                        prop_assert_eq!(map.insert(key, n, capacity), displaced);
                    }
                }
                prop_assert_eq!(map.len(), list.len());
                prop_assert!(list.iter().all(|(key, value)| map.peek(key) == Some(value)));
                prop_assert!(map.nodes.len() <= capacity);
                let oldest = map.peek_oldest().map(|(&key, &value)| (key, value));
                prop_assert_eq!(oldest, list.first().copied());
            }
            map.retain(|_, n| n % 2 == 0);
            list.retain(|(_, n)| n % 2 == 0);
            while let Some(oldest) = map.pop_oldest() {
                prop_assert_eq!(oldest, list.remove(0));
            }
            prop_assert!(list.is_empty() && map.is_empty());
        }
    }
}
