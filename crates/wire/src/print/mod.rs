//! The lines that Click's printing elements write.
//!
//! Every printer appends to a `String` that the caller keeps, without a line
//! end. Bytes are never trusted: what is cut off prints as Click prints it.

mod arp;
mod ip;
mod ip6;
mod raw;

pub use arp::ArpPrint;
pub use ip::IpPrint;
pub use ip6::ip6_line;
pub use raw::Print;

/// How to print a packet's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Not at all.
    #[default]
    None,
    /// Two digits a byte.
    Hex,
    /// As characters, those that are none as `.`.
    Ascii,
}

impl Contents {
    /// The word of Click's `CONTENTS` argument, in any case; booleans mean
    /// `Hex` and `None`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word.to_ascii_uppercase().as_str() {
            "NONE" | "NO" | "FALSE" | "0" => Some(Contents::None),
            "HEX" | "YES" | "TRUE" | "1" => Some(Contents::Hex),
            "ASCII" => Some(Contents::Ascii),
            _ => None,
        }
    }

    /// How many bytes stand together.
    fn group(self) -> usize {
        if self == Contents::Ascii { 8 } else { 4 }
    }
}

/// Appends one byte.
fn push_byte(byte: u8, contents: Contents, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    match (contents, byte) {
        (Contents::None, _) => {}
        (Contents::Hex, _) => out.extend(
            [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]].map(char::from),
        ),
        (Contents::Ascii, b' '..=b'~') => out.push(byte.into()),
        (Contents::Ascii, _) => out.push('.'),
    }
}

/// The first `max` bytes, or all.
fn at_most(bytes: &[u8], max: Option<usize>) -> &[u8] {
    bytes.get(..max.unwrap_or(usize::MAX)).unwrap_or(bytes)
}
