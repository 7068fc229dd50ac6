//! Rules by masked keys: all that match a packet, at a cost that grows neither with
//! their number nor much with that of their masks.
//!
//! A packet is a [`Key`] of 64 bytes, in which whoever asks has laid out its fields; a
//! rule is the bits that it looks at and what they must be ([`Masked`]). Rules of the
//! same mask differ only in value, so one lookup of a hash finds them (tuple space
//! search: Srinivasan, Suri, Varghese 1999); rules of all masks share one table, so
//! that a mask with few rules costs no memory of its own. Which masks are worth a
//! lookup, a few [probes](filter) say: each takes some bits of the packet, and has for
//! their value a bit for each mask that has such rules.
//!
//! Rules come and go one by one. Nothing is built anew for that but the probes, now and
//! then, a piece with each change.

mod block;
mod choose;
mod common;
mod filter;
mod groups;
mod index;
mod prefixes;
mod shape;
#[cfg(test)]
mod tests;

use crate::flow::Seed;
pub use prefixes::prefixes;

use block::{Block, MASKS};
use groups::{Groups, Parted};
use index::{Index, Number};
use shape::{NEAR, Shape};
use std::collections::HashMap;

/// Words of a key.
pub const WORDS: usize = 8;

/// The fields of a packet, or which of their bits a rule looks at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Key(pub [u64; WORDS]);

impl std::ops::BitAnd for Key {
    type Output = Key;
    fn bitand(self, other: Key) -> Key {
        Key(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}

/// What a rule says of a key: which bits, and what they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Masked {
    mask: Key,
    value: Key,
}

impl Masked {
    /// These bits of that value; others do not count.
    pub fn new(mask: Key, value: Key) -> Masked {
        Masked { mask, value: value & mask }
    }

    /// The bits.
    pub fn mask(&self) -> &Key {
        &self.mask
    }

    /// What they are, and 0 for others.
    pub fn value(&self) -> &Key {
        &self.value
    }
}

/// A rule that matches one of several keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hit {
    /// Which key.
    pub key: u32,
    /// The rule's number.
    pub rule: u32,
}

/// What a table has of a mask.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// The bits.
    pub mask: Key,
    /// How many different values they have.
    pub values: usize,
}

/// Rules, each a number below 2³¹ under one or several masked keys.
#[derive(Clone)]
pub struct Table {
    index: Index,
    groups: Groups,
    blocks: Vec<Block>,
    /// By mask: block and place in it, as one number.
    shapes: HashMap<Key, u32>,
    seed: Seed,
    /// Whether probes are chosen when all is settled.
    waits: bool,
}

impl Default for Table {
    fn default() -> Table {
        Table::new()
    }
}

impl Table {
    /// No rules.
    pub fn new() -> Table {
        Table::with_seed(Seed::random())
    }

    /// The same with a seed of one's choice, which nobody outside may know.
    pub fn with_seed(seed: Seed) -> Table {
        Table {
            index: Index::default(),
            groups: Groups::default(),
            blocks: Vec::new(),
            shapes: HashMap::new(),
            seed,
            waits: false,
        }
    }

    /// Adds a rule under a masked key; the same one twice is found twice.
    pub fn insert(&mut self, rule: u32, masked: &Masked) {
        let shape = self.shape_of(&masked.mask);
        let (of, hash) = self.under(self.shape(shape), &masked.value);
        if let Some(group) = self.find(&of, hash, &masked.value) {
            self.groups.join(group, rule);
            return;
        }
        let Table { index, groups, blocks, seed, .. } = self;
        let (block, place) = parts(shape);
        let group = groups.add(blocks[block].shape(place), &masked.value, rule);
        index.insert(hash, group, groups.places(), |group| hash_of(group, groups, blocks, seed));
        blocks[block].added(place, &masked.value, groups);
    }

    /// Takes a rule away from a masked key; whether it was there.
    pub fn remove(&mut self, rule: u32, masked: &Masked) -> bool {
        let Some(&shape) = self.shapes.get(&masked.mask) else { return false };
        let (of, hash) = self.under(self.shape(shape), &masked.value);
        let Some(group) = self.find(&of, hash, &masked.value) else { return false };
        let Table { index, groups, blocks, seed, .. } = self;
        match groups.part(group, rule) {
            Parted::NotThere => return false,
            Parted::Others => return true,
            Parted::Empty => {}
        }
        index.remove(hash, group, |group| hash_of(group, groups, blocks, seed).unwrap_or_default());
        let (block, place) = parts(shape);
        groups.remove(group, blocks[block].shape(place));
        blocks[block].removed(place, groups);
        true
    }

    /// Many rules are to come at once: probes are chosen when that is [settled](Table::settle).
    pub fn expect_many(&mut self) {
        self.waits = true;
        self.blocks.iter_mut().for_each(Block::wait);
    }

    /// Brings to an end what is done piece by piece as rules come: worth it after many.
    pub fn settle(&mut self) {
        self.waits = false;
        self.blocks.iter_mut().for_each(|block| block.settle(&self.groups));
    }

    /// How many different masked keys there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The masks, in no order that means anything.
    pub fn masks(&self) -> impl Iterator<Item = Mask> {
        self.blocks.iter().flat_map(Block::masks)
    }

    /// How many probes say which masks are worth a lookup.
    pub fn probes(&self) -> usize {
        self.blocks.iter().map(Block::probes).sum()
    }

