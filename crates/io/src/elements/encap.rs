//! Click's names for what packets of a capture begin with.

use super::ip_mark;
use castanet_element::prelude::*;
use castanet_wire::pcap::link_type;

/// What packets of a capture begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Encap(pub(super) u32);

impl Encap {
    /// Ethernet, which everybody means who says nothing.
    pub(super) const ETHER: Encap = Encap(link_type::ETHERNET);
}

/// Click's names, first the one that it prints.
const NAMES: &[(&str, u32)] = &[
    ("IP", link_type::RAW),
    ("ETHER", link_type::ETHERNET),
    ("FDDI", link_type::FDDI),
    ("ATM_RFC1483", link_type::ATM_RFC1483),
    ("802_11", link_type::IEEE802_11),
    ("SLL", link_type::LINUX_SLL),
    ("AIRONET", link_type::PRISM),
    ("HDLC", link_type::C_HDLC),
    ("PPP_HDLC", link_type::PPP_HDLC),
    ("PPP", link_type::PPP),
    ("NULL", link_type::NULL),
    ("RADIOTAP", link_type::RADIOTAP),
    ("IP", link_type::IPV4),
    ("IP", link_type::IPV6),
    ("ETHERNET", link_type::ETHERNET),
];

impl std::fmt::Display for Encap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None if link_type::RAW_OLD.contains(&self.0) => f.write_str("IP"),
            None => write!(f, "##{}", self.0),
        }
    }
}

impl FromArg for Encap {
    const SYNTAX: &'static str = "IP, ETHER, FDDI or another link type";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let known = NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        known.or_else(|| text.parse().ok()).map(Encap).ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("bad encapsulation type")
        })
    }
}

/// Bytes of a "cooked" header before the packet, its EtherType the last two.
const SLL: usize = 16;

/// Marks the link header and, if the packet is IP, the IP header.
pub(super) fn mark(packet: &mut Packet, encap: u32) -> bool {
    match encap {
        link_type::ETHERNET => {
            packet.set_mac_header(0);
            ip_mark::mark_in_ethernet(packet)
        }
        link_type::LINUX_SLL => ip_mark::mark_at(packet, SLL),
        link_type::RAW | link_type::IPV4 | link_type::IPV6 => ip_mark::mark_at(packet, 0),
        old if link_type::RAW_OLD.contains(&old) => ip_mark::mark_at(packet, 0),
        _ => false,
    }
}
