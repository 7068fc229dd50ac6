//! Translation between IPv6 and IPv4 packets (SIIT, RFC 7915), for IPv4 addresses embedded in
//! `::/96` or `::ffff:0:0/96`.

mod icmp;
#[cfg(test)]
mod tests;
mod v4_to_v6;
mod v6_to_v4;

pub use v4_to_v6::to_v6;
pub use v6_to_v4::to_v4;

use std::net::{Ipv4Addr, Ipv6Addr};

/// The reason why a packet cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The packet or its headers are incomplete.
    Malformed,
    /// An address has no IPv4 address embedded.
    Address,
    /// The other protocol has no such ICMP message.
    Message,
    /// The packet is a fragment of ICMP, or of UDP without a checksum: the other protocol needs a
    /// checksum over the whole datagram.
    Fragment,
    /// The packet would be too long for the other protocol.
    TooLong,
}

/// The IPv4 address that is embedded in an IPv6 address.
pub fn extract_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let compatible = || {
        let low = u32::try_from(address.to_bits()).ok()?;
        (low > 1).then(|| Ipv4Addr::from_bits(low))
    };
    address.to_ipv4_mapped().or_else(compatible)
}

/// The IPv6 address that an IPv4 address is embedded in.
pub fn embed_v4(address: Ipv4Addr) -> Ipv6Addr {
    address.to_ipv6_compatible()
}

/// Whether a packet is translated itself or as a quotation in an error, which may be truncated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketRole {
    Outer,
    Quoted,
}
