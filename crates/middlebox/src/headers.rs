//! Headers of a packet: where rules look for them.

use castanet_packet::Packet;
use castanet_wire::headers::frame_payload;
use castanet_wire::{Ethernet, ether_type};

pub use castanet_wire::headers::Headers;

/// Maximum number of VLAN tags before an IP header. Linux strips any number of tags of VLAN 0.
const MOST_TAGS: usize = 8;

/// Locates the headers of a packet: at the network header if it is marked, else behind the
/// Ethernet header. `None` without a complete IP header.
#[inline]
pub fn find(packet: &Packet) -> Option<Headers> {
    let bytes = packet.bytes();
    match packet.network_offset() {
        Some(at) => Headers::of(bytes, usize::try_from(at).ok()?),
        None => {
            let (kind, at) = frame_payload(bytes, MOST_TAGS)?;
            let version = |is_ip6| if is_ip6 { ether_type::IPV6 } else { ether_type::IPV4 };
            Headers::of(bytes, at).filter(|headers| kind == version(headers.is_ip6))
        }
    }
}

/// The bytes before the network header: the Ethernet header and VLAN tags, in the packet or stripped from it.
#[inline]
pub(crate) fn link<'p>(packet: &'p Packet, headers: &Headers) -> &'p [u8] {
    let bytes = packet.bytes();
    if headers.network > 0 {
        return bytes.get(..headers.network).unwrap_or_default();
    }
    let frame = packet.mac_bytes();
    let stripped = frame.len().checked_sub(bytes.len());
    stripped.and_then(|stripped| frame.get(..stripped)).unwrap_or_default()
}

/// Fast path of [`find`] for whole UDP and TCP packets of IPv4 without IP options and VLAN tags;
/// `None` for all others.
#[inline(always)]
pub(crate) fn find_plain(packet: &Packet) -> Option<Headers> {
    let bytes = packet.bytes();
    let network = match packet.network_offset() {
        Some(at) => usize::try_from(at).ok()?,
        None => {
            let (ether, _) = Ethernet::from_prefix(bytes)?;
            (ether.ether_type() == ether_type::IPV4).then_some(Ethernet::LEN)?
        }
    };
    Headers::plain(bytes, network)
}

/// The kind of a packet in which [`find`] finds no headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NonIpKind {
    /// It should have an IP header: its EtherType says so, or a mark; or there are more VLAN tags
    /// than there may be.
    Malformed,
    /// ARP.
    Arp,
    /// Anything else.
    Other,
}

impl NonIpKind {
    pub(crate) fn of(packet: &Packet) -> NonIpKind {
        let kind = match packet.network_offset() {
            Some(0..) => return NonIpKind::Malformed,
            Some(_) => return NonIpKind::Other,
            None => frame_payload(packet.bytes(), MOST_TAGS).map(|(kind, _)| kind),
        };
        match kind {
            Some(ether_type::IPV4 | ether_type::IPV6) => NonIpKind::Malformed,
            Some(ether_type::VLAN | ether_type::QINQ) => NonIpKind::Malformed,
            Some(ether_type::ARP) => NonIpKind::Arp,
            _ => NonIpKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Layer;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    fn packet(bytes: &[u8], has_ethernet: bool) -> Packet {
        let mut packet = Packet::from_bytes(bytes);
        if !has_ethernet {
            packet.set_network_header(0, 0);
        }
        packet
    }

    proptest! {
        #[test]
        fn plain_headers_equal_found_headers(
            has_ethernet: bool,
            is_tcp: bool,
            changes in prop::collection::vec((0..60_usize, any::<u8>()), 0..4),
            length in 0..70_usize,
        ) {
            let upper = if is_tcp { "tcp syn tcpopt mss1460" } else { "udp" };
            let link = if has_ethernet { "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 " } else { "" };
            let built = sketch::build(&format!("{link}1.0.0.1:5 > 2.0.0.2:6 {upper} len 48"));
            let mut bytes = built.expect("is a packet").bytes;
            let whole = packet(&bytes, has_ethernet);
            prop_assert!(find_plain(&whole).is_some());
            prop_assert_eq!(find_plain(&whole), find(&whole));
            bytes.truncate(length);
            for (at, byte) in changes {
                bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
            }
            let changed = packet(&bytes, has_ethernet);
            if let Some(plain) = find_plain(&changed) {
                prop_assert_eq!(Some(plain), find(&changed));
            }
        }

        #[test]
        fn plain_headers_of_random_bytes_equal_found_headers(
            is_tcp: bool,
            total in 0..80_u16,
            offset: u8,
            mut bytes in prop::collection::vec(any::<u8>(), 20..80),
        ) {
            // Not quite any, for few of those have plain headers.
            bytes[..4].copy_from_slice(&[0x45, 0, 0, total as u8]);
            bytes[6..10].copy_from_slice(&[0, 0, 64, if is_tcp { 6 } else { 17 }]);
            bytes.get_mut(32).into_iter().for_each(|it| *it = offset);
            let packet = packet(&bytes, false);
            let (plain, found) = (find_plain(&packet), find(&packet));
            // All whole packets are plain here, and no others are.
            prop_assert_eq!(plain, found.filter(|it| total > 0 && it.upper != Layer::Any));
            prop_assert_eq!(plain.is_none(), total == 0 || found.is_none_or(|it| it.is_cut()));
        }
    }
}
