//! Rule tables with masked keys: they find all rules that match a packet, at a cost that is
//! independent of the number of rules and grows slowly with the number of masks.
//!
//! A packet is a [`Key`] of 64 bytes, in which the caller has laid out its fields. A rule is a mask
//! and the value of the masked bits ([`MaskedKey`]). Rules with the same mask differ only in value,
//! so one hash lookup finds them (tuple space search: Srinivasan, Suri, Varghese 1999). Rules of
//! all masks share one hash table, so that a mask with few rules needs no memory of its own. A
//! filter of a few probes tells which masks need a lookup: a probe hashes some bits of the packet
//! and has, for each value, one bit per mask that has such rules. A mask with a single value is
//! compared with it instead.
//!
//! Rules are added and removed one at a time. Only the probes are rebuilt now and then, a bounded
//! part of the work with each change.

mod block;
mod common;
mod filter;
mod groups;
mod index;
mod prefixes;
mod probe_selection;
mod shape;
#[cfg(test)]
mod tests;

use crate::seed::Seed;
pub use prefixes::prefixes;

use block::{Block, MASKS};
use common::{CommonBits, SoleGroup};
use groups::{Groups, RuleRemoval};
use index::{GroupId, Index};
use shape::{INLINE_WORDS, Shape};
use std::collections::HashMap;

/// Words of a key.
pub const WORDS: usize = 8;

/// The fields of a packet, or a mask of their bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Key(pub [u64; WORDS]);

impl std::ops::BitAnd for Key {
    type Output = Key;
    fn bitand(self, other: Key) -> Key {
        Key(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}

/// The condition of a rule: a mask and the value of the masked bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct MaskedKey {
    mask: Key,
    value: Key,
}

impl MaskedKey {
    /// The bits of `mask` must have their value in `value`; other bits match anything.
    pub fn new(mask: Key, value: Key) -> MaskedKey {
        MaskedKey { mask, value: value & mask }
    }

    /// The mask.
    pub fn mask(&self) -> &Key {
        &self.mask
    }

    /// The value; bits outside the mask are 0.
    pub fn value(&self) -> &Key {
        &self.value
    }
}

/// A match of a rule with one of several keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RuleMatch {
    /// The index of the key.
    pub key: u32,
    /// The rule's number.
    pub rule: u32,
}

/// A mask of a table.
#[derive(Clone, Copy, Debug)]
pub struct MaskStats {
    /// The mask.
    pub mask: Key,
    /// The number of different values under it.
    pub values: usize,
}

/// A table of rules, each a number below 2³¹ with one or several masked keys.
#[derive(Clone)]
pub struct Table {
    index: Index,
    groups: Groups,
    blocks: Vec<Block>,
    /// By mask: its number, which is made of block and position.
    shapes: HashMap<Key, u32>,
    seed: Seed,
    /// Whether probes are selected only by `settle`.
    deferred: bool,
}

impl Default for Table {
    fn default() -> Table {
        Table::new()
    }
}

impl Table {
    /// An empty table with a random seed.
    pub fn new() -> Table {
        Table::with_seed(Seed::random())
    }

    /// An empty table with this seed, which an attacker must not know.
    pub fn with_seed(seed: Seed) -> Table {
        Table {
            index: Index::default(),
            groups: Groups::default(),
            blocks: Vec::new(),
            shapes: HashMap::new(),
            seed,
            deferred: false,
        }
    }

    /// Adds a rule under a masked key. A rule that is inserted twice is found twice.
    pub fn insert(&mut self, rule: u32, masked: &MaskedKey) {
        let shape = self.shape_of(&masked.mask);
        let (words, hash) = self.masked_words(self.shape(shape), &masked.value);
        if let Some(group) = self.find(&words, hash, &masked.value) {
            self.groups.add_rule(group, rule);
            return;
        }
        let Table { index, groups, blocks, seed, .. } = self;
        let (block, position) = block_and_position(shape);
        let group = groups.add(blocks[block].shape(position), &masked.value, rule);
        index.insert(hash, group, groups.end(), |group| hash_of(group, groups, blocks, seed));
        blocks[block].add_group(position, (group, &masked.value), groups);
    }

    /// Removes a rule from a masked key; whether it was there.
    pub fn remove(&mut self, rule: u32, masked: &MaskedKey) -> bool {
        let Some(&shape) = self.shapes.get(&masked.mask) else { return false };
        let (words, hash) = self.masked_words(self.shape(shape), &masked.value);
        let Some(group) = self.find(&words, hash, &masked.value) else { return false };
        let Table { index, groups, blocks, seed, .. } = self;
        match groups.remove_rule(group, rule) {
            RuleRemoval::NotFound => return false,
            RuleRemoval::Remaining => return true,
            RuleRemoval::Last => {}
        }
        index.remove(hash, group, |group| hash_of(group, groups, blocks, seed).unwrap_or_default());
        let (block, position) = block_and_position(shape);
        groups.remove(group, blocks[block].shape(position));
        blocks[block].remove_group(position, groups);
        true
    }

