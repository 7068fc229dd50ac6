//! Datagrams as packets.

use crate::datagram::{LinkKey, TAG_BYTES};
use castanet_element::prelude::*;
use castanet_wire::splitbox::SplitBoxHeader;

/// Room in front of new datagrams, for Ethernet, IP and UDP headers.
const HEADROOM: usize = 64;

/// Bytes in front of a payload.
pub(super) const HEADER: usize = SplitBoxHeader::LEN;

/// Puts header and tag around the payload that a packet is, and seals it.
pub(super) fn seal(packet: &mut Packet, key: &LinkKey, counter: u64, part: u8) {
    packet.push_front(HEADER);
    packet.put_back(TAG_BYTES);
    clear_headers(packet);
    // There is room for header and tag, and no packet is too long for the cipher.
    _ = key.seal(counter, part, packet.bytes_mut());
}

/// A new datagram; `None` if there is no frame.
pub(super) fn sealed(
    payload: &[u8],
    key: &LinkKey,
    (counter, part): (u64, u8),
    cx: &mut Cx,
) -> Option<Packet> {
    let mut packet = cx.copy_in_after(HEADROOM + HEADER, payload)?;
    seal(&mut packet, key, counter, part);
    Some(packet)
}

/// Takes header and tag away from the payload of a packet that was opened.
pub(super) fn strip(packet: &mut Packet) {
    packet.take_back(TAG_BYTES);
    packet.pull_front(HEADER);
    clear_headers(packet);
}

/// Forgets where headers were.
pub(super) fn clear_headers(packet: &mut Packet) {
    packet.clear_mac_header();
    packet.clear_network_header();
    packet.clear_transport_header();
}
