//! Random numbers that nobody else can predict, for each packet.

use crate::bits::Bits;
use crate::secret::{Key, RandomError};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use std::fmt::{Debug, Formatter};

/// A stream of random numbers: the key stream of ChaCha20 under a random key.
pub struct RandomStream(ChaCha20);

impl RandomStream {
    /// A stream that begins with random numbers of the system.
    ///
    /// # Errors
    /// The system has none.
    pub fn new() -> Result<RandomStream, RandomError> {
        let key = Key::random()?;
        Ok(RandomStream(ChaCha20::new(key.expose().into(), &[0; 12].into())))
    }

    /// A random string of all bits.
    pub fn bits(&mut self) -> Bits {
        let mut bits = Bits::ZERO;
        self.0.apply_keystream(&mut bits.0);
        bits
    }

    /// A random number.
    pub fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.0.apply_keystream(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// A random number below `limit`, 0 if that is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.number()) * u64::from(limit)) >> 32) as u32
    }
}

impl Debug for RandomStream {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("RandomStream(..)")
    }
}
