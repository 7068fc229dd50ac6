//! Generic Routing Encapsulation (RFC 2784), with keys and sequence numbers (RFC 2890).

use crate::checksum;

header! {
    /// The mandatory part of a GRE header.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |C| |K|S| Reserved0       | Ver |         Protocol Type         |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |      Checksum (optional)      |      Reserved1 (optional)     |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                         Key (optional)                        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                   Sequence Number (optional)                  |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Gre [4] {
        /// Flags of the optional fields, reserved bits, and the version.
        flags, set_flags: u16 = FLAGS @ 0;
        /// EtherType of the payload.
        protocol, set_protocol: u16 = PROTOCOL @ 2;
    }
}

/// The flags of the fields checksum, key and sequence number.
const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Bits that have to be zero: routing (RFC 1701), the first four reserved ones (RFC 2784, section 2.3), and
/// the version.
const MUST_BE_ZERO: u16 = 0x4c00 | 0x0300 | 0x0007;
/// Length of each optional field; that of the checksum has its reserved half.
const FIELD: usize = 4;

/// A GRE header with its optional fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreHeader {
    /// EtherType of the payload.
    pub protocol: u16,
    /// The key.
    pub key: Option<u32>,
    /// Whether there is a checksum over header and payload.
    pub has_checksum: bool,
    /// The sequence number.
    pub sequence: Option<u32>,
}

/// Reason why a packet is no GRE packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreError {
    /// It is truncated, of another version, or has bits of fields that nobody uses any more.
    Malformed,
    /// Its checksum is wrong.
    Checksum,
}

impl GreHeader {
    /// The length of the longest header that is written, in bytes.
    pub const LONGEST: usize = Gre::LEN + 3 * FIELD;

    /// Length in bytes.
    #[inline]
    pub fn length(&self) -> usize {
        let fields = [self.has_checksum, self.key.is_some(), self.sequence.is_some()];
        Gre::LEN + FIELD * fields.into_iter().filter(|&is_there| is_there).count()
    }

    /// Writes the header to the first [`GreHeader::length`] bytes of a packet, which its payload follows. The
    /// checksum is that over all of them.
    ///
    /// # Panics
    /// The packet is shorter than the header.
    #[inline]
    pub fn write(&self, packet: &mut [u8]) {
        let flag = |is_there, flag| if is_there { flag } else { 0 };
        let flags = flag(self.has_checksum, CHECKSUM)
            | flag(self.key.is_some(), KEY)
            | flag(self.sequence.is_some(), SEQUENCE);
        packet[..2].copy_from_slice(&flags.to_be_bytes());
        packet[2..4].copy_from_slice(&self.protocol.to_be_bytes());
        let mut end = self.length();
        for field in [self.sequence, self.key].into_iter().flatten() {
            packet[end - FIELD..end].copy_from_slice(&field.to_be_bytes());
            end -= FIELD;
        }
        if self.has_checksum {
            packet[Gre::LEN..][..FIELD].fill(0);
            let checksum = checksum::of(packet);
            packet[Gre::LEN..][..2].copy_from_slice(&checksum.to_be_bytes());
        }
    }

    /// Reads the header of a packet; returns it with its length.
    ///
    /// # Errors
    /// It is no GRE packet of version 0 (RFC 2784, section 2.3), or its checksum is wrong.
    #[inline]
    pub fn read(packet: &[u8]) -> Result<(GreHeader, usize), GreError> {
        let (header, mut rest) = Gre::from_prefix(packet).ok_or(GreError::Malformed)?;
        let flags = header.flags();
        if flags & MUST_BE_ZERO != 0 {
            return Err(GreError::Malformed);
        }
        let mut field = |flag: u16| match flags & flag != 0 {
            false => Ok(None),
            true => {
                let (field, behind) = rest.split_first_chunk().ok_or(GreError::Malformed)?;
                rest = behind;
                Ok(Some(u32::from_be_bytes(*field)))
            }
        };
        let has_checksum = field(CHECKSUM)?.is_some();
        let key = field(KEY)?;
        let sequence = field(SEQUENCE)?;
        let len = packet.len() - rest.len();
        if has_checksum && checksum::of(packet) != 0 {
            return Err(GreError::Checksum);
        }
        Ok((GreHeader { protocol: header.protocol(), key, has_checksum, sequence }, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_are_read_as_they_were_written(
            protocol: u16, key: Option<u32>, has_checksum: bool, sequence: Option<u32>,
            payload: Vec<u8>,
        ) {
            let header = GreHeader { protocol, key, has_checksum, sequence };
            let mut packet = vec![0; header.length()];
            packet.extend(&payload);
            header.write(&mut packet);
            prop_assert_eq!(GreHeader::read(&packet), Ok((header, header.length())));
            if has_checksum {
                packet[header.length() - 1] ^= 1;
                prop_assert!(GreHeader::read(&packet).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(packet: Vec<u8>) {
            if let Ok((header, len)) = GreHeader::read(&packet) {
                prop_assert!(len <= packet.len() && header.length() <= len);
            }
        }
    }

    #[test]
    fn a_sequence_number_is_read_and_strange_bits_are_refused() {
        let packet = [0x30, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 1, b'x'];
        let (key, sequence) = (Some(7), Some(1));
        let header = GreHeader { protocol: 0x0800, key, has_checksum: false, sequence };
        assert_eq!(GreHeader::read(&packet), Ok((header, 12)));
        for (at, bits) in [(0, 0x40), (0, 0x08), (0, 0x04), (1, 0x01), (1, 0x07)] {
            let mut strange = packet;
            strange[at] |= bits;
            assert_eq!(GreHeader::read(&strange), Err(GreError::Malformed), "{at}: {bits:#x}");
        }
        for len in 0..12 {
            assert_eq!(GreHeader::read(&packet[..len]), Err(GreError::Malformed), "{len} bytes");
        }
    }
}
