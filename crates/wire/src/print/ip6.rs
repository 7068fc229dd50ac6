//! Output line of `IP6Print`.

use super::{Contents, push_byte};
use crate::Ipv6Header;
use std::fmt::Write;

/// Appends the line of a packet, and lines with the bytes `contents`, if there are any.
pub fn ip6_line(label: &str, header: &Ipv6Header, contents: &[u8], out: &mut String) {
    const PER_LINE: usize = 24;
    const GROUP: usize = 4;
    if !label.is_empty() {
        let _ = write!(out, "{label}: ");
    }
    let (src, dst, len) = (header.src(), header.dst(), header.payload_len());
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
    use std::net::Ipv6Addr;

    #[test]
    fn prints_a_line_and_the_bytes() {
        let header = Ipv6Header::new(17, Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, 9);
        let mut line = String::new();
        ip6_line("x", &header, &[0xab; 29], &mut line);
        let group = "abababab";
        let wanted = format!(
            "x: ::1 -> :: plen 9, next 17, hlim 64\n  {}\n  {group} ab",
            [group; 6].join(" ")
        );
        assert_eq!(line, wanted);
    }
}
