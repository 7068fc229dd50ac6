//! What a router checks of an IPv6 header before it believes it (RFC 8200, section 3).

use castanet_wire::{Ipv6Header, extension};
use std::net::Ipv6Addr;

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fewer bytes than a header has.
    Tiny,
    /// Not version 6.
    Version,
    /// The payload is longer than the packet.
    Length,
    /// The source is nobody's address.
    Source,
}

/// What a good header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Length of the header, with extension headers if these were asked for.
    pub header_len: usize,
    /// Length of the packet without padding of the link.
    pub total_len: usize,
}

/// What to check.
#[derive(Clone, Debug)]
pub struct HeaderCheck {
    bad_sources: Box<[Ipv6Addr]>,
    extensions: bool,
}

impl HeaderCheck {
    /// A check that refuses these sources and all groups, and looks for where the transport
    /// header begins behind extension headers if told so.
    pub fn new(bad_sources: &[Ipv6Addr], extensions: bool) -> Self {
        HeaderCheck { bad_sources: bad_sources.into(), extensions }
    }

    /// Checks the header that `bytes` begin with.
    #[inline]
    pub fn check(&self, bytes: &[u8]) -> Result<Checked, Fault> {
        let (header, rest) = Ipv6Header::from_prefix(bytes).ok_or(Fault::Tiny)?;
        if header.version() != 6 {
            return Err(Fault::Version);
        }
        // A length of zero is that of a jumbogram (RFC 2675), or of nothing.
        let payload = rest.get(..header.payload_len().into()).ok_or(Fault::Length)?;
        let source = header.src();
        if source.is_multicast() || self.bad_sources.contains(&source) {
            return Err(Fault::Source);
        }
        let extensions = match self.extensions {
            true => extension::upper_layer(header.next_header(), payload).offset,
            false => 0,
        };
        let header_len = Ipv6Header::LEN + extensions;
        Ok(Checked { header_len, total_len: Ipv6Header::LEN + payload.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xbad);

    fn packet(change: impl Fn(&mut Ipv6Header)) -> Vec<u8> {
        let mut header = Ipv6Header::new(60, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 12);
        change(&mut header);
        [&header.0[..], &[17, 0, 0, 0, 0, 0, 0, 0], &[0; 8]].concat()
    }

    #[test]
    fn good_headers_say_where_they_and_the_packet_end() {
        for (extensions, header_len) in [(false, 40), (true, 48)] {
            let checked = HeaderCheck::new(&[BAD], extensions).check(&packet(|_| ()));
            assert_eq!(checked, Ok(Checked { header_len, total_len: 52 }));
        }
    }

    #[test]
    fn every_fault_is_found() {
        let check = HeaderCheck::new(&[BAD], true);
        let found = |change: fn(&mut Ipv6Header)| check.check(&packet(change)).err();
        assert_eq!(check.check(&[0x60; 39]), Err(Fault::Tiny));
        assert_eq!(found(|h| h.set_version_class_flow(5 << 28)), Some(Fault::Version));
        assert_eq!(found(|h| h.set_payload_len(17)), Some(Fault::Length));
        assert_eq!(found(|h| h.set_src(BAD)), Some(Fault::Source));
        assert_eq!(found(|h| h.set_src([0xff02, 0, 0, 0, 0, 0, 0, 1].into())), Some(Fault::Source));
        assert_eq!(found(|h| h.set_payload_len(16)), None);
    }
}
