//! The rows of an epoch, the table S̃ of the paper: for each blind, the digests of all matches.

mod chunks;
mod index;
mod layout;
mod maker;

pub use chunks::{CHUNK_DIGESTS, ChunkError, RowChunks};
pub use maker::RowMaker;

use crate::bits::{Bits, Ternary};
use crate::digest::{DIGEST_BYTES, Digest, HashKind, ProjectionHash};
use crate::private::{MatchId, PrivateFunction};
use crate::secret::{Key, MAX_BLINDS};
use chunks::ChunkRecord;
use index::{ColumnIndex, Home};
use layout::Layout;
use std::hint::black_box;
use subtle::ConstantTimeEq;
use zerocopy::FromZeros;

/// The secrets from which the rows of an epoch are made.
#[derive(Clone, Copy, Debug)]
pub struct EpochSecrets<'k> {
    /// The key of the blinds, which the entry and the client have.
    pub blinds: &'k Key,
    /// The key of the hash, which the processors and the client have.
    pub hash: &'k Key,
}

/// Rows that are refused: they need more memory than they may take, or than there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// Bytes of the rows.
    pub bytes: u64,
    /// Bytes that they may take.
    pub limit: u64,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let TooLarge { bytes, limit } = self;
        write!(f, "rows of {bytes} bytes in an epoch: at most {limit} bytes are possible; fewer ")?;
        f.write_str("blinds or matches need fewer")
    }
}

impl std::error::Error for TooLarge {}

/// Work that a processor did, by operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Strings hashed.
    pub hashes: u64,
    /// Buckets of 64 bytes looked at in the index of digests.
    pub probes: u64,
    /// Digests compared.
    pub comparisons: u64,
    /// Steps of the traversal.
    pub steps: u64,
    /// Shares added.
    pub additions: u64,
}

/// The digests of all matches for the blinds of an epoch. The client makes them, processors have
/// them.
#[derive(Clone, Debug)]
pub struct EpochRows {
    blinds: u64,
    hashes: Vec<ProjectionHash>,
    layout: Layout,
    /// Row by row.
    digests: Vec<Digest>,
    index: ColumnIndex,
    record: ChunkRecord,
}

/// A search for the match of a projection whose digest a packet has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup {
    /// The packet that asks, for the caller.
    pub(crate) asker: u8,
    pub(crate) projection: u32,
    digest: Digest,
    home: Home,
    /// Number of the digest of the projection's first column.
    row: usize,
    /// The slots of the first bucket that may have the digest, and whether the next bucket may.
    slots: u32,
    has_more: bool,
    /// The match, when it has been found.
    pub(crate) found: Option<MatchId>,
}

/// Candidates that [`EpochRows::find_constant`] compares with a digest, as long as no more than these
/// look like it.
const CONSTANT_COMPARISONS: u32 = 2;

fn hashes(
    function: &PrivateFunction,
    key: &Key,
    kind: HashKind,
    epoch: u64,
) -> Vec<ProjectionHash> {
    let hash = |projection: &Bits| ProjectionHash::new(kind, key, epoch, projection);
    function.projections().iter().map(hash).collect()
}

