//! The hash ℍ under which processors compare masked header strings.

use crate::bits::{Bits, HEADER_BYTES};
use crate::secret::Key;
use blake3::IncrementCounter;
use blake3::platform::Platform;
use sha1::block_api::compress;
use subtle::{Choice, ConstantTimeEq};
use zerocopy::FromZeros;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a digest. 16 bytes keep the probability that any of 2^64 comparisons of different strings
/// finds equal digests below 2^-64.
pub const DIGEST_BYTES: usize = 16;

/// A digest, truncated to [`DIGEST_BYTES`].
#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(align(16))]
pub struct Digest(pub [u8; DIGEST_BYTES]);

impl ConstantTimeEq for Digest {
    #[inline]
    fn ct_eq(&self, other: &Digest) -> Choice {
        u128::from_ne_bytes(self.0).ct_eq(&u128::from_ne_bytes(other.0))
    }
}

impl PartialEq for Digest {
    #[inline]
    fn eq(&self, other: &Digest) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for Digest {}

impl Digest {
    /// The first bytes as a number, by which tables are indexed.
    #[inline]
    pub fn prefix(&self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    fn truncated(bytes: &[u8; blake3::OUT_LEN]) -> Digest {
        bytes.first_chunk().map_or(Digest([0; DIGEST_BYTES]), |it| Digest(*it))
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

/// The number of strings that are hashed at once: as many as AVX-512 has words in a register.
const LOT: usize = 16;

/// Flags of a BLAKE3 block that is the whole input of a keyed hash: `CHUNK_START`, `CHUNK_END`, `ROOT`
/// and `KEYED_HASH` (BLAKE3 specification, table 3).
const WHOLE_KEYED_INPUT: u8 = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4;

/// The initial state of SHA-1 (FIPS 180-4, section 5.3.1).
const SHA1_STATE: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// A key as BLAKE3 computes with it.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
struct KeyWords([u32; 8]);

impl KeyWords {
    fn new(key: &Key) -> KeyWords {
        let (words, _) = key.expose().as_chunks();
        KeyWords(std::array::from_fn(|at| u32::from_le_bytes(words[at])))
    }
}

/// The function that hashes the strings of a projection.
#[derive(Clone)]
enum Compression {
    Blake3 {
        key: KeyWords,
        platform: Platform,
    },
    /// The padding of the strings, and the number of blocks that they have with it.
    Sha1 {
        padding: [Bits; 2],
        blocks: usize,
    },
}

/// ℍ for the strings of one projection.
#[derive(Clone)]
pub struct ProjectionHash {
    projection: Bits,
    compression: Compression,
}

impl ProjectionHash {
    /// ℍ for a projection. With a key, equal strings of different projections, epochs or functions
    /// have unrelated digests. BLAKE3 hashes all [`HEADER_BYTES`] of a masked string, SHA-1 those up
    /// to the last one that has a bit of the projection, as up to 55 bytes are one block of it.
    pub fn new(kind: HashKind, key: &Key, epoch: u64, projection: &Bits) -> ProjectionHash {
        const { assert!(HEADER_BYTES == blake3::BLOCK_LEN, "a header string is one block") };
        let compression = match kind {
            HashKind::Blake3 => {
                let purpose = "castanet splitbox 1 hash of a projection";
                let key = key.derive(purpose, &[&epoch.to_be_bytes(), &projection.0]);
                Compression::Blake3 { key: KeyWords::new(&key), platform: Platform::detect() }
            }
            HashKind::Sha1 => {
                let len = projection.0.iter().rposition(|&byte| byte != 0);
                sha1_padding(len.map_or(0, |last| last + 1))
            }
        };
        ProjectionHash { projection: *projection, compression }
    }

    /// The digest of a header string, which is masked by the projection first.
    #[inline]
    pub fn digest(&self, string: Bits) -> Digest {
        let mut digest = Digest([0; DIGEST_BYTES]);
        self.digest_each(std::iter::once(string), |_, it| digest = it);
        digest
    }

    /// The digests of header strings, which are masked by the projection first; `put` gets the number
    /// of the string and its digest.
    #[inline]
    pub fn digest_each(
        &self,
        strings: impl Iterator<Item = Bits>,
        mut put: impl FnMut(usize, Digest),
    ) {
        match &self.compression {
            Compression::Blake3 { key, platform } => {
                let mut strings = strings.map(|it| it & self.projection);
                let (mut first, mut lot) = (0, [Bits::ZERO; LOT]);
                let mut digests = [[0; blake3::OUT_LEN]; LOT];
                loop {
                    let mut count = 0;
                    lot.iter_mut().zip(&mut strings).for_each(|(place, it)| {
                        *place = it;
                        count += 1;
                    });
                    blake3_lot(*platform, key, &lot, count, &mut digests);
                    for (at, digest) in digests.iter().take(count).enumerate() {
                        put(first + at, Digest::truncated(digest));
                    }
                    first += count;
                    if count < LOT {
                        return;
                    }
                }
            }
            Compression::Sha1 { padding, blocks } => {
                for (at, string) in strings.enumerate() {
                    put(at, sha1(&[string & self.projection | padding[0], padding[1]], *blocks));
                }
            }
        }
    }
}
/// The BLAKE3 digests of the first `count` strings, each of which is one block. A lot that is not full
/// is hashed with strings behind it, as the library takes several of 4, 8 or 16 at the price of one.
#[inline]
fn blake3_lot(
    platform: Platform,
    key: &KeyWords,
    lot: &[Bits; LOT],
    count: usize,
    digests: &mut [[u8; blake3::OUT_LEN]; LOT],
) {
    let inputs = lot.each_ref().map(|it| &it.0);
    let count = match count {
        0 | 1 => count,
        2..=4 => 4,
        5..=8 => 8,
        _ => LOT,
    };
    let (flags, no) = (WHOLE_KEYED_INPUT, IncrementCounter::No);
    let digests = digests.as_flattened_mut();
    platform.hash_many(&inputs[..count], &key.0, 0, no, flags, 0, 0, digests);
}

/// The padding of strings of `len` bytes (FIPS 180-4, section 5.1.1).
fn sha1_padding(len: usize) -> Compression {
    let mut padding = [[0; HEADER_BYTES]; 2];
    let blocks = if len < HEADER_BYTES - size_of::<u64>() { 1 } else { 2 };
    let bytes = padding[..blocks].as_flattened_mut();
    bytes[len] = 0x80;
    if let Some(end) = bytes.last_chunk_mut() {
        *end = (8 * len as u64).to_be_bytes();
    }
    Compression::Sha1 { padding: padding.map(Bits), blocks }
}

/// The SHA-1 digest of a padded string.
#[inline]
fn sha1(padded: &[Bits; 2], blocks: usize) -> Digest {
    let mut state = SHA1_STATE;
    compress(&mut state, &[padded[0].0]);
    if blocks == 2 {
        compress(&mut state, &[padded[1].0]);
    }
    let mut digest = Digest([0; DIGEST_BYTES]);
    let (words, _) = digest.0.as_chunks_mut();
    words.iter_mut().zip(state).for_each(|(to, from)| *to = from.to_be_bytes());
    digest
}

impl std::fmt::Debug for ProjectionHash {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("ProjectionHash")
            .field("projection", &self.projection)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sha1::{Digest as _, Sha1};

    fn strings() -> impl Strategy<Value = Bits> {
        any::<[[u8; HEADER_BYTES / 2]; 2]>().prop_map(|[a, b]| {
            let mut bits = Bits::ZERO;
            bits.0.iter_mut().zip(a.into_iter().chain(b)).for_each(|(to, from)| *to = from);
            bits
        })
    }

    proptest! {
        #[test]
        fn digests_are_those_of_the_hashes_whatever_their_number(
            strings in prop::collection::vec(strings(), 0..40),
            width in 0..=8 * HEADER_BYTES,
            epoch: u64,
        ) {
            let (key, projection) = (Key::from_bytes([3; 32]), Bits::first(width));
            let purpose = "castanet splitbox 1 hash of a projection";
            let derived = key.derive(purpose, &[&epoch.to_be_bytes(), &projection.0]);
            let hash = |kind| ProjectionHash::new(kind, &key, epoch, &projection);
            let (blake3, sha1) = (hash(HashKind::Blake3), hash(HashKind::Sha1));
            let (mut keyed, mut plain) = (Vec::new(), Vec::new());
            blake3.digest_each(strings.iter().copied(), |at, it| keyed.push((at, it)));
            sha1.digest_each(strings.iter().copied(), |at, it| plain.push((at, it)));
            prop_assert_eq!((keyed.len(), plain.len()), (strings.len(), strings.len()));
            for (at, string) in strings.iter().enumerate() {
                let masked = *string & projection;
                let expected = blake3::keyed_hash(derived.expose(), &masked.0);
                prop_assert_eq!(keyed[at], (at, Digest::truncated(expected.as_bytes())));
                prop_assert_eq!(blake3.digest(*string), keyed[at].1);
                let expected = Sha1::digest(&masked.0[..width.div_ceil(8)]);
                prop_assert_eq!(&plain[at].1.0[..], &expected[..DIGEST_BYTES]);
                prop_assert_eq!((plain[at].0, plain[at].1), (at, sha1.digest(*string)));
            }
        }
    }

    #[test]
    fn digests_depend_on_key_epoch_and_projection_except_sha1() {
        let keys = [1, 2].map(|byte| Key::from_bytes([byte; 32]));
        let (some, other) = (Bits::first(8), Bits::first(7));
        let string = Bits::first(4);
        for kind in [HashKind::Blake3, HashKind::Sha1] {
            let digest = |key: &Key, epoch, projection: &Bits| {
                ProjectionHash::new(kind, key, epoch, projection).digest(string)
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
