//! The rows of an epoch, the table S̃ of the paper: for each blind, the digests of all matches.

use crate::bits::{Bits, Ternary};
use crate::digest::{Digest, HashKind, ProjectionHash};
use crate::private::{MatchId, PrivateFunction};
use crate::secret::{BlindStream, Key, MAX_BLINDS};
use std::ops::Range;

/// The digests of all matches for the blinds of an epoch. The client makes them, processors have
/// them.
#[derive(Clone, Debug)]
pub struct EpochRows {
    blinds: u64,
    hashes: Vec<ProjectionHash>,
    /// By projection: where its digests lie in a row.
    columns: Vec<Range<usize>>,
    /// By column: the match.
    matches: Vec<MatchId>,
    /// By match: the column.
    column_of: Vec<usize>,
    /// Row by row.
    digests: Vec<Digest>,
    /// By projection: tables over the columns of each row.
    tables: Vec<ColumnTable>,
}

/// Open addressing over the digests of one projection, a table for each blind.
#[derive(Clone, Debug)]
struct ColumnTable {
    /// Slots of one blind, a power of two.
    slots: usize,
    /// Columns, counted from the first one of the projection; [`ColumnTable::EMPTY`] in free slots.
    columns: Vec<u32>,
}

impl ColumnTable {
    const EMPTY: u32 = u32::MAX;

    fn new(blinds: usize, count: usize) -> ColumnTable {
        let slots = (2 * count).next_power_of_two();
        ColumnTable { slots, columns: vec![ColumnTable::EMPTY; blinds * slots] }
    }

    /// The slots of a digest in the table of a blind, in the order in which they are tried.
    #[inline]
    fn probes(&self, blind: usize, digest: &Digest) -> impl Iterator<Item = usize> + use<> {
        let (mask, first) = (self.slots - 1, digest.prefix() as usize);
        let base = blind * self.slots;
        (0..self.slots).map(move |step| base + (first.wrapping_add(step) & mask))
    }

    fn insert(&mut self, blind: usize, digest: &Digest, column: u32) {
        let mut probes = self.probes(blind, digest);
        if let Some(slot) = probes.find(|&slot| self.columns[slot] == ColumnTable::EMPTY) {
            self.columns[slot] = column;
        }
    }
}

/// The secrets from which the rows of an epoch are made.
#[derive(Clone, Copy, Debug)]
pub struct EpochSecrets<'k> {
    /// The key of the blinds, which the entry and the client have.
    pub blinds: &'k Key,
    /// The key of the hash, which the processors and the client have.
    pub hash: &'k Key,
}

impl EpochRows {
    /// Makes the rows of an epoch of `blinds` blinds, at most [`MAX_BLINDS`] (paper, algorithm Setup
    /// Lookup Tables). `matches` are those of the function, by number.
    pub fn new(
        function: &PrivateFunction,
        matches: &[Ternary],
        secrets: EpochSecrets,
        kind: HashKind,
        epoch: u64,
        blinds: u64,
    ) -> EpochRows {
        let blinds = blinds.min(MAX_BLINDS);
        let mut rows = EpochRows::without_digests(function, secrets.hash, kind, epoch, blinds);
        let mut stream = BlindStream::new(secrets.blinds, epoch);
        for number in 0..blinds {
            let blind = stream.blind(number);
            for (projection, columns) in rows.columns.iter().enumerate() {
                let (bits, hash) = (function.projections()[projection], &rows.hashes[projection]);
                for &id in &rows.matches[columns.clone()] {
                    let masked = matches[id as usize].value() ^ blind & bits;
                    rows.digests.push(hash.digest(&masked));
                }
            }
        }
        rows.fill_tables();
        rows
    }

    fn without_digests(
        function: &PrivateFunction,
        key: &Key,
        kind: HashKind,
        epoch: u64,
        blinds: u64,
    ) -> EpochRows {
        let hash = |projection: &Bits| ProjectionHash::new(kind, key, epoch, projection);
        let mut matches: Vec<MatchId> = (0..function.matches().len() as MatchId).collect();
        matches.sort_by_key(|&id| function.matches()[id as usize]);
        let mut column_of = vec![0; matches.len()];
        matches.iter().enumerate().for_each(|(column, &id)| column_of[id as usize] = column);
        let columns: Vec<Range<usize>> = (0..function.projections().len())
            .map(|projection| {
                let end =
                    |of: usize| matches.partition_point(|&id| function.matches()[id as usize] < of);
                end(projection)..end(projection + 1)
            })
            .collect();
        let tables = columns.iter().map(|it| ColumnTable::new(blinds as usize, it.len()));
        EpochRows {
            blinds,
            hashes: function.projections().iter().map(hash).collect(),
            tables: tables.collect(),
            columns,
            digests: Vec::with_capacity(blinds as usize * matches.len()),
            matches,
            column_of,
        }
    }

    fn fill_tables(&mut self) {
        let width = self.matches.len();
        for (table, columns) in self.tables.iter_mut().zip(&self.columns) {
            for blind in 0..self.blinds as usize {
                for (number, column) in columns.clone().enumerate() {
                    let digest = self.digests[blind * width + column];
                    table.insert(blind, &digest, number as u32);
                }
            }
        }
    }

    /// The number of blinds l.
    pub fn blinds(&self) -> u64 {
        self.blinds
    }

    /// The digests of all matches for a blind, by projection.
    pub fn row(&self, blind: u64) -> &[Digest] {
        let width = self.matches.len();
        self.digests
            .get(blind as usize * width..)
            .and_then(|rest| rest.get(..width))
            .unwrap_or_default()
    }

    /// Compares a blinded header string with a match, by a hash of its own (paper, algorithm Compute
    /// Match). `projection` is that of the match.
    #[inline]
    pub fn is_match(
        &self,
        blind: u64,
        id: MatchId,
        projection: (usize, &Bits),
        header: Bits,
    ) -> bool {
        let digest = self.hashes[projection.0].digest(&(header & *projection.1));
        let column = self.column_of[id as usize];
        self.digests[blind as usize * self.matches.len() + column] == digest
    }

    /// The match of a projection that a blinded header string has.
    #[inline]
    pub fn find(&self, blind: u64, projection: (usize, &Bits), header: Bits) -> Option<MatchId> {
        let digest = self.hashes[projection.0].digest(&(header & *projection.1));
        let (table, columns) = (&self.tables[projection.0], &self.columns[projection.0]);
        let row = blind as usize * self.matches.len() + columns.start;
        for slot in table.probes(blind as usize, &digest) {
            let column = table.columns[slot];
            if column == ColumnTable::EMPTY {
                return None;
            }
            if self.digests[row + column as usize] == digest {
                return Some(self.matches[columns.start + column as usize]);
            }
        }
        None
    }
}
