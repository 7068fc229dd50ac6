//! Layout of the structures that Castanet and a module share, version 1.
//!
//! `sdk/wasm/include/castanet_wasm.h` declares the same structures for C. Numbers are little-endian,
//! addresses are offsets in the module's memory.

/// The version of the interface.
pub(crate) const VERSION: i32 = 1;
/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR: usize = 32;
/// The verdict of the first reason to drop; those below are outputs.
pub(crate) const DROP_VERDICT: u16 = 0x8000;
/// The offset of a network header that is not marked.
pub(crate) const NO_HEADER: u16 = u16::MAX;
/// Flag of a module that reads time stamps.
pub(crate) const TIMESTAMPS: u32 = 1;
/// Access to a handler: it can be read.
pub(crate) const READ: u32 = 1;
/// Access to a handler: it can be written to.
pub(crate) const WRITE: u32 = 2;
/// Bytes to a multiple of which slots are rounded up.
pub(crate) const ALIGN: usize = 16;

/// Number of words in the description of a module.
pub(crate) const MODULE_WORDS: usize = 15;
/// Most bytes of a packet that a module can have copied in.
pub(crate) const MAX_SNAP: u32 = 16384;
/// Most headroom that a module can have.
pub(crate) const MAX_HEADROOM: u32 = 256;
/// Most packets in a batch.
pub(crate) const MAX_BATCH: u32 = 256;
/// Least bytes of the text buffer.
pub(crate) const MIN_TEXT: u32 = 256;
/// Most bytes of the text buffer.
pub(crate) const MAX_TEXT: u32 = 1 << 20;
/// Most reasons to drop of a module.
pub(crate) const MAX_REASONS: u32 = 7;
/// Most counters, and most handlers.
pub(crate) const MAX_NAMES: u32 = 64;
/// Most bytes of a name or of its sentence.
pub(crate) const MAX_STRING: usize = 256;

/// One packet of a batch, as four words in the module's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Address of the first byte.
    pub(crate) data: u32,
    /// Bytes of the packet.
    pub(crate) length: u32,
    /// Bytes from `data` on that the module sees.
    pub(crate) visible: u16,
    /// Offset of the network header, or [`NO_HEADER`].
    pub(crate) network: u16,
    /// Output, or [`DROP_VERDICT`] and the number of a reason.
    pub(crate) verdict: u16,
    /// Paint annotation.
    pub(crate) paint: u8,
    /// Input port.
    pub(crate) input: u8,
    /// First changed byte.
    pub(crate) dirty_from: u16,
    /// First unchanged byte behind `dirty_from`.
    pub(crate) dirty_to: u16,
    /// Destination annotation.
    pub(crate) destination: [u8; 4],
    /// Time stamp in nanoseconds since 1970.
    pub(crate) timestamp: u64,
}

impl Descriptor {
    /// Writes the descriptor.
    #[inline(always)]
    pub(crate) fn store(&self, to: &mut [u8; DESCRIPTOR]) {
        let words = [
            u64::from(self.data) | u64::from(self.length) << 32,
            u64::from(self.visible)
                | u64::from(self.network) << 16
                | u64::from(self.verdict) << 32
                | u64::from(self.paint) << 48
                | u64::from(self.input) << 56,
            u64::from(self.dirty_from)
                | u64::from(self.dirty_to) << 16
                | u64::from(u32::from_le_bytes(self.destination)) << 32,
            self.timestamp,
        ];
        let (places, _) = to.as_chunks_mut::<8>();
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
    }

    /// Reads a descriptor.
    #[inline(always)]
    pub(crate) fn load(from: &[u8; DESCRIPTOR]) -> Descriptor {
        let (words, _) = from.as_chunks::<8>();
        let word = |n: usize| u64::from_le_bytes(words[n]);
        let (first, second, third) = (word(0), word(1), word(2));
        Descriptor {
            data: first as u32,
            length: (first >> 32) as u32,
            visible: second as u16,
            network: (second >> 16) as u16,
            verdict: (second >> 32) as u16,
            paint: (second >> 48) as u8,
            input: (second >> 56) as u8,
            dirty_from: third as u16,
            dirty_to: (third >> 16) as u16,
            destination: ((third >> 32) as u32).to_le_bytes(),
            timestamp: word(3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_has_the_layout_of_the_header_file() {
        let descriptor = Descriptor {
            data: 0x0403_0201,
            length: 0x0807_0605,
            visible: 0x0a09,
            network: 0x0c0b,
            verdict: 0x0e0d,
            paint: 0x0f,
            input: 0x10,
            dirty_from: 0x1211,
            dirty_to: 0x1413,
            destination: [0x15, 0x16, 0x17, 0x18],
            timestamp: 0x201f_1e1d_1c1b_1a19,
        };
        let mut bytes = [0; DESCRIPTOR];
        descriptor.store(&mut bytes);
        let numbers: Vec<u8> = (1..=32).collect();
        assert_eq!(bytes.as_slice(), numbers);
        assert_eq!(Descriptor::load(&bytes), descriptor);
    }
}
