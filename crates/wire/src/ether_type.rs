//! EtherType numbers (IEEE 802 numbers, IANA).

/// IPv4.
pub const IPV4: u16 = 0x0800;
/// ARP.
pub const ARP: u16 = 0x0806;
/// IEEE 802.1Q customer tag.
pub const VLAN: u16 = 0x8100;
/// Reverse ARP.
pub const RARP: u16 = 0x8035;
/// IPv6.
pub const IPV6: u16 = 0x86dd;
/// Ethernet frames in tunnels (transparent Ethernet bridging).
pub const TRANSPARENT_ETHERNET: u16 = 0x6558;
/// Ethernet flow control (pause frames).
pub const MAC_CONTROL: u16 = 0x8808;
/// MPLS unicast.
pub const MPLS: u16 = 0x8847;
/// MPLS multicast.
pub const MPLS_MULTICAST: u16 = 0x8848;
/// PPPoE discovery.
pub const PPPOE_DISCOVERY: u16 = 0x8863;
/// PPPoE session.
pub const PPPOE_SESSION: u16 = 0x8864;
/// IEEE 802.1ad service tag.
pub const QINQ: u16 = 0x88a8;
/// Link-layer discovery.
pub const LLDP: u16 = 0x88cc;
/// Smallest EtherType; smaller numbers are lengths (IEEE 802.3).
pub const MIN: u16 = 0x0600;
