//! Where a packet's headers are: offsets that survive stripping and pushing.

use crate::frame::HEADER;
use crate::packet::{IPV4, IPV4_LEN, Packet};

impl Packet {
    /// Where the link-layer header starts, counted from the first byte;
    /// negative after it was stripped.
    #[inline]
    pub fn mac_offset(&self) -> Option<isize> {
        self.relative(self.mac)
    }

    /// Where the network header starts, counted from the first byte.
    #[inline]
    pub fn network_offset(&self) -> Option<isize> {
        self.relative(self.network)
    }

    /// Where the transport header starts, counted from the first byte.
    #[inline]
    pub fn transport_offset(&self) -> Option<isize> {
        self.relative(self.transport)
    }

    /// Says that the link-layer header starts at `offset` from the first
    /// byte. An offset outside of the frame means that there is none.
    #[inline]
    pub fn set_mac_header(&mut self, offset: isize) {
        self.mac = self.absolute(offset);
    }

    /// Says that the network header starts at `offset` from the first byte,
    /// and that the transport header follows it after `header_len` bytes.
    #[inline]
    pub fn set_network_header(&mut self, offset: isize, header_len: usize) {
        let network = self.absolute(offset);
        if network != self.network {
            self.flags &= !IPV4;
        }
        self.network = network;
        self.transport = match network {
            0 => 0,
            _ => self.absolute(offset.saturating_add_unsigned(header_len)),
        };
    }

    /// Says that the packet is IPv4 and nothing else from `offset` on: a
    /// header of `header_len` bytes, and `total_len` bytes in all; what follows
    /// is cut off. That the version is 4 is the caller's word. Does nothing, and
    /// says so, if the packet is shorter than that, the header is shorter than
    /// 20 bytes, or it begins too far from the start of its frame.
    #[inline]
    pub fn mark_ipv4(&mut self, offset: u16, header_len: u16, total_len: u16) -> bool {
        // As callers compare, so that they need not do so twice once this is inlined.
        let room = self.len().checked_sub(offset.into());
        let fits = room.is_some_and(|room| usize::from(total_len) <= room);
        if !fits || header_len < IPV4_LEN as u16 || header_len > total_len {
            return false;
        }
        let network = u32::from(self.data) + u32::from(offset);
        let Ok(transport) = u16::try_from(network + u32::from(header_len)) else { return false };
        self.network = network as u16;
        self.transport = transport;
        self.len = u32::from(offset) + u32::from(total_len);
        self.flags |= IPV4;
        true
    }

    /// Says that the transport header starts at `offset` from the first byte.
    #[inline]
    pub fn set_transport_header(&mut self, offset: isize) {
        self.transport = self.absolute(offset);
    }

    /// Takes over where the headers of `other` are, a packet of the same
    /// bytes, and which checksums in them are partial. Those that lie outside of
    /// this packet's frame are forgotten.
    pub fn headers_like(&mut self, other: &Packet) {
        self.forget_headers();
        if let Some(at) = other.mac_offset() {
            self.set_mac_header(at);
        }
        if let Some(at) = other.network_offset() {
            self.set_network_header(at, 0);
        }
        self.transport = other.transport_offset().map_or(0, |at| self.absolute(at));
        self.set_partial(other.partial());
    }

    /// Forgets the link-layer header.
    #[inline]
    pub fn clear_mac_header(&mut self) {
        self.mac = 0;
    }

    /// Forgets the network header.
    #[inline]
    pub fn clear_network_header(&mut self) {
        self.network = 0;
        self.flags &= !IPV4;
    }

    /// Forgets the transport header.
    #[inline]
    pub fn clear_transport_header(&mut self) {
        self.transport = 0;
    }

    /// Forgets all headers.
    #[inline]
    pub(crate) fn forget_headers(&mut self) {
        (self.mac, self.network, self.transport) = (0, 0, 0);
        self.flags &= !IPV4;
    }

    /// The bytes from the network header to the end; empty if there is none.
    #[inline]
    pub fn network_bytes(&self) -> &[u8] {
        self.bytes_from(self.network)
    }

    /// How far the transport header lies behind the network header; 0 if
    /// either is unknown.
    #[inline]
    pub fn network_header_len(&self) -> usize {
        if self.network == 0 {
            return 0;
        }
        self.transport.saturating_sub(self.network).into()
    }

    /// The bytes from the transport header to the end; empty if there is none.
    #[inline]
    pub fn transport_bytes(&self) -> &[u8] {
        self.bytes_from(self.transport)
    }

    /// The bytes from offset `header` to the end.
    #[inline]
    pub(crate) fn bytes_from(&self, header: u16) -> &[u8] {
        let header = usize::from(header);
        match self.end().checked_sub(header) {
            // SAFETY: a header offset that is set lies behind the frame's
            // header, and here before the packet's end.
            Some(len) if header != 0 => unsafe { std::slice::from_raw_parts(self.at(header), len) },
            _ => &[],
        }
    }

    /// How many bytes before the contents belong to known headers.
    pub(crate) fn lead(&self) -> usize {
        [self.mac, self.network, self.transport]
            .into_iter()
            .filter(|&header| header != 0)
            .map(|header| usize::from(self.data).saturating_sub(header.into()))
            .max()
            .unwrap_or(0)
    }

    /// Takes note that the contents were moved to start at offset `data`,
    /// with `grow` new bytes before the old ones.
    pub(crate) fn place(&mut self, data: usize, grow: usize) {
        let (old, new) = (signed(self.data), (data + grow) as isize);
        let moved = |header: u16| match header {
            0 => 0,
            _ => offset_or_unset(signed(header) - old + new),
        };
        (self.mac, self.network, self.transport) =
            (moved(self.mac), moved(self.network), moved(self.transport));
        if self.network == 0 {
            self.flags &= !IPV4;
        }
        self.data = data as u16;
        self.len += grow as u32;
    }

    /// An offset from the frame, counted from the first byte.
    #[inline]
    fn relative(&self, header: u16) -> Option<isize> {
        (header != 0).then(|| signed(header) - signed(self.data))
    }

    /// An offset from the first byte, counted from the frame.
    #[inline]
    fn absolute(&self, offset: isize) -> u16 {
        offset_or_unset(offset.wrapping_add(signed(self.data)))
    }
}

/// `offset` if a header can lie there, else "not set".
#[inline]
fn offset_or_unset(offset: isize) -> u16 {
    // One comparison for both bounds: what lies before `HEADER`, and sums
    // that wrapped, are huge as unsigned numbers.
    let beyond = (offset as usize).wrapping_sub(HEADER);
    if beyond <= u16::MAX as usize - HEADER { offset as u16 } else { 0 }
}

/// A 16-bit offset as a signed one.
#[inline]
fn signed(offset: u16) -> isize {
    offset as isize
}
