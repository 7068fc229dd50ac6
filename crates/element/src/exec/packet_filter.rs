//! Filters: which packets a trace or a capture is about.

use super::image::first_layer;
use castanet_kit::classify::{Pattern, Program, Rule, RuleError};
use castanet_packet::Packet;
use castanet_wire::sketch::Layer;
use castanet_wire::{Ipv4Header, ether_type, headers};

/// VLAN tags behind which an IP header is looked for.
const MAX_TAGS: usize = 4;

/// Decides by a packet's bytes whether a trace or a capture is about it. Workers call it in the
/// middle of a path.
pub trait PacketFilter: Send + Sync {
    /// Whether it is about this packet.
    fn matches(&self, packet: &Packet) -> bool;
}

/// All packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyPacket;

impl PacketFilter for AnyPacket {
    fn matches(&self, _packet: &Packet) -> bool {
        true
    }
}

/// IPv4 packets that match a pattern of `IPFilter`, with or without an Ethernet header and VLAN
/// tags before them.
#[derive(Clone, Debug)]
pub struct IpPatternFilter(Program);

impl IpPatternFilter {
    /// Parses a pattern such as `src host 10.0.0.1 && tcp`.
    ///
    /// # Errors
    /// It is no pattern.
    pub fn new(pattern: &str) -> Result<IpPatternFilter, RuleError> {
        let pattern = Pattern::ip(pattern)?;
        Ok(IpPatternFilter(Program::tests_only(&[Rule::new(pattern, Some(0))])))
    }
}

impl PacketFilter for IpPatternFilter {
    fn matches(&self, packet: &Packet) -> bool {
        let bytes = packet.bytes();
        let Some(network) = ipv4_offset(packet) else { return false };
        let (link, network) = bytes.split_at(network);
        let is_ipv4 = Ipv4Header::from_prefix(network).is_some_and(|(ip, _)| ip.version() == 4);
        is_ipv4 && self.0.output_of_frame(link, network) != Program::NONE
    }
}

/// Offset of the IPv4 header in a packet's bytes.
fn ipv4_offset(packet: &Packet) -> Option<usize> {
    if let Some(at) = packet.network_offset().and_then(|at| usize::try_from(at).ok()) {
        return (at <= packet.len()).then_some(at);
    }
    match first_layer(packet) {
        Layer::Network => Some(0),
        _ => {
            let (kind, at) = headers::frame_payload(packet.bytes(), MAX_TAGS)?;
            (kind == ether_type::IPV4 && at <= packet.len()).then_some(at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::sketch;

    fn packet(text: &str) -> Packet {
        Packet::from_bytes(&sketch::build(text).expect("is a packet").bytes)
    }

    #[test]
    fn patterns_are_about_ipv4_behind_any_link_header() {
        let filter = IpPatternFilter::new("src host 1.0.0.1 && udp dst port 53").expect("is one");
        let eth = "eth 00:00:00:00:00:01 > 00:00:00:00:00:02";
        let ip = "1.0.0.1:5 > 2.0.0.2:53 udp";
        for text in [ip.to_owned(), format!("{eth} {ip}"), format!("{eth} vlan 5 {ip}")] {
            assert!(filter.matches(&packet(&text)), "{text}");
        }
        let others = [
            "1.0.0.1:5 > 2.0.0.2:54 udp".to_owned(),
            "1.0.0.1:5 > 2.0.0.2:53 tcp".to_owned(),
            "[1::1]:5 > [2::2]:53 udp".to_owned(),
            format!("{eth} [1::1]:5 > [2::2]:53 udp"),
            format!("{eth} arp who-has 1.0.0.1 tell 2.0.0.2 00:00:00:00:00:02"),
        ];
        for text in others {
            assert!(!filter.matches(&packet(&text)), "{text}");
            assert!(AnyPacket.matches(&packet(&text)));
        }
        let mut marked = packet(&format!("{eth} {ip}"));
        marked.set_network_header(14, 20);
        assert!(filter.matches(&marked));
        marked.pull_front(14);
        assert!(filter.matches(&marked));
        // Cut, empty and strange packets match nothing and do no harm.
        let whole = packet(&format!("{eth} vlan 5 {ip}"));
        for len in 0..whole.len() {
            let cut = Packet::from_bytes(&whole.bytes()[..len]);
            assert!(!filter.matches(&cut) || len >= 18 + 20 + 4, "{len}");
        }
        assert!(IpPatternFilter::new("src hots 1.0.0.1").is_err());
    }
}
