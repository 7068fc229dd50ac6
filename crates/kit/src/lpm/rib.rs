//! The prefixes themselves, which removals and listings need and lookups do not.

use std::sync::Arc;

/// One prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) address: u32,
    pub(crate) length: u32,
    pub(crate) value: u32,
}

impl Entry {
    fn key(&self) -> (u32, u32) {
        (self.address, self.length)
    }
}

/// Sorted vectors, one for each first octet and one for prefixes shorter than that.
///
/// An update copies one of them if it is shared: 12 bytes for each of its prefixes.
#[derive(Clone, Debug)]
pub(crate) struct Rib {
    shelves: Arc<[Arc<Vec<Entry>>]>,
    len: usize,
}

const SHORT: usize = 256;

fn shelf(address: u32, length: u32) -> usize {
    if length < 8 { SHORT } else { (address >> 24) as usize }
}

impl Rib {
    pub(crate) fn new() -> Self {
        let empty = Arc::new(Vec::new());
        Rib { shelves: vec![empty; SHORT + 1].into(), len: 0 }
    }

    /// The prefixes given, of which the last counts among equal ones.
    pub(crate) fn build(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(Entry::key);
        let mut shelves = vec![Vec::new(); SHORT + 1];
        for entry in entries {
            let shelf: &mut Vec<Entry> = &mut shelves[shelf(entry.address, entry.length)];
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

    pub(crate) fn get(&self, address: u32, length: u32) -> Option<u32> {
        let shelf = &self.shelves[shelf(address, length)];
        let at = shelf.binary_search_by_key(&(address, length), Entry::key).ok()?;
        Some(shelf[at].value)
    }

    /// Adds or replaces a prefix and returns the value it had.
    pub(crate) fn insert(&mut self, entry: Entry) -> Option<u32> {
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
    pub(crate) fn remove(&mut self, address: u32, length: u32) -> Option<u32> {
        self.get(address, length)?;
        let shelf = self.shelf_mut(address, length);
        let at = shelf.binary_search_by_key(&(address, length), Entry::key).ok()?;
        let value = shelf.remove(at).value;
        self.len -= 1;
        Some(value)
    }

    fn shelf_mut(&mut self, address: u32, length: u32) -> &mut Vec<Entry> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shelves)[shelf(address, length)])
    }

    /// The longest prefix shorter than `length` that covers `address`.
    pub(crate) fn cover(&self, address: u32, length: u32) -> Option<Entry> {
        (0..length).rev().find_map(|length| {
            let address = address & crate::text::mask_of(length)?;
            Some(Entry { address, length, value: self.get(address, length)? })
        })
    }

    /// All prefixes, those of each first octet by address and length.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.shelves.iter().flat_map(|shelf| shelf.iter())
    }
}
