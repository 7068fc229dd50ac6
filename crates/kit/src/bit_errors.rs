//! Random errors in bits, drawn as Click draws them.

/// Bits of a byte.
const BITS: usize = u8::BITS as usize;
/// Fraction bits of a probability and of a draw.
const FRACTION: u32 = 28;
/// A probability of one.
const ONE: u64 = 1 << FRACTION;

/// Changes random bits of packets. All bits of a byte are decided by one random number, and the
/// number of changed ones by another if there are any.
#[derive(Clone, Debug)]
pub struct BitErrors {
    /// By number of bits: draws up to this change no more of them.
    limits: [u64; BITS],
    /// Masks, by their number of bits and in Click's order.
    masks: [Vec<u8>; BITS + 1],
}

impl BitErrors {
    /// Errors with probability `p` in each bit.
    pub fn new(p: f64) -> BitErrors {
        let p = (p.clamp(0.0, 1.0) * ONE as f64).round() as u64;
        let masks = masks();
        let mut sum = 0;
        let limits = std::array::from_fn(|changed| {
            // Seven bits more than a draw has, as many bits as Click computes with.
            let times = |chance: u64, of: u64| (chance * of) >> FRACTION;
            let chance = (0..BITS).fold(ONE << 7, |chance, bit| {
                times(chance, if bit < changed { p } else { ONE - p })
            });
            sum += chance * masks[changed].len() as u64;
            (sum >> 7) + (sum >> 6 & 1)
        });
        BitErrors { limits, masks }
    }

    /// Whether a bit may change at all.
    pub fn may_change(&self) -> bool {
        self.limits[0] < ONE
    }

    /// Applies `change` to each byte of `bytes` in which bits change, with the mask of these bits;
    /// `random` draws 31 bits.
    pub fn apply(
        &self,
        bytes: &mut [u8],
        change: impl Fn(&mut u8, u8),
        mut random: impl FnMut() -> u32,
    ) {
        for byte in bytes {
            let draw = u64::from(random() >> 3) & (ONE - 1);
            let changed = self.limits.iter().position(|&limit| draw <= limit).unwrap_or(BITS);
            if changed > 0 {
                let masks = &self.masks[changed];
                change(byte, masks[(random() >> 5) as usize % masks.len()]);
            }
        }
    }
}

/// Click's masks: those of up to four bits are rotations of some, those of more bits the complements of
/// those of fewer. Four of them stand in place of another one of as many bits.
fn masks() -> [Vec<u8>; BITS + 1] {
    const FIRST: [&[u8]; BITS / 2 + 1] = [
        &[0],
        &[0x01],
        &[0x03, 0x05, 0x09, 0x11],
        &[0x07, 0x0b, 0x13, 0x0d, 0x19, 0x15, 0x25],
        &[0x0f, 0x17, 0x27, 0x1b, 0x2b, 0x33, 0x1d, 0x2d, 0x35, 0x55],
    ];
    /// The number of bits, the place, and the mask there.
    const OTHERS: [(usize, usize, u8); 4] =
        [(4, 25, 0x35), (4, 29, 0x53), (5, 40, 0xe9), (5, 44, 0x9e)];
    let rotations = |&first: &u8| {
        let all = (0..u8::BITS).map(move |by| first.rotate_left(by));
        let around = all.clone().skip(1).position(|mask| mask == first);
        all.take(around.map_or(BITS, |last| last + 1))
    };
    let mut masks: [Vec<u8>; BITS + 1] = std::array::from_fn(|bits| match FIRST.get(bits) {
        Some(first) => first.iter().flat_map(rotations).collect(),
        None => FIRST[BITS - bits].iter().flat_map(rotations).map(|mask| !mask).collect(),
    });
    for (bits, at, mask) in OTHERS {
        masks[bits][at] = mask;
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{CRandom, Rng};

    #[test]
    fn masks_have_their_number_of_bits() {
        let masks = masks();
        let counts: Vec<usize> = masks.iter().map(Vec::len).collect();
        assert_eq!(counts, [1, 8, 28, 56, 70, 56, 28, 8, 1]);
        for (bits, masks) in masks.iter().enumerate() {
            assert!(masks.iter().all(|mask| mask.count_ones() as usize == bits), "{bits}");
        }
        assert_eq!(masks[2][24..], [0x11, 0x22, 0x44, 0x88]);
        assert_eq!(masks[4][24..30], [0x1b, 0x35, 0x6c, 0xd8, 0xb1, 0x53]);
        assert_eq!(masks[5][..2], [0xf8, 0xf1]);
        assert_eq!(masks[7][..3], [0xfe, 0xfd, 0xfb]);
    }

    #[test]
    fn bits_change_as_often_as_they_should() {
        for p in [0.0, 0.001, 0.25, 0.9, 1.0] {
            let (mut bytes, mut rng) = (vec![0u8; 100_000], Rng::new(3));
            let errors = BitErrors::new(p);
            assert_eq!(errors.may_change(), p > 0.0);
            errors.apply(&mut bytes, |byte, bits| *byte ^= bits, || (rng.bits() >> 33) as u32);
            let share = bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
            let share = f64::from(share) / 800_000.0;
            assert!((share - p).abs() < 0.003, "{share} rather than {p}");
        }
    }

    #[test]
    fn a_byte_takes_one_draw_and_one_more_for_its_errors() {
        let (mut random, mut draws) = (CRandom::new(5), Vec::new());
        let mut bytes = [0; 4];
        let mut draw = || {
            draws.push(random.bits());
            draws[draws.len() - 1]
        };
        BitErrors::new(0.5).apply(&mut bytes, |byte, bits| *byte ^= bits, &mut draw);
        let masks = masks();
        let mut at = 0;
        for byte in bytes {
            let bits = byte.count_ones() as usize;
            at += 1;
            if bits > 0 {
                assert_eq!(byte, masks[bits][(draws[at] >> 5) as usize % masks[bits].len()]);
                at += 1;
            }
        }
        assert_eq!(draws.len(), at);
    }
}
