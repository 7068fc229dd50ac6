//! Validation of IPv6 headers (RFC 8200, section 3).

use castanet_wire::{Ipv6Header, extension};
use std::net::Ipv6Addr;

/// A defect of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fewer bytes than a header.
    Tiny,
    /// Not version 6.
    Version,
    /// The payload is longer than the packet.
    Length,
    /// The source is not a valid address.
    Source,
}

/// The lengths in a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidHeader {
    /// The length of the header, with extension headers if the check includes these.
    pub header_len: usize,
    /// The length of the packet without padding of the link.
    pub total_len: usize,
}

/// The configuration of a check.
#[derive(Clone, Debug)]
pub struct HeaderCheck {
    bad_sources: Box<[Ipv6Addr]>,
    extensions: bool,
}

impl HeaderCheck {
    /// A check that refuses these sources and all multicast sources, and that skips extension
    /// headers to find the transport header if `extensions`.
    pub fn new(bad_sources: &[Ipv6Addr], extensions: bool) -> Self {
        HeaderCheck { bad_sources: bad_sources.into(), extensions }
    }

    /// Checks the header at the start of `bytes`.
    #[inline]
    pub fn check(&self, bytes: &[u8]) -> Result<ValidHeader, Fault> {
        let (header, rest) = Ipv6Header::from_prefix(bytes).ok_or(Fault::Tiny)?;
        if header.version() != 6 {
            return Err(Fault::Version);
        }
        // A length of zero is that of a jumbogram (RFC 2675), or of an empty payload.
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
        Ok(ValidHeader { header_len, total_len: Ipv6Header::LEN + payload.len() })
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
    fn valid_headers_have_their_lengths() {
        for (extensions, header_len) in [(false, 40), (true, 48)] {
            let checked = HeaderCheck::new(&[BAD], extensions).check(&packet(|_| ()));
            assert_eq!(checked, Ok(ValidHeader { header_len, total_len: 52 }));
        }
    }

    #[test]
    fn every_fault_is_detected() {
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
