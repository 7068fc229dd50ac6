//! Geneve: packets of any protocol over UDP, with options (RFC 8926).

header! {
    /// The fixed part of a Geneve header. Options follow it, then the packet.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |Ver|  Opt Len  |O|C|    Rsvd.  |          Protocol Type        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |        Virtual Network Identifier (VNI)       |    Reserved   |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Geneve [8] {
        /// Version, and the length of all options in units of 4 bytes.
        version_and_options, set_version_and_options: u8 = VERSION_AND_OPTIONS @ 0;
        /// Flags `O` and `C`, and reserved bits.
        flags, set_flags: u8 = FLAGS @ 1;
        /// EtherType of the packet.
        protocol, set_protocol: u16 = PROTOCOL @ 2;
        /// The network identifier, and a reserved byte.
        vni_field, set_vni_field: u32 = VNI_FIELD @ 4;
    }
}

const VERSION_MASK: u8 = 0xc0;
const OPTIONS_MASK: u8 = 0x3f;
/// Flag `O`: a control packet, which is not for the network.
const CONTROL: u8 = 0x80;
/// Flag `C`: there are options that a receiver has to understand.
const CRITICAL: u8 = 0x40;

/// The packet in a Geneve packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenevePayload {
    /// Network identifier, below 2^24.
    pub vni: u32,
    /// EtherType of the packet.
    pub protocol: u16,
    /// Its offset.
    pub offset: usize,
}

/// Reason why a Geneve packet has no packet for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneveError {
    /// It is truncated, or of another version.
    Malformed,
    /// It is a control packet.
    Control,
    /// It has options that a receiver has to understand.
    CriticalOptions,
}

impl Geneve {
    /// The UDP port (RFC 8926, section 3.3).
    pub const PORT: u16 = 6081;
    /// The header of a packet of a network, without options; the identifier has 24 bits.
    #[inline]
    pub fn new(vni: u32, protocol: u16) -> Geneve {
        let mut header = Geneve([0; 8]);
        header.set_protocol(protocol);
        header.set_vni_field(vni << 8);
        header
    }

    /// The packet for the network in a Geneve packet. Options are skipped.
    ///
    /// # Errors
    /// There is none (RFC 8926, sections 3.4 and 3.5).
    #[inline]
    pub fn payload(packet: &[u8]) -> Result<GenevePayload, GeneveError> {
        let (header, rest) = Geneve::from_prefix(packet).ok_or(GeneveError::Malformed)?;
        let first = header.version_and_options();
        let options = usize::from(first & OPTIONS_MASK) * 4;
        if first & VERSION_MASK != 0 || rest.len() < options {
            return Err(GeneveError::Malformed);
        }
        match header.flags() {
            flags if flags & CONTROL != 0 => Err(GeneveError::Control),
            flags if flags & CRITICAL != 0 => Err(GeneveError::CriticalOptions),
            _ => Ok(GenevePayload {
                vni: header.vni_field() >> 8,
                protocol: header.protocol(),
                offset: Geneve::LEN + options,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_are_found_behind_their_options(
            vni in 0..1_u32 << 24, protocol: u16, words in 0..64_usize, payload: Vec<u8>,
        ) {
            let mut header = Geneve::new(vni, protocol);
            header.set_version_and_options(words as u8);
            let packet = [&header.0[..], &vec![0xaa; words * 4], &payload].concat();
            let offset = Geneve::LEN + words * 4;
            prop_assert_eq!(Geneve::payload(&packet), Ok(GenevePayload { vni, protocol, offset }));
            prop_assert_eq!(Geneve::payload(&packet[..offset - 1]), Err(GeneveError::Malformed));
        }

        #[test]
        fn any_bytes_are_read_or_refused(packet: Vec<u8>) {
            if let Ok(payload) = Geneve::payload(&packet) {
                prop_assert!(payload.offset <= packet.len());
            }
        }
    }

    #[test]
    fn packets_that_are_not_for_the_network_are_refused() {
        let with = |at: usize, bits: u8| {
            let mut packet = Geneve::new(7, 0x6558).0;
            packet[at] |= bits;
            Geneve::payload(&packet)
        };
        assert!(with(1, 0x3f).is_ok(), "reserved bits are ignored");
        assert_eq!(with(1, 0x80), Err(GeneveError::Control));
        assert_eq!(with(1, 0x40), Err(GeneveError::CriticalOptions));
        assert_eq!(with(0, 0x40), Err(GeneveError::Malformed));
        assert_eq!(with(0, 0x01), Err(GeneveError::Malformed));
    }
}
