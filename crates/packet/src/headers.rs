//! Header offsets of a packet: they stay valid when bytes are pulled or pushed.

use crate::frame::HEADER;
use crate::packet::{IPV4, IPV4_FLAGS, IPV4_LEN, Packet};
use castanet_wire::Ipv4Header;

impl Packet {
    /// Offset of the link-layer header from the first byte; negative if the
    /// header has been stripped.
    #[inline]
    pub fn mac_offset(&self) -> Option<isize> {
        self.relative(self.mac)
    }

    /// Offset of the network header from the first byte.
    #[inline]
    pub fn network_offset(&self) -> Option<isize> {
        self.relative(self.network)
    }

    /// Offset of the transport header from the first byte.
    #[inline]
    pub fn transport_offset(&self) -> Option<isize> {
        self.relative(self.transport)
    }

    /// Sets the link-layer header to `offset` from the first byte. An offset
    /// outside of the frame clears it.
    #[inline]
    pub fn set_mac_header(&mut self, offset: isize) {
        self.mac = self.absolute(offset);
    }

    /// Sets the network header to `offset` from the first byte, and the
    /// transport header to `header_len` bytes behind that.
    #[inline]
    pub fn set_network_header(&mut self, offset: isize, header_len: usize) {
        let network = self.absolute(offset);
        if network != self.network {
            self.flags &= !IPV4_FLAGS;
        }
        self.network = network;
        self.transport = match network {
            0 => 0,
            _ => self.absolute(offset.saturating_add_unsigned(header_len)),
        };
    }

    /// Marks an IPv4 datagram at `offset`: sets the network and the transport
    /// header (`header_len` bytes behind it), and cuts the packet off behind
    /// `total_len` bytes of datagram. The caller has checked that the version is
    /// 4. Returns `false` and changes nothing if the packet is shorter than the
    /// datagram, the header is shorter than 20 bytes, or it begins too far from
    /// the start of the frame.
    #[inline]
    pub fn mark_ipv4(&mut self, offset: u16, header_len: u16, total_len: u16) -> bool {
        // The same comparison as in callers, so that the compiler merges them after inlining.
        let room = self.len().checked_sub(offset.into());
        let fits = room.is_some_and(|room| usize::from(total_len) <= room);
        if !fits || header_len < IPV4_LEN as u16 || header_len > total_len {
            return false;
        }
        let network = u32::from(self.data) + u32::from(offset);
        let Ok(transport) = u16::try_from(network + u32::from(header_len)) else { return false };
        let flags = if header_len == IPV4_LEN as u16 { IPV4_FLAGS } else { IPV4 };
        self.network = network as u16;
        self.transport = transport;
        self.len = u32::from(offset) + u32::from(total_len);
        self.flags = self.flags & !IPV4_FLAGS | flags;
        true
    }

    /// Sets the transport header to `offset` from the first byte.
    #[inline]
    pub fn set_transport_header(&mut self, offset: isize) {
        self.transport = self.absolute(offset);
    }

    /// Copies the header offsets of `other`, a packet with the same bytes, and
    /// its partial checksums. Clears an offset outside of this packet's frame.
    pub fn copy_header_offsets(&mut self, other: &Packet) {
        self.clear_headers();
        if let Some(offset) = other.mac_offset() {
            self.set_mac_header(offset);
        }
        if let Some(offset) = other.network_offset() {
            self.set_network_header(offset, 0);
        }
        self.transport = other.transport_offset().map_or(0, |offset| self.absolute(offset));
        self.set_partial_checksums(other.partial_checksums());
    }

    /// Clears the offset of the link-layer header.
    #[inline]
    pub fn clear_mac_header(&mut self) {
        self.mac = 0;
    }

    /// Clears the offset of the network header.
    #[inline]
    pub fn clear_network_header(&mut self) {
        self.network = 0;
        self.flags &= !IPV4_FLAGS;
    }

    /// Clears the offset of the transport header.
    #[inline]
    pub fn clear_transport_header(&mut self) {
        self.transport = 0;
    }

    /// Clears all header offsets.
    #[inline]
    pub(crate) fn clear_headers(&mut self) {
        (self.mac, self.network, self.transport) = (0, 0, 0);
        self.flags &= !IPV4_FLAGS;
    }

    /// The bytes from the link-layer header, which may have been stripped, to the end; empty if there is none.
    #[inline]
    pub fn mac_bytes(&self) -> &[u8] {
        self.bytes_from(self.mac)
    }

    /// The bytes from the network header to the end; empty if there is none.
    #[inline]
    pub fn network_bytes(&self) -> &[u8] {
        self.bytes_from(self.network)
    }

