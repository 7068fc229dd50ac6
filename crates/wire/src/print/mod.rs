//! Output lines of Click's printing elements.
//!
//! Every printer appends to the caller's `String`, without a line end. It does
//! not trust the packet: truncated headers print as in Click.

mod arp;
mod ip;
mod ip6;
mod raw;

pub use arp::ArpPrint;
pub use ip::IpPrint;
pub use ip6::{Ip6Text, ip6_line};
pub use raw::Print;

/// Output format of a packet's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// No bytes.
    #[default]
    None,
    /// Two hexadecimal digits per byte.
    Hex,
    /// ASCII characters, with `.` for bytes that are not printable.
    Ascii,
}

impl Contents {
    /// Parses the value of Click's `CONTENTS` argument, case-insensitively; booleans
    /// mean `Hex` and `None`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word.to_ascii_uppercase().as_str() {
            "NONE" | "NO" | "FALSE" | "0" => Some(Contents::None),
            "HEX" | "YES" | "TRUE" | "1" => Some(Contents::Hex),
            "ASCII" => Some(Contents::Ascii),
            _ => None,
        }
    }

    /// Number of bytes between blanks.
    fn group_len(self) -> usize {
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

/// The first `max` bytes, or all if there are fewer.
fn at_most(bytes: &[u8], max: Option<usize>) -> &[u8] {
    bytes.get(..max.unwrap_or(usize::MAX)).unwrap_or(bytes)
}
