//! Validation of IPv4 headers (RFC 1812, 5.2.2 and 5.3.7).

use castanet_wire::Ipv4Header;
use std::net::Ipv4Addr;
use wide::{CmpEq, CmpGt, i16x8, i32x4, u32x4};

/// The most bad sources with each of which sources are compared; more are found by the filter.
const FEW_SOURCES: usize = 8;

/// A defect of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fewer bytes than a header.
    Tiny,
    /// Not version 4.
    Version,
    /// The header length is below the minimum.
    HeaderLength,
    /// The total length is beyond the packet, or below the header length.
    Length,
    /// The checksum is incorrect.
    Checksum,
    /// The source is not a valid address.
    Source,
}

impl Fault {
    /// All faults, in the order of Click's lists.
    pub const ALL: [Fault; 6] = [
        Fault::Tiny,
        Fault::Version,
        Fault::HeaderLength,
        Fault::Length,
        Fault::Checksum,
        Fault::Source,
    ];

    /// Click's text for it.
    pub fn text(self) -> &'static str {
        match self {
            Fault::Tiny => "tiny packet",
            Fault::Version => "bad IP version",
            Fault::HeaderLength => "bad IP header length",
            Fault::Length => "bad IP length",
            Fault::Checksum => "bad IP checksum",
            Fault::Source => "bad source address",
        }
    }
}

/// The values in a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidHeader {
    /// The length of the header with options.
    pub header_len: usize,
    /// The length of the packet without padding of the link.
    pub total_len: usize,
    /// The destination.
    pub dst: Ipv4Addr,
}

/// The configuration of a check.
#[derive(Clone, Debug)]
pub struct HeaderCheck {
    checksum: bool,
    /// With the first byte as the lowest.
    bad_sources: Box<[u32]>,
    good_destinations: Box<[u32]>,
    /// A bit for the hash of each bad source: it accepts most good sources without a search.
    filter: u64,
}

impl HeaderCheck {
    /// A check of the header, and of its checksum if `checksum`. Bad sources are refused unless the
    /// destination is one of the good ones.
    pub fn new(checksum: bool, bad_sources: &[Ipv4Addr], good_destinations: &[Ipv4Addr]) -> Self {
        let mut bad: Vec<u32> =
            bad_sources.iter().map(|it| u32::from_le_bytes(it.octets())).collect();
        bad.sort_unstable();
        bad.dedup();
        let filter = bad.iter().fold(0, |filter, &source| filter | filter_bit(source));
        let good_destinations = good_destinations.iter().map(|it| it.to_bits()).collect();
        HeaderCheck { checksum, bad_sources: bad.into(), good_destinations, filter }
    }

    /// The fast check.
    #[inline(always)]
    pub fn plain(&self) -> PlainCheck {
        PlainCheck { checksum: self.checksum, filter: self.filter }
    }

    /// [`PlainCheck::check`].
    #[inline(always)]
    pub fn check_plain(&self, bytes: &[u8]) -> Option<(u16, Ipv4Addr)> {
        self.plain().check(bytes)
    }

    /// The fast check of four headers, of packets that have so many bytes from there on: the total length of each, and
    /// all bits in the lanes of those that it finds valid; about others [`check`](HeaderCheck::check) decides.
    #[inline(always)]
    pub fn check_four(
        &self,
        headers: [&[u8; Ipv4Header::LEN]; 4],
        lengths: i32x4,
    ) -> (i32x4, i32x4) {
        let words = header_words(headers);
        let first: i32x4 = bytemuck::cast(words[0]);
        let total_len: i32x4 =
            bytemuck::cast((words[0] >> 24_u32) | ((words[0] >> 8_u32) & u32x4::splat(0xff00)));
        let mut good = (first & i32x4::splat(0xff)).cmp_eq(i32x4::splat(0x45))
            & total_len.cmp_gt(i32x4::splat(Ipv4Header::LEN as i32 - 1))
            & !total_len.cmp_gt(lengths);
        if self.checksum {
            good &= have_checksums(words);
        }
        let source: i32x4 = bytemuck::cast(words[3]);
        match &*self.bad_sources {
            few if few.len() <= FEW_SOURCES => few.iter().for_each(|bad| {
                good &= !source.cmp_eq(i32x4::splat(bad.cast_signed()));
            }),
            _ => {
                let is_good = |source: i32| self.filter & filter_bit(source.cast_unsigned()) == 0;
                good &= i32x4::new(source.to_array().map(|it| -i32::from(is_good(it))));
            }
        }
        (total_len, good)
    }

