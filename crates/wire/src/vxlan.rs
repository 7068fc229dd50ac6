//! VXLAN: Ethernet frames over UDP (RFC 7348).

header! {
    /// A VXLAN header. The frame follows it.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |R|R|R|R|I|R|R|R|            Reserved                           |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                VXLAN Network Identifier (VNI) |   Reserved    |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Vxlan [8] {
        /// Flags, of which only `I` has a meaning.
        flags, set_flags: u8 = FLAGS @ 0;
        /// The network identifier, and a reserved byte.
        vni_field, set_vni_field: u32 = VNI_FIELD @ 4;
    }
}

/// Flag `I`: the network identifier is valid.
const VALID: u8 = 0x08;

impl Vxlan {
    /// The UDP port (RFC 7348, section 8).
    pub const PORT: u16 = 4789;
    /// The largest network identifier.
    pub const MAX_VNI: u32 = 0xff_ffff;

    /// The header of a network, by the low 24 bits of its identifier.
    #[inline]
    pub fn new(vni: u32) -> Vxlan {
        let mut header = Vxlan([0; 8]);
        header.set_flags(VALID);
        header.set_vni_field(vni << 8);
        header
    }

    /// The network identifier, if it is valid. Reserved bits are ignored (RFC 7348, section 5).
    #[inline]
    pub fn vni(&self) -> Option<u32> {
        (self.flags() & VALID != 0).then(|| self.vni_field() >> 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_identifier_has_24_bits() {
        for vni in [0, 1, 0x12_3456, Vxlan::MAX_VNI] {
            assert_eq!(Vxlan::new(vni).vni(), Some(vni));
        }
        assert_eq!(Vxlan::new(0x12_3456).0, [8, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
        assert_eq!(Vxlan([0xff; 8]).vni(), Some(Vxlan::MAX_VNI));
        assert_eq!(Vxlan([0xf7, 0, 0, 0, 0, 0, 1, 0]).vni(), None);
    }
}
