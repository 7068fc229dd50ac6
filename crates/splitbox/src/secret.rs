//! Key material and the blinds derived from it.

use crate::bits::{Bits, HEADER_BYTES};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use std::fmt::{Debug, Formatter};
use zerocopy::IntoBytes;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A secret key. It is wiped when it goes, and never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; KEY_BYTES]);

/// The system has no random numbers to give.
#[derive(Debug)]
pub struct RandomError(getrandom::Error);

impl std::fmt::Display for RandomError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "no random numbers from the system: {}", self.0)
    }
}

impl std::error::Error for RandomError {}

/// Fills bytes from the system's generator of random numbers.
///
/// # Errors
/// The system has none.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), RandomError> {
    getrandom::fill(bytes).map_err(RandomError)
}

impl Key {
    /// A random key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> Result<Key, RandomError> {
        let mut key = Key([0; KEY_BYTES]);
        fill_random(&mut key.0)?;
        Ok(key)
    }

    /// The key with these bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Key {
        Key(bytes)
    }

    /// The bytes, for a file of the party that owns the key.
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// A key for one purpose, which tells nothing about this one.
    pub fn derive(&self, purpose: &str, parts: &[&[u8]]) -> Key {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&self.0);
        for part in parts {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut key = Key([0; KEY_BYTES]);
        let mut output = hasher.finalize_xof();
        output.fill(&mut key.0);
        output.zeroize();
        hasher.zeroize();
        key
    }
}

impl Debug for Key {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Blinds that a stream makes at once: a seek and the first block cost as much as several blocks.
const RUN: usize = 16;

/// The blinds of an epoch, the table S of the paper without the table: blind `i` is block `i` of a
/// ChaCha20 key stream, so that the entry and the client compute it when they need it. They are made
/// in runs of neighbours; the last run stays until another one is needed, and is wiped at the end.
pub struct BlindStream {
    cipher: ChaCha20,
    run: [Bits; RUN],
    /// Number of the run, if there is one: its first blind divided by [`RUN`].
    run_number: Option<u64>,
}

/// Maximum number of blinds of an epoch: half of the blocks of a ChaCha20 stream, whose last one cannot
/// be used.
pub const MAX_BLINDS: u64 = 1 << 31;

impl BlindStream {
    /// The blinds of an epoch of the client whose blind key this is.
    pub fn new(key: &Key, epoch: u64) -> BlindStream {
        let key = key.derive("castanet splitbox 1 blinds of an epoch", &[&epoch.to_be_bytes()]);
        // The key is used for this stream alone.
        let cipher = ChaCha20::new(key.expose().into(), &[0; 12].into());
        BlindStream { cipher, run: [Bits::ZERO; RUN], run_number: None }
    }

    /// The blinds from `first` on, which must be less than [`MAX_BLINDS`] together with their
    /// number.
    pub fn fill(&mut self, first: u64, blinds: &mut [Bits]) {
        fill_blinds(&mut self.cipher, first, blinds);
    }

    /// Blind number `index`, which must be less than [`MAX_BLINDS`].
    #[inline]
    pub fn blind(&mut self, index: u64) -> Bits {
        let (number, at) = (index / RUN as u64, (index % RUN as u64) as usize);
        if self.run_number != Some(number) {
            fill_blinds(&mut self.cipher, number * RUN as u64, &mut self.run);
            self.run_number = Some(number);
        }
        self.run[at]
    }
}

fn fill_blinds(cipher: &mut ChaCha20, first: u64, blinds: &mut [Bits]) {
    cipher.seek(first * HEADER_BYTES as u64);
    // One call for all blinds lets the cipher make several blocks at once.
    let bytes = blinds.as_mut_bytes();
    bytes.fill(0);
    cipher.apply_keystream(bytes);
}

impl Drop for BlindStream {
    fn drop(&mut self) {
        self.run.zeroize();
    }
}

impl Debug for BlindStream {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("BlindStream(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blinds_do_not_depend_on_the_order_of_reading() {
        let key = Key::from_bytes([7; KEY_BYTES]);
        let mut run = [Bits::ZERO; 5];
        BlindStream::new(&key, 3).fill(10, &mut run);
        let mut stream = BlindStream::new(&key, 3);
        for (number, blind) in run.iter().enumerate().rev() {
            assert_eq!(stream.blind(10 + number as u64), *blind);
        }
        let mut many = vec![Bits::ZERO; 100];
        stream.fill(3, &mut many);
        for number in [0, 99, 12, 13, 14, 60, 28, 29] {
            assert_eq!(stream.blind(3 + number as u64), many[number], "{number}");
        }
        assert_ne!(stream.blind(0), BlindStream::new(&key, 4).blind(0), "epochs differ");
        assert_eq!(stream.blind(MAX_BLINDS - 1), stream.blind(MAX_BLINDS - 1));
    }

    #[test]
    fn keys_are_not_printed_and_derived_ones_differ() {
        let key = Key::random().expect("random numbers");
        assert_eq!(format!("{key:?} {:?}", BlindStream::new(&key, 1)), "Key(..) BlindStream(..)");
        let derived =
            [key.derive("a", &[b"b", b"c"]), key.derive("a", &[b"bc"]), key.derive("b", &[])];
        assert_ne!(derived[0].expose(), derived[1].expose());
        assert_ne!(derived[0].expose(), derived[2].expose());
    }
}
