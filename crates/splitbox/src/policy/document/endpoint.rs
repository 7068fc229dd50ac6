//! Addresses, prefixes, and addresses with ports.

use super::Protocol;
use crate::bits::Ternary;
use crate::header::{HeaderField, HeaderFields};
use crate::policy::PolicyError;
use crate::policy::stage::{family, fields, transport};
use castanet_kit::address::Address;
use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use toml::Spanned;

/// A prefix, or an address with a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Endpoint {
    pub(super) is_ip6: bool,
    /// The address in the lowest bits.
    pub(super) address: u128,
    /// Length of the prefix.
    pub(super) length: usize,
    pub(super) port: Option<u16>,
}

/// The side of a packet that has an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Source,
    Destination,
}

impl Side {
    /// The fields of the address and the port.
    fn fields(self, is_ip6: bool) -> (HeaderField, HeaderField) {
        let HeaderFields { src, dst, sport, dport, .. } = *fields(is_ip6);
        match self {
            Side::Source => (src, sport),
            Side::Destination => (dst, dport),
        }
    }
}

impl Endpoint {
    /// Reads a prefix (`10.0.0.0/24`), an address, or an address with a port (`10.0.0.1:80`,
    /// `[2001:db8::1]:80`).
    pub(super) fn parse(text: &Spanned<String>) -> Result<Endpoint, PolicyError> {
        let word = text.get_ref().trim();
        let error = |message: String| PolicyError::new(text.span(), message);
        if let Ok(it) = word.parse::<SocketAddr>() {
            return Ok(Endpoint { port: Some(it.port()), ..Endpoint::of(it.ip()) });
        }
        if let Ok(it) = word.parse::<IpAddr>() {
            return Ok(Endpoint::of(it));
        }
        let four = u32::parse_prefix(word)
            .map(|(it, length)| (false, u128::from(it), u128::from(it.prefix(length)), length));
        let six =
            || u128::parse_prefix(word).map(|(it, length)| (true, it, it.prefix(length), length));
        let Some((is_ip6, address, prefix, length)) = four.or_else(six) else {
            return Err(error(format!("`{word}` is no address"))
                .help("such as 10.0.0.0/24, 10.0.0.1:80, 2001:db8::/64 or [2001:db8::1]:80"));
        };
        let right = Endpoint { is_ip6, address: prefix, length: length as usize, port: None };
        if address != prefix {
            return Err(error(format!("`{word}` has bits behind its prefix"))
                .help(format!("the prefix is {right}")));
        }
        Ok(right)
    }

    fn of(address: IpAddr) -> Endpoint {
        let (is_ip6, address, length) = match address {
            IpAddr::V4(it) => (false, it.to_bits().into(), 32),
            IpAddr::V6(it) => (true, it.to_bits(), 128),
        };
        Endpoint { is_ip6, address, length, port: None }
    }

    /// Whether an address is of both prefixes.
    pub(super) fn overlaps(&self, other: &Endpoint) -> bool {
        let bits = fields(self.is_ip6).src.width;
        let first = bits - self.length.min(other.length);
        let high = |it: &Endpoint| it.address.checked_shr(first as u32).unwrap_or(0);
        self.is_ip6 == other.is_ip6 && high(self) == high(other)
    }

    /// The endpoint on a side of header strings.
    fn set(&self, side: Side, string: Ternary) -> Ternary {
        let (address, port) = side.fields(self.is_ip6);
        let first = self.address.checked_shr((address.width - self.length) as u32).unwrap_or(0);
        let string = string.with(address.at, self.length, first);
        self.port.map_or(string, |it| string.with(port.at, port.width, it.into()))
    }

    /// The match of packets with this endpoint on a side.
    pub(super) fn condition(&self, side: Side, protocol: Option<Protocol>) -> Ternary {
        let packets = match protocol {
            Some(protocol) => transport(self.is_ip6, protocol.number()),
            None => family(self.is_ip6),
        };
        self.set(side, packets)
    }

    /// The action that puts this endpoint on a side.
    pub(super) fn action(&self, side: Side) -> Ternary {
        self.set(side, Ternary::ANY)
    }
}

impl Display for Endpoint {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        let address: IpAddr = match self.is_ip6 {
            false => Ipv4Addr::from_bits(self.address as u32).into(),
            true => Ipv6Addr::from_bits(self.address).into(),
        };
        match self.port {
            Some(port) => write!(f, "{}", SocketAddr::new(address, port)),
            None if self.length == fields(self.is_ip6).src.width => write!(f, "{address}"),
            None => write!(f, "{address}/{}", self.length),
        }
    }
}
