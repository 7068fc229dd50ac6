//! VLAN tags (IEEE 802.1Q, 802.1ad).

header! {
    /// What follows an Ethernet header of type `VLAN` or `QINQ`: the tag, then
    /// the type of what it tags.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// | PCP |D|        VLAN ID        |           EtherType           |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Vlan [4] {
        /// Tag control information: priority, drop eligibility and identifier.
        tci, set_tci: u16 = TCI @ 0;
        /// What follows the tag.
        ether_type, set_ether_type: u16 = ETHER_TYPE @ 2;
    }
}

impl Vlan {
    /// Bits of the tag that name the VLAN.
    pub const ID_MASK: u16 = 0x0fff;

    /// The VLAN, 0 to 4095; 0 is a priority tag, 4095 is reserved.
    #[inline]
    pub fn id(&self) -> u16 {
        self.tci() & Self::ID_MASK
    }

    /// Sets the VLAN to the low 12 bits of `id`.
    #[inline]
    pub fn set_id(&mut self, id: u16) {
        self.set_tci(self.tci() & !Self::ID_MASK | id & Self::ID_MASK);
    }

    /// Priority code point, 0 to 7.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.0[Self::TCI] >> 5
    }

    /// Sets the priority to the low 3 bits of `priority`.
    #[inline]
    pub fn set_priority(&mut self, priority: u8) {
        self.0[Self::TCI] = self.0[Self::TCI] & 0x1f | priority << 5;
    }

    /// Whether the frame may be dropped first under congestion.
    #[inline]
    pub fn drop_eligible(&self) -> bool {
        self.0[Self::TCI] & 0x10 != 0
    }

    /// Sets whether the frame may be dropped first.
    #[inline]
    pub fn set_drop_eligible(&mut self, eligible: bool) {
        self.0[Self::TCI] = self.0[Self::TCI] & !0x10 | u8::from(eligible) << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_tag_leaves_the_others() {
        let mut tag = Vlan([0xff; 4]);
        tag.set_id(0x123);
        assert_eq!((tag.id(), tag.priority(), tag.drop_eligible()), (0x123, 7, true));
        tag.set_priority(2);
        assert_eq!((tag.id(), tag.priority(), tag.drop_eligible()), (0x123, 2, true));
        tag.set_drop_eligible(false);
        assert_eq!((tag.id(), tag.priority(), tag.drop_eligible()), (0x123, 2, false));
        tag.set_id(0xf00f);
        assert_eq!((tag.tci(), tag.ether_type()), (0x400f, 0xffff));
    }
}
