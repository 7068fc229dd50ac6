//! Fragmentation of IPv4 packets (RFC 791, section 3.2).

use castanet_wire::Ipv4Header;
use castanet_wire::options::{END, RawOptions};

/// The longest header.
const MAX_HEADER: usize = 60;
/// Set in the kinds of options that are copied to every fragment.
const COPIED: u8 = 0x80;

/// The layout of one fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The length of its header. The first fragment keeps all options, later ones only those with
    /// the copied flag.
    pub header: usize,
    /// The offset of its payload in the packet's payload.
    pub start: usize,
    /// The length of its payload.
    pub length: usize,
    /// The field of flags and fragment offset.
    pub field: u16,
}

impl Fragment {
    /// The length of the whole fragment.
    pub fn total(&self) -> usize {
        self.header + self.length
    }

    /// Writes the fragment's header with its checksum and returns its length.
    ///
    /// `original` is the header of the packet.
    pub fn write_header(&self, original: &[u8], out: &mut [u8; MAX_HEADER]) -> usize {
        let length = original.len().min(MAX_HEADER);
        out[..length].copy_from_slice(&original[..length]);
        if self.start > 0 {
            copy_options(original, out);
        }
        if let Some((header, options)) = Ipv4Header::from_prefix_mut(&mut out[..self.header]) {
            header.set_header_len(self.header);
            header.set_total_len(self.total() as u16);
            header.set_fragment_word(self.field);
            header.update_checksum(options);
        }
        self.header
    }
}

/// An iterator over the fragments of a packet, in order.
#[derive(Clone, Debug)]
pub struct Fragments {
    mtu: usize,
    /// The header length of fragments after the first.
    later: usize,
    payload: usize,
    field: u16,
    next: Fragment,
}

/// Fragments a packet with `payload` bytes of payload so that no fragment is longer than `mtu`.
///
/// `None` if that is impossible: the MTU has no room for a header and eight bytes, or the header is
/// malformed. A packet that fits becomes a single fragment. The caller checks whether the packet
/// may be fragmented (`may_divide`); the fragments' headers allow it.
pub fn divide(header: &[u8], payload: usize, mtu: usize) -> Option<Fragments> {
    let (ip, rest) = Ipv4Header::from_prefix(header)?;
    ip.split_options(rest)?;
    let header = &header[..ip.header_len()];
    let room = mtu.checked_sub(header.len())? & !7;
    let field = ip.fragment_word() & !Ipv4Header::DONT_FRAGMENT;
    // The offset counts units of eight bytes and must not wrap.
    let end = ip.fragment_offset() + payload;
    if room < 8 || end > 0xFFFF {
        return None;
    }
    let fits = header.len() + payload <= mtu;
    let length = if fits { payload } else { room };
    let first = Fragment { header: header.len(), start: 0, length, field };
    let later = Ipv4Header::LEN + copy_options(header, &mut [0; MAX_HEADER]);
    Some(Fragments { mtu, later, payload, field, next: first })
}

/// Whether the packet's header allows fragmentation.
pub fn may_divide(header: &[u8]) -> bool {
    Ipv4Header::from_prefix(header).is_none_or(|(header, _)| !header.dont_fragment())
}

impl Iterator for Fragments {
    type Item = Fragment;

    fn next(&mut self) -> Option<Fragment> {
        let mut fragment = self.next;
        if fragment.start > 0 && fragment.start >= self.payload {
            return None;
        }
        let end = fragment.start + fragment.length;
        if end < self.payload {
            fragment.field |= Ipv4Header::MORE_FRAGMENTS;
        }
        let length = (self.payload - end).min((self.mtu - self.later) & !7);
        // An empty payload has one fragment, too.
        let start = end.max(1);
        let field = self.field + (end / 8) as u16;
        self.next = Fragment { header: self.later, start, length, field };
        Some(fragment)
    }
}

