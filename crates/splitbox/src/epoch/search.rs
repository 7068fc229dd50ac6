//! Searches for the matches that packets have, many at once.

use super::index::Home;
use super::{EpochRows, Work};
use crate::digest::Digest;
use crate::private::MatchId;
use std::hint::black_box;
use subtle::ConstantTimeEq;

/// A search for the match of a projection whose digest a packet has.
#[derive(Clone, Copy, Debug)]
struct Search {
    digest: Digest,
    home: Home,
    /// Number of the digest of the projection's first column.
    row: usize,
    projection: u32,
    /// The slots of the first bucket that may have the digest, and whether the next bucket may.
    slots: u32,
    has_more: bool,
    /// The packet that asks, for the caller.
    asker: u8,
}

/// Searches that are made together, so that the processor waits for the memory of many of them at
/// once. Without instructions that fetch memory ahead, loops of few instructions load a byte of each
/// cache line first, before other loops work with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Searches {
    list: Vec<Search>,
    /// Scratch buffer: what the next loop loads.
    places: Vec<usize>,
}

/// Candidates that a search with constant work compares with a digest, as long as no more than these
/// look like it.
const CONSTANT_COMPARISONS: u32 = 2;

impl Searches {
    /// The number of searches that have not been made.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Adds the search for a digest of a projection, in the row of a blind.
    #[inline]
    pub(crate) fn push(
        &mut self,
        rows: &EpochRows,
        asker: u8,
        blind: u64,
        projection: usize,
        digest: Digest,
    ) {
        let blind = blind as usize;
        let home = rows.index.home(blind, projection, &digest);
        self.places.push(home.place());
        self.list.push(Search {
            digest,
            home,
            row: blind * rows.layout.width() + rows.layout.columns[projection].start,
            projection: projection as u32,
            slots: 0,
            has_more: false,
            asker,
        });
    }

    /// Makes all searches, and calls `answer` with the packet, the projection, and the match.
    ///
    /// With `is_constant` the work for a search does not depend on which match it finds, nor on
    /// whether it finds one: it looks at all buckets that any digest of the projection may be in,
    /// and compares two digests. A bucket has a part of each digest: at least 16 bits for up to
    /// 65 535 matches of a projection. Only if more than two digests near the bucket have the part
    /// that is searched, more are compared.
    #[inline]
    pub(crate) fn find(
        &mut self,
        rows: &EpochRows,
        is_constant: bool,
        work: &mut Work,
        mut answer: impl FnMut(u8, u32, Option<MatchId>),
    ) {
        self.load_buckets(rows, is_constant);
        self.load_digests(rows, is_constant);
        for search in &self.list {
            let found = match is_constant {
                true => search.finish_constant(rows, work),
                false => search.finish(rows, work),
            };
            answer(search.asker, search.projection, found);
        }
        self.list.clear();
        self.places.clear();
    }

    fn load_buckets(&self, rows: &EpochRows, is_constant: bool) {
        black_box(self.places.iter().fold(0, |all, &place| all ^ rows.index.touch(place)));
        let more = if is_constant { &self.list[..] } else { &[] };
        let next = |it: &Search| rows.index.touch_next(it.projection as usize, it.home);
        black_box(more.iter().fold(0, |all, it| all ^ next(it)));
    }

    /// Looks at the first bucket of each search, and loads the digest that it is compared with first.
    fn load_digests(&mut self, rows: &EpochRows, is_constant: bool) {
        for (search, place) in self.list.iter_mut().zip(&mut self.places) {
            let projection = search.projection as usize;
            let Search { home, ref digest, row, .. } = *search;
            (search.slots, search.has_more) = rows.index.slots(projection, home, 0, digest);
            let slot = search.slots.trailing_zeros();
            let column = rows.index.column(projection, home, 0, slot) as usize;
            // Without a candidate it is the first digest of the row with constant work, and otherwise
            // one that all searches have in common.
            let candidate = usize::from(search.slots != 0).wrapping_neg();
            let none = if is_constant { row } else { 0 };
            *place = (row.wrapping_add(column) & candidate) | (none & !candidate);
        }
        let digests = &rows.digests;
        let byte = |place: usize| digests.get(place).map_or(0, |it| it.0[0]);
        black_box(self.places.iter().fold(0, |all, &place| all ^ byte(place)));
    }
}

impl Search {
    /// Compares the digests that may be the one, and looks at more buckets while it may be there.
    #[inline]
    fn finish(&self, rows: &EpochRows, work: &mut Work) -> Option<MatchId> {
        let Search { projection, home, ref digest, row, mut slots, mut has_more, .. } = *self;
        work.probes += 1;
        for step in 1.. {
            while slots != 0 {
                work.comparisons += 1;
                let slot = slots.trailing_zeros();
                let column = rows.index.column(projection as usize, home, step - 1, slot);
                if rows.digests.get(row + column as usize) == Some(digest) {
                    return Some(rows.id(projection, column));
                }
                slots &= slots - 1;
            }
            if !has_more {
                break;
            }
            work.probes += 1;
            (slots, has_more) = rows.index.slots(projection as usize, home, step, digest);
        }
        None
    }

    fn finish_constant(&self, rows: &EpochRows, work: &mut Work) -> Option<MatchId> {
        let Search { projection, home, ref digest, row, .. } = *self;
        let (mut found, mut compared) = (None, 0);
        for step in 0..rows.index.reach(projection as usize) {
            work.probes += 1;
            let (mut slots, _) = rows.index.slots(projection as usize, home, step, digest);
            while slots != 0 {
                let slot = slots.trailing_zeros();
                let column = rows.index.column(projection as usize, home, step, slot);
                compared += 1;
                if rows.digests.get(row + column as usize) == Some(digest) {
                    found = Some(rows.id(projection, column));
                }
                slots &= slots - 1;
            }
        }
        while compared < CONSTANT_COMPARISONS {
            compared += 1;
            black_box(rows.digests.get(row).map(|it| it.ct_eq(digest)));
        }
        work.comparisons += u64::from(compared);
        found
    }
}
