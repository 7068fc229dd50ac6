//! Output line of `Print`.

use super::{Contents, at_most, push_byte};
use crate::timestamp::Timestamp;
use std::fmt::Write;

/// The fields and options of `Print`'s line beside the packet.
///
/// ```
/// use castanet_wire::print::Print;
/// let mut line = String::new();
/// Print { label: "in", ..Print::default() }.line(&[0x45, 0, 0, 28, 0xab], &mut line);
/// assert_eq!(line, "in:    5 | 4500001c ab");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Print<'a> {
    /// Printed first, if not empty.
    pub label: &'a str,
    /// Number of the processor.
    pub cpu: Option<usize>,
    /// Time of the packet.
    pub timestamp: Option<Timestamp>,
    /// Headroom and tailroom of the packet in bytes.
    pub room: Option<(usize, usize)>,
    /// Annotation bytes of the packet.
    pub annotations: Option<&'a [u8]>,
    /// Output format of the bytes.
    pub contents: Contents,
    /// Maximum number of bytes to print; all if `None`.
    pub max: Option<usize>,
}

impl Default for Print<'_> {
    fn default() -> Self {
        Print {
            label: "",
            cpu: None,
            timestamp: None,
            room: None,
            annotations: None,
            contents: Contents::Hex,
            max: Some(24),
        }
    }
}

impl Print<'_> {
    /// Appends the line for the packet `bytes`.
    pub fn line(&self, bytes: &[u8], out: &mut String) {
        out.push_str(self.label);
        if let Some(cpu) = self.cpu {
            let _ = write!(out, "({cpu})");
        }
        let mut separate = !self.label.is_empty() || self.cpu.is_some();
        if let Some(time) = self.timestamp {
            let _ = write!(out, "{}{time}", if separate { ": " } else { "" });
            separate = true;
        }
        let _ = write!(out, "{}{:4}", if separate { ": " } else { "" }, bytes.len());
        if let Some((head, tail)) = self.room {
            let _ = write!(out, " (h{head} t{tail})");
        }
        if let Some(annotations) = self.annotations {
            out.push_str(" | ");
            annotations.iter().for_each(|&byte| push_byte(byte, Contents::Hex, out));
        }
        let shown = at_most(bytes, self.max);
        if shown.is_empty() || self.contents == Contents::None {
            return;
        }
        out.push_str(" | ");
        for (i, &byte) in shown.iter().enumerate() {
            // Click prints a blank before ASCII, but not before hexadecimal.
            if i % self.contents.group_len() == 0 && (i > 0 || self.contents == Contents::Ascii) {
                out.push(' ');
            }
            push_byte(byte, self.contents, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(print: Print<'_>, bytes: &[u8]) -> String {
        let mut out = String::new();
        print.line(bytes, &mut out);
        out
    }

    #[test]
    fn matches_click() {
        let bytes: Vec<u8> = (0x58..0x58 + 30).collect();
        let plain = Print::default();
        assert_eq!(
            line(Print { label: "ok", ..plain }, &bytes),
            "ok:   30 | 58595a5b 5c5d5e5f 60616263 64656667 68696a6b 6c6d6e6f"
        );
        assert_eq!(line(plain, &bytes[..2]), "   2 | 5859");
        assert_eq!(line(plain, &[]), "   0");
        assert_eq!(line(Print { max: None, ..plain }, &[0; 26]).len(), "  26 | ".len() + 52 + 6);
        assert_eq!(line(Print { max: Some(0), ..plain }, &bytes), "  30");
        assert_eq!(line(Print { contents: Contents::None, ..plain }, &[0; 12345]), "12345");
        assert_eq!(
            line(Print { label: "a", contents: Contents::Ascii, ..plain }, b"GET / HTTP/1.0\r\n"),
            "a:   16 |  GET / HT TP/1.0.."
        );
    }

    #[test]
    fn all_fields_together() {
        let print = Print {
            label: "x",
            cpu: Some(3),
            timestamp: Some(Timestamp::new(1_000_000_000, 500_000_000)),
            room: Some((28, 100)),
            annotations: Some(&[0, 0xff]),
            ..Print::default()
        };
        assert_eq!(line(print, &[1]), "x(3): 1000000000.500000:    1 (h28 t100) | 00ff | 01");
        let bare = Print { label: "", cpu: None, ..print };
        assert_eq!(line(bare, &[1]), "1000000000.500000:    1 (h28 t100) | 00ff | 01");
    }

    #[test]
    fn contents_words() {
        assert_eq!(Contents::from_word("hex"), Some(Contents::Hex));
        assert_eq!(Contents::from_word("false"), Some(Contents::None));
        assert_eq!(Contents::from_word("Ascii"), Some(Contents::Ascii));
        assert_eq!(Contents::from_word("octal"), None);
    }
}
