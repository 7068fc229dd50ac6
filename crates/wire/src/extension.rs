//! IPv6 extension headers (RFC 8200, section 4).

use crate::ip_proto;

header! {
    /// The common start of extension headers: hop-by-hop and destination options,
    /// routing, and (with another unit of length) authentication.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |  Next Header  |  Hdr Ext Len  |             ...               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Extension [2] {
        /// Protocol of the next header.
        next_header, set_next_header: u8 = NEXT_HEADER @ 0;
        /// Length of this header in units of 8 bytes, without the first unit.
        units, set_units: u8 = UNITS @ 1;
    }
}

header! {
    /// The fragment header (RFC 8200, 4.5).
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |  Next Header  |   Reserved    |      Fragment Offset    |Res|M|
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                         Identification                        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Fragment6 [8] {
        /// Protocol of the first header of the fragmentable part.
        next_header, set_next_header: u8 = NEXT_HEADER @ 0;
        /// Reserved, zero.
        reserved, set_reserved: u8 = RESERVED @ 1;
        /// Fragment offset, two reserved bits and the M flag, as one word.
        word, set_word: u16 = WORD @ 2;
        /// Identification: equal in all fragments of a packet.
        id, set_id: u32 = ID @ 4;
    }
}

impl Fragment6 {
    /// The M flag in the word: more fragments follow.
    pub const MORE: u16 = 1;
    /// The offset in the word, in bytes: its low three bits belong to other fields.
    pub const OFFSET_MASK: u16 = !7;

    /// Makes the header of a fragment at byte `offset`, a multiple of eight.
    pub fn new(next_header: u8, offset: u16, more: bool, id: u32) -> Self {
        let mut header = Fragment6([0; 8]);
        header.set_next_header(next_header);
        header.set_word(offset & Self::OFFSET_MASK | u16::from(more));
        header.set_id(id);
        header
    }

    /// Offset of the fragment in the fragmentable part, in bytes.
    #[inline]
    pub fn offset(&self) -> u16 {
        self.word() & Self::OFFSET_MASK
    }

    /// Whether more fragments follow.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.word() & Self::MORE != 0
    }

    /// Whether this is an atomic fragment: a whole packet with a fragment header (RFC 6946).
    #[inline]
    pub fn is_atomic(&self) -> bool {
        self.offset() == 0 && !self.more_fragments()
    }
}

/// Location of the upper-layer header of an IPv6 packet, behind its extension headers. Offsets
/// count from the end of the IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer {
    /// Protocol of the upper-layer header (see [`ip_proto`](crate::ip_proto)), or
    /// of an extension header that is truncated.
    pub protocol: u8,
    /// Offset of that header.
    pub offset: usize,
    /// The fragment header, if there is one.
    pub fragment: Option<Fragment6>,
    /// Offset of the first byte behind the fragment header; 0 without one.
    pub fragment_data: usize,
    /// Length of the per-fragment extension headers, which every fragment of the
    /// packet repeats (RFC 8200, 4.5).
    pub per_fragment_len: usize,
    /// Offset of the last per-fragment extension header; `None` if there are none.
    pub last_per_fragment: Option<usize>,
    /// The [bits](bit) of the extension headers, and of the upper-layer header.
    pub headers: u16,
}

impl UpperLayer {
    /// The upper layer directly behind the IPv6 header.
    #[inline(always)]
    fn new(protocol: u8) -> UpperLayer {
        UpperLayer {
            protocol,
            offset: 0,
            fragment: None,
            fragment_data: 0,
            per_fragment_len: 0,
            last_per_fragment: None,
            headers: bit(protocol),
        }
    }

    /// Whether the packet is a fragment other than the first, so that the
    /// upper-layer header is not in it.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset() != 0)
    }
}

/// Whether `next_header` is the protocol of an extension header that a parser can
/// skip.
#[inline]
pub const fn is_extension(next_header: u8) -> bool {
    use ip_proto::*;
    matches!(next_header, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS | AH)
}

/// The bit of an extension header of `protocol` in a set (IANA, IPv6 Extension Header Types); 0
/// for other protocols.
#[inline]
pub const fn bit(protocol: u8) -> u16 {
    BITS[protocol as usize]
}

const BITS: [u16; 256] = {
    use ip_proto::*;
    let all = [HOP_BY_HOP, ROUTING, FRAGMENT, ESP, AH, DESTINATION_OPTIONS, MOBILITY, HIP, SHIM6];
    let (mut bits, mut at) = ([0; 256], 0);
    while at < all.len() {
        bits[all[at] as usize] = 1 << at;
        at += 1;
    }
    bits
};

/// Length in bytes of an extension header of `protocol`.
fn length(protocol: u8, header: &Extension) -> usize {
    let units = usize::from(header.units());
    match protocol {
        ip_proto::FRAGMENT => Fragment6::LEN,
        ip_proto::AH => (units + 2) * 4,
        _ => (units + 1) * 8,
    }
}

