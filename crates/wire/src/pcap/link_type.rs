//! Link types: the first header of captured packets (tcpdump.org/linktypes).

/// BSD loopback: address family in host byte order.
pub const NULL: u32 = 0;
/// Ethernet.
pub const ETHERNET: u32 = 1;
/// Token Ring (IEEE 802.5).
pub const TOKEN_RING: u32 = 6;
/// SLIP.
pub const SLIP: u32 = 8;
/// PPP.
pub const PPP: u32 = 9;
/// FDDI.
pub const FDDI: u32 = 10;
/// PPP in HDLC framing, or Cisco HDLC.
pub const PPP_HDLC: u32 = 50;
/// LLC over ATM (RFC 2684).
pub const ATM_RFC1483: u32 = 100;
/// IPv4 or IPv6, by the version field.
pub const RAW: u32 = 101;
/// Cisco HDLC.
pub const C_HDLC: u32 = 104;
/// IEEE 802.11.
pub const IEEE802_11: u32 = 105;
/// OpenBSD loopback: address family in network byte order.
pub const LOOP: u32 = 108;
/// Linux "cooked" capture.
pub const LINUX_SLL: u32 = 113;
/// IEEE 802.11 after a Prism header.
pub const PRISM: u32 = 119;
/// IEEE 802.11 after an Aironet header.
pub const AIRONET: u32 = 120;
/// ATM of SunATM, with a header of its own before LLC.
pub const SUNATM: u32 = 123;
/// IEEE 802.11 after a radiotap header.
pub const RADIOTAP: u32 = 127;
/// IPv4.
pub const IPV4: u32 = 228;
/// IPv6.
pub const IPV6: u32 = 229;
/// Linux "cooked" capture, version 2.
pub const LINUX_SLL2: u32 = 276;

/// Raw IP in old files, which have the numbers of the operating system (BSD, Linux).
pub const RAW_OLD: [u32; 2] = [12, 14];

/// Name of a link type, as tcpdump prints it.
pub fn name(link_type: u32) -> Option<&'static str> {
    Some(match link_type {
        NULL => "NULL",
        ETHERNET => "EN10MB",
        TOKEN_RING => "IEEE802",
        SLIP => "SLIP",
        PPP => "PPP",
        FDDI => "FDDI",
        PPP_HDLC => "PPP_SERIAL",
        ATM_RFC1483 => "ATM_RFC1483",
        RAW => "RAW",
        C_HDLC => "C_HDLC",
        IEEE802_11 => "IEEE802_11",
        LOOP => "LOOP",
        LINUX_SLL => "LINUX_SLL",
        PRISM => "PRISM_HEADER",
        RADIOTAP => "IEEE802_11_RADIO",
        IPV4 => "IPV4",
        IPV6 => "IPV6",
        LINUX_SLL2 => "LINUX_SLL2",
        _ => return None,
    })
}