/// Writes the options that are copied to every fragment after a plain header, padded to whole
/// words, and returns their length.
fn copy_options(header: &[u8], out: &mut [u8; MAX_HEADER]) -> usize {
    let list = header.get(Ipv4Header::LEN..).unwrap_or_default();
    let mut end = Ipv4Header::LEN;
    for option in RawOptions::new(list).filter(|option| option.kind & COPIED != 0) {
        out[end..end + option.len()].copy_from_slice(&list[option.offset..][..option.len()]);
        end += option.len();
    }
    let padded = end.next_multiple_of(4);
    out[end..padded].fill(END);
    padded - Ipv4Header::LEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::checksum;
    use proptest::prelude::*;

    fn header(options: &[u8], field: u16) -> Vec<u8> {
        let mut header =
            vec![0x40, 7, 0, 0, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        header.extend(options);
        header[0] |= (header.len() / 4) as u8;
        header[6..8].copy_from_slice(&field.to_be_bytes());
        header
    }

    #[test]
    fn divides_as_the_rfc_does() {
        let header = header(&[], 0);
        let list: Vec<Fragment> = divide(&header, 1480, 620).unwrap().collect();
        let parts: Vec<_> = list.iter().map(|f| (f.start, f.length, f.field)).collect();
        assert_eq!(parts, [(0, 600, 0x2000), (600, 600, 0x2000 | 75), (1200, 280, 150)]);
        let whole: Vec<Fragment> = divide(&header, 100, 620).unwrap().collect();
        assert_eq!(whole, [Fragment { header: 20, start: 0, length: 100, field: 0 }]);
        assert_eq!(divide(&header, 0, 620).unwrap().count(), 1);
        assert!(divide(&header, 100, 27).is_none() && divide(&header[..10], 9, 99).is_none());
        assert!(may_divide(&header) && !may_divide(&super::tests::header(&[], 0x4000)));
    }

    #[test]
    fn only_copied_options_are_in_later_fragments() {
        let header = header(&[7, 7, 4, 0, 0, 0, 0, 1, 0x94, 4, 0, 0], 0);
        let list: Vec<Fragment> = divide(&header, 100, 64).unwrap().collect();
        assert_eq!((list[0].header, list[1].header), (32, 24));
        let mut out = [0; MAX_HEADER];
        let length = list[1].write_header(&header, &mut out);
        assert_eq!(out[20..length], [0x94, 4, 0, 0]);
        assert_eq!(list[0].write_header(&header, &mut out), 32);
        assert_eq!(out[20..32], header[20..]);
    }

    proptest! {
        #[test]
        fn fragments_make_up_the_packet(
            options in prop::collection::vec(any::<u32>(), 0..=10),
            payload in 0usize..5000, mtu in 0usize..2000, field in 0u16..0x4000,
        ) {
            let options: Vec<u8> = options.into_iter().flat_map(u32::to_be_bytes).collect();
            let header = header(&options, field);
            let Some(fragments) = divide(&header, payload, mtu) else {
                let end = usize::from(field & Ipv4Header::OFFSET_MASK) * 8 + payload;
                prop_assert!(mtu < header.len() + 8 || end > 0xFFFF);
                return Ok(());
            };
            let list: Vec<Fragment> = fragments.collect();
            let mut at = 0;
            for (i, f) in list.iter().enumerate() {
                let last = i + 1 == list.len();
                prop_assert!(f.total() <= mtu && (i == 0 || f.start == at));
                prop_assert_eq!(f.field & Ipv4Header::OFFSET_MASK, (field & Ipv4Header::OFFSET_MASK) + (at / 8) as u16);
                prop_assert_eq!(f.field & Ipv4Header::MORE_FRAGMENTS != 0, !last || field & 0x2000 != 0);
                prop_assert!(last || f.length % 8 == 0 && f.length > 0);
                let mut out = [0; MAX_HEADER];
                let length = f.write_header(&header, &mut out);
                prop_assert_eq!(length, usize::from(out[0] & 15) * 4);
                prop_assert_eq!(usize::from(u16::from_be_bytes([out[2], out[3]])), f.total());
                prop_assert_eq!(checksum::of(&out[..length]), 0);
                at += f.length;
            }
            prop_assert_eq!(at, payload);
        }
    }
}