/// Skips the extension headers in `bytes`, which follow an IPv6 header whose next header is
/// `next_header`. Stops at a header that is truncated or not in this fragment, and at a second
/// fragment header, because a packet has one at most (RFC 8200, section 4.1); the headers behind
/// that are still added to [`UpperLayer::headers`].
#[inline]
pub fn upper_layer(next_header: u8, bytes: &[u8]) -> UpperLayer {
    // Each path makes its own: one that both had in common would lie in memory, and its readers would
    // wait for the store.
    match is_extension(next_header) {
        true => skip_extensions(next_header, bytes),
        false => UpperLayer::new(next_header),
    }
}

fn skip_extensions(next_header: u8, bytes: &[u8]) -> UpperLayer {
    let mut upper = UpperLayer::new(next_header);
    let (mut protocol, mut offset, mut is_second) = (next_header, 0, false);
    while is_extension(protocol) {
        let rest = bytes.get(offset..).unwrap_or_default();
        let Some((header, _)) = Extension::from_prefix(rest) else { return upper };
        let len = length(protocol, header);
        if rest.len() < len {
            return upper;
        }
        let mut is_later = false;
        match protocol {
            ip_proto::FRAGMENT => {
                let fragment = Fragment6::from_prefix(rest).map(|(fragment, _)| *fragment);
                is_later = fragment.is_some_and(|fragment| fragment.offset() != 0);
                is_second |= upper.fragment.is_some();
                if !is_second {
                    (upper.fragment, upper.fragment_data) = (fragment, offset + len);
                }
            }
            ip_proto::ROUTING if upper.fragment.is_none() => {
                upper.last_per_fragment = Some(offset);
                upper.per_fragment_len = offset + len;
            }
            // Hop-by-hop options count only as the first header.
            ip_proto::HOP_BY_HOP if offset == 0 => {
                (upper.last_per_fragment, upper.per_fragment_len) = (Some(0), len);
            }
            _ => {}
        }
        (protocol, offset) = (header.next_header(), offset + len);
        if !is_second {
            (upper.protocol, upper.offset) = (protocol, offset);
        }
        if is_later {
            return upper;
        }
        upper.headers |= bit(protocol);
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::*;
    use ip_proto::*;

    #[test]
    fn skips_extension_headers() {
        assert_eq!(upper_layer(TCP, &[]).protocol, TCP);
        let mut bytes = vec![ROUTING, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([DESTINATION_OPTIONS, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([AH, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let found = upper_layer(HOP_BY_HOP, &bytes);
        assert_eq!((found.protocol, found.offset), (UDP, 8 + 16 + 8 + 12));
        assert_eq!((found.per_fragment_len, found.last_per_fragment), (24, Some(8)));
        let all = [HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS, AH, UDP];
        assert_eq!(found.headers, all.iter().fold(0, |bits, &protocol| bits | bit(protocol)));
        // In truncated bytes it stops at the header that is not complete.
        for (len, protocol, offset) in [
            (0, HOP_BY_HOP, 0),
            (7, HOP_BY_HOP, 0),
            (8, ROUTING, 8),
            (24, DESTINATION_OPTIONS, 24),
            (43, AH, 32),
        ] {
            let found = upper_layer(HOP_BY_HOP, &bytes[..len]);
            assert_eq!((found.protocol, found.offset), (protocol, offset), "{len} bytes");
        }
    }

    #[test]
    fn stops_at_headers_of_another_fragment() {
        let first = Fragment6::new(DESTINATION_OPTIONS, 0, true, 7);
        let bytes = [&first.0[..], &[TCP, 0, 0, 0, 0, 0, 0, 0]].concat();
        let found = upper_layer(FRAGMENT, &bytes);
        assert_eq!((found.protocol, found.offset, found.is_later_fragment()), (TCP, 16, false));
        assert_eq!(found.fragment_data, 8);
        let bytes = [&Fragment6::new(FRAGMENT, 0, true, 7).0[..], &first.0, &[0; 8]].concat();
        let found = upper_layer(FRAGMENT, &bytes);
        assert_eq!(
            (found.protocol, found.offset, found.fragment_data),
            (FRAGMENT, 8, 8),
            "the second"
        );
        assert_eq!(found.headers, bit(FRAGMENT) | bit(DESTINATION_OPTIONS) | bit(HOP_BY_HOP));
        let later = Fragment6::new(DESTINATION_OPTIONS, 16, false, 7);
        assert_eq!((later.offset(), later.more_fragments(), later.id()), (16, false, 7));
        let bytes = [&later.0[..], &[TCP, 0, 0, 0, 0, 0, 0, 0]].concat();
        let found = upper_layer(FRAGMENT, &bytes);
        assert_eq!(
            (found.protocol, found.offset, found.is_later_fragment()),
            (DESTINATION_OPTIONS, 8, true)
        );
        assert_eq!(found.headers, bit(FRAGMENT));
        assert!(Fragment6::new(TCP, 0, false, 0).is_atomic() && !later.is_atomic());
    }
}
