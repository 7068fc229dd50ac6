//! Random 1-out-of-N sampling (RFC 5475, section 5.2.1).

use crate::rng::Rng;

/// Chooses one packet of each group, at random: traffic with a period of its own is not favoured.
#[derive(Debug)]
pub struct Sampler {
    /// Packets of the present group that were seen.
    seen: u32,
    /// The packet of the present group that is chosen.
    chosen: u32,
    rng: Rng,
}

impl Sampler {
    /// A sampler for a seed.
    pub fn new(seed: u64) -> Sampler {
        Sampler { seen: 0, chosen: 0, rng: Rng::new(seed) }
    }

    /// Whether the next packet is the one that is chosen of its group of `interval` packets.
    #[inline]
    pub fn takes_next(&mut self, interval: u32) -> bool {
        if interval <= 1 {
            return true;
        }
        if self.seen == 0 || self.seen >= interval {
            self.seen = 0;
            self.chosen = (self.rng.bits() % u64::from(interval)) as u32;
        }
        let is_chosen = self.seen == self.chosen;
        self.seen += 1;
        is_chosen
    }
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler::new(0)
    }
}
