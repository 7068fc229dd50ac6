//! ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861). The header type is [`Icmp`].

use crate::checksum::Sum;
use crate::{Icmp, MacAddr};
use std::net::Ipv6Addr;

/// Destination unreachable.
pub const UNREACHABLE: u8 = 1;
/// Packet too big for the next link.
pub const TOO_BIG: u8 = 2;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 3;
/// Parameter problem.
pub const PARAMETER_PROBLEM: u8 = 4;
/// Echo request.
pub const ECHO: u8 = 128;
/// Echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Router solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// Router advertisement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Neighbour solicitation.
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// Neighbour advertisement.
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// Redirect.
pub const REDIRECT: u8 = 137;

/// Whether messages of this type are errors, which quote a packet.
#[inline]
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// Whether messages of this type have an identifier and a sequence number.
#[inline]
pub const fn is_query(kind: u8) -> bool {
    matches!(kind, ECHO | ECHO_REPLY)
}

/// Whether messages of this type are replies to a query.
#[inline]
pub const fn is_reply(kind: u8) -> bool {
    kind == ECHO_REPLY
}

impl Icmp {
    /// Whether the checksum over pseudo header, header and `payload` is correct.
    #[inline]
    pub fn checksum_ok_v6(&self, pseudo: Sum, payload: &[u8]) -> bool {
        pseudo.slice(&self.0).slice(payload).checksum() == 0
    }

    /// Computes the checksum over pseudo header, header and `payload` in full.
    #[inline]
    pub fn update_checksum_v6(&mut self, pseudo: Sum, payload: &[u8]) {
        self.set_checksum(0);
        let sum = pseudo.slice(&self.0).slice(payload).checksum();
        self.set_checksum(sum);
    }
}

/// The hop limit of all neighbour discovery messages, which proves that no router forwarded them.
pub const ND_HOP_LIMIT: u8 = 255;

header! {
    /// A neighbour solicitation or advertisement, up to its options.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |     Type      |     Code      |           Checksum            |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |R|S|O|                     Reserved                            |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                                                               |
    /// +                       Target Address (16 bytes)               +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Neighbor [24] {
        /// [`NEIGHBOR_SOLICITATION`] or [`NEIGHBOR_ADVERTISEMENT`].
        kind, set_kind: u8 = KIND @ 0;
        /// Code, zero.
        code, set_code: u8 = CODE @ 1;
        /// Checksum over the whole message and the pseudo header.
        checksum, set_checksum: u16 = CHECKSUM @ 2;
        /// Flags of an advertisement: [`Neighbor::ROUTER`], [`Neighbor::SOLICITED`],
        /// [`Neighbor::OVERRIDE`].
        flags, set_flags: u8 = FLAGS @ 4;
        /// The IPv6 address to resolve, or whose link-layer address is advertised.
        target, set_target: Ipv6Addr = TARGET @ 8;
    }
}

impl Neighbor {
    /// The sender is a router.
    pub const ROUTER: u8 = 0x80;
    /// The advertisement answers a solicitation.
    pub const SOLICITED: u8 = 0x40;
    /// The advertisement overrides an existing cache entry.
    pub const OVERRIDE: u8 = 0x20;

    /// Makes a message without checksum.
    pub fn new(kind: u8, flags: u8, target: Ipv6Addr) -> Self {
        let mut message = Neighbor([0; 24]);
        message.set_kind(kind);
        message.set_flags(flags);
        message.set_target(target);
        message
    }

    /// Whether the checksum over pseudo header, message and `options` is correct.
    pub fn checksum_ok(&self, pseudo: Sum, options: &[u8]) -> bool {
        pseudo.slice(&self.0).slice(options).checksum() == 0
    }

    /// Computes the checksum over pseudo header, message and `options` in full.
    pub fn update_checksum(&mut self, pseudo: Sum, options: &[u8]) {
        self.set_checksum(0);
        let sum = pseudo.slice(&self.0).slice(options).checksum();
        self.set_checksum(sum);
    }
}

/// Option: source link-layer address.
pub const SOURCE_LINK_ADDRESS: u8 = 1;
/// Option: target link-layer address.
pub const TARGET_LINK_ADDRESS: u8 = 2;