    /// Bytes of memory that the table has.
    pub fn memory(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::memory).sum();
        self.index.memory() + self.groups.memory() + blocks
    }

    /// How many masks a key is looked up under.
    pub fn lookups(&self, key: &Key) -> u32 {
        let mut places = [0; MASKS];
        self.blocks.iter().map(|block| block.wanted(key, &mut places) as u32).sum()
    }

    /// Finds all rules that match each of these keys: `found` has them by key, those of a
    /// key in no order. Waits for memory overlap, so many keys at once are faster.
    pub fn find_all(&self, keys: &[Key], found: &mut Vec<Hit>) {
        found.clear();
        self.each_of(keys, |hit| found.push(hit));
    }

    /// Calls `found` for each rule that matches a key, in no order.
    #[inline]
    pub fn each(&self, key: &Key, mut found: impl FnMut(u32)) {
        self.each_mask(key, &mut [0; MASKS], |of, hash| {
            if let Some(group) = self.find(&of, hash, key) {
                self.groups.each(group, &mut found);
            }
        });
    }

    /// As [`Table::find_all`], with a call for each that is found.
    #[inline]
    pub fn each_of(&self, keys: &[Key], mut found: impl FnMut(Hit)) {
        let mut wanted = Wanted { count: 0, lookups: [Lookup::default(); Wanted::MOST] };
        let mut places = [0; MASKS];
        for (at, key) in keys.iter().enumerate() {
            self.each_mask(key, &mut places, |of, hash| {
                if wanted.add(Lookup { key: at as u32, hash, cell: 0, of }) {
                    self.look(keys, wanted.take(), &mut found);
                }
            });
        }
        self.look(keys, wanted.take(), &mut found);
    }

    /// A key under each mask that may have a rule for it, and its hash there; with room for the
    /// masks' places.
    #[inline]
    fn each_mask(&self, key: &Key, room: &mut [u8; MASKS], mut with: impl FnMut(Of, u64)) {
        for block in &self.blocks {
            let count = block.wanted(key, room);
            for &place in room.iter().take(count) {
                let (of, hash) = self.under(block.shape(place.into()), key);
                with(of, hash);
            }
        }
    }

    /// Looks some up together.
    #[inline]
    fn look(&self, keys: &[Key], wanted: &mut [Lookup], found: &mut impl FnMut(Hit)) {
        // Each pass waits for one place in memory, and for all lookups at once.
        for lookup in wanted.iter_mut() {
            lookup.cell = self.index.guess(lookup.hash);
        }
        for Lookup { key: at, hash, cell, of } in wanted {
            let Some(key) = keys.get(*at as usize).filter(|_| *cell != 0) else { continue };
            let group = index::guessed(*cell, *hash).filter(|&it| self.groups.is(it, of, key));
            let Some(group) = group.or_else(|| self.find(of, *hash, key)) else { continue };
            self.groups.each(group, |rule| found(Hit { key: *at, rule }));
        }
    }

    #[inline]
    fn shape(&self, number: u32) -> &Shape {
        let (block, place) = parts(number);
        self.blocks[block].shape(place)
    }

    /// A key under a mask, and the hash of that.
    #[inline]
    fn under(&self, shape: &Shape, key: &Key) -> (Of, u64) {
        let near = shape.near(key);
        (Of { number: shape.number(), near }, shape.hash_of(&self.seed, near, key))
    }

    /// The group that has the value of a key under a mask.
    #[inline]
    fn find(&self, of: &Of, hash: u64, key: &Key) -> Option<Number> {
        self.index.find(hash, |group| self.groups.is(group, of, key))
    }

    /// The number of a mask, which is made if there is none.
    fn shape_of(&mut self, mask: &Key) -> u32 {
        if let Some(&number) = self.shapes.get(mask) {
            return number;
        }
        let room = self.blocks.iter_mut().enumerate();
        let place = room.filter_map(|(at, block)| Some((at, block.room()?))).next();
        let (block, place) = place.unwrap_or_else(|| {
            let mut block = Block::new(self.blocks.len());
            if self.waits {
                block.wait();
            }
            self.blocks.push(block);
            (self.blocks.len() - 1, 0)
        });
        if let Some(old) = self.blocks[block].take(place, Shape::new(mask, block * MASKS + place)) {
            self.shapes.remove(&old);
        }
        let number = (block * MASKS + place) as u32;
        self.shapes.insert(*mask, number);
        number
    }
}

/// A key under a mask.
#[derive(Clone, Copy, Default)]
struct Of {
    /// The mask, as [`Shape::number`] has it.
    number: u32,
    /// The first words of the key under the mask.
    near: [u64; NEAR],
}

/// A mask under which a key is looked up.
#[derive(Clone, Copy, Default)]
struct Lookup {
    key: u32,
    hash: u64,
    /// The first cell of its hash.
    cell: u64,
    of: Of,
}

/// Lookups that wait for memory together.
struct Wanted {
    count: usize,
    lookups: [Lookup; Wanted::MOST],
}

impl Wanted {
    const MOST: usize = 32;

    /// Adds one; whether there is no more room.
    #[inline]
    fn add(&mut self, lookup: Lookup) -> bool {
        if let Some(place) = self.lookups.get_mut(self.count) {
            *place = lookup;
            self.count += 1;
        }
        self.count == Wanted::MOST
    }

    /// All of them.
    #[inline]
    fn take(&mut self) -> &mut [Lookup] {
        let count = std::mem::take(&mut self.count);
        self.lookups.get_mut(..count).unwrap_or_default()
    }
}

/// Block and place of a mask by its number.
#[inline]
fn parts(shape: u32) -> (usize, usize) {
    (shape as usize / MASKS, shape as usize % MASKS)
}

/// The hash of a group, if it is there.
fn hash_of(group: Number, groups: &Groups, blocks: &[Block], seed: &Seed) -> Option<u64> {
    let (block, place) = parts(groups.shape_at(group as usize)?);
    let shape = blocks[block].shape(place);
    Some(shape.hash(seed, &groups.value(group, shape)))
}
