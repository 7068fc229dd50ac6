//! Translation between IPv6 and IPv4 packets (RFC 7915), for IPv4 addresses within `::/96` or
//! `::ffff:0:0/96`.

mod four;
mod icmp;
mod six;
#[cfg(test)]
mod tests;

pub use four::to_v4;
pub use six::to_v6;

use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a packet cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is cut short, or its headers are.
    Malformed,
    /// It is from or to an address that stands for no IPv4 address.
    Address,
    /// It is an ICMP message that the other protocol does not have.
    Message,
    /// It is a fragment of ICMP, or of UDP without a checksum: the other protocol wants one
    /// over the whole.
    Fragment,
    /// It would be longer than the other protocol allows.
    TooLong,
}

/// The IPv4 address that an IPv6 address stands for.
pub fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let compatible = || {
        let low = u32::try_from(address.to_bits()).ok()?;
        (low > 1).then(|| Ipv4Addr::from_bits(low))
    };
    address.to_ipv4_mapped().or_else(compatible)
}

/// The IPv6 address that stands for an IPv4 address.
pub fn expanded(address: Ipv4Addr) -> Ipv6Addr {
    address.to_ipv6_compatible()
}

/// Whether a packet stands for itself or is quoted by an error, perhaps cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outer,
    Quoted,
}
