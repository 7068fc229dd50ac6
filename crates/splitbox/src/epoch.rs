//! The rows of an epoch, the table S̃ of the paper: for each blind, the digests of all matches.

mod chunks;
mod index;
mod layout;
mod maker;
mod search;

pub use chunks::{CHUNK_DIGESTS, ChunkError, RowChunks};
pub use maker::RowMaker;
pub(crate) use search::Searches;

use crate::bits::{Bits, Ternary};
use crate::digest::{DIGEST_BYTES, Digest, HashKind, ProjectionHash};
use crate::private::{MatchId, PrivateFunction};
use crate::secret::{Key, MAX_BLINDS};
use chunks::ChunkRecord;
use index::ColumnIndex;
use layout::Layout;
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
        let chunks = RowChunks::new(blinds.saturating_mul(matches.len() as u64));
        digests
            .saturating_add(ColumnIndex::memory_bytes(&columns, blinds))
            .saturating_add(ChunkRecord::memory_bytes(chunks))
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

    /// The match of a column, which is counted from the first one of the projection.
    #[inline]
    fn id(&self, projection: u32, column: u32) -> MatchId {
        self.layout.matches[self.layout.columns[projection as usize].start + column as usize]
    }
}

#[cfg(test)]
mod tests;
