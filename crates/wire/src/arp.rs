//! ARP for IPv4 over Ethernet (RFC 826).

use crate::{MacAddr, ether_type};
use std::net::Ipv4Addr;

/// Hardware type of Ethernet.
pub const HARDWARE_ETHERNET: u16 = 1;
/// Operation: ARP request.
pub const REQUEST: u16 = 1;
/// Operation: ARP reply.
pub const REPLY: u16 = 2;
/// Operation: RARP request (RFC 903).
pub const REVERSE_REQUEST: u16 = 3;
/// Operation: RARP reply (RFC 903).
pub const REVERSE_REPLY: u16 = 4;

header! {
    /// An ARP message for IPv4 over Ethernet.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |         Hardware Type         |         Protocol Type         |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// | Hardware Len. | Protocol Len. |           Operation           |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                    Sender Hardware Address                    |
    /// +                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                               |    Sender Protocol Address    |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |           (continued)         |                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
    /// |                    Target Hardware Address                    |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                    Target Protocol Address                    |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Arp [28] {
        /// Type of hardware addresses; 1 for Ethernet.
        hardware_type, set_hardware_type: u16 = HARDWARE_TYPE @ 0;
        /// Type of protocol addresses: an EtherType.
        protocol_type, set_protocol_type: u16 = PROTOCOL_TYPE @ 2;
        /// Length of a hardware address in bytes.
        hardware_len, set_hardware_len: u8 = HARDWARE_LEN @ 4;
        /// Length of a protocol address in bytes.
        protocol_len, set_protocol_len: u8 = PROTOCOL_LEN @ 5;
        /// Operation: [`REQUEST`], [`REPLY`] ...
        operation, set_operation: u16 = OPERATION @ 6;
        /// The sender's Ethernet address.
        sender_mac, set_sender_mac: MacAddr = SENDER_MAC @ 8;
        /// The sender's IPv4 address.
        sender_ip, set_sender_ip: Ipv4Addr = SENDER_IP @ 14;
        /// The target's Ethernet address; unknown in a request.
        target_mac, set_target_mac: MacAddr = TARGET_MAC @ 18;
        /// The target's IPv4 address: in a request, the address to resolve.
        target_ip, set_target_ip: Ipv4Addr = TARGET_IP @ 24;
    }
}

header! {
    /// The part of an ARP message before the addresses, which is the same for all kinds of them.
    #[derive(Debug)]
    ArpPrefix [8] {
        /// Type of hardware addresses; 1 for Ethernet.
        hardware_type, set_hardware_type: u16 = HARDWARE_TYPE @ 0;
        /// Type of protocol addresses: an EtherType.
        protocol_type, set_protocol_type: u16 = PROTOCOL_TYPE @ 2;
        /// Length of a hardware address in bytes.
        hardware_len, set_hardware_len: u8 = HARDWARE_LEN @ 4;
        /// Length of a protocol address in bytes.
        protocol_len, set_protocol_len: u8 = PROTOCOL_LEN @ 5;
    }
}

/// A wrong length in an ARP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthFault {
    /// There are fewer bytes than before the addresses.
    Tiny,
    /// There are fewer bytes than the lengths of the addresses say.
    Addresses,
    /// An Ethernet address has not 6 bytes.
    Hardware,
    /// An IPv4 address has not 4 bytes, or an IPv6 address not 16.
    Protocol,
}

impl LengthFault {
    /// All faults, in the order in which they are looked for.
    pub const ALL: [LengthFault; 4] =
        [LengthFault::Tiny, LengthFault::Addresses, LengthFault::Hardware, LengthFault::Protocol];

    /// Click's words for the fault.
    pub fn text(self) -> &'static str {
        match self {
            LengthFault::Tiny => "tiny packet",
            LengthFault::Addresses => "too small for addresses",
            LengthFault::Hardware => "bad hardware type/length",
            LengthFault::Protocol => "bad protocol type/length",
        }
    }
}

impl ArpPrefix {
    /// Length of the message at the start of `bytes` with its addresses, if the lengths in it are
    /// right.
    pub fn checked_len(bytes: &[u8]) -> Result<usize, LengthFault> {
        let (message, addresses) = ArpPrefix::from_prefix(bytes).ok_or(LengthFault::Tiny)?;
        let (hardware, protocol) = (message.hardware_len(), message.protocol_len());
        let len = 2 * (usize::from(hardware) + usize::from(protocol));
        if addresses.len() < len {
            return Err(LengthFault::Addresses);
        }
        if message.hardware_type() == HARDWARE_ETHERNET && hardware != 6 {
            return Err(LengthFault::Hardware);
        }
        match (message.protocol_type(), protocol) {
            (ether_type::IPV4, 4) | (ether_type::IPV6, 16) => Ok(ArpPrefix::LEN + len),
            (ether_type::IPV4 | ether_type::IPV6, _) => Err(LengthFault::Protocol),
            _ => Ok(ArpPrefix::LEN + len),
        }
    }
}

impl Arp {
    /// Makes a message for IPv4 over Ethernet.
    pub fn new(
        operation: u16,
        (sender_mac, sender_ip): (MacAddr, Ipv4Addr),
        (target_mac, target_ip): (MacAddr, Ipv4Addr),
    ) -> Self {
        let mut arp = Arp([0; 28]);
        arp.set_hardware_type(HARDWARE_ETHERNET);
        arp.set_protocol_type(ether_type::IPV4);
        arp.set_hardware_len(6);
        arp.set_protocol_len(4);
        arp.set_operation(operation);
        arp.set_sender_mac(sender_mac);
        arp.set_sender_ip(sender_ip);
        arp.set_target_mac(target_mac);
        arp.set_target_ip(target_ip);
        arp
    }

    /// Makes a request for the Ethernet address of `target_ip`.
    pub fn request(sender: (MacAddr, Ipv4Addr), target_ip: Ipv4Addr) -> Self {
        Arp::new(REQUEST, sender, (MacAddr::ZERO, target_ip))
    }

    /// Makes the reply to this request, which says that the target is at `mac`.
    pub fn reply(&self, mac: MacAddr) -> Self {
        Arp::new(REPLY, (mac, self.target_ip()), (self.sender_mac(), self.sender_ip()))
    }

    /// Whether the message is for IPv4 over Ethernet, as the address accessors assume.
    #[inline]
    pub fn is_ethernet_ipv4(&self) -> bool {
        self.hardware_type() == HARDWARE_ETHERNET
            && self.protocol_type() == ether_type::IPV4
            && self.hardware_len() == 6
            && self.protocol_len() == 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_and_reply_match_their_bytes() {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let request = Arp::request((a, [1, 0, 0, 1].into()), [1, 0, 0, 2].into());
        assert_eq!(
            request.bytes(),
            &[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2]
        );
        assert!(request.is_ethernet_ipv4());
        assert_eq!(
            request.reply(b).bytes(),
            &[0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 2, 1, 0, 0, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0, 1]
        );
        for at in 0..6 {
            let mut odd = request;
            odd.0[at] ^= 0x40;
            assert!(!odd.is_ethernet_ipv4(), "byte {at}");
        }
    }
}
