//! Output line of `IP6Print`.

use super::{Contents, push_byte};
use crate::Ipv6Header;
use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv6 address as Click writes it: `::0.0.0.1` where only the last four bytes are not zero.
pub struct Ip6Text(pub Ipv6Addr);

impl fmt::Display for Ip6Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.0.to_bits()) {
            Ok(last) if last != 0 => write!(f, "::{}", Ipv4Addr::from_bits(last)),
            _ => self.0.fmt(f),
        }
    }
}

/// Appends the line of a packet, and lines with the bytes `contents`, if there are any.
pub fn ip6_line(label: &str, header: &Ipv6Header, contents: &[u8], out: &mut String) {
    const PER_LINE: usize = 24;
    const GROUP: usize = 4;
    if !label.is_empty() {
        let _ = write!(out, "{label}: ");
    }
    let (src, dst, len) = (Ip6Text(header.src()), Ip6Text(header.dst()), header.payload_len());
    let (next, hops) = (header.next_header(), header.hop_limit());
    let _ = write!(out, "{src} -> {dst} plen {len}, next {next}, hlim {hops}");
    for line in contents.chunks(PER_LINE) {
        out.push_str("\n ");
        for group in line.chunks(GROUP) {
            out.push(' ');
            group.iter().for_each(|&byte| push_byte(byte, Contents::Hex, out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_a_line_and_the_bytes() {
        let header = Ipv6Header::new(17, Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, 9);
        let mut line = String::new();
        ip6_line("x", &header, &[0xab; 29], &mut line);
        let group = "abababab";
        let wanted = format!(
            "x: ::0.0.0.1 -> :: plen 9, next 17, hlim 64\n  {}\n  {group} ab",
            [group; 6].join(" ")
        );
        assert_eq!(line, wanted);
    }
}
