//! The trie of lookups: a level of 16 bits, then levels of 8; in small tables always 8.
//!
//! Every entry is a leaf or leads to a node of 256 entries. A prefix that ends inside a level is
//! copied to all entries that it covers, with its length, so that a lookup needs no backtracking.
//! Memory is 256 KiB for the root of large tables (1 KiB of small ones) and 1 KiB for each block of
//! 256 addresses or networks with a longer prefix inside.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::address::Address;

/// Set in entries that lead to a node.
const CHILD: u32 = 1 << 31;
/// The position of the prefix length (up to 128) in a leaf.
const LENGTH_SHIFT: u32 = 23;
/// The bits of a leaf's value, plus one: an empty leaf is zero.
const VALUE: u32 = (1 << LENGTH_SHIFT) - 1;
/// The largest value that a leaf can hold.
pub(crate) const MAX_VALUE: u32 = VALUE - 1;

/// Nodes are allocated, and copied when shared, in chunks of 64 KiB.
const CHUNK_NODES: u32 = 64;
const CHUNK_ENTRIES: usize = 64 * 256;

/// How many addresses a batch looks up at once, to overlap their cache misses.
const LANES: usize = 16;

type Chunk = [u32; CHUNK_ENTRIES];

/// A leaf, as it is stored in entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf(u32);

impl Leaf {
    pub(crate) const EMPTY: Leaf = Leaf(0);

    pub(crate) fn new(length: u32, value: u32) -> Self {
        debug_assert!(value <= MAX_VALUE);
        Leaf(length << LENGTH_SHIFT | (value + 1))
    }

