//! The random numbers of a worker or of the control thread.

use castanet_kit::rng::{CRandom, in_range};
use std::sync::{Arc, Mutex, PoisonError};

/// A source of random numbers.
#[derive(Clone, Debug)]
pub enum RandomNumbers {
    /// A generator that no other thread uses, xorshift64*; the state is never 0.
    Own(u64),
    /// The generator that a `RandomSeed` has seeded. All threads draw from it, as in Click.
    Seeded(Arc<Mutex<CRandom>>),
}

impl RandomNumbers {
    /// Numbers for one thread.
    pub fn own(seed: u64) -> RandomNumbers {
        RandomNumbers::Own(seed.max(1))
    }

    /// Numbers as Click's `RandomSeed(seed)` makes them; clones draw from one sequence.
    pub fn seeded(seed: u32) -> RandomNumbers {
        RandomNumbers::Seeded(Arc::new(Mutex::new(CRandom::new(seed))))
    }

    /// Sixty-four random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        match self {
            RandomNumbers::Own(state) => xorshift(state),
            RandomNumbers::Seeded(_) => {
                let [high, middle, low] = [(); 3].map(|()| u64::from(self.number()));
                high << 33 ^ middle << 2 ^ low
            }
        }
    }

    /// Thirty-one random bits: one draw of Click's.
    #[inline]
    pub fn number(&mut self) -> u32 {
        match self {
            RandomNumbers::Own(state) => (xorshift(state) >> 33) as u32,
            RandomNumbers::Seeded(common) => {
                common.lock().unwrap_or_else(PoisonError::into_inner).bits()
            }
        }
    }

    /// A number from `low` to `high`, both included, by the rule of Click's draws.
    #[inline]
    pub fn in_range(&mut self, low: u32, high: u32) -> u32 {
        in_range(low, high, || self.number())
    }

    /// Fills bytes at random. A seeded generator fills four at a time from each draw.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let size =
            if let RandomNumbers::Own(_) = self { size_of::<u64>() } else { size_of::<u32>() };
        for chunk in bytes.chunks_mut(size) {
            let bits = match self {
                RandomNumbers::Own(state) => xorshift(state),
                RandomNumbers::Seeded(_) => self.number().into(),
            };
            chunk.copy_from_slice(&bits.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// The next number of xorshift64*: fast, and good enough for sampling and random switches.
#[inline]
fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}
