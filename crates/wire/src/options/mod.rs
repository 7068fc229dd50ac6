//! The option lists of IPv4 (RFC 791, 3.1) and TCP (RFC 9293, 3.2), which
//! share one coding: type, length, value.

mod ip_text;
mod tcp_text;
mod text;

pub use ip_text::{parse_ip, print_ip};
pub use tcp_text::{TcpShow, parse_tcp, print_tcp};
pub(crate) use text::c_number;

/// Ends the list.
pub const END: u8 = 0;
/// Fills a byte.
pub const NOP: u8 = 1;

/// One option as it lies in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// The type.
    pub kind: u8,
    /// Where the option begins, counted from the list's first byte.
    pub at: usize,
    /// The value, without type and length; empty for a [`NOP`].
    pub data: &'a [u8],
}

impl RawOption<'_> {
    /// Where the value begins, counted from the list's first byte.
    pub fn data_at(&self) -> usize {
        self.at + 2
    }
}

/// Walks an option list; stops at its end, or where it is malformed.
#[derive(Clone, Debug)]
pub struct RawOptions<'a> {
    list: &'a [u8],
    at: usize,
    malformed: bool,
}

impl<'a> RawOptions<'a> {
    /// Walks `list`: the bytes between fixed header and payload.
    #[inline]
    pub fn new(list: &'a [u8]) -> Self {
        RawOptions { list, at: 0, malformed: false }
    }

    /// Where the walk stands, counted from the list's first byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether the walk ended because an option's length was wrong.
    pub fn malformed(&self) -> bool {
        self.malformed
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = RawOption<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawOption<'a>> {
        let at = self.at;
        let rest = self.list.get(at..)?;
        let (&kind, rest) = rest.split_first().filter(|(kind, _)| **kind != END)?;
        if kind == NOP {
            self.at += 1;
            return Some(RawOption { kind, at, data: &[] });
        }
        let len = rest.first().map_or(0, |&len| usize::from(len));
        let Some(data) = len.checked_sub(1).and_then(|end| rest.get(1..end)) else {
            // Ending for good: `at` beyond the list yields nothing ever after.
            (self.malformed, self.at) = (true, self.list.len());
            return None;
        };
        self.at += len;
        Some(RawOption { kind, at, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Seen<'a> = (u8, usize, &'a [u8]);

    fn walk(list: &[u8]) -> (Vec<Seen<'_>>, bool) {
        let mut options = RawOptions::new(list);
        let seen = options.by_ref().map(|o| (o.kind, o.at, o.data)).collect();
        (seen, options.malformed())
    }

    #[test]
    fn walks_a_list() {
        let list = [1, 2, 4, 5, 0xb4, 8, 2, 0, 9, 9];
        assert_eq!(walk(&list), (vec![(1, 0, &[][..]), (2, 1, &[5, 0xb4]), (8, 5, &[])], false));
    }

    #[test]
    fn stops_where_a_length_is_wrong() {
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
                prop_assert_eq!(option.at, end);
                end += if option.kind == NOP { 1 } else { 2 + option.data.len() };
                prop_assert!(end <= list.len());
                prop_assert!(option.kind == NOP || &list[option.data_at()..end] == option.data);
            }
        }
    }
}
