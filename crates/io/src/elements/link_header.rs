//! Headers of links other than Ethernet, before an IP header.
//!
//! Each function has the bytes of a packet from its beginning on, and returns the offset of the IP header behind the link's
//! header; `None` if the packet is too short or of another protocol.

use castanet_wire::ether_type;

/// Length in bytes of the header before IEEE 802.11 frames in captures of Prism cards.
pub(super) const PRISM_LEN: usize = 144;

/// Length of an FDDI header in bytes: frame control and two addresses.
const FDDI_LEN: usize = 13;
/// Mask and value of FDDI's frame control in asynchronous LLC frames.
const FDDI_LLC: (u8, u8) = (0xf0, 0x50);

/// Frames of one link in those of another that are looked into.
const MOST_NESTED: u32 = 4;

/// Protocols of PPP (RFC 1332, RFC 5072).
const PPP_IP: [u8; 2] = [0x21, 0x57];
/// Address and control of PPP in HDLC framing (RFC 1662).
const PPP_HDLC: [u8; 2] = [0xff, 0x03];

/// Address families of IP in BSD's loopback headers: IPv4, and IPv6 in the systems of this family.
const BSD_FAMILIES: [u16; 4] = [2, 24, 28, 30];

/// Behind an EtherType at `at`.
pub(super) fn after_ether_type(bytes: &[u8], at: usize) -> Option<usize> {
    let kind = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    matches!(kind, ether_type::IPV4 | ether_type::IPV6).then_some(at + 2)
}

/// The same where a VLAN tag may stand before it.
fn after_tag(bytes: &[u8], at: usize) -> Option<usize> {
    let is_tag = bytes.get(at..at + 2)? == ether_type::VLAN.to_be_bytes();
    after_ether_type(bytes, if is_tag { at + 4 } else { at })
}

/// Behind an FDDI header at `at`.
pub(super) fn after_fddi(bytes: &[u8], at: usize) -> Option<usize> {
    fddi(bytes, at, MOST_NESTED)
}

/// Behind an LLC header at `at`, with SNAP or without (RFC 1042, RFC 2684).
pub(super) fn after_llc(bytes: &[u8], at: usize) -> Option<usize> {
    llc(bytes, at, MOST_NESTED)
}

fn fddi(bytes: &[u8], at: usize, nested: u32) -> Option<usize> {
    let is_llc = bytes.get(at)? & FDDI_LLC.0 == FDDI_LLC.1;
    if is_llc { llc(bytes, at + FDDI_LEN, nested) } else { None }
}

fn llc(bytes: &[u8], at: usize, nested: u32) -> Option<usize> {
    let nested = nested.checked_sub(1)?;
    match *bytes.get(at..)? {
        [0x06, 0x06, _, _, ..] => Some(at + 4),
        // Ethernet's types, and Cisco's bridges.
        [0xaa, 0xaa, _, 0, 0, 0 | 0xf8, ..] => after_tag(bytes, at + 6),
        // Bridged frames (RFC 2684, 5.2).
        [0xaa, 0xaa, _, 0, 0x80, 0xc2, 0, 1 | 7, ..] => after_tag(bytes, at + 8 + 12),
        [0xaa, 0xaa, _, 0, 0x80, 0xc2, 0, 4 | 10, ..] => fddi(bytes, at + 8 + 1, nested),
        _ => None,
    }
}

/// Behind the header of an IEEE 802.11 data frame at `at`.
pub(super) fn after_wifi(bytes: &[u8], at: usize) -> Option<usize> {
    let [control, flags, ..] = *bytes.get(at..)?.first_chunk::<24>()?;
    let is_data = control & 0x0c == 0x08;
    // Between two access points there is a fourth address.
    let length = if flags & 3 == 3 { 30 } else { 24 };
    if is_data { after_llc(bytes, at + length) } else { None }
}

/// Behind a radiotap header and that of an IEEE 802.11 data frame.
pub(super) fn after_radiotap(bytes: &[u8]) -> Option<usize> {
    let [_, _, length @ ..] = *bytes.first_chunk::<4>()?;
    let length = usize::from(u16::from_le_bytes(length));
    if length >= 8 { after_wifi(bytes, length) } else { None }
}

/// Behind PPP, with address and control or without, its protocol of one byte or two (RFC 1661, 6.5 and 6.6).
pub(super) fn after_ppp(bytes: &[u8]) -> Option<usize> {
    let at = if bytes.starts_with(&PPP_HDLC) { 2 } else { 0 };
    match *bytes.get(at..)? {
        [first, _, ..] if PPP_IP.contains(&first) => Some(at + 1),
        [0, second, ..] if PPP_IP.contains(&second) => Some(at + 2),
        _ => None,
    }
}

