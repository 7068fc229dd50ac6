//! The prefixes themselves, which removals and listings need and lookups do not.

use std::sync::Arc;

use crate::address::Address;

/// One prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<A> {
    pub(crate) address: A,
    pub(crate) length: u32,
    pub(crate) value: u32,
}

impl<A: Address> Entry<A> {
    fn key(&self) -> (A, u32) {
        (self.address, self.length)
    }
}

/// Sorted vectors, one for each first octet and one for prefixes shorter than that.
///
/// An update copies one of them if it is shared: 12 bytes for each of its prefixes (32 of IPv6).
#[derive(Clone, Debug)]
pub(crate) struct Rib<A> {
    shelves: Arc<[Arc<Vec<Entry<A>>>]>,
    len: usize,
}

const SHORT: usize = 256;

fn shelf<A: Address>(address: A, length: u32) -> usize {
    if length < 8 { SHORT } else { address.above(A::BITS - 8) as usize }
}

impl<A: Address> Rib<A> {
    pub(crate) fn new() -> Self {
        let empty = Arc::new(Vec::new());
        Rib { shelves: vec![empty; SHORT + 1].into(), len: 0 }
    }

    /// The prefixes given, of which the last counts among equal ones.
    pub(crate) fn build(mut entries: Vec<Entry<A>>) -> Self {
        entries.sort_by_key(Entry::key);
        let mut shelves = vec![Vec::new(); SHORT + 1];
        for entry in entries {
            let shelf: &mut Vec<Entry<A>> = &mut shelves[shelf(entry.address, entry.length)];
            match shelf.last_mut() {
                Some(last) if last.key() == entry.key() => *last = entry,
                _ => shelf.push(entry),
            }
        }
        let len = shelves.iter().map(Vec::len).sum();
        Rib { shelves: shelves.into_iter().map(Arc::new).collect(), len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, address: A, length: u32) -> Option<u32> {
        let shelf = &self.shelves[shelf(address, length)];
        let at = shelf.binary_search_by_key(&(address, length), Entry::key).ok()?;
        Some(shelf[at].value)
    }

    /// Adds or replaces a prefix and returns the value it had.
    pub(crate) fn insert(&mut self, entry: Entry<A>) -> Option<u32> {
        let shelf = self.shelf_mut(entry.address, entry.length);
        match shelf.binary_search_by_key(&entry.key(), Entry::key) {
            Ok(at) => Some(std::mem::replace(&mut shelf[at], entry).value),
            Err(at) => {
                shelf.insert(at, entry);
                self.len += 1;
                None
            }
        }
    }

    /// Removes a prefix and returns the value it had.
    pub(crate) fn remove(&mut self, address: A, length: u32) -> Option<u32> {
        self.get(address, length)?;
        let shelf = self.shelf_mut(address, length);
        let at = shelf.binary_search_by_key(&(address, length), Entry::key).ok()?;
        let value = shelf.remove(at).value;
        self.len -= 1;
        Some(value)
    }

    fn shelf_mut(&mut self, address: A, length: u32) -> &mut Vec<Entry<A>> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shelves)[shelf(address, length)])
    }

    /// The longest prefix shorter than `length` that covers `address`.
    pub(crate) fn cover(&self, address: A, length: u32) -> Option<Entry<A>> {
        (0..length).rev().find_map(|length| {
            let address = address.prefix(length);
            Some(Entry { address, length, value: self.get(address, length)? })
        })
    }

    /// All prefixes, those of each first octet by address and length.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<A>> {
        self.shelves.iter().flat_map(|shelf| shelf.iter())
    }
}