    /// Checks the header at the start of `bytes`.
    pub fn check(&self, bytes: &[u8]) -> Result<ValidHeader, Fault> {
        let (header, _) = Ipv4Header::from_prefix(bytes).ok_or(Fault::Tiny)?;
        let (header_len, total_len) = (header.header_len(), usize::from(header.total_len()));
        if header.version() != 4 {
            return Err(Fault::Version);
        }
        if header_len < Ipv4Header::LEN {
            return Err(Fault::HeaderLength);
        }
        if total_len > bytes.len() || total_len < header_len {
            return Err(Fault::Length);
        }
        let options = bytes.get(Ipv4Header::LEN..header_len).ok_or(Fault::Length)?;
        if self.checksum && !header.checksum_ok(options) {
            return Err(Fault::Checksum);
        }
        let bad = self.bad_sources.contains(&u32::from_le_bytes(header.src().octets()));
        let exempt = self.good_destinations.contains(&header.dst_u32());
        if bad && !exempt {
            return Err(Fault::Source);
        }
        Ok(ValidHeader { header_len, total_len, dst: header.dst() })
    }
}

/// A fast check for the common case, headers without options.
#[derive(Clone, Copy, Debug)]
pub struct PlainCheck {
    /// Whether the checksum is checked.
    pub checksum: bool,
    /// The filter bits of bad sources.
    pub filter: u64,
}

impl PlainCheck {
    /// Total length and destination of a valid header without options at the start of `bytes`. If the
    /// result is `None`, [`HeaderCheck::check`] decides.
    #[inline(always)]
    pub fn check(self, bytes: &[u8]) -> Option<(u16, Ipv4Addr)> {
        let (header, _) = Ipv4Header::from_prefix(bytes)?;
        let total_len = header.total_len();
        let fits = usize::from(total_len) <= bytes.len();
        if !header.is_plain() || total_len < Ipv4Header::LEN as u16 || !fits {
            return None;
        }
        if self.checksum && !header.checksum_ok(&[]) {
            return None;
        }
        let source = u32::from_le_bytes(header.src().octets());
        let source_good = self.filter & filter_bit(source) == 0;
        source_good.then(|| (total_len, header.dst()))
    }
}

/// The five words of each of four headers, in which the first byte is the lowest.
// Without closures, which stay functions of their own where they have several callers.
#[inline(always)]
fn header_words([a, b, c, d]: [&[u8; Ipv4Header::LEN]; 4]) -> [u32x4; 5] {
    let last = u32x4::new([word(a, 4), word(b, 4), word(c, 4), word(d, 4)]);
    let [a, b, c, d] = u32x4::transpose([front(a), front(b), front(c), front(d)]);
    [a, b, c, d, last]
}

/// The first four words of a header.
#[inline(always)]
fn front(header: &[u8; Ipv4Header::LEN]) -> u32x4 {
    u32x4::new([word(header, 0), word(header, 1), word(header, 2), word(header, 3)])
}

/// The word of this number, at most four.
#[inline(always)]
fn word(header: &[u8; Ipv4Header::LEN], number: usize) -> u32 {
    let (words, _) = header.as_chunks();
    words.get(number).map_or(0, |word| u32::from_le_bytes(*word))
}

/// All bits in the lanes of headers with right checksums (RFC 1071), which are not all zero.
#[inline(always)]
fn have_checksums(words: [u32x4; 5]) -> i32x4 {
    const HALVES: i32 = 2 * 5;
    // Signed halves are added in pairs: each is less by this.
    const BIAS: i32 = 1 << 15;
    let sums = words.map(|words| {
        let halves: i16x8 = bytemuck::cast(words ^ u32x4::splat(0x8000_8000));
        halves.dot(i16x8::splat(1))
    });
    let sum = sums.into_iter().fold(i32x4::splat(HALVES * BIAS), |sum, it| sum + it);
    let folded = (sum & i32x4::splat(0xffff)) + (sum >> 16_i32);
    folded.cmp_eq(i32x4::splat(0xffff))
}

