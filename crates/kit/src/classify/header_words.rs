//! The words of a packet's headers, as programs read them.

use super::pattern::Base;

/// Access to the words of a packet's headers.
pub(crate) trait HeaderWords {
    /// The header and the bytes after it.
    fn header(&self, base: Base) -> &[u8];

    /// The word at `offset` of the header, if the packet has all four bytes.
    fn word(&self, base: Base, offset: u16) -> Option<u32>;

    /// The eight bytes at `offset`, if the packet has them; `bytes` is the header.
    #[inline(always)]
    fn long(&self, bytes: &[u8], _: Base, offset: u16) -> Option<u64> {
        let bytes = bytes.get(usize::from(offset)..)?;
        bytes.first_chunk().map(|b| u64::from_be_bytes(*b))
    }

    /// The eight bytes at `offset` of the header as they are in memory, if the packet has them.
    #[inline(always)]
    fn window(&self, base: Base, offset: u16) -> Option<u64> {
        self.long(self.bytes(base), base, offset).map(u64::to_be)
    }

    /// Like [`HeaderWords::header`], for the hot path.
    fn bytes(&self, base: Base) -> &[u8];

    /// Whether `bytes`, those of a header, are at least `length`.
    #[inline(always)]
    fn has_length(&self, bytes: &[u8], length: usize) -> bool {
        bytes.len() >= length
    }

    /// The number of bytes from the header on.
    fn length(&self, base: Base) -> usize;
}

/// A packet for `Classifier`.
pub(crate) struct RawBytes<'a>(pub(crate) &'a [u8]);

impl HeaderWords for RawBytes<'_> {
    #[inline(always)]
    fn header(&self, _: Base) -> &[u8] {
        self.0
    }

    #[inline(always)]
    fn word(&self, _: Base, offset: u16) -> Option<u32> {
        let from = usize::from(offset);
        let word = self.0.get(from..from + 4)?;
        word.first_chunk().map(|b| u32::from_be_bytes(*b))
    }

    #[inline(always)]
    fn bytes(&self, _: Base) -> &[u8] {
        self.0
    }

    #[inline(always)]
    fn length(&self, _: Base) -> usize {
        self.0.len()
    }
}

/// A packet for the IP languages.
pub(crate) struct Headers<'a> {
    link: &'a [u8],
    network: &'a [u8],
    transport: usize,
}

impl<'a> Headers<'a> {
    #[inline(always)]
    pub(crate) fn new(link: &'a [u8], network: &'a [u8]) -> Self {
        // The header length of RFC 791 counts words.
        let transport = network.first().map_or(0, |b| usize::from(b & 0x0F) * 4);
        Headers { link, network, transport }
    }
}

impl HeaderWords for Headers<'_> {
    #[cold]
    fn header(&self, base: Base) -> &[u8] {
        self.bytes(base)
    }

    #[inline(always)]
    fn word(&self, base: Base, offset: u16) -> Option<u32> {
        if base == Base::Link {
            return self
                .link
                .get(usize::from(offset)..)?
                .first_chunk()
                .map(|b| u32::from_be_bytes(*b));
        }
        let from = if base == Base::Transport { self.transport } else { 0 };
        let bytes = self.network.get(from + usize::from(offset)..)?;
        bytes.first_chunk().map(|b| u32::from_be_bytes(*b))
    }

    #[inline(always)]
    fn window(&self, base: Base, offset: u16) -> Option<u64> {
        let (bytes, from) = match base {
            Base::Link => (self.link, 0),
            Base::Transport => (self.network, self.transport),
            Base::Network | Base::Packet => (self.network, 0),
        };
        let bytes = bytes.get(from + usize::from(offset)..)?;
        bytes.first_chunk().map(|b| u64::from_ne_bytes(*b))
    }

    #[inline(always)]
    fn bytes(&self, base: Base) -> &[u8] {
        match base {
            Base::Link => self.link,
            Base::Transport => self.network.get(self.transport..).unwrap_or(&[]),
            Base::Network | Base::Packet => self.network,
        }
    }

    #[inline(always)]
    fn length(&self, base: Base) -> usize {
        match base {
            Base::Link => self.link.len(),
            Base::Transport => self.network.len().saturating_sub(self.transport),
            Base::Network | Base::Packet => self.network.len(),
        }
    }
}