header! {
    /// A link-layer address option with an Ethernet address (RFC 4861, 4.6.1).
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |     Type      |   Length = 1  |                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+    Link-Layer Address         +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    LinkAddress [8] {
        /// Option type: [`SOURCE_LINK_ADDRESS`] or [`TARGET_LINK_ADDRESS`].
        kind, set_kind: u8 = KIND @ 0;
        /// Length in units of 8 bytes.
        units, set_units: u8 = UNITS @ 1;
        /// The address.
        mac, set_mac: MacAddr = MAC @ 2;
    }
}

impl LinkAddress {
    /// Makes an option.
    pub fn new(kind: u8, mac: MacAddr) -> Self {
        let mut option = LinkAddress([0; 8]);
        option.set_kind(kind);
        option.set_units(1);
        option.set_mac(mac);
        option
    }
}

/// Option: redirected header, which quotes the packet.
const REDIRECTED_HEADER: u8 = 4;

header! {
    /// The redirected header option, without the quoted packet (RFC 4861, 4.6.3).
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |   Type = 4    |    Length     |           Reserved            |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                           Reserved                            |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    RedirectedHeader [8] {
        /// Option type, 4.
        kind, set_kind: u8 = KIND @ 0;
        /// Length in units of 8 bytes, including this header.
        units, set_units: u8 = UNITS @ 1;
    }
}

impl RedirectedHeader {
    /// Makes the header for `quoted` bytes of packet, a multiple of eight up to 2032.
    pub fn new(quoted: usize) -> Self {
        let mut header = RedirectedHeader([0; 8]);
        header.set_kind(REDIRECTED_HEADER);
        header.set_units((quoted / 8 + 1) as u8);
        header
    }
}

/// The Ethernet address in the first option of type `kind`. `Err` if the options
/// are malformed (RFC 4861, 7.1: receivers ignore such messages).
pub fn link_address(mut options: &[u8], kind: u8) -> Result<Option<MacAddr>, MalformedOptions> {
    let mut found = None;
    while !options.is_empty() {
        let (option, units) = match options {
            [option, units, ..] => (*option, usize::from(*units)),
            _ => return Err(MalformedOptions),
        };
        let rest = options.get(units * 8..).filter(|_| units > 0).ok_or(MalformedOptions)?;
        if let (true, 1, None, Some((address, _))) =
            (option == kind, units, found, LinkAddress::from_prefix(options))
        {
            found = Some(address.mac());
        }
        options = rest;
    }
    Ok(found)
}

/// Error: the options of a message are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedOptions;

/// The all-nodes multicast group of the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The solicited-node multicast group of `target` (RFC 4291, 2.7.1).
pub fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    const PREFIX: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from_bits(PREFIX | target.to_bits() & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_offsets_of_the_diagrams() {
        let target: Ipv6Addr = "2001:db8::1234:5678".parse().expect("an address");
        assert_eq!(solicited_node(target).to_string(), "ff02::1:ff34:5678");
        let flags = Neighbor::ROUTER | Neighbor::SOLICITED;
        let mut message = Neighbor::new(NEIGHBOR_ADVERTISEMENT, flags, target);
        assert_eq!(message.0[..8], [136, 0, 0, 0, 0xc0, 0, 0, 0]);
        assert_eq!(message.0[8..], target.octets());
        let option = LinkAddress::new(TARGET_LINK_ADDRESS, MacAddr([2, 0, 0, 0, 0, 9]));
        assert_eq!(option.0, [2, 1, 2, 0, 0, 0, 0, 9]);
        let pseudo = crate::checksum::pseudo_v6(target, target, 58, 32);
        message.update_checksum(pseudo, &option.0);
        assert!(message.checksum_ok(pseudo, &option.0));
        assert!(!message.checksum_ok(pseudo, &[0; 8]));
    }

    #[test]
    fn link_addresses_are_found_in_well_formed_options() {
        let mac = MacAddr([2, 0, 0, 0, 0, 9]);
        let [source, target] =
            [SOURCE_LINK_ADDRESS, TARGET_LINK_ADDRESS].map(|kind| LinkAddress::new(kind, mac).0);
        let both = [source, target].concat();
        assert_eq!(link_address(&both, TARGET_LINK_ADDRESS), Ok(Some(mac)));
        assert_eq!(link_address(&source, TARGET_LINK_ADDRESS), Ok(None));
        assert_eq!(link_address(&[], TARGET_LINK_ADDRESS), Ok(None));
        for bad in [&both[..15], &both[..9], &[2, 0, 2, 0, 0, 0, 0, 9]] {
            assert_eq!(link_address(bad, TARGET_LINK_ADDRESS), Err(MalformedOptions), "{bad:?}");
        }
    }
}