impl EpochRows {
    /// Makes the rows of an epoch of `blinds` blinds, at most [`MAX_BLINDS`] (paper, algorithm Setup
    /// Lookup Tables). `matches` are those of the function, by number.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn new(
        function: &PrivateFunction,
        matches: &[Ternary],
        secrets: EpochSecrets,
        kind: HashKind,
        epoch: u64,
        blinds: u64,
    ) -> Result<EpochRows, TooLarge> {
        const CHUNKS: usize = 64;
        let mut rows = EpochRows::empty(function, secrets.hash, kind, epoch, blinds, u64::MAX)?;
        let mut maker = RowMaker::new(function, matches, secrets, kind, epoch, blinds);
        let mut bytes = vec![0; CHUNKS * CHUNK_DIGESTS as usize * DIGEST_BYTES];
        let mut first = 0;
        while first < rows.digests.len() as u64 {
            let left = (rows.digests.len() as u64 - first) as usize * DIGEST_BYTES;
            bytes.truncate(left);
            maker.fill(first, &mut bytes);
            let inserted = rows.insert(first, &bytes);
            debug_assert_eq!(inserted, Ok(()), "these are whole chunks");
            first += (bytes.len() / DIGEST_BYTES) as u64;
        }
        Ok(rows)
    }

    /// Rows of an epoch of `blinds` blinds, at most [`MAX_BLINDS`], of which no digest has come.
    /// They take all memory that they need at once.
    ///
    /// # Errors
    /// They need more than `limit` bytes, or more than there are.
    pub fn empty(
        function: &PrivateFunction,
        key: &Key,
        kind: HashKind,
        epoch: u64,
        blinds: u64,
        limit: u64,
    ) -> Result<EpochRows, TooLarge> {
        let blinds = blinds.min(MAX_BLINDS);
        let too_large =
            |limit| TooLarge { bytes: EpochRows::memory_bytes(function, blinds), limit };
        let layout = Layout::new(function);
        let chunks = RowChunks::new(blinds * layout.width() as u64);
        if EpochRows::memory_bytes(function, blinds) > limit {
            return Err(too_large(limit));
        }
        if chunks.count() > u64::from(u32::MAX) {
            return Err(too_large(u64::from(u32::MAX) * CHUNK_DIGESTS * DIGEST_BYTES as u64));
        }
        let no_memory = || too_large(limit.min(isize::MAX as u64));
        let digests = Digest::new_vec_zeroed(blinds as usize * layout.width());
        Ok(EpochRows {
            blinds,
            hashes: hashes(function, key, kind, epoch),
            digests: digests.map_err(|_| no_memory())?,
            index: ColumnIndex::new(&layout.columns, blinds as usize).ok_or_else(no_memory)?,
            record: ChunkRecord::new(chunks),
            layout,
        })
    }

    /// The bytes that the rows of an epoch take in memory.
    pub fn memory_bytes(function: &PrivateFunction, blinds: u64) -> u64 {
        let Layout { columns, matches, .. } = Layout::new(function);
        let digests = blinds.saturating_mul((matches.len() * size_of::<Digest>()) as u64);
        let chunks = digests / (CHUNK_DIGESTS * DIGEST_BYTES as u64);
        digests.saturating_add(ColumnIndex::memory_bytes(&columns, blinds) + chunks / 8)
    }

    /// The chunks of the digests.
    pub fn chunks(&self) -> RowChunks {
        self.record.chunks
    }

    /// Inserts whole chunks of digests, of which the first one is digest number `first_digest`.
    /// Chunks that have come already are ignored.
    ///
    /// # Errors
    /// They are not whole chunks of this epoch; then none is inserted.
    pub fn insert(&mut self, first_digest: u64, bytes: &[u8]) -> Result<(), ChunkError> {
        let EpochRows { layout, digests, index, record, .. } = self;
        let width = layout.width();
        record.arrive(first_digest, bytes.len(), |numbers, at| {
            let mut arrivals = bytes.get(at..).unwrap_or_default().as_chunks().0.iter();
            let mut number = numbers.start as usize;
            while number < numbers.end as usize {
                let (blind, column) = (number / width, number % width);
                let projection = layout.columns.partition_point(|it| it.end <= column);
                let columns = &layout.columns[projection];
                let count = (columns.end - column).min(numbers.end as usize - number);
                for (place, arrival) in (number..number + count).zip(&mut arrivals) {
                    let digest = Digest(*arrival);
                    digests[place] = digest;
                    let column = (place - blind * width - columns.start) as u32;
                    index.insert(blind, projection, &digest, column);
                }
                number += count;
            }
        })
    }

    /// Whether all chunks have come.
    pub fn is_complete(&self) -> bool {
        self.record.is_complete()
    }

    /// The first ranges of chunks that have not come, at most `max_ranges`.
    pub fn missing(&self, max_ranges: usize) -> Vec<std::ops::Range<u32>> {
        self.record.missing(max_ranges)
    }

    /// The number of blinds l.
    pub fn blinds(&self) -> u64 {
        self.blinds
    }

    /// The digests of all matches for a blind, by projection.
    pub fn row(&self, blind: u64) -> &[Digest] {
        let width = self.layout.width();
        self.digests
            .get(blind as usize * width..)
            .and_then(|rest| rest.get(..width))
            .unwrap_or_default()
    }

    /// ℍ, by projection.
    pub(crate) fn hashes(&self) -> &[ProjectionHash] {
        &self.hashes
    }

    /// Compares a blinded header string with a match, by a hash of its own (paper, algorithm Compute
    /// Match). `projection` is that of the match, and `row` that of the blind.
    #[inline]
    pub(crate) fn is_match(
        &self,
        row: &[Digest],
        id: MatchId,
        projection: usize,
        header: Bits,
    ) -> bool {
        let digest = self.hashes[projection].digest(header);
        row[self.layout.column_of[id as usize] as usize] == digest
    }

    /// The search for a digest of a projection, in the row of a blind.
    #[inline]
    pub(crate) fn lookup(
        &self,
        asker: u8,
        blind: u64,
        projection: usize,
        digest: Digest,
    ) -> Lookup {
        let blind = blind as usize;
        Lookup {
            asker,
            projection: projection as u32,
            digest,
            home: self.index.home(blind, projection, &digest),
            row: blind * self.layout.width() + self.layout.columns[projection].start,
            slots: 0,
            has_more: false,
            found: None,
        }
    }

    /// Finds matches. All searches go on together, step by step, so that the processor waits for
    /// the memory of many of them at once.
    pub(crate) fn find_all(&self, lookups: &mut [Lookup], work: &mut Work) {
        let touched = lookups.iter().fold(0, |all, it| all ^ self.index.touch(it.home));
        black_box(touched);
        let mut touched = 0;
        for it in lookups.iter_mut() {
            let projection = it.projection as usize;
            (it.slots, it.has_more) = self.index.slots(projection, it.home, 0, &it.digest);
            let slot = it.slots.trailing_zeros();
            let column = self.index.column(projection, it.home, 0, slot);
            let place = it.row.wrapping_add(column as usize);
            touched ^= self.digests.get(place).map_or(0, |it| it.0[0]);
        }
        black_box(touched);
        work.probes += lookups.len() as u64;
        for it in lookups {
            it.found = self.finish(it, work);
        }
    }

    /// Compares the digests that may be the one of a search, whose first bucket has been looked at.
    #[inline]
    fn finish(&self, lookup: &Lookup, work: &mut Work) -> Option<MatchId> {
        let Lookup { projection, home, digest, mut slots, mut has_more, .. } = *lookup;
        let mut step = 0;
        loop {
            while slots != 0 {
                work.comparisons += 1;
                let column =
                    self.index.column(projection as usize, home, step, slots.trailing_zeros());
                if self.digests[lookup.row + column as usize] == digest {
                    return Some(self.id(projection, column));
                }
                slots &= slots - 1;
            }
            if !has_more {
                return None;
            }
            step += 1;
            work.probes += 1;
            (slots, has_more) = self.index.slots(projection as usize, home, step, &digest);
        }
    }

    fn id(&self, projection: u32, column: u32) -> MatchId {
        self.layout.matches[self.layout.columns[projection as usize].start + column as usize]
    }

    /// Finds a match with work that does not depend on which one it is, nor on whether there is one:
    /// it looks at all buckets that any digest of the projection may be in, and compares
    /// [`CONSTANT_COMPARISONS`] digests. A bucket has a part of each digest, at least 16 bits for up to
    /// 65 535 matches of a projection; only if more digests than these have the part that is
    /// searched, more are compared.
    pub(crate) fn find_constant(&self, lookup: &mut Lookup, work: &mut Work) {
        let Lookup { projection, home, digest, row, .. } = *lookup;
        let (mut found, mut compared) = (None, 0);
        for step in 0..self.index.reach(projection as usize) {
            work.probes += 1;
            let (mut slots, _) = self.index.slots(projection as usize, home, step, &digest);
            while slots != 0 {
                let slot = slots.trailing_zeros();
                let column = self.index.column(projection as usize, home, step, slot);
                compared += 1;
                if self.digests[row + column as usize] == digest {
                    found = Some(self.id(projection, column));
                }
                slots &= slots - 1;
            }
        }
        while compared < CONSTANT_COMPARISONS {
            compared += 1;
            black_box(self.digests.get(row).map(|it| it.ct_eq(&digest)));
        }
        work.comparisons += u64::from(compared);
        lookup.found = found;
    }
}
