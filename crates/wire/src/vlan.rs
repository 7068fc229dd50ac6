//! VLAN tags (IEEE 802.1Q, 802.1ad).

use crate::Ethernet;

header! {
    /// The bytes behind an Ethernet header of type `VLAN` or `QINQ`: tag control
    /// information, then the type of the payload or of the next tag.
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
        /// Type of the payload, or of the next tag.
        ether_type, set_ether_type: u16 = ETHER_TYPE @ 2;
    }
}

impl Vlan {
    /// Mask of the VLAN identifier in the tag control information.
    pub const ID_MASK: u16 = 0x0fff;

    /// VLAN identifier, 0 to 4095; 0 marks a priority tag, 4095 is reserved.
    #[inline]
    pub fn id(&self) -> u16 {
        self.tci() & Self::ID_MASK
    }

    /// Sets the VLAN identifier to the low 12 bits of `id`.
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

    /// Drop eligible indicator: whether the frame may be dropped first under congestion.
    #[inline]
    pub fn drop_eligible(&self) -> bool {
        self.0[Self::TCI] & 0x10 != 0
    }

    /// Sets the drop eligible indicator.
    #[inline]
    pub fn set_drop_eligible(&mut self, eligible: bool) {
        self.0[Self::TCI] = self.0[Self::TCI] & !0x10 | u8::from(eligible) << 4;
    }
}

/// Inserts a tag of EtherType `kind` into a frame. `frame` has four free bytes before the Ethernet
/// header. Does nothing if `frame` is shorter than both.
pub fn insert(frame: &mut [u8], kind: u16, tci: u16) {
    if frame.len() < Vlan::LEN + Ethernet::LEN {
        return;
    }
    frame.copy_within(Vlan::LEN..Vlan::LEN + Ethernet::ETHER_TYPE, 0);
    if let Some((ether, rest)) = Ethernet::from_prefix_mut(frame) {
        ether.set_ether_type(kind);
        if let Some((tag, _)) = Vlan::from_prefix_mut(rest) {
            tag.set_tci(tci);
        }
    }
}

/// The outer tag of a frame, if the frame's EtherType is `kind`.
#[inline]
pub fn tag(frame: &[u8], kind: u16) -> Option<&Vlan> {
    let (ether, rest) = Ethernet::from_prefix(frame)?;
    let (tag, _) = Vlan::from_prefix(rest).filter(|_| ether.ether_type() == kind)?;
    Some(tag)
}

/// Removes the outer tag of a tagged frame, which then begins four bytes later.
pub fn remove(frame: &mut [u8]) {
    if frame.len() >= Vlan::LEN + Ethernet::LEN {
        frame.copy_within(..Ethernet::ETHER_TYPE, Vlan::LEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ether_type;

    #[test]
    fn tags_are_inserted_and_removed() {
        let plain: Vec<u8> = (0..20).collect();
        let mut frame = [&[0xaa; 4], &plain[..]].concat();
        insert(&mut frame, ether_type::VLAN, 0x6123);
        assert_eq!(frame[..12], plain[..12]);
        assert_eq!(frame[12..16], [0x81, 0, 0x61, 0x23]);
        assert_eq!(frame[16..], plain[12..]);
        assert_eq!(tag(&frame, ether_type::VLAN).map(Vlan::id), Some(0x123));
        assert_eq!(tag(&frame, ether_type::QINQ), None);
        assert_eq!(tag(&frame[..17], ether_type::VLAN), None);
        remove(&mut frame);
        assert_eq!(frame[4..], plain);
    }

    #[test]
    fn bit_field_setters_keep_other_bits() {
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
