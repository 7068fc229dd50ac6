//! Option lists of IPv4 (RFC 791, 3.1) and TCP (RFC 9293, 3.2), which share
//! one encoding: type, length, value.

mod ip_text;
mod tcp_text;
mod text;

pub use ip_text::{parse_ip, print_ip};
pub use tcp_text::{TcpOptionFilter, parse_tcp, print_tcp};
pub(crate) use text::c_number;

/// Option type: end of the list.
pub const END: u8 = 0;
/// Option type: no operation, one byte of padding.
pub const NOP: u8 = 1;

/// One option of a list, not interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// The option type.
    pub kind: u8,
    /// Offset of the option from the list's first byte.
    pub offset: usize,
    /// The value, without type and length; empty for a [`NOP`].
    pub data: &'a [u8],
}

impl RawOption<'_> {
    /// Length of the option, at least 1.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        if self.kind == NOP { 1 } else { 2 + self.data.len() }
    }

    /// Offset of the value from the list's first byte.
    pub fn data_offset(&self) -> usize {
        self.offset + 2
    }
}

/// An iterator over an option list; stops at its end, or at a malformed option.
#[derive(Clone, Debug)]
pub struct RawOptions<'a> {
    list: &'a [u8],
    position: usize,
    malformed: bool,
}

impl<'a> RawOptions<'a> {
    /// Iterates over `list`: the bytes between fixed header and payload.
    #[inline]
    pub fn new(list: &'a [u8]) -> Self {
        RawOptions { list, position: 0, malformed: false }
    }

    /// Offset of the next option from the list's first byte, or of one whose length is invalid.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Whether the iteration stopped because an option's length is invalid.
    pub fn malformed(&self) -> bool {
        self.malformed
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = RawOption<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawOption<'a>> {
        let offset = self.position;
        let rest = self.list.get(offset..)?;
        let (&kind, rest) = rest.split_first().filter(|(kind, _)| **kind != END)?;
        if kind == NOP {
            self.position += 1;
            return Some(RawOption { kind, offset, data: &[] });
        }
        let len = rest.first().map_or(0, |&len| usize::from(len));
        let Some(data) = len.checked_sub(1).and_then(|end| rest.get(1..end)) else {
            self.malformed = true;
            return None;
        };
        self.position += len;
        Some(RawOption { kind, offset, data })
    }
}

/// Iterates over the options of `list` without padding, up to a malformed one.
#[inline]
pub fn unpadded(list: &[u8]) -> impl Iterator<Item = RawOption<'_>> {
    RawOptions::new(list).filter(|option| option.kind != NOP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Type, offset and value of an option.
    type OptionFields<'a> = (u8, usize, &'a [u8]);

    fn walk(list: &[u8]) -> (Vec<OptionFields<'_>>, bool) {
        let mut options = RawOptions::new(list);
        let fields = options.by_ref().map(|o| (o.kind, o.offset, o.data)).collect();
        (fields, options.malformed())
    }

    #[test]
    fn iterates_over_a_list() {
        let list = [1, 2, 4, 5, 0xb4, 8, 2, 0, 9, 9];
        assert_eq!(walk(&list), (vec![(1, 0, &[][..]), (2, 1, &[5, 0xb4]), (8, 5, &[])], false));
    }

    #[test]
    fn stops_at_an_invalid_length() {
        for bad in [&[2][..], &[2, 0], &[2, 1], &[2, 3], &[2, 255, 0]] {
            assert_eq!(walk(bad), (vec![], true), "{bad:?}");
        }
        assert_eq!(walk(&[1, 2, 9, 0]), (vec![(1, 0, &[][..])], true));
        assert_eq!(walk(&[]), (vec![], false));
    }

    proptest! {
        #[test]
        fn never_leaves_the_list(list in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut end = 0;
            for option in RawOptions::new(&list) {
                prop_assert_eq!(option.offset, end);
                end += option.len();
                prop_assert!(end <= list.len());
                prop_assert!(option.kind == NOP || &list[option.data_offset()..end] == option.data);
            }
        }
    }
}
