//! A list of a few IPv4 prefixes with values, in first-match order.

use std::fmt::{self, Write};

use crate::text::{dotted, length_of};

/// IPv4 prefixes in host byte order, each before those that contain it.
///
/// For a handful of prefixes in arguments; [`lpm`](crate::lpm) is for routing tables. Masks need
/// not be contiguous.
#[derive(Clone, Debug)]
pub struct PrefixList<T> {
    entries: Vec<Entry<T>>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    address: u32,
    mask: u32,
    value: T,
}

impl<T> Entry<T> {
    fn contains(&self, address: u32, mask: u32) -> bool {
        self.mask & mask == self.mask && address & self.mask == self.address
    }
}

impl<T> Default for PrefixList<T> {
    fn default() -> Self {
        PrefixList { entries: Vec::new() }
    }
}

impl<T> PrefixList<T> {
    /// The value of the first prefix that contains `address`.
    #[inline]
    pub fn get(&self, address: u32) -> Option<&T> {
        self.entries.iter().find(|e| address & e.mask == e.address).map(|e| &e.value)
    }

    /// Sets the value of a prefix and returns the previous one; host bits are ignored.
    pub fn insert(&mut self, address: u32, mask: u32, value: T) -> Option<T> {
        let address = address & mask;
        let before = self.remove(address, mask);
        // The new prefix goes before the first one that contains it.
        let at = self.entries.iter().position(|e| e.contains(address, mask));
        self.entries.insert(at.unwrap_or(self.entries.len()), Entry { address, mask, value });
        before
    }

    /// Removes a prefix.
    pub fn remove(&mut self, address: u32, mask: u32) -> Option<T> {
        let same = |e: &Entry<T>| e.address == address & mask && e.mask == mask;
        let at = self.entries.iter().position(same)?;
        Some(self.entries.remove(at).value)
    }
}

impl<T: fmt::Display> PrefixList<T> {
    /// A line for each prefix: the prefix, a blank and the value.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for Entry { address, mask, value } in &self.entries {
            // Writing to a string cannot fail.
            let _ = match length_of(*mask) {
                Some(length) => writeln!(text, "{}/{length} {value}", dotted(*address)),
                None => writeln!(text, "{}/{} {value}", dotted(*address), dotted(*mask)),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_in_the_order_of_matching() {
        let mut p = PrefixList::default();
        for (address, mask, value) in [
            (0x0a00_0001, u32::MAX << 24, 1),
            (0x0a00_0001, u32::MAX, 2),
            (0x0b00_0000, u32::MAX << 24, 3),
            (0x0a00_0000, u32::MAX << 16, 4),
            (0x0a00_0000, 0xff00_00ff, 5),
            (0x0a00_0001, u32::MAX, 6),
        ] {
            p.insert(address, mask, value);
        }
        let text =
            "10.0.0.0/16 4\n10.0.0.0/255.0.0.255 5\n10.0.0.1/32 6\n10.0.0.0/8 1\n11.0.0.0/8 3\n";
        assert_eq!(sorted(&p.listing()), sorted(text));
        assert_eq!(p.get(0x0a00_0001), Some(&6));
        assert_eq!(p.get(0x0a00_0002), Some(&4));
        assert_eq!(p.get(0x0aff_0002), Some(&1));
        assert_eq!(p.get(0x0aff_0000), Some(&5));
        assert_eq!(p.get(0x0c00_0000), None);
        assert_eq!(p.remove(0x0a00_0009, u32::MAX << 24), Some(1));
        assert_eq!(p.remove(0x0a00_0009, u32::MAX << 24), None);
    }

    fn sorted(text: &str) -> Vec<&str> {
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        lines
    }

    proptest! {
        #[test]
        fn the_longest_prefix_decides(
            list in proptest::collection::vec((0u32..256, 0u32..=8), 0..20),
            probe in 0u32..256,
        ) {
            let mut p = PrefixList::default();
            let mask = |length: u32| !(0xff >> length);
            for &(address, length) in &list {
                p.insert(address, mask(length), (address & mask(length), length));
            }
            let fits = |&&(address, length): &&(u32, u32)| (probe ^ address) & mask(length) == 0;
            let longest = list.iter().filter(fits).map(|&(_, length)| length).max();
            prop_assert_eq!(p.get(probe).map(|found| found.1), longest);
        }
    }
}
