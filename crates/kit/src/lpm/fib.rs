//! The trie that lookups walk: 16 bits, then 8 a level, or always 8 in small tables.
//!
//! Every entry is a leaf or leads to a node of 256 entries; prefixes that end inside a
//! level are spread over the entries they cover, with their length, so that a lookup never
//! goes back. Memory is 256 KiB for the root of large tables (1 KiB of small ones) and 1 KiB
//! for each block of 256 addresses or networks with anything more specific inside.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::address::Address;

/// Set in entries that lead to a node.
const CHILD: u32 = 1 << 31;
/// Where a leaf has the length of its prefix, up to 128.
const LENGTH_SHIFT: u32 = 23;
/// A leaf's value, plus one: an empty leaf is zero.
const VALUE: u32 = (1 << LENGTH_SHIFT) - 1;
/// The largest value that a leaf can hold.
pub(crate) const LARGEST: u32 = VALUE - 1;

/// Nodes are allocated and, when shared, copied by chunks of 64 KiB.
const CHUNK_NODES: u32 = 64;
const CHUNK_ENTRIES: usize = 64 * 256;

/// How many addresses a batch looks up at once, to overlap their cache misses.
const LANES: usize = 16;

type Chunk = [u32; CHUNK_ENTRIES];

/// A leaf, as entries have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf(u32);

impl Leaf {
    pub(crate) const EMPTY: Leaf = Leaf(0);

    pub(crate) fn new(length: u32, value: u32) -> Self {
        debug_assert!(value <= LARGEST);
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
    of: PhantomData<A>,
}

impl<A: Address> Fib<A> {
    /// An empty trie, for small tables with a root of 1 KiB.
    pub(crate) fn new(large: bool) -> Self {
        let (entries, shift) = if large { (1 << 16, A::BITS - 16) } else { (1 << 8, A::BITS - 8) };
        let root = vec![0; entries].into();
        Fib { root, shift, chunks: Vec::new(), nodes: 0, free: Vec::new(), of: PhantomData }
    }

    pub(crate) fn is_large(&self) -> bool {
        self.shift == A::BITS - 16
    }

    pub(crate) fn memory(&self) -> usize {
        self.root.len() * 4 + self.chunks.len() * size_of::<Chunk>()
    }

    /// The value of an address; [`super::NONE`] where there is none, as zero less one is.
    #[inline(always)]
    pub(crate) fn lookup(&self, address: A) -> u32 {
        let mut shift = self.shift;
        let mut entry = self.root[address.above(shift) as usize];
        while entry & CHILD != 0 {
            shift -= 8;
            entry = self.entry(entry, address.above(shift));
        }
        (entry & VALUE).wrapping_sub(1)
    }

    /// The entry of the node that `parent` leads to.
    #[inline(always)]
    fn entry(&self, parent: u32, index: u32) -> u32 {
        let node = parent & !CHILD;
        let chunk = &self.chunks[(node / CHUNK_NODES) as usize];
        chunk[place(node, index & 255)]
    }

    /// The values of many addresses.
    pub(crate) fn lookup_batch(&self, addresses: &[A], values: &mut [u32]) {
        for (addresses, values) in addresses.chunks(LANES).zip(values.chunks_mut(LANES)) {
            let mut entries = [0; LANES];
            let mut deeper = 0;
            for (entry, address) in entries.iter_mut().zip(addresses) {
                *entry = self.root[address.above(self.shift) as usize];
                deeper |= *entry;
            }
            let mut shift = self.shift;
            while deeper & CHILD != 0 {
                shift -= 8;
                deeper = 0;
                for (entry, address) in entries.iter_mut().zip(addresses) {
                    // Leaves look at node 0 for nothing, since a branch that waits for
                    // memory would be guessed wrong and end the overlap.
                    let child = *entry & CHILD != 0;
                    let below = self.entry(if child { *entry } else { 0 }, address.above(shift));
                    *entry = if child { below } else { *entry };
                    deeper |= *entry;
                }
            }
            for (value, entry) in values.iter_mut().zip(entries) {
                *value = (entry & VALUE).wrapping_sub(1);
            }
        }
    }

    /// Spreads a prefix's leaf where no longer prefix is.
    pub(crate) fn insert(&mut self, address: A, length: u32, leaf: Leaf) {
        self.change(address, length, |old| if old.length() <= length { leaf } else { old });
    }

    /// Puts `cover`, the leaf of the next shorter prefix, in the place of a prefix's leaves.
    pub(crate) fn remove(&mut self, address: A, length: u32, cover: Leaf) {
        self.change(address, length, |old| {
            if old != Leaf::EMPTY && old.length() == length { cover } else { old }
        });
        self.prune(address, length);
    }

    /// Applies `leaf` to all leaves that a prefix covers, making nodes down to its length.
    fn change(&mut self, address: A, length: u32, leaf: impl Fn(Leaf) -> Leaf) {
        let mut level = Level { node: None, shift: self.shift, of: PhantomData };
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

    /// Frees the nodes on the way to a prefix that hold nothing of their own any more.
    fn prune(&mut self, address: A, length: u32) {
        let mut path: Vec<(Level<A>, u32)> = Vec::with_capacity(3);
        let mut level = Level { node: None, shift: self.shift, of: PhantomData };
        while length > level.depth() {
            let entry = self.get(level.node, level.index(address));
            if entry & CHILD == 0 {
                break;
            }
            path.push((level, entry & !CHILD));
            level = level.below(entry & !CHILD);
        }
        while let Some((parent, node)) = path.pop() {
            let entries = &self.chunks[(node / CHUNK_NODES) as usize][place(node, 0)..][..256];
            let first = entries[0];
            let own = Leaf(first).length() > parent.depth();
            if first & CHILD != 0 || own || entries.iter().any(|&e| e != first) {
                break;
            }
            self.set(parent.node, parent.index(address), first);
            self.free.push(node);
        }
    }

    /// A node all of whose entries are `entry`.
    fn allocate(&mut self, entry: u32) -> u32 {
        let node = self.free.pop().unwrap_or_else(|| {
            if self.nodes.is_multiple_of(CHUNK_NODES) {
                self.chunks.push(Arc::new([0; CHUNK_ENTRIES]));
            }
            self.nodes += 1;
            self.nodes - 1
        });
        let chunk = Arc::make_mut(&mut self.chunks[(node / CHUNK_NODES) as usize]);
        chunk[place(node, 0)..][..256].fill(entry);
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
                chunk[place(node, index)] = entry;
            }
        }
    }

    /// Nodes in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.nodes as usize - self.free.len()
    }
}

/// Where in its chunk a node has an entry.
#[inline(always)]
fn place(node: u32, index: u32) -> usize {
    (node % CHUNK_NODES * 256 + index) as usize
}

/// A node, or the root, on the way down.
#[derive(Clone, Copy)]
struct Level<A> {
    node: Option<u32>,
    shift: u32,
    of: PhantomData<A>,
}

impl<A: Address> Level<A> {
    /// The level of a node of this one.
    fn below(self, node: u32) -> Self {
        Level { node: Some(node), shift: self.shift - 8, of: PhantomData }
    }

    /// The prefix length at which this level's entries end.
    fn depth(self) -> u32 {
        A::BITS - self.shift
    }

    fn index(self, address: A) -> u32 {
        let index = address.above(self.shift);
        if self.node.is_some() { index & 255 } else { index }
    }
}
