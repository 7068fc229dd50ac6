//! Layout of the structures that Castanet and a module share, version 1.
//!
//! `sdk/wasm/include/castanet_wasm.h` declares the same structures for C. Numbers are little-endian,
//! addresses are offsets in the module's memory.

/// The version of the interface.
pub(crate) const VERSION: i32 = 1;
/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR: usize = 16;
/// Bytes of the annotations of a packet: destination (4), nothing (4), time stamp (8).
pub(crate) const ANNOTATIONS: usize = 16;
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
/// The number of which `snap` and `headroom` are multiples.
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

/// One packet of a batch, as two words in front of its headroom and its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Bytes of the packet.
    pub(crate) length: u32,
    /// Offset of the first byte from the descriptor.
    pub(crate) data: u16,
    /// Offset of the network header from the first byte, or [`NO_HEADER`].
    pub(crate) network: u16,
    /// Output, or [`DROP_VERDICT`] and the number of a reason.
    pub(crate) verdict: u16,
    /// First changed byte.
    pub(crate) dirty_from: u16,
    /// First unchanged byte behind `dirty_from`.
    pub(crate) dirty_to: u16,
    /// Paint annotation.
    pub(crate) paint: u8,
    /// Input port.
    pub(crate) input: u8,
}

impl Descriptor {
    /// The descriptor as bytes.
    #[inline(always)]
    pub(crate) fn to_bytes(self) -> [u8; DESCRIPTOR] {
        let first =
            u64::from(self.length) | u64::from(self.data) << 32 | u64::from(self.network) << 48;
        let second = u64::from(self.verdict)
            | u64::from(self.dirty_from) << 16
            | u64::from(self.dirty_to) << 32
            | u64::from(self.paint) << 48
            | u64::from(self.input) << 56;
        (u128::from(first) | u128::from(second) << 64).to_le_bytes()
    }

    /// Reads a descriptor.
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: &[u8; DESCRIPTOR]) -> Descriptor {
        let both = u128::from_le_bytes(*bytes);
        let (first, second) = (both as u64, (both >> 64) as u64);
        Descriptor {
            length: first as u32,
            data: (first >> 32) as u16,
            network: (first >> 48) as u16,
            verdict: second as u16,
            dirty_from: (second >> 16) as u16,
            dirty_to: (second >> 32) as u16,
            paint: (second >> 48) as u8,
            input: (second >> 56) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_has_the_layout_of_the_header_file() {
        let descriptor = Descriptor {
            length: 0x0403_0201,
            data: 0x0605,
            network: 0x0807,
            verdict: 0x0a09,
            dirty_from: 0x0c0b,
            dirty_to: 0x0e0d,
            paint: 0x0f,
            input: 0x10,
        };
        let numbers: Vec<u8> = (1..=16).collect();
        assert_eq!(descriptor.to_bytes().as_slice(), numbers);
        assert_eq!(Descriptor::from_bytes(&descriptor.to_bytes()), descriptor);
    }
}
