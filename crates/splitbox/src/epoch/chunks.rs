//! Chunks of the digests of an epoch, in which the client sends them, and a record of those that came.

use crate::digest::DIGEST_BYTES;
use std::ops::Range;

/// Digests of a chunk, which fits into a datagram of 1280 bytes, the smallest maximum of IPv6 links.
/// The last chunk of an epoch may have fewer.
pub const CHUNK_DIGESTS: u64 = 75;

/// The chunks of an epoch's digests, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowChunks {
    digests: u64,
}

impl RowChunks {
    /// The chunks of this number of digests.
    pub(super) fn new(digests: u64) -> RowChunks {
        RowChunks { digests }
    }

    /// The number of chunks.
    pub fn count(&self) -> u64 {
        self.digests.div_ceil(CHUNK_DIGESTS)
    }

    /// The digests of a chunk; none behind the last one.
    pub fn digests(&self, chunk: u32) -> Range<u64> {
        let first = u64::from(chunk) * CHUNK_DIGESTS;
        first.min(self.digests)..(first + CHUNK_DIGESTS).min(self.digests)
    }

    /// The chunks that these bytes of digests are, from number `first_digest` on.
    fn of(&self, first_digest: u64, bytes: usize) -> Result<Range<u64>, ChunkError> {
        let (count, rest) = (bytes / DIGEST_BYTES, bytes % DIGEST_BYTES);
        let end = first_digest.checked_add(count as u64).filter(|&end| end <= self.digests);
        let end = end.ok_or(ChunkError::Range { first_digest, digests: self.digests })?;
        let is_end = end == self.digests || end.is_multiple_of(CHUNK_DIGESTS);
        if rest != 0 || !is_end || !first_digest.is_multiple_of(CHUNK_DIGESTS) {
            return Err(ChunkError::Parts { first_digest, bytes });
        }
        Ok(first_digest / CHUNK_DIGESTS..end.div_ceil(CHUNK_DIGESTS))
    }
}

/// Digests that are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkError {
    /// Digests behind the last one of the epoch.
    Range {
        /// The number of the first one.
        first_digest: u64,
        /// Digests of the epoch.
        digests: u64,
    },
    /// They are not whole chunks.
    Parts {
        /// The number of the first one.
        first_digest: u64,
        /// Their length in bytes.
        bytes: usize,
    },
}

impl std::fmt::Display for ChunkError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            ChunkError::Range { first_digest, digests } => {
                write!(f, "digests from {first_digest} on: the epoch ends at {digests}")
            }
            ChunkError::Parts { first_digest, bytes } => write!(
                f,
                "{bytes} bytes of digests from {first_digest} on: a chunk has {CHUNK_DIGESTS} \
                 digests of {DIGEST_BYTES} bytes"
            ),
        }
    }
}

impl std::error::Error for ChunkError {}

/// Which chunks have come.
#[derive(Clone, Debug)]
pub(super) struct ChunkRecord {
    pub(super) chunks: RowChunks,
    /// A bit for each chunk.
    words: Vec<u64>,
    absent: u64,
}

impl ChunkRecord {
    pub(super) fn new(chunks: RowChunks) -> ChunkRecord {
        let words = chunks.count().div_ceil(u64::from(u64::BITS));
        ChunkRecord { chunks, words: vec![0; words as usize], absent: chunks.count() }
    }

    fn has(&self, chunk: u64) -> bool {
        self.words[(chunk / 64) as usize] >> (chunk % 64) & 1 != 0
    }

    /// Records chunks and calls `store` with the digests of each that is new: their numbers, and
    /// where they lie in `bytes`.
    pub(super) fn arrive(
        &mut self,
        first_digest: u64,
        bytes: usize,
        mut store: impl FnMut(Range<u64>, usize),
    ) -> Result<(), ChunkError> {
        for chunk in self.chunks.of(first_digest, bytes)? {
            if !self.has(chunk) {
                self.words[(chunk / 64) as usize] |= 1 << (chunk % 64);
                self.absent -= 1;
                let digests = self.chunks.digests(chunk as u32);
                let at = (digests.start - first_digest) as usize * DIGEST_BYTES;
                store(digests, at);
            }
        }
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.absent == 0
    }

