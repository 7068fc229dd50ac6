//! RowMaker: the client's digests of an epoch, made when they are asked for.

use super::chunks::RowChunks;
use super::layout::Layout;
use super::{EpochSecrets, hashes};
use crate::bits::{Bits, Ternary};
use crate::digest::{DIGEST_BYTES, HashKind, ProjectionHash};
use crate::private::PrivateFunction;
use crate::secret::{BlindStream, MAX_BLINDS};
use std::fmt::{Debug, Formatter};
use std::ops::Range;
use zeroize::Zeroize;

/// Digests that are made at once; bounds the blinds that a maker keeps.
const PIECE: usize = 1024;

/// Makes the digests of an epoch (paper, algorithm Setup Lookup Tables). It stores none of them, and
/// makes the same ones as often as they are asked for. Digests are numbered in row order: blind by
/// blind, and within a blind column by column.
pub struct RowMaker {
    stream: BlindStream,
    hashes: Vec<ProjectionHash>,
    /// By projection: its columns.
    columns: Vec<Range<usize>>,
    /// By column: the value of the match.
    values: Vec<Bits>,
    digests: u64,
    /// Scratch buffer: the blinds of a piece.
    blinds: Vec<Bits>,
}

impl Debug for RowMaker {
    /// Without the matches, which are secret.
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.debug_struct("RowMaker").field("digests", &self.digests).finish_non_exhaustive()
    }
}

impl RowMaker {
    /// A maker of the rows of an epoch of `blinds` blinds, at most [`MAX_BLINDS`]. `matches` are
    /// those of the function, by number.
    pub fn new(
        function: &PrivateFunction,
        matches: &[Ternary],
        secrets: EpochSecrets,
        kind: HashKind,
        epoch: u64,
        blinds: u64,
    ) -> RowMaker {
        let layout = Layout::new(function);
        let values = layout.matches.iter().map(|&id| matches[id as usize].value()).collect();
        RowMaker {
            stream: BlindStream::new(secrets.blinds, epoch),
            hashes: hashes(function, secrets.hash, kind, epoch),
            digests: blinds.min(MAX_BLINDS) * layout.width() as u64,
            columns: layout.columns,
            values,
            blinds: Vec::new(),
        }
    }

    /// The chunks of the digests.
    pub fn chunks(&self) -> RowChunks {
        RowChunks::new(self.digests)
    }

    /// Puts the digests from number `first_digest` on into `out`, as many as fit. Bytes behind the
    /// last digest of the epoch become 0.
    pub fn fill(&mut self, first_digest: u64, out: &mut [u8]) {
        let mut first = first_digest;
        for piece in out.chunks_mut(PIECE * DIGEST_BYTES) {
            let left = self.digests.saturating_sub(first);
            let count = left.min((piece.len() / DIGEST_BYTES) as u64) as usize;
            let (digests, rest) = piece.split_at_mut(count * DIGEST_BYTES);
            rest.fill(0);
            if count > 0 {
                self.fill_piece(first, digests.as_chunks_mut().0);
            }
            first = first.saturating_add(PIECE as u64);
        }
    }

    fn fill_piece(&mut self, first: u64, out: &mut [[u8; DIGEST_BYTES]]) {
        let width = self.values.len();
        let (first_blind, start) = (first / width as u64, (first % width as u64) as usize);
        let end = start + out.len();
        self.blinds.resize(end.div_ceil(width), Bits::ZERO);
        self.stream.fill(first_blind, &mut self.blinds);
        for (hash, columns) in self.hashes.iter().zip(&self.columns) {
            // The columns of this projection that lie in the piece, row by row, as places in the
            // rows that the piece has a part of.
            let places = || {
                (0..self.blinds.len()).flat_map(move |row| {
                    let place = |column: usize| (row * width + column).clamp(start, end);
                    place(columns.start)..place(columns.end)
                })
            };
            let string = |place: usize| self.values[place % width] ^ self.blinds[place / width];
            let mut to = places();
            hash.digest_each(places().map(string), |_, digest| {
                if let Some(place) = to.next() {
                    out[place - start] = digest.0;
                }
            });
        }
        self.blinds.zeroize();
    }
}
