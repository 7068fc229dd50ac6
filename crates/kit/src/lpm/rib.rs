//! The set of prefixes, which removals and listings need and lookups do not.

use std::sync::Arc;

use crate::address::Address;

/// A prefix with its value.
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
/// An update copies one vector if it is shared: 12 bytes for each of its prefixes (32 for IPv6).
#[derive(Clone, Debug)]
pub(crate) struct Rib<A> {
    buckets: Arc<[Arc<Vec<Entry<A>>>]>,
    len: usize,
}

const SHORT_PREFIXES: usize = 256;

fn bucket<A: Address>(address: A, length: u32) -> usize {
    if length < 8 { SHORT_PREFIXES } else { address.high_bits(A::BITS - 8) as usize }
}

impl<A: Address> Rib<A> {
    pub(crate) fn new() -> Self {
        let empty = Arc::new(Vec::new());
        Rib { buckets: vec![empty; SHORT_PREFIXES + 1].into(), len: 0 }
    }

    /// The set of these prefixes; of equal ones the last counts.
    pub(crate) fn build(mut entries: Vec<Entry<A>>) -> Self {
        entries.sort_by_key(Entry::key);
        let mut buckets = vec![Vec::new(); SHORT_PREFIXES + 1];
        for entry in entries {
            let bucket: &mut Vec<Entry<A>> = &mut buckets[bucket(entry.address, entry.length)];
            match bucket.last_mut() {
                Some(last) if last.key() == entry.key() => *last = entry,
                _ => bucket.push(entry),
            }
        }
        let len = buckets.iter().map(Vec::len).sum();
        Rib { buckets: buckets.into_iter().map(Arc::new).collect(), len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, address: A, length: u32) -> Option<u32> {
        let bucket = &self.buckets[bucket(address, length)];
        let at = bucket.binary_search_by_key(&(address, length), Entry::key).ok()?;
        Some(bucket[at].value)
    }

    /// Adds or replaces a prefix and returns its previous value.
    pub(crate) fn insert(&mut self, entry: Entry<A>) -> Option<u32> {
        let bucket = self.bucket_mut(entry.address, entry.length);
        match bucket.binary_search_by_key(&entry.key(), Entry::key) {
            Ok(at) => Some(std::mem::replace(&mut bucket[at], entry).value),
            Err(at) => {
                bucket.insert(at, entry);
                self.len += 1;
                None
            }
        }
    }

    /// Removes a prefix and returns its value.
    pub(crate) fn remove(&mut self, address: A, length: u32) -> Option<u32> {
        self.get(address, length)?;
        let bucket = self.bucket_mut(address, length);
        let at = bucket.binary_search_by_key(&(address, length), Entry::key).ok()?;
        let value = bucket.remove(at).value;
        self.len -= 1;
        Some(value)
    }

    fn bucket_mut(&mut self, address: A, length: u32) -> &mut Vec<Entry<A>> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.buckets)[bucket(address, length)])
    }

    /// The longest prefix shorter than `length` that covers `address`.
    pub(crate) fn cover(&self, address: A, length: u32) -> Option<Entry<A>> {
        (0..length).rev().find_map(|length| {
            let address = address.prefix(length);
            Some(Entry { address, length, value: self.get(address, length)? })
        })
    }

    /// All prefixes by first octet, and within an octet by address and length.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<A>> {
        self.buckets.iter().flat_map(|bucket| bucket.iter())
    }
}