/// The filter bit of an address, whose first byte is the lowest.
#[inline(always)]
fn filter_bit(address: u32) -> u64 {
    // Multiplicative hashing (Knuth): the high bits depend on all others.
    1 << (address.wrapping_mul(0x9E37_79B1) >> 26)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Ipv4Addr = Ipv4Addr::new(18, 26, 4, 255);
    const ME: Ipv4Addr = Ipv4Addr::new(18, 26, 4, 9);

    fn packet(change: impl Fn(&mut Ipv4Header), options: &[u8]) -> Vec<u8> {
        let mut header = Ipv4Header::new(17, [1, 0, 0, 1].into(), [2, 0, 0, 2].into(), 0);
        header.set_header_len(Ipv4Header::LEN + options.len());
        header.set_total_len((Ipv4Header::LEN + options.len() + 8) as u16);
        change(&mut header);
        header.update_checksum(options);
        [&header.0[..], options, &[0; 12]].concat()
    }

    #[test]
    fn valid_headers_have_their_lengths() {
        let check = HeaderCheck::new(true, &[], &[]);
        for options in [&[][..], &[1, 1, 1, 0]] {
            let checked = check.check(&packet(|_| (), options)).expect("a good header");
            assert_eq!(checked.header_len, 20 + options.len());
            assert_eq!(checked.total_len, 28 + options.len());
            assert_eq!(checked.dst, Ipv4Addr::new(2, 0, 0, 2));
        }
    }

    #[test]
    fn every_fault_is_detected() {
        let check = HeaderCheck::new(true, &[BAD], &[ME]);
        let found = |change: fn(&mut Ipv4Header), options: &[u8]| {
            check.check(&packet(change, options)).err()
        };
        assert_eq!(check.check(&[0x45; 19]), Err(Fault::Tiny));
        assert_eq!(found(|h| h.set_version_ihl(0x65), &[]), Some(Fault::Version));
        assert_eq!(found(|h| h.set_version_ihl(0x44), &[]), Some(Fault::HeaderLength));
        for options in [&[][..], &[1, 1, 1, 0]] {
            assert_eq!(found(|h| h.set_total_len(100), options), Some(Fault::Length));
            assert_eq!(found(|h| h.set_total_len(19), options), Some(Fault::Length));
            assert_eq!(found(|h| h.set_src(BAD), options), Some(Fault::Source));
            let to_me = |h: &mut Ipv4Header| (h.set_src(BAD), h.set_dst(ME)).0;
            assert_eq!(check.check(&packet(to_me, options)).err(), None);
            let mut wrong = packet(|_| (), options);
            wrong[11] ^= 1;
            assert_eq!(check.check(&wrong), Err(Fault::Checksum));
            assert!(HeaderCheck::new(false, &[], &[]).check(&wrong).is_ok());
        }
    }

    #[test]
    fn check_plain_accepts_valid_headers_without_options() {
        let check = HeaderCheck::new(true, &[BAD], &[]);
        let good = packet(|_| (), &[]);
        let checked = check.check(&good).expect("a good header");
        assert_eq!(check.check_plain(&good), Some((checked.total_len as u16, checked.dst)));
        assert_eq!(check.check_plain(&packet(|_| (), &[1; 4])), None);
        // Each bit error, and each truncation.
        for bit in 0..20 * 8 {
            let mut wrong = good.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let plain = check.check_plain(&wrong);
            assert!(plain.is_none() && check.check(&wrong).is_err(), "bit {bit}");
        }
        for len in 0..checked.total_len {
            assert_eq!(check.check_plain(&good[..len]), None, "{len} bytes");
        }
        assert_eq!(check.check_plain(&packet(|h| h.set_src(BAD), &[])), None);
    }

    #[test]
    fn only_bad_sources_are_refused() {
        let check = HeaderCheck::new(true, &[BAD, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST], &[]);
        for low in 0..=255 {
            let src = Ipv4Addr::new(18, 26, 4, low);
            let result = check.check(&packet(|h| h.set_src(src), &[]));
            assert_eq!(result.is_err(), src == BAD, "{src}");
        }
    }

    /// The total lengths that a check of four headers finds, or 0.
    fn check_four(check: &HeaderCheck, packets: [&[u8]; 4]) -> [u16; 4] {
        let headers = packets.map(|bytes| bytes.first_chunk().expect("a header"));
        let lengths = i32x4::new(packets.map(|bytes| bytes.len() as i32));
        let (total_len, good) = check.check_four(headers, lengths);
        (total_len & good).to_array().map(|length| length as u16)
    }

    #[test]
    fn four_headers_are_checked_as_one() {
        let few = vec![BAD, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, BAD];
        let many = (0..20).map(|n| Ipv4Addr::new(9, 9, 9, n)).chain(few.clone()).collect();
        for bad in [few, many] {
            four_are_checked_as_one(&bad);
        }
    }

    fn four_are_checked_as_one(bad: &[Ipv4Addr]) {
        let checks = [true, false].map(|checksum| HeaderCheck::new(checksum, bad, &[]));
        let good = packet(|_| (), &[]);
        let with_source = |source: Ipv4Addr| packet(|h| h.set_src(source), &[]);
        let mut packets = vec![good.clone(), with_source(BAD), with_source([0; 4].into())];
        packets.extend([packet(|_| (), &[1; 4]), vec![0; 40], vec![0xff; 40]]);
        packets.extend([20, 21, 27, 28, 29].map(|length| good[..length].to_vec()));
        let totals = [0, 19, 20, 40, 256, 0x8000];
        packets.extend(totals.map(|length| packet(|h| h.set_total_len(length), &[])));
        packets.extend((0..20 * 8).map(|bit: usize| {
            let mut wrong = good.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            wrong
        }));
        let mut found = [0, 0];
        for number in 0..packets.len() {
            let four = [0, 7, 3, 1].map(|other| &packets[(number + other) % packets.len()][..]);
            for (check, found) in checks.iter().zip(&mut found) {
                // Options are for the check of one, and good sources that the filter cannot tell from bad ones.
                let one = |bytes: &[u8]| match check.check(bytes) {
                    Ok(valid) if valid.header_len == 20 => valid.total_len as u16,
                    _ => 0,
                };
                let is_told =
                    |bytes: &[u8]| bad.len() <= FEW_SOURCES || check.check_plain(bytes).is_some();
                let expected = four.map(|bytes| if is_told(bytes) { one(bytes) } else { 0 });
                assert_eq!(check_four(check, four), expected, "{number}");
                *found += usize::from(expected[0] != 0);
            }
        }
        assert!(found[0] == 4 && found[1] > 100, "{found:?}");
    }

    #[test]
    fn sums_of_all_sizes_are_checked_as_one() {
        let check = HeaderCheck::new(true, &[], &[]);
        let mut wrong = 0;
        for seed in 1..20_000_u32 {
            let random =
                |n: u32| seed.wrapping_mul(0x9e37_79b9).rotate_left(n).wrapping_mul(0x85eb_ca6b);
            let four = [1, 5, 11, 23].map(|n| {
                let change = |header: &mut Ipv4Header| {
                    header.set_src(Ipv4Addr::from_bits(random(n)));
                    header.set_dst(Ipv4Addr::from_bits(random(n + 1)));
                    header.set_ttl(random(n + 2) as u8);
                };
                let mut bytes = packet(change, &[]);
                // Some are wrong by a little.
                bytes[10] ^= u8::from(random(n + 3).is_multiple_of(4));
                bytes
            });
            let four = four.each_ref().map(Vec::as_slice);
            let expected = four.map(|bytes| check.check_plain(bytes).map_or(0, |(total, _)| total));
            assert_eq!(check_four(&check, four), expected);
            wrong += expected.iter().filter(|total| **total == 0).count();
        }
        assert!((15_000..25_000).contains(&wrong), "{wrong}");
    }
}
