//! The link types of captures, by Click's names.

use super::ip_mark;
use crate::offload;
use castanet_element::prelude::*;
use castanet_wire::pcap::link_type;

/// The link type of a capture: the header that its packets begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Encap(pub(super) u32);

impl Encap {
    /// Ethernet, the default.
    pub(super) const ETHER: Encap = Encap(link_type::ETHERNET);
}

/// Click's names. The first name of a number is the one to print.
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

/// Length of a Linux "cooked" header in bytes; its EtherType is the last two.
const SLL_LEN: usize = 16;

/// Marks a packet's link header and its IP header; whether it is an IP packet.
pub(super) fn mark(packet: &mut Packet, encap: u32) -> bool {
    if encap == link_type::ETHERNET {
        packet.set_mac_header(0);
    }
    ip_offset(packet.bytes(), encap).is_some_and(|offset| ip_mark::mark_at(packet, offset))
}

/// The offset of the IP header of a packet, if it has one.
pub(super) fn ip_offset(bytes: &[u8], encap: u32) -> Option<usize> {
    match encap {
        link_type::ETHERNET => offload::ip_offset(bytes),
        link_type::LINUX_SLL => Some(SLL_LEN),
        link if is_raw(link) => Some(0),
        _ => None,
    }
}

/// Whether packets of a link type begin with their IP header.
pub(super) fn is_raw(encap: u32) -> bool {
    matches!(encap, link_type::RAW | link_type::IPV4 | link_type::IPV6)
        || link_type::RAW_OLD.contains(&encap)
}