    /// Distance from the network header to the transport header in bytes; 0 if
    /// either is not set.
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
            // SAFETY: by invariant 3 the offset lies behind the frame's header,
            // and by the subtraction not behind the packet's end.
            Some(len) if header != 0 => unsafe { std::slice::from_raw_parts(self.at(header), len) },
            _ => &[],
        }
    }

    /// As [`Packet::bytes_from`], mutably, in a packet that is not shared; empty if it is.
    #[inline]
    pub(crate) fn bytes_from_mut(&mut self, header: u16) -> &mut [u8] {
        let start = usize::from(header);
        match self.end().checked_sub(start) {
            // SAFETY: as in `bytes_from`, and without the flag `SHARED` the packet is the frame's
            // only owner (invariant 1).
            Some(len) if header != 0 && !self.is_shared() => unsafe {
                std::slice::from_raw_parts_mut(self.at(start), len)
            },
            _ => &mut [],
        }
    }

    /// The IPv4 header, and the bytes behind it and its options up to its total length. `None` if
    /// the packet is not IPv4 or shorter than that length, or the length is less than the header's.
    #[inline]
    pub fn ipv4_segment(&self) -> Option<(&Ipv4Header, &[u8])> {
        let ip = self.ipv4_header()?;
        let start = usize::from(self.network) + ip.header_len();
        let end = usize::from(self.network) + usize::from(ip.total_len());
        if start > end || end > self.end() {
            return None;
        }
        // SAFETY: there is an IPv4 header, so `network` is at least `HEADER` (invariant 3), and by
        // the comparisons the bytes lie behind it and before the packet's end. The frame is live
        // and initialised (invariants 1 and 2).
        let segment = unsafe { std::slice::from_raw_parts(self.at(start), end - start) };
        Some((ip, segment))
    }

    /// The bytes from offset `start` to `end` in the frame, cut off at the packet's
    /// end; empty if there are none, or if `start` lies in the frame's own header.
    #[inline]
    pub(crate) fn range(&self, start: usize, end: usize) -> &[u8] {
        let end = end.min(self.end());
        if start < HEADER || start > end {
            return &[];
        }
        // SAFETY: the checks above: `start` lies behind the frame's own header and
        // not behind `end`, and `end` not beyond the contents. The frame is live
        // and initialised (invariants 1 and 2).
        unsafe { std::slice::from_raw_parts(self.at(start), end - start) }
    }

    /// As [`Packet::range`], mutably; copies first if the packet is shared.
    #[inline]
    pub(crate) fn range_mut(&mut self, start: usize, end: usize) -> &mut [u8] {
        self.make_exclusive();
        let end = end.min(self.end());
        if start < HEADER || start > end {
            return &mut [];
        }
        // SAFETY: as in `range`, and the packet is the frame's only owner.
        unsafe { std::slice::from_raw_parts_mut(self.at(start), end - start) }
    }

    /// Checks that the contents lie within the frame, and each header within the frame and not
    /// behind the contents. The error names what does not. For tests of elements: an element may
    /// set or keep any offset without harm to memory, but what it sends on must be in order.
    pub fn check_bounds(&self) -> Result<(), String> {
        let (limit, end, headroom) = (self.limit(), self.end(), -(self.headroom() as isize));
        if end > limit {
            return Err(format!("the contents end {} bytes behind the frame", end - limit));
        }
        let headers = [("mac", self.mac), ("network", self.network), ("transport", self.transport)];
        for (name, header) in headers {
            if let Some(offset) = self.relative(header)
                && !(headroom..=self.len() as isize).contains(&offset)
            {
                return Err(format!("the {name} header is at {offset} of {} bytes", self.len()));
            }
        }
        let is_cut = self.has(IPV4) && self.network_bytes().len() < IPV4_LEN;
        if is_cut { Err("the IPv4 header is cut".to_owned()) } else { Ok(()) }
    }

    /// Number of bytes before the contents that belong to stripped headers.
    #[inline]
    pub(crate) fn stripped_len(&self) -> usize {
        // A header that is not set, 0, wraps to the highest offset.
        let before = [self.mac, self.network, self.transport].map(|header| header.wrapping_sub(1));
        let first = usize::from(before[0].min(before[1]).min(before[2])) + 1;
        usize::from(self.data).saturating_sub(first)
    }

    /// Updates the offsets after the contents were moved to offset `data`, with
    /// `grow` new bytes before the old ones.
    pub(crate) fn rebase(&mut self, data: usize, grow: usize) {
        let (old, new) = (signed(self.data), (data + grow) as isize);
        let moved = |header: u16| match header {
            0 => 0,
            _ => offset_or_unset(signed(header) - old + new),
        };
        (self.mac, self.network, self.transport) =
            (moved(self.mac), moved(self.network), moved(self.transport));
        if self.network == 0 {
            self.flags &= !IPV4_FLAGS;
        }
        self.data = data as u16;
        self.len += grow as u32;
    }

    /// Converts a header's offset in the frame into an offset from the first byte.
    #[inline]
    fn relative(&self, header: u16) -> Option<isize> {
        (header != 0).then(|| signed(header) - signed(self.data))
    }

    /// Converts an offset from the first byte into a header's offset in the frame.
    #[inline]
    fn absolute(&self, offset: isize) -> u16 {
        offset_or_unset(offset.wrapping_add(signed(self.data)))
    }
}

/// Returns `offset` if a header can lie there, else 0 ("not set").
#[inline]
fn offset_or_unset(offset: isize) -> u16 {
    // One comparison for both bounds: offsets before `HEADER`, and sums that
    // wrapped, are huge as unsigned numbers.
    let beyond = (offset as usize).wrapping_sub(HEADER);
    if beyond <= u16::MAX as usize - HEADER { offset as u16 } else { 0 }
}

/// Converts a 16-bit offset into a signed one.
#[inline]
fn signed(offset: u16) -> isize {
    offset as isize
}
