//! An index of the digests of each row: buckets of one cache line.

use crate::digest::Digest;
use std::ops::Range;
use zerocopy::FromZeros;

/// Slots of a bucket, which is a cache line.
const SLOTS: usize = 16;

/// Slots of a bucket that are used on average, if a projection has more matches than one bucket has
/// slots: the probability that a bucket overflows is then about 6 %.
const LOAD: usize = 12;

/// Slots, from the first on: some bits of a digest, and one more than its column below them. 0 is
/// a free slot.
#[derive(Clone, Debug, FromZeros)]
#[repr(align(64))]
struct Bucket([u32; SLOTS]);

/// The buckets of a projection in each row.
#[derive(Clone, Debug)]
struct Part {
    /// The first one.
    first: u32,
    count: u32,
    /// The bits of a slot that have the column.
    columns: u32,
    /// Buckets at most from the one in which a digest belongs to the one in which it is. The same
    /// for all rows.
    reach: u32,
}

/// For each blind and each projection a hash table of columns, which are counted from the first one
/// of the projection. A digest belongs in one bucket; when that is full, in the next one that is
/// not.
#[derive(Clone, Debug)]
pub(super) struct ColumnIndex {
    /// Blind by blind, projection by projection.
    buckets: Vec<Bucket>,
    parts: Vec<Part>,
    /// Buckets of a row.
    row: usize,
}

/// Where a digest belongs in the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    /// The first bucket of the projection in the row.
    base: usize,
    /// The bucket, from `base` on.
    bucket: u32,
}

impl Home {
    /// The number of the bucket among all.
    #[inline]
    pub(super) fn place(self) -> usize {
        self.base + self.bucket as usize
    }
}

/// Slots of a bucket that may have a digest: a bit for each.
type Slots = u32;

/// By slot: its bit.
const BITS: [Slots; SLOTS] = {
    let (mut bits, mut at) = ([0; SLOTS], 0);
    while at < SLOTS {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};

/// The number of buckets for the columns of a projection.
fn bucket_count(columns: usize) -> u32 {
    if columns <= SLOTS { 1 } else { columns.div_ceil(LOAD) as u32 }
}

impl ColumnIndex {
    /// The bytes that an index takes.
    pub(super) fn memory_bytes(columns: &[Range<usize>], blinds: u64) -> u64 {
        let row: u64 = columns.iter().map(|it| u64::from(bucket_count(it.len()))).sum();
        row.saturating_mul(size_of::<Bucket>() as u64).saturating_mul(blinds)
    }

    /// An empty index; `None` if there is no memory for it.
    pub(super) fn new(columns: &[Range<usize>], blinds: usize) -> Option<ColumnIndex> {
        let mut row = 0;
        let part = |columns: &Range<usize>| {
            let (first, count) = (row, bucket_count(columns.len()));
            row += count;
            let bits = u32::BITS - (columns.len() as u32).leading_zeros();
            Part { first, count, columns: 1_u32.unbounded_shl(bits).wrapping_sub(1), reach: 1 }
        };
        let parts = columns.iter().map(part).collect();
        let row = row as usize;
        let buckets = Bucket::new_vec_zeroed(row.checked_mul(blinds)?).ok()?;
        Some(ColumnIndex { buckets, parts, row })
    }

    /// Where a digest belongs.
    #[inline]
    pub(super) fn home(&self, blind: usize, projection: usize, digest: &Digest) -> Home {
        let part = &self.parts[projection];
        let bucket = ((digest.prefix() >> 32) * u64::from(part.count)) >> 32;
        Home { base: blind * self.row + part.first as usize, bucket: bucket as u32 }
    }

    /// The bits of a digest that its slot has.
    #[inline]
    fn tag(part: &Part, digest: &Digest) -> u32 {
        digest.prefix() as u32 & !part.columns
    }

    /// Loads a bucket into the cache, and returns a number that depends on it.
    #[inline]
    pub(super) fn touch(&self, place: usize) -> u32 {
        self.buckets.get(place).map_or(0, |it| it.0[0])
    }

    /// Loads the buckets behind the first one that a search may look at.
    #[inline]
    pub(super) fn touch_next(&self, projection: usize, home: Home) -> u32 {
        let part = &self.parts[projection];
        (1..part.reach).fold(0, |all, step| all ^ self.bucket(part, home, step).0[0])
    }

    /// The bucket after `step` others.
    #[inline]
    fn bucket(&self, part: &Part, home: Home, step: u32) -> &Bucket {
        let at = home.bucket + step;
        let at = if at < part.count { at } else { at - part.count };
        &self.buckets[home.base + at as usize]
    }

    /// The greatest number of buckets that a search in a projection looks at.
    #[inline]
    pub(super) fn reach(&self, projection: usize) -> u32 {
        self.parts[projection].reach
    }

    /// The slots of a bucket, after `step` others, that may have a digest, and whether digests that
    /// belong in this bucket may be in the next one.
    #[inline]
    pub(super) fn slots(
        &self,
        projection: usize,
        home: Home,
        step: u32,
        digest: &Digest,
    ) -> (Slots, bool) {
        let part = &self.parts[projection];
        let (Bucket(bucket), tag) = (self.bucket(part, home, step), ColumnIndex::tag(part, digest));
        // One loop for both, so that the compiler looks at several slots at once.
        let (mut slots, mut free) = (0, 0);
        for (&slot, bit) in bucket.iter().zip(BITS) {
            slots |= if (slot ^ tag) & !part.columns == 0 { bit } else { 0 };
            free |= if slot == 0 { bit } else { 0 };
        }
        (slots & !free, free == 0 && step + 1 < part.reach)
    }

    /// The column of a slot; no column that there is, if the slot is free.
    #[inline]
    pub(super) fn column(&self, projection: usize, home: Home, step: u32, slot: u32) -> u32 {
        let part = &self.parts[projection];
        (self.bucket(part, home, step).0[slot as usize % SLOTS] & part.columns).wrapping_sub(1)
    }

    /// Adds a column, which must not be there yet.
    pub(super) fn insert(&mut self, blind: usize, projection: usize, digest: &Digest, column: u32) {
        let home = self.home(blind, projection, digest);
        let part = &mut self.parts[projection];
        let entry = ColumnIndex::tag(part, digest) | (column + 1);
        for step in 0..part.count {
            let at = (home.bucket + step) % part.count;
            let bucket = &mut self.buckets[home.base + at as usize].0;
            if let Some(free) = bucket.iter_mut().find(|slot| **slot == 0) {
                *free = entry;
                part.reach = part.reach.max(step + 1);
                return;
            }
        }
    }
}
