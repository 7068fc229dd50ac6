//! What may stand between an IPv6 header and what it carries (RFC 8200, section 4).

use crate::ip_proto;

header! {
    /// How most extension headers begin: hop-by-hop and destination options,
    /// routing, and, with another unit of length, authentication.
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
        /// What follows this header.
        next_header, set_next_header: u8 = NEXT_HEADER @ 0;
        /// Length of this header in eights of bytes, not counting the first.
        units, set_units: u8 = UNITS @ 1;
    }
}

header! {
    /// The header of a fragment.
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
        /// What the whole packet carries.
        next_header, set_next_header: u8 = NEXT_HEADER @ 0;
        /// Zero.
        reserved, set_reserved: u8 = RESERVED @ 1;
        /// Offset, two reserved bits and whether more follow, as one word.
        word, set_word: u16 = WORD @ 2;
        /// Which packet the fragment is of.
        id, set_id: u32 = ID @ 4;
    }
}

impl Fragment6 {
    /// Whether more fragments follow, in the word.
    pub const MORE: u16 = 1;
    /// The offset in the word, which counts bytes as its low bits are others.
    pub const OFFSET_MASK: u16 = !7;

    /// A header of what starts at byte `offset`, a multiple of eight.
    pub fn new(next_header: u8, offset: u16, more: bool, id: u32) -> Self {
        let mut header = Fragment6([0; 8]);
        header.set_next_header(next_header);
        header.set_word(offset & Self::OFFSET_MASK | u16::from(more));
        header.set_id(id);
        header
    }

    /// Where the fragment lies in the packet, in bytes.
    #[inline]
    pub fn offset(&self) -> u16 {
        self.word() & Self::OFFSET_MASK
    }

    /// Whether more fragments follow.
    #[inline]
    pub fn more(&self) -> bool {
        self.word() & Self::MORE != 0
    }

    /// Whether it is no fragment but a whole packet (RFC 6946).
    #[inline]
    pub fn is_atomic(&self) -> bool {
        self.offset() == 0 && !self.more()
    }
}

/// What an IPv6 packet carries behind its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// What it is (see [`ip_proto`](crate::ip_proto)). An extension header's
    /// number where that is cut short.
    pub protocol: u8,
    /// Where it begins, counted from the end of the IPv6 header.
    pub offset: usize,
    /// The fragment header on the way, if there was one.
    pub fragment: Option<Fragment6>,
    /// Where what follows the fragment header begins, counted from the end of the IPv6 header; 0
    /// without one.
    pub divided: usize,
    /// Length of the headers that every fragment has (RFC 8200, 4.5), counted
    /// from the end of the IPv6 header.
    pub per_fragment: usize,
    /// Where the last of these begins; `None` if there are none.
    pub last: Option<usize>,
}

impl Upper {
    /// Whether it is not there, but in another fragment.
    #[inline]
    pub fn elsewhere(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset() != 0)
    }
}

/// Whether `next_header` says that an extension header follows that can be
/// stepped over.
#[inline]
pub const fn is_extension(next_header: u8) -> bool {
    use ip_proto::*;
    matches!(next_header, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS | AH)
}

/// The extension headers in `bytes`, which follow an IPv6 header that says
/// `next_header`: the number of each, and at last of what follows them, as far as
/// they are there.
#[inline]
pub fn numbers(next_header: u8, bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mut next = Some((next_header, 0));
    std::iter::from_fn(move || {
        let (number, at) = next?;
        next = follows(number, bytes.get(at..).unwrap_or_default())
            .map(|(number, length)| (number, at + length));
        Some(number)
    })
}

/// What follows an extension header, and how long that is; nothing, if it is
/// none, cut short, or of a fragment that does not begin with what follows.
fn follows(number: u8, bytes: &[u8]) -> Option<(u8, usize)> {
    let (header, _) = Extension::from_prefix(bytes).filter(|_| is_extension(number))?;
    let length = length(number, header);
    let elsewhere = number == ip_proto::FRAGMENT
        && Fragment6::from_prefix(bytes).is_none_or(|(fragment, _)| fragment.offset() != 0);
    (length <= bytes.len() && !elsewhere).then_some((header.next_header(), length))
}

/// How long an extension header of that number is.
fn length(number: u8, header: &Extension) -> usize {
    let units = usize::from(header.units());
    match number {
        ip_proto::FRAGMENT => Fragment6::LEN,
        ip_proto::AH => (units + 2) * 4,
        _ => (units + 1) * 8,
    }
}