/// Behind PPP in HDLC framing, or Cisco's HDLC.
pub(super) fn after_ppp_hdlc(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        [0xff, _, 0, protocol, ..] if PPP_IP.contains(&protocol) => Some(4),
        // Cisco's unicasts and broadcasts.
        [0x0f | 0x8f, ..] => after_ether_type(bytes, 2),
        _ => None,
    }
}

/// Behind BSD's loopback header: an address family, in either byte order.
pub(super) fn after_null(bytes: &[u8]) -> Option<usize> {
    let [a, b, c, d] = *bytes.first_chunk()?;
    let family = match u16::from_le_bytes([a, b]) {
        0 => u16::from_be_bytes([c, d]),
        family => family,
    };
    BSD_FAMILIES.contains(&family).then_some(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

    fn with(head: &[&[u8]]) -> Vec<u8> {
        [&head.concat()[..], &[0x45; 20]].concat()
    }

    #[test]
    fn ip_is_found_behind_each_header() {
        let (wifi, wide) = ([&[8, 0][..], &[0; 22]].concat(), [&[8, 3][..], &[0; 28]].concat());
        let fddi = [&[0x57][..], &[0; 12]].concat();
        let bridged: [u8; 8] = [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7];
        let ether = [&[0; 12][..], &[0x86, 0xdd]].concat();
        type After = fn(&[u8]) -> Option<usize>;
        let cases: [(After, Vec<u8>); 18] = [
            (|it| after_llc(it, 0), with(&[&SNAP])),
            (|it| after_llc(it, 0), with(&[&[6, 6, 3, 0]])),
            (|it| after_llc(it, 4), with(&[&[0; 4], &SNAP])),
            (|it| after_llc(it, 0), with(&[&[0xaa, 0xaa, 3, 0, 0, 0xf8, 0x81, 0, 0, 7, 8, 0]])),
            (|it| after_llc(it, 0), with(&[&bridged, &ether])),
            (|it| after_llc(it, 0), with(&[&bridged[..7], &[10, 0], &fddi, &SNAP])),
            (|it| after_fddi(it, 0), with(&[&fddi, &SNAP])),
            (|it| after_wifi(it, 0), with(&[&wifi, &SNAP])),
            (|it| after_wifi(it, 0), with(&[&wide, &SNAP])),
            (|it| after_wifi(it, PRISM_LEN), with(&[&[0; PRISM_LEN], &wifi, &SNAP])),
            (after_radiotap, with(&[&[0, 0, 9, 0, 0, 0, 0, 0, 0], &wifi, &SNAP])),
            (after_ppp, with(&[&[0xff, 3, 0, 0x21]])),
            (after_ppp, with(&[&[0x57]])),
            (after_ppp_hdlc, with(&[&[0xff, 3, 0, 0x57]])),
            (after_ppp_hdlc, with(&[&[0x8f, 0, 8, 0]])),
            (after_null, with(&[&[2, 0, 0, 0]])),
            (after_null, with(&[&[0, 0, 0, 30]])),
            (|it| after_ether_type(it, 2), with(&[&[0x0f, 0, 0x86, 0xdd]])),
        ];
        for (number, (after, bytes)) in cases.iter().enumerate() {
            assert_eq!(after(bytes), Some(bytes.len() - 20), "case {number}");
            // Cut anywhere in the header, it is none.
            for length in 0..bytes.len() - 20 {
                assert_eq!(after(&bytes[..length]), None, "case {number}, {length} bytes");
            }
        }
    }

    #[test]
    fn other_packets_have_none() {
        assert_eq!(after_llc(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 6, 0, 0], 0), None);
        assert_eq!(after_wifi(&[0; 60], 0), None);
        assert_eq!(after_radiotap(&[0; 60]), None);
        assert_eq!(after_ppp(&[0xff, 3, 0xc0, 0x21]), None);
        assert_eq!(after_null(&[7, 0, 0, 0]), None);
        // FDDI in LLC in FDDI, and so on: a few times, and more often.
        let one = [&[0x50; 13][..], &[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 4, 0]].concat();
        let nested = |times| [one.repeat(times), [0x50; 13].into(), SNAP.into()].concat();
        let most = MOST_NESTED as usize - 1;
        assert_eq!(after_fddi(&nested(most), 0), Some(nested(most).len()));
        assert_eq!(after_fddi(&nested(most + 1), 0), None);
    }
}