    fn length(self) -> u32 {
        self.0 >> LENGTH_SHIFT
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Fib<A> {
    root: Arc<[u32]>,
    /// How far to shift an address to index the root.
    shift: u32,
    chunks: Vec<Arc<Chunk>>,
    /// Nodes handed out so far, in use or free.
    nodes: u32,
    free: Vec<u32>,
    marker: PhantomData<A>,
}

impl<A: Address> Fib<A> {
    /// An empty trie; the root of small tables is 1 KiB.
    pub(crate) fn new(large: bool) -> Self {
        let (entries, shift) = if large { (1 << 16, A::BITS - 16) } else { (1 << 8, A::BITS - 8) };
        let root = vec![0; entries].into();
        Fib { root, shift, chunks: Vec::new(), nodes: 0, free: Vec::new(), marker: PhantomData }
    }

    pub(crate) fn is_large(&self) -> bool {
        self.shift == A::BITS - 16
    }

    pub(crate) fn memory(&self) -> usize {
        self.root.len() * 4 + self.chunks.len() * size_of::<Chunk>()
    }

    /// The value of an address, or [`super::NONE`], which is 0 - 1.
    #[inline(always)]
    pub(crate) fn lookup(&self, address: A) -> u32 {
        let mut shift = self.shift;
        let mut entry = self.root[address.high_bits(shift) as usize];
        while entry & CHILD != 0 {
            shift -= 8;
            entry = self.entry(entry, address.high_bits(shift));
        }
        (entry & VALUE).wrapping_sub(1)
    }

    /// The entry of the node that `parent` leads to.
    #[inline(always)]
    fn entry(&self, parent: u32, index: u32) -> u32 {
        let node = parent & !CHILD;
        let chunk = &self.chunks[(node / CHUNK_NODES) as usize];
        chunk[entry_index(node, index & 255)]
    }

    /// The values of many addresses.
    pub(crate) fn lookup_batch(&self, addresses: &[A], values: &mut [u32]) {
        for (addresses, values) in addresses.chunks(LANES).zip(values.chunks_mut(LANES)) {
            let mut entries = [0; LANES];
            let mut deeper = 0;
            for (entry, address) in entries.iter_mut().zip(addresses) {
                *entry = self.root[address.high_bits(self.shift) as usize];
                deeper |= *entry;
            }
            let mut shift = self.shift;
            while deeper & CHILD != 0 {
                shift -= 8;
                deeper = 0;
                for (entry, address) in entries.iter_mut().zip(addresses) {
                    // Leaves read node 0 and discard it: a branch here would depend on a cache
                    // miss, and its misprediction would end the overlap.
                    let child = *entry & CHILD != 0;
                    let below =
                        self.entry(if child { *entry } else { 0 }, address.high_bits(shift));
                    *entry = if child { below } else { *entry };
                    deeper |= *entry;
                }
            }
            for (value, entry) in values.iter_mut().zip(entries) {
                *value = (entry & VALUE).wrapping_sub(1);
            }
        }
    }

    /// Writes a prefix's leaf to the entries that it covers and that have no longer prefix.
    pub(crate) fn insert(&mut self, address: A, length: u32, leaf: Leaf) {
        self.change(address, length, |old| if old.length() <= length { leaf } else { old });
    }

    /// Replaces a prefix's leaves by `cover`, the leaf of the next shorter prefix.
    pub(crate) fn remove(&mut self, address: A, length: u32, cover: Leaf) {
        self.change(address, length, |old| {
            if old != Leaf::EMPTY && old.length() == length { cover } else { old }
        });
        self.prune(address, length);
    }

    /// Applies `leaf` to all leaves that a prefix covers, creating nodes down to its length.
    fn change(&mut self, address: A, length: u32, leaf: impl Fn(Leaf) -> Leaf) {
        let mut level = Level { node: None, shift: self.shift, marker: PhantomData };
        while length > level.depth() {
            let index = level.index(address);
            let entry = self.get(level.node, index);
            let child = if entry & CHILD != 0 {
                entry
            } else {
                let child = CHILD | self.allocate(entry);
                self.set(level.node, index, child);
                child
            };
            level = level.below(child & !CHILD);
        }
        let first = level.index(address);
        let count = 1 << (level.depth() - length);
        let mut below = Vec::new();
        for index in first..first + count {
            self.apply(level.node, index, &leaf, &mut below);
        }
        while let Some(node) = below.pop() {
            for index in 0..256 {
                self.apply(Some(node), index, &leaf, &mut below);
            }
        }
    }

    fn apply(
        &mut self,
        node: Option<u32>,
        index: u32,
        leaf: &impl Fn(Leaf) -> Leaf,
        below: &mut Vec<u32>,
    ) {
        let entry = self.get(node, index);
        if entry & CHILD != 0 {
            below.push(entry & !CHILD);
            return;
        }
        let changed = leaf(Leaf(entry)).0;
        if changed != entry {
            self.set(node, index, changed);
        }
    }

    /// Frees the nodes on the path to a prefix that contain no prefix of their own.
    fn prune(&mut self, address: A, length: u32) {
        let mut path: Vec<(Level<A>, u32)> = Vec::with_capacity(3);
        let mut level = Level { node: None, shift: self.shift, marker: PhantomData };
        while length > level.depth() {
            let entry = self.get(level.node, level.index(address));
            if entry & CHILD == 0 {
                break;
            }
            path.push((level, entry & !CHILD));
            level = level.below(entry & !CHILD);
        }
        while let Some((parent, node)) = path.pop() {
            let entries =
                &self.chunks[(node / CHUNK_NODES) as usize][entry_index(node, 0)..][..256];
            let first = entries[0];
            let own = Leaf(first).length() > parent.depth();
            if first & CHILD != 0 || own || entries.iter().any(|&e| e != first) {
                break;
            }
            self.set(parent.node, parent.index(address), first);
            self.free.push(node);
        }
    }

    /// A new node with `entry` in all of its entries.
    fn allocate(&mut self, entry: u32) -> u32 {
        let node = self.free.pop().unwrap_or_else(|| {
            if self.nodes.is_multiple_of(CHUNK_NODES) {
                self.chunks.push(Arc::new([0; CHUNK_ENTRIES]));
            }
            self.nodes += 1;
            self.nodes - 1
        });
        let chunk = Arc::make_mut(&mut self.chunks[(node / CHUNK_NODES) as usize]);
        chunk[entry_index(node, 0)..][..256].fill(entry);
        node
    }

    /// The entry of a node, or of the root.
    fn get(&self, node: Option<u32>, index: u32) -> u32 {
        match node {
            None => self.root[index as usize],
            Some(node) => self.entry(node, index),
        }
    }

    fn set(&mut self, node: Option<u32>, index: u32, entry: u32) {
        match node {
            None => Arc::make_mut(&mut self.root)[index as usize] = entry,
            Some(node) => {
                let chunk = Arc::make_mut(&mut self.chunks[(node / CHUNK_NODES) as usize]);
                chunk[entry_index(node, index)] = entry;
            }
        }
    }

    /// The number of nodes in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.nodes as usize - self.free.len()
    }
}

/// The index of a node's entry in its chunk.
#[inline(always)]
fn entry_index(node: u32, index: u32) -> usize {
    (node % CHUNK_NODES * 256 + index) as usize
}

/// A node or the root, on a path down.
#[derive(Clone, Copy)]
struct Level<A> {
    node: Option<u32>,
    shift: u32,
    marker: PhantomData<A>,
}

impl<A: Address> Level<A> {
    /// The level of a child node.
    fn below(self, node: u32) -> Self {
        Level { node: Some(node), shift: self.shift - 8, marker: PhantomData }
    }

    /// The prefix length at which this level's entries end.
    fn depth(self) -> u32 {
        A::BITS - self.shift
    }

    fn index(self, address: A) -> u32 {
        let index = address.high_bits(self.shift);
        if self.node.is_some() { index & 255 } else { index }
    }
}