    /// The first ranges of chunks that have not come, at most `max_ranges`.
    pub(super) fn missing(&self, max_ranges: usize) -> Vec<Range<u32>> {
        let (mut ranges, mut at, count) = (Vec::new(), 0, self.chunks.count());
        while ranges.len() < max_ranges {
            let Some(start) = self.next(at, count, false) else { break };
            at = self.next(start, count, true).unwrap_or(count);
            ranges.push(start as u32..at as u32);
        }
        ranges
    }

    /// The first chunk from `at` on that has come, or has not.
    fn next(&self, mut at: u64, count: u64, has_come: bool) -> Option<u64> {
        let skipped = if has_come { 0 } else { u64::MAX };
        while at < count && self.has(at) != has_come {
            let is_whole = at.is_multiple_of(64) && self.words[(at / 64) as usize] == skipped;
            at += if is_whole { 64 } else { 1 };
        }
        (at < count).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn missing_chunks_are_those_that_did_not_come(
            digests in 0..30_000_u64,
            come in prop::collection::vec((any::<prop::sample::Index>(), 1..100_u64), 0..8),
            max_ranges in 0..6_usize,
        ) {
            let chunks = RowChunks::new(digests);
            let mut record = ChunkRecord::new(chunks);
            let mut expected = vec![true; chunks.count() as usize];
            let mut stored = 0;
            for (at, length) in come {
                if expected.is_empty() {
                    break;
                }
                let first = at.index(expected.len()) as u64;
                let end = (first + length).min(chunks.count());
                let numbers = chunks.digests(first as u32).start..chunks.digests(end as u32 - 1).end;
                let bytes = (numbers.end - numbers.start) as usize * DIGEST_BYTES;
                let result = record.arrive(numbers.start, bytes, |digests, at| {
                    assert_eq!((digests.start - numbers.start) * 16, at as u64);
                    stored += digests.end - digests.start;
                });
                prop_assert_eq!(result, Ok(()));
                expected[first as usize..end as usize].fill(false);
            }
            let absent: u64 = (0..).zip(&expected).filter(|it| *it.1).map(|(chunk, _)| {
                let digests = chunks.digests(chunk);
                digests.end - digests.start
            }).sum();
            prop_assert_eq!(stored + absent, digests);
            prop_assert_eq!(record.is_complete(), absent == 0);
            let all = record.missing(usize::MAX);
            let listed: Vec<u32> = all.iter().cloned().flatten().collect();
            let plain: Vec<u32> = (0..).zip(&expected).filter(|it| *it.1).map(|it| it.0).collect();
            prop_assert_eq!(listed, plain);
            prop_assert!(all.is_sorted_by(|a, b| a.end < b.start), "neighbours are one range");
            prop_assert_eq!(&record.missing(max_ranges)[..], &all[..max_ranges.min(all.len())]);
        }
    }

    #[test]
    fn parts_of_chunks_and_digests_behind_the_end_are_refused() {
        let mut record = ChunkRecord::new(RowChunks::new(100));
        let mut error = |first, bytes| {
            record.arrive(first, bytes, |_, _| panic!("stores")).unwrap_err().to_string()
        };
        let behind = "digests from 75 on: the epoch ends at 100";
        assert_eq!(error(75, 26 * 16), behind);
        assert_eq!(
            error(u64::MAX, 16),
            format!("digests from {} on: the epoch ends at 100", u64::MAX)
        );
        let parts = |first, bytes| {
            format!("{bytes} bytes of digests from {first} on: a chunk has 75 digests of 16 bytes")
        };
        for (first, bytes) in [(75, 24 * 16), (1, 99 * 16), (0, 75 * 16 + 1), (0, 74 * 16)] {
            assert_eq!(error(first, bytes), parts(first, bytes));
        }
        assert_eq!(record.missing(9), vec![0..2]);
    }
}