    /// Defers the selection of probes until [`Table::settle`], because many rules follow.
    pub fn defer_probes(&mut self) {
        self.deferred = true;
        self.blocks.iter_mut().for_each(Block::defer);
    }

    /// Finishes the incremental work at once; useful after many changes.
    pub fn settle(&mut self) {
        self.deferred = false;
        self.blocks.iter_mut().for_each(|block| block.settle(&self.groups));
    }

    /// How many different masked keys there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether the table has no rules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The masks, in any order.
    pub fn masks(&self) -> impl Iterator<Item = MaskStats> {
        self.blocks.iter().flat_map(Block::masks)
    }

    /// How many probes the filters have.
    pub fn probes(&self) -> usize {
        self.blocks.iter().map(Block::probes).sum()
    }

    /// The table's memory in bytes.
    pub fn memory(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::memory).sum();
        self.index.memory() + self.groups.memory() + blocks
    }

    /// How many masks may have a rule for a key. Those with a single value need no lookup.
    pub fn lookups(&self, key: &Key) -> u32 {
        let mut positions = [0; MASKS];
        self.blocks.iter().map(|block| block.candidates_for(key, &mut positions) as u32).sum()
    }

    /// Finds all rules that match each of these keys. `found` has the matches by key, those of a
    /// key in any order. Cache misses overlap, so many keys at once are faster.
    pub fn find_all(&self, keys: &[Key], found: &mut Vec<RuleMatch>) {
        found.clear();
        self.for_each_match_of(keys, |hit| found.push(hit));
    }

    /// Calls `found` for each rule that matches a key, in any order.
    #[inline]
    pub fn for_each_match(&self, key: &Key, mut found: impl FnMut(u32)) {
        self.for_each_mask(key, &mut [0; MASKS], |result| {
            let group = match result {
                MaskResult::Group(group) => Some(group),
                MaskResult::Masked(masked, hash) => self.find(&masked, hash, key),
            };
            group.into_iter().for_each(|group| self.groups.for_each_rule(group, &mut found));
        });
    }

    /// Like [`Table::find_all`], with a call for each match.
    #[inline]
    pub fn for_each_match_of(&self, keys: &[Key], mut found: impl FnMut(RuleMatch)) {
        if let [block] = &self.blocks[..]
            && let Some(masks) = block.sole_groups()
        {
            return self.compare_all((block, masks), keys, found);
        }
        let mut batch =
            LookupBatch { count: 0, lookups: [Lookup::default(); LookupBatch::CAPACITY] };
        let mut positions = [0; MASKS];
        for (key, at) in keys.iter().zip(0..) {
            self.for_each_mask(key, &mut positions, |result| {
                let lookup = match result {
                    // Matches are by key, so one behind a lookup waits for that.
                    MaskResult::Group(group) if batch.count == 0 => {
                        let found = |rule| found(RuleMatch { key: at, rule });
                        return self.groups.for_each_rule(group, found);
                    }
                    MaskResult::Group(group) => Lookup { key: at, group, ..Lookup::default() },
                    MaskResult::Masked(masked, hash) => {
                        Lookup { key: at, hash, masked, ..Lookup::default() }
                    }
                };
                if batch.add(lookup) {
                    self.run_batch(keys, batch.take(), &mut found);
                }
            });
        }
        self.run_batch(keys, batch.take(), &mut found);
    }

    /// The same for a few masks with a group each: no key is hashed.
    #[inline]
    fn compare_all(
        &self,
        (block, masks): (&Block, &[CommonBits]),
        keys: &[Key],
        mut found: impl FnMut(RuleMatch),
    ) {
        for (key, at) in keys.iter().zip(0..) {
            for common in masks.iter().filter(|common| common.holds(key)) {
                if let Some(group) = self.sole_match(block, common, key) {
                    self.groups.for_each_rule(group, |rule| found(RuleMatch { key: at, rule }));
                }
            }
        }
    }

    /// The only group of a mask, if it has the value of a key with the mask's common bits.
    #[inline]
    fn sole_match(&self, block: &Block, common: &CommonBits, key: &Key) -> Option<GroupId> {
        match common.sole_group() {
            SoleGroup::None => None,
            SoleGroup::Found(group) => Some(group),
            SoleGroup::Compared(group) => {
                let masked = MaskedWords::of(block.shape(common.position.into()), key);
                Some(group).filter(|&group| self.groups.matches(group, &masked, key))
            }
        }
    }

    /// Calls `with` for each mask that may have a rule for the key. `room` is scratch space for the
    /// masks' positions.
    #[inline]
    fn for_each_mask(&self, key: &Key, room: &mut [u8; MASKS], mut with: impl FnMut(MaskResult)) {
        for block in &self.blocks {
            let count = block.candidates_for(key, room);
            for &position in room.iter().take(count) {
                let common = block.common_bits(position.into());
                if common.sole_group() == SoleGroup::None {
                    let (masked, hash) = self.masked_words(block.shape(position.into()), key);
                    with(MaskResult::Masked(masked, hash));
                } else if let Some(group) = self.sole_match(block, common, key) {
                    with(MaskResult::Group(group));
                }
            }
        }
    }

    /// Runs a batch of lookups.
    #[inline]
    fn run_batch(&self, keys: &[Key], batch: &mut [Lookup], found: &mut impl FnMut(RuleMatch)) {
        // Each loop waits for one memory access, of all lookups at the same time.
        for lookup in batch.iter_mut() {
            lookup.cell = self.index.first_cell(lookup.hash);
        }
        for Lookup { key: at, group, hash, cell, masked } in batch {
            let mut group = Some(*group).filter(|&group| group != NO_GROUP);
            if group.is_none() {
                let Some(key) = keys.get(*at as usize).filter(|_| *cell != 0) else { continue };
                let first = index::decode_cell(*cell, *hash);
                group = first.filter(|&group| self.groups.matches(group, masked, key));
                group = group.or_else(|| self.find(masked, *hash, key));
            }
            let Some(group) = group else { continue };
            self.groups.for_each_rule(group, |rule| found(RuleMatch { key: *at, rule }));
        }
    }

    #[inline]
    fn shape(&self, number: u32) -> &Shape {
        let (block, position) = block_and_position(number);
        self.blocks[block].shape(position)
    }

    /// A key under a mask, and its hash.
    #[inline]
    fn masked_words(&self, shape: &Shape, key: &Key) -> (MaskedWords, u64) {
        let masked = MaskedWords::of(shape, key);
        (masked, shape.hash_of(&self.seed, masked.words, key))
    }

    /// The group that has the value of a key under a mask.
    #[inline]
    fn find(&self, masked: &MaskedWords, hash: u64, key: &Key) -> Option<GroupId> {
        self.index.find(hash, |group| self.groups.matches(group, masked, key))
    }

    /// The number of a mask; a new mask gets one.
    fn shape_of(&mut self, mask: &Key) -> u32 {
        if let Some(&number) = self.shapes.get(mask) {
            return number;
        }
        let room = self.blocks.iter_mut().enumerate();
        let position = room.filter_map(|(at, block)| Some((at, block.free_position()?))).next();
        let (block, position) = position.unwrap_or_else(|| {
            let mut block = Block::new(self.blocks.len());
            if self.deferred {
                block.defer();
            }
            self.blocks.push(block);
            (self.blocks.len() - 1, 0)
        });
        if let Some(old) =
            self.blocks[block].put_mask(position, Shape::new(mask, block * MASKS + position))
        {
            self.shapes.remove(&old);
        }
        let number = (block * MASKS + position) as u32;
        self.shapes.insert(*mask, number);
        number
    }
}

