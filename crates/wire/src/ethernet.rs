//! Ethernet II frame headers (IEEE 802.3, RFC 894).

use crate::MacAddr;

header! {
    /// The header of an Ethernet frame.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                      Destination Address                      |
    /// +                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                               |                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
    /// |                         Source Address                        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |           EtherType           |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Ethernet [14] {
        /// Destination address.
        dst, set_dst: MacAddr = DST @ 0;
        /// Source address.
        src, set_src: MacAddr = SRC @ 6;
        /// Type of the payload (see [`ether_type`](crate::ether_type)), or its length.
        ether_type, set_ether_type: u16 = ETHER_TYPE @ 12;
    }
}

impl Default for Ethernet {
    /// All zeros.
    fn default() -> Self {
        Ethernet([0; 14])
    }
}

impl Ethernet {
    /// A header with these fields.
    #[inline]
    pub fn new(dst: MacAddr, src: MacAddr, ether_type: u16) -> Self {
        let mut header = Ethernet([0; 14]);
        header.set_dst(dst);
        header.set_src(src);
        header.set_ether_type(ether_type);
        header
    }

    /// Whether the destination is that of a group or of all stations. One byte is read, where [`Ethernet::dst`] reads six.
    #[inline]
    pub fn is_to_group(&self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Exchanges source and destination.
    #[inline]
    pub fn mirror(&mut self) {
        let (dst, src) = (self.dst(), self.src());
        self.set_dst(src);
        self.set_src(dst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_offsets_of_the_diagram() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd, 0xaa];
        let (header, rest) = Ethernet::from_prefix(&bytes).expect("long enough");
        assert_eq!(header.dst(), MacAddr([1, 2, 3, 4, 5, 6]));
        assert_eq!(header.src(), MacAddr([7, 8, 9, 10, 11, 12]));
        assert_eq!(header.ether_type(), crate::ether_type::IPV6);
        assert_eq!(rest, [0xaa]);
        assert_eq!(Ethernet::new(header.dst(), header.src(), header.ether_type()), *header);
        assert_eq!(header.is_to_group(), header.dst().is_multicast());
        let station = MacAddr([6, 0, 0, 0, 0, 1]);
        assert_eq!(Ethernet::new(station, station, 0).is_to_group(), station.is_multicast());
        assert!(Ethernet::from_prefix(&bytes[..13]).is_none());
    }

    #[test]
    fn mirror_exchanges_the_addresses() {
        let mut bytes = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0];
        let (header, _) = Ethernet::from_prefix_mut(&mut bytes).expect("long enough");
        header.mirror();
        assert_eq!(bytes, [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0]);
    }
}
