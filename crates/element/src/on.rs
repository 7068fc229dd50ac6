//! Views: the kinds of packets that elements take.

use castanet_packet::{self as packet, Packet};

/// A kind of packet, and the way in which an element sees it.
pub trait View: 'static {
    /// Its name: `any`, `ether`, `arp`, `ip`, `ip6`, `udp`, `tcp` or `icmp`.
    const NAME: &'static str;
    /// The view that an element gets.
    type Of<'p>;
    /// The view of a packet; `None` if the packet is of another kind.
    fn of(packet: &mut Packet) -> Option<Self::Of<'_>>;
    /// Whether packets seen so are IPv4, and stay that whatever the element does.
    const KEEPS: bool = false;
    /// The view of a packet that is known to be IPv4; `None` where this view does not keep that.
    fn again<'p>(_: &'p mut packet::PinnedIpv4<'_>) -> Option<Self::Of<'p>> {
        None
    }
}

macro_rules! views {
    ($($name:ident $view:ident $word:literal $get:ident $doc:literal;)*) => {$(
        #[doc = $doc]
        pub struct $name;
        impl View for $name {
            const NAME: &'static str = $word;
            type Of<'p> = packet::$view<'p>;
            #[inline(always)]
            fn of(packet: &mut Packet) -> Option<packet::$view<'_>> {
                packet.$get()
            }
        }
    )*};
}

/// Any packet at all.
pub struct Any;

impl View for Any {
    const NAME: &'static str = "any";
    type Of<'p> = &'p mut Packet;
    #[inline(always)]
    fn of(packet: &mut Packet) -> Option<&mut Packet> {
        Some(packet)
    }
}

views! {
    Ether Ether "ether" ether "Packets whose data begins with an Ethernet header.";
    Arp ArpPacket "arp" arp "Ethernet frames that carry ARP for IPv4.";
    Ipv4 Ipv4 "ip" ipv4 "Packets with a marked IPv4 header.";
    Ipv6 Ipv6 "ip6" ipv6 "Packets with a marked IPv6 header.";
    Udp UdpPacket "udp" udp "IPv4 packets with a whole UDP header, first fragments only.";
    Tcp TcpPacket "tcp" tcp "IPv4 packets with a whole TCP header, first fragments only.";
    Icmp IcmpPacket "icmp" icmp "IPv4 packets with a whole ICMP header, first fragments only.";
}

/// Packets with a marked IPv4 header that they keep: elements in a row need not look for it anew.
pub struct PinnedIpv4;

impl View for PinnedIpv4 {
    const NAME: &'static str = Ipv4::NAME;
    type Of<'p> = packet::PinnedIpv4<'p>;
    #[inline(always)]
    fn of(packet: &mut Packet) -> Option<packet::PinnedIpv4<'_>> {
        packet.pinned_ipv4()
    }
    const KEEPS: bool = true;
    #[inline(always)]
    fn again<'p>(ip: &'p mut packet::PinnedIpv4<'_>) -> Option<packet::PinnedIpv4<'p>> {
        Some(ip.reborrow())
    }
}