/// A key under a mask.
#[derive(Clone, Copy, Default)]
struct MaskedWords {
    /// The mask's number, see [`Shape::number`].
    number: u32,
    /// The first words of the key under the mask.
    words: [u64; INLINE_WORDS],
}

impl MaskedWords {
    #[inline]
    fn of(shape: &Shape, key: &Key) -> MaskedWords {
        MaskedWords { number: shape.number(), words: shape.masked_words(key) }
    }
}

/// The answer of a mask about a key.
enum MaskResult {
    /// The key has the value of this group.
    Group(GroupId),
    /// The key under the mask, and its hash: a group has to be looked up.
    Masked(MaskedWords, u64),
}

/// A pending lookup of a key under a mask.
#[derive(Clone, Copy)]
struct Lookup {
    key: u32,
    /// The group, if it needs no lookup; else [`NO_GROUP`].
    group: GroupId,
    hash: u64,
    /// The first cell of the hash.
    cell: u64,
    masked: MaskedWords,
}

/// No group has this id.
const NO_GROUP: GroupId = GroupId::MAX;

impl Default for Lookup {
    fn default() -> Self {
        Lookup { key: 0, group: NO_GROUP, hash: 0, cell: 0, masked: MaskedWords::default() }
    }
}

/// Lookups that run together, so that their cache misses overlap.
struct LookupBatch {
    count: usize,
    lookups: [Lookup; LookupBatch::CAPACITY],
}

impl LookupBatch {
    const CAPACITY: usize = 32;

    /// Adds a lookup; whether the batch is full.
    #[inline]
    fn add(&mut self, lookup: Lookup) -> bool {
        if let Some(position) = self.lookups.get_mut(self.count) {
            *position = lookup;
            self.count += 1;
        }
        self.count == LookupBatch::CAPACITY
    }

    /// Takes all lookups.
    #[inline]
    fn take(&mut self) -> &mut [Lookup] {
        let count = std::mem::take(&mut self.count);
        self.lookups.get_mut(..count).unwrap_or_default()
    }
}

/// Block and position of a mask number.
#[inline]
fn block_and_position(shape: u32) -> (usize, usize) {
    (shape as usize / MASKS, shape as usize % MASKS)
}

/// The hash of a group, if the id is in use.
fn hash_of(group: GroupId, groups: &Groups, blocks: &[Block], seed: &Seed) -> Option<u64> {
    let (block, position) = block_and_position(groups.shape_at(group as usize)?);
    let shape = blocks[block].shape(position);
    Some(shape.hash(seed, &groups.value(group, shape)))
}
