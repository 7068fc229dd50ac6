//! The filter of a block: a few bits of a packet rule out most masks before a lookup.

use super::Key;
use super::shape::Shape;

/// A bit for each mask of a block.
pub(super) type Bits = [u64; 4];

/// Sets a bit.
#[inline]
pub(super) fn set(bits: &mut Bits, position: usize) {
    bits[position / 64] |= 1 << (position % 64);
}

/// Clears a bit.
pub(super) fn clear(bits: &mut Bits, position: usize) {
    bits[position / 64] &= !(1 << (position % 64));
}

/// How many bits are set.
pub(super) fn count(bits: &Bits) -> u32 {
    bits.iter().map(|word| word.count_ones()).sum()
}

/// A bit field: some bits of one word of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct BitField {
    pub(super) word: usize,
    pub(super) mask: u64,
}

impl BitField {
    /// Whether a mask has all bits of the field.
    pub(super) fn is_covered_by(&self, shape: &Shape) -> bool {
        shape.mask.0[self.word] & self.mask == self.mask
    }

    /// Whether two fields have bits in common.
    pub(super) fn overlaps(&self, other: &BitField) -> bool {
        self.word == other.word && self.mask & other.mask != 0
    }

    #[inline]
    pub(super) fn value(&self, key: &Key) -> u64 {
        key.0[self.word] & self.mask
    }
}

/// A hash table from the value of a bit field to the masks that have rules with that value.
#[derive(Clone)]
struct Probe {
    field: BitField,
    /// Masks that lack some of the field's bits; their rules match any value.
    wild: Bits,
    /// By a hash of the value, one word for each 64 masks.
    cells: Vec<u64>,
    shift: u32,
    /// The factor of the multiplicative hash. Two probes of the same field have different factors.
    factor: u64,
}

/// Odd numbers with bits all over.
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

/// Cells of a probe: the minimum, the maximum, and the number for each value of a mask. With 16,
/// one of 16 masks passes by collision.
const CELLS: (usize, usize, usize) = (64, 1 << 16, 16);

/// The number of cells of a probe for masks with up to `values` values.
pub(super) fn cells(values: usize) -> usize {
    (values * CELLS.2).next_power_of_two().clamp(CELLS.0, CELLS.1)
}

impl Probe {
    #[inline]
    fn cell(&self, key: &Key) -> usize {
        (self.field.value(key).wrapping_mul(self.factor) >> self.shift) as usize
    }
}

/// The probes that together tell which masks may have a rule for a packet.
#[derive(Clone, Default)]
pub(super) struct Filter {
    probes: Vec<Probe>,
    /// Words of a cell; masks beyond them always pass.
    words: usize,
}

impl Filter {
    /// Empty probes of these fields for so many masks, each with so many cells.
    pub(super) fn new(fields: &[BitField], masks: usize, cells: usize) -> Filter {
        let words = masks.div_ceil(u64::BITS as usize).max(1);
        let probe = |(&field, factor): (&BitField, u64)| Probe {
            field,
            wild: Bits::default(),
            cells: vec![0; cells * words],
            shift: u64::BITS - cells.ilog2(),
            factor,
        };
        Filter { probes: fields.iter().zip(FACTORS).map(probe).collect(), words }
    }

    pub(super) fn len(&self) -> usize {
        self.probes.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.probes.iter().map(|probe| probe.cells.len() * size_of::<u64>()).sum()
    }

    /// Whether the cells have a bit for the mask at this position.
    pub(super) fn covers(&self, position: usize) -> bool {
        self.probes.is_empty() || position < self.words * u64::BITS as usize
    }

    /// Enters a mask at this position.
    pub(super) fn add_mask(&mut self, position: usize, shape: &Shape) {
        for probe in &mut self.probes {
            match probe.field.is_covered_by(shape) {
                true => clear(&mut probe.wild, position),
                false => set(&mut probe.wild, position),
            }
        }
    }

    /// Enters a rule's value under the mask at this position.
    pub(super) fn add(&mut self, position: usize, shape: &Shape, value: &Key) {
        let (word, bit) = (position / 64, 1 << (position % 64));
        if word >= self.words {
            return;
        }
        for probe in self.probes.iter_mut().filter(|probe| probe.field.is_covered_by(shape)) {
            let cell = probe.cell(value) * self.words + word;
            probe.cells[cell] |= bit;
        }
    }

    /// The masks of `bits` that may have a rule for this key.
    #[inline]
    pub(super) fn candidates(&self, mut bits: Bits, key: &Key) -> Bits {
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
