//! GTP version 1, user plane (3GPP TS 29.281).

header! {
    /// The mandatory part of a GTP-U header.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// | Ver |P|0|E|S|N| Message Type  |            Length             |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                  Tunnel Endpoint Identifier                   |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Gtp [8] {
        /// Version, protocol type, and the flags of the optional fields.
        flags, set_flags: u8 = FLAGS @ 0;
        /// Message type: [`G_PDU`] ...
        kind, set_kind: u8 = KIND @ 1;
        /// Length of the message without these eight bytes.
        length, set_length: u16 = LENGTH @ 2;
        /// Tunnel endpoint identifier.
        teid, set_teid: u32 = TEID @ 4;
    }
}

/// Message type of a user packet (T-PDU).
pub const G_PDU: u8 = 255;
/// Version 1, and protocol type GTP rather than GTP'.
const VERSION: u8 = 0x30;
const VERSION_MASK: u8 = 0xf0;
/// Flags E, S and PN: extension headers, sequence number and N-PDU number.
const OPTIONAL: u8 = 0x07;
/// Flag E: extension headers follow.
const EXTENSION: u8 = 0x04;

header! {
    /// The optional fields, which follow the header if any of its last three flags is set.
    #[derive(Debug)]
    OptionalFields [4] {
        /// Sequence number.
        seq, set_seq: u16 = SEQ @ 0;
        /// N-PDU number.
        npdu, set_npdu: u8 = NPDU @ 2;
        /// Type of the first extension header, 0 for none.
        next, set_next: u8 = NEXT @ 3;
    }
}

impl Gtp {
    /// Makes the header of a user packet of `length` bytes.
    pub fn new(teid: u32, length: u16) -> Self {
        let mut header = Gtp([0; 8]);
        header.set_flags(VERSION);
        header.set_kind(G_PDU);
        header.set_length(length);
        header.set_teid(teid);
        header
    }
}

/// The tunnel endpoint identifier of a G-PDU message, and the offset of its user packet behind
/// optional fields and extension headers. `None` if the message is of another type, or truncated.
pub fn user_packet(message: &[u8]) -> Option<(u32, usize)> {
    let (header, rest) = Gtp::from_prefix(message)?;
    let rest = rest.get(..header.length().into())?;
    if header.flags() & VERSION_MASK != VERSION || header.kind() != G_PDU {
        return None;
    }
    let mut at = 0;
    if header.flags() & OPTIONAL != 0 {
        let (optional, _) = OptionalFields::from_prefix(rest)?;
        at = OptionalFields::LEN;
        let mut next = if header.flags() & EXTENSION != 0 { optional.next() } else { 0 };
        while next != 0 {
            // Length in units of 4 bytes; the last byte is the type of the next header.
            let len = usize::from(*rest.get(at)?) * 4;
            let extension = rest.get(at..at + len)?;
            next = *extension.last()?;
            at += len;
        }
    }
    Some((header.teid(), Gtp::LEN + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_packets_are_located() {
        let header = Gtp::new(0x1234_5678, 3);
        assert_eq!(header.0, [0x30, 0xff, 0, 3, 0x12, 0x34, 0x56, 0x78]);
        let message = [&header.0[..], b"abc"].concat();
        assert_eq!(user_packet(&message), Some((0x1234_5678, 8)));
        assert_eq!(user_packet(&message[..10]), None);
        let mut other = message.clone();
        other[1] = 1;
        assert_eq!(user_packet(&other), None);
        other[..2].copy_from_slice(&[0x50, 255]);
        assert_eq!(user_packet(&other), None);
    }

    #[test]
    fn extension_headers_are_skipped() {
        let mut message = vec![0x34, 0xff, 0, 13, 0, 0, 0, 9, 0, 0, 0, 0x85];
        message.extend([2, 0, 0, 0, 0, 0, 0, 0, b'x']);
        assert_eq!(user_packet(&message), Some((9, 20)));
        for wrong in [0, 3] {
            message[12] = wrong;
            assert_eq!(user_packet(&message), None, "length {wrong}");
        }
        message[0] = 0x32; // a sequence number only
        assert_eq!(user_packet(&message), Some((9, 12)));
    }
}
