//! Fields of the IPv4 header (RFC 791, 3.1).
//!
//! ```text
//!  0                   1                   2                   3
//! |Version|  IHL  |Type of Service|          Total Length         |
//! |         Identification        |Flags|      Fragment Offset    |
//! |  Time to Live |    Protocol   |         Header Checksum       |
//! |                       Source Address                          |
//! |                    Destination Address                        |
//! |                    Options                    |    Padding    |
//! ```

use castanet_wire::checksum;

pub(crate) const TOTAL_LENGTH: usize = 2;
pub(crate) const FRAGMENT: usize = 6;
pub(crate) const PROTOCOL: usize = 9;
pub(crate) const CHECKSUM: usize = 10;
pub(crate) const SOURCE: usize = 12;
pub(crate) const DESTINATION: usize = 16;
/// The length of a header without options, which is the offset of options.
pub(crate) const MIN_HEADER: usize = 20;
/// The longest header.
pub(crate) const MAX_HEADER: usize = 60;

/// Flags and masks of the fragment field.
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;
pub(crate) const MORE_FRAGMENTS: u16 = 0x2000;
pub(crate) const OFFSET: u16 = 0x1FFF;

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from(b[0]) << 8 | u16::from(b[1]))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

/// The header of a packet, if it is complete.
pub(crate) fn header(packet: &[u8]) -> Option<&[u8]> {
    let length = usize::from(packet.first()? & 0x0F) * 4;
    if length < MIN_HEADER { None } else { packet.get(..length) }
}

/// Computes the checksum.
pub(crate) fn set_checksum(header: &mut [u8]) {
    header[CHECKSUM..CHECKSUM + 2].fill(0);
    let sum = checksum::of(header);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// An option and its offset in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpOption {
    pub(crate) kind: u8,
    pub(crate) at: usize,
    pub(crate) length: usize,
}

pub(crate) const END: u8 = 0;
pub(crate) const NO_OPERATION: u8 = 1;
pub(crate) const RECORD_ROUTE: u8 = 7;
pub(crate) const TIMESTAMP: u8 = 68;
pub(crate) const LOOSE_ROUTE: u8 = 131;
pub(crate) const STRICT_ROUTE: u8 = 137;
/// Set in the kinds of options that are copied to every fragment.
pub(crate) const COPIED: u8 = 0x80;

/// Iterates over the options of a header, without padding. An impossible length is an error with
/// its offset, and ends the iteration.
pub(crate) struct Options<'a> {
    header: &'a [u8],
    at: usize,
}

impl<'a> Options<'a> {
    pub(crate) fn new(header: &'a [u8]) -> Self {
        Options::from(header, MIN_HEADER)
    }

    /// The options from an offset on, at which one starts.
    pub(crate) fn from(header: &'a [u8], at: usize) -> Self {
        Options { header, at }
    }
}

impl Iterator for Options<'_> {
    type Item = Result<IpOption, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.header.get(self.at) == Some(&NO_OPERATION) {
            self.at += 1;
        }
        let at = self.at;
        let kind = *self.header.get(at).filter(|&&kind| kind != END)?;
        let length = self.header.get(at + 1).map_or(0, |&l| usize::from(l));
        if length < 2 || at + length > self.header.len() {
            self.at = self.header.len();
            return Some(Err(at + 1));
        }
        self.at += length;
        Some(Ok(IpOption { kind, at, length }))
    }
}
