//! The link types of captures, by Click's names.

use super::{ip_mark, link_header};
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
    ("NULL", link_type::NULL),
    ("IP", link_type::RAW),
    ("ETHER", link_type::ETHERNET),
    ("FDDI", link_type::FDDI),
    ("ATM", link_type::ATM_RFC1483),
    ("RFC1483", link_type::ATM_RFC1483),
    ("ATM_RFC1483", link_type::ATM_RFC1483),
    ("802_11", link_type::IEEE802_11),
    ("802.11", link_type::IEEE802_11),
    ("802_11_RADIO", link_type::RADIOTAP),
    ("802.11_RADIO", link_type::RADIOTAP),
    ("SLL", link_type::LINUX_SLL),
    ("AIRONET", link_type::AIRONET),
    ("HDLC", link_type::C_HDLC),
    ("PPP_HDLC", link_type::PPP_HDLC),
    ("PPP", link_type::PPP),
    ("SUNATM", link_type::SUNATM),
    ("PRISM", link_type::PRISM),
    ("IP", link_type::IPV4),
    ("IP", link_type::IPV6),
    // Names that Click does not have.
    ("RADIOTAP", link_type::RADIOTAP),
    ("ETHERNET", link_type::ETHERNET),
];

impl std::fmt::Display for Encap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None if link_type::RAW_OLD.contains(&self.0) => f.write_str("IP"),
            None => write!(f, "#{}", self.0),
        }
    }
}

impl FromArg for Encap {
    const SYNTAX: &'static str = "a link type such as IP, ETHER, FDDI or #105";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let known = NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        let number = || text.strip_prefix('#').unwrap_or(text).parse().ok();
        known.or_else(number).map(Encap).ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("bad encapsulation type")
        })
    }
}

/// Marks a packet's link header and its IP header; whether it is an IP packet.
pub(super) fn mark(packet: &mut Packet, encap: u32) -> bool {
    if encap == link_type::ETHERNET {
        packet.set_mac_header(0);
    }
    ip_offset(packet.bytes(), encap).is_some_and(|offset| ip_mark::mark_at(packet, offset))
}

/// The offset of the IP header of a packet, if it has one: for all link types in which Click finds it.
pub(super) fn ip_offset(bytes: &[u8], encap: u32) -> Option<usize> {
    ip_finder(encap)?(bytes)
}

/// Whether the IP header of packets of a link type can be found.
pub(super) fn finds_ip(encap: u32) -> bool {
    ip_finder(encap).is_some()
}

/// Finds the offset of the IP header in a packet.
type IpFinder = fn(&[u8]) -> Option<usize>;

/// The function that finds the IP header of packets of a link type.
fn ip_finder(encap: u32) -> Option<IpFinder> {
    Some(match encap {
        link_type::ETHERNET => offload::ip_offset,
        link_type::LINUX_SLL => |bytes| link_header::after_ether_type(bytes, 14),
        link_type::FDDI => |bytes| link_header::after_fddi(bytes, 0),
        link_type::ATM_RFC1483 => |bytes| link_header::after_llc(bytes, 0),
        link_type::SUNATM => |bytes| link_header::after_llc(bytes, 4),
        link_type::C_HDLC => |bytes| link_header::after_ether_type(bytes, 2),
        link_type::PPP_HDLC => link_header::after_ppp_hdlc,
        link_type::PPP => link_header::after_ppp,
        link_type::IEEE802_11 => |bytes| link_header::after_wifi(bytes, 0),
        link_type::PRISM => |bytes| link_header::after_wifi(bytes, link_header::PRISM_LEN),
        link_type::RADIOTAP => link_header::after_radiotap,
        link_type::NULL => link_header::after_null,
        link if is_raw(link) => |_| Some(0),
        _ => return None,
    })
}

/// Whether packets of a link type begin with their IP header.
pub(super) fn is_raw(encap: u32) -> bool {
    matches!(encap, link_type::RAW | link_type::IPV4 | link_type::IPV6)
        || link_type::RAW_OLD.contains(&encap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_types_have_the_names_of_click() {
        let encap = |text: &str| Encap::from_arg(text, &Names::default()).ok();
        for (text, number, name) in [
            ("AIRONET", 120, "AIRONET"),
            ("PRISM", 119, "PRISM"),
            ("802.11_RADIO", 127, "802_11_RADIO"),
            ("RFC1483", 100, "ATM"),
            ("#777", 777, "#777"),
            ("#1", 1, "ETHER"),
            ("99", 99, "#99"),
        ] {
            assert_eq!(encap(text), Some(Encap(number)), "{text}");
            assert_eq!(Encap(number).to_string(), name);
        }
        assert_eq!((encap("#"), encap("#x"), encap("ether")), (None, None, None));
    }
}