/// Steps over the extension headers in `bytes`, which follow an IPv6 header
/// that says `next_header`; ends before what is not there or cut short, and before a second
/// fragment header, for a packet has one at most (RFC 8200, section 4.1).
#[inline]
pub fn upper(next_header: u8, bytes: &[u8]) -> Upper {
    let plain = Upper {
        protocol: next_header,
        offset: 0,
        fragment: None,
        divided: 0,
        per_fragment: 0,
        last: None,
    };
    if is_extension(next_header) { step_over(plain, bytes) } else { plain }
}

fn step_over(mut at: Upper, bytes: &[u8]) -> Upper {
    while is_extension(at.protocol) && !at.elsewhere() {
        let rest = bytes.get(at.offset..).unwrap_or_default();
        let Some((header, _)) = Extension::from_prefix(rest) else { return at };
        let len = length(at.protocol, header);
        if rest.len() < len {
            return at;
        }
        match at.protocol {
            ip_proto::FRAGMENT if at.fragment.is_some() => return at,
            ip_proto::FRAGMENT => {
                at.fragment = Fragment6::from_prefix(rest).map(|(f, _)| *f);
                at.divided = at.offset + len;
            }
            // Hop-by-hop options only count as the first header.
            ip_proto::ROUTING if at.fragment.is_none() => {
                (at.last, at.per_fragment) = (Some(at.offset), at.offset + len);
            }
            ip_proto::HOP_BY_HOP if at.offset == 0 => (at.last, at.per_fragment) = (Some(0), len),
            _ => {}
        }
        at.protocol = header.next_header();
        at.offset += len;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use ip_proto::*;

    #[test]
    fn steps_over_what_can_be_known() {
        assert_eq!(upper(TCP, &[]).protocol, TCP);
        let mut bytes = vec![ROUTING, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([DESTINATION_OPTIONS, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([AH, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let found = upper(HOP_BY_HOP, &bytes);
        assert_eq!((found.protocol, found.offset), (UDP, 8 + 16 + 8 + 12));
        assert_eq!((found.per_fragment, found.last), (24, Some(8)));
        let seen: Vec<u8> = numbers(HOP_BY_HOP, &bytes).collect();
        assert_eq!(seen, [HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS, AH, UDP]);
        // Cut anywhere, it ends before the header that is not whole.
        for (len, protocol, offset) in [
            (0, HOP_BY_HOP, 0),
            (7, HOP_BY_HOP, 0),
            (8, ROUTING, 8),
            (24, DESTINATION_OPTIONS, 24),
            (43, AH, 32),
        ] {
            let found = upper(HOP_BY_HOP, &bytes[..len]);
            assert_eq!((found.protocol, found.offset), (protocol, offset), "{len} bytes");
        }
    }

    #[test]
    fn stops_at_what_is_in_another_fragment() {
        let first = Fragment6::new(DESTINATION_OPTIONS, 0, true, 7);
        let bytes = [&first.0[..], &[TCP, 0, 0, 0, 0, 0, 0, 0]].concat();
        let found = upper(FRAGMENT, &bytes);
        assert_eq!((found.protocol, found.offset, found.elsewhere()), (TCP, 16, false));
        assert_eq!(found.divided, 8);
        let bytes = [&Fragment6::new(FRAGMENT, 0, true, 7).0[..], &first.0, &[0; 8]].concat();
        let found = upper(FRAGMENT, &bytes);
        assert_eq!((found.protocol, found.offset, found.divided), (FRAGMENT, 8, 8), "the second");
        let later = Fragment6::new(DESTINATION_OPTIONS, 16, false, 7);
        assert_eq!((later.offset(), later.more(), later.id()), (16, false, 7));
        let bytes = [&later.0[..], &[TCP, 0, 0, 0, 0, 0, 0, 0]].concat();
        let found = upper(FRAGMENT, &bytes);
        assert_eq!(
            (found.protocol, found.offset, found.elsewhere()),
            (DESTINATION_OPTIONS, 8, true)
        );
        assert_eq!(numbers(FRAGMENT, &bytes).collect::<Vec<_>>(), [FRAGMENT]);
        assert!(Fragment6::new(TCP, 0, false, 0).is_atomic() && !later.is_atomic());
    }
}
