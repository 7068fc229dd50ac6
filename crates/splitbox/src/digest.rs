//! The hash ℍ under which processors compare masked header strings.

use crate::bits::{Bits, HEADER_BYTES};
use crate::secret::Key;
use sha1::{Digest as _, Sha1};
use subtle::ConstantTimeEq;

/// Bytes of a digest. 16 bytes keep the probability that any of 2^64 comparisons of different strings
/// finds equal digests below 2^-64.
pub const DIGEST_BYTES: usize = 16;

/// A digest, truncated to [`DIGEST_BYTES`].
#[derive(Clone, Copy, Debug)]
pub struct Digest(pub [u8; DIGEST_BYTES]);

impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl Digest {
    /// The first bytes as a number, by which tables are indexed.
    #[inline]
    pub fn prefix(&self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn truncated(bytes: &[u8]) -> Digest {
        Digest(std::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default()))
    }
}

/// A choice of ℍ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HashKind {
    /// BLAKE3 with a key that the processors and the client have, and the entry has not. A header
    /// string is one block of it.
    #[default]
    Blake3,
    /// SHA-1 without a key, as in the paper (section 3.6); for comparison.
    Sha1,
}

/// ℍ for the strings of one projection.
#[derive(Clone)]
pub struct ProjectionHash {
    kind: HashKind,
    key: Key,
    /// Bytes up to the last one that has a bit of the projection; the others of a masked string are 0.
    len: usize,
}

impl ProjectionHash {
    /// ℍ for a projection. With a key, equal strings of different projections, epochs or functions
    /// have unrelated digests.
    pub fn new(kind: HashKind, key: &Key, epoch: u64, projection: &Bits) -> ProjectionHash {
        let purpose = "castanet splitbox 1 hash of a projection";
        let key = key.derive(purpose, &[&epoch.to_be_bytes(), &projection.0]);
        let len = projection.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        ProjectionHash { kind, key, len }
    }

    /// The digest of a header string that is masked by the projection. Up to 55 bytes are one block of
    /// SHA-1.
    pub fn digest(&self, masked: &Bits) -> Digest {
        const { assert!(HEADER_BYTES == blake3::BLOCK_LEN, "a header string is one block") };
        let bytes = masked.0.get(..self.len).unwrap_or_default();
        match self.kind {
            HashKind::Blake3 => {
                Digest::truncated(blake3::keyed_hash(self.key.expose(), bytes).as_bytes())
            }
            HashKind::Sha1 => Digest::truncated(&Sha1::digest(bytes)),
        }
    }
}

impl std::fmt::Debug for ProjectionHash {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("ProjectionHash").field("kind", &self.kind).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_depend_on_key_epoch_and_projection_except_sha1() {
        let keys = [1, 2].map(|byte| Key::from_bytes([byte; 32]));
        let (some, other) = (Bits::first(8), Bits::first(7));
        let masked = Bits::first(4);
        for kind in [HashKind::Blake3, HashKind::Sha1] {
            let digest = |key: &Key, epoch, projection: &Bits| {
                ProjectionHash::new(kind, key, epoch, projection).digest(&masked)
            };
            let first = digest(&keys[0], 1, &some);
            assert_eq!(first, digest(&keys[0], 1, &some));
            let others = [
                digest(&keys[1], 1, &some),
                digest(&keys[0], 2, &some),
                digest(&keys[0], 1, &other),
            ];
            for it in others {
                assert_eq!(it == first, kind == HashKind::Sha1, "{kind:?}");
            }
        }
    }
}
