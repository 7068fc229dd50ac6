//! Which masks are worth a lookup: a few bits of a packet rule out most of them.

use super::Key;
use super::shape::Shape;

/// A bit for each mask of a block.
pub(super) type Bits = [u64; 4];

/// Sets a bit.
#[inline]
pub(super) fn set(bits: &mut Bits, place: usize) {
    bits[place / 64] |= 1 << (place % 64);
}

/// Clears a bit.
pub(super) fn clear(bits: &mut Bits, place: usize) {
    bits[place / 64] &= !(1 << (place % 64));
}

/// How many bits are set.
pub(super) fn count(bits: &Bits) -> u32 {
    bits.iter().map(|word| word.count_ones()).sum()
}

/// Some bits of one word of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Part {
    pub(super) word: usize,
    pub(super) mask: u64,
}

impl Part {
    /// Whether rules of a mask all say what these bits are.
    pub(super) fn is_in(&self, shape: &Shape) -> bool {
        shape.mask.0[self.word] & self.mask == self.mask
    }

    /// Whether two parts have bits in common.
    pub(super) fn overlaps(&self, other: &Part) -> bool {
        self.word == other.word && self.mask & other.mask != 0
    }

    #[inline]
    pub(super) fn of(&self, key: &Key) -> u64 {
        key.0[self.word] & self.mask
    }
}

/// For each value of a part: the masks that have rules with it.
#[derive(Clone)]
struct Probe {
    part: Part,
    /// Masks that do not have all of the part's bits.
    wild: Bits,
    /// By a hash of the value, a word for each 64 masks.
    cells: Vec<u64>,
    shift: u32,
    /// What values are multiplied by: two probes of the same part differ in it.
    by: u64,
}

/// Odd numbers with bits everywhere.
const FACTORS: [u64; 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0xd6e8_feb8_6659_fd93,
    0xff51_afd7_ed55_8ccd,
    0xc4ce_b9fe_1a85_ec53,
    0x94d0_49bb_1331_11eb,
    0xbf58_476d_1ce4_e5b9,
    0x1656_67b1_9e37_79f9,
];

/// Cells of a probe: the fewest, the most, and how many for each value of a mask. Sixteen
/// let one of sixteen pass that should not.
const CELLS: (usize, usize, usize) = (64, 1 << 16, 16);

/// How many cells a probe has where masks have so many values at the most.
pub(super) fn cells(values: usize) -> usize {
    (values * CELLS.2).next_power_of_two().clamp(CELLS.0, CELLS.1)
}

impl Probe {
    #[inline]
    fn cell(&self, key: &Key) -> usize {
        (self.part.of(key).wrapping_mul(self.by) >> self.shift) as usize
    }
}

/// Probes that together say which masks may have a rule for a packet.
#[derive(Clone, Default)]
pub(super) struct Filter {
    probes: Vec<Probe>,
    /// Words of a cell: masks beyond always pass.
    words: usize,
}

impl Filter {
    /// Probes of these parts for so many masks, each of so many cells.
    pub(super) fn new(parts: &[Part], masks: usize, cells: usize) -> Filter {
        let words = masks.div_ceil(u64::BITS as usize).max(1);
        let probe = |(&part, by): (&Part, u64)| Probe {
            part,
            wild: Bits::default(),
            cells: vec![0; cells * words],
            shift: u64::BITS - cells.ilog2(),
            by,
        };
        Filter { probes: parts.iter().zip(FACTORS).map(probe).collect(), words }
    }

    pub(super) fn len(&self) -> usize {
        self.probes.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.probes.iter().map(|probe| probe.cells.len() * size_of::<u64>()).sum()
    }

    /// Whether there is a bit for the mask at this place.
    pub(super) fn knows(&self, place: usize) -> bool {
        self.probes.is_empty() || place < self.words * u64::BITS as usize
    }

    /// A mask came to this place.
    pub(super) fn add_shape(&mut self, place: usize, shape: &Shape) {
        for probe in &mut self.probes {
            match probe.part.is_in(shape) {
                true => clear(&mut probe.wild, place),
                false => set(&mut probe.wild, place),
            }
        }
    }

    /// A rule came to the mask at this place.
    pub(super) fn add(&mut self, place: usize, shape: &Shape, value: &Key) {
        let (word, bit) = (place / 64, 1 << (place % 64));
        if word >= self.words {
            return;
        }
        for probe in self.probes.iter_mut().filter(|probe| probe.part.is_in(shape)) {
            let cell = probe.cell(value) * self.words + word;
            probe.cells[cell] |= bit;
        }
    }

    /// Those of `bits` that may have a rule for this key.
    #[inline]
    pub(super) fn pass(&self, mut bits: Bits, key: &Key) -> Bits {
        for probe in &self.probes {
            let cell = probe.cell(key) * self.words;
            let Some(cell) = probe.cells.get(cell..cell + self.words) else { continue };
            for ((bits, cell), wild) in bits.iter_mut().zip(cell).zip(&probe.wild) {
                *bits &= cell | wild;
            }
        }
        bits
    }
}
