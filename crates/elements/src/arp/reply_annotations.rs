//! The annotations of replies that are made of requests, of ARP and of neighbour discovery.

use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// Resets the annotations of a reply, except the device and the VLAN of the request. Marks its
/// headers; `len` is the length of the network header.
pub(crate) fn reset_annotations(packet: &mut Packet, len: usize) {
    let vlan = packet.anno_u16(anno::VLAN_TCI);
    packet.clear_annotations();
    if vlan != 0 {
        packet.set_anno_u16(anno::VLAN_TCI, vlan);
    }
    if packet.timestamp() != 0 {
        packet.set_timestamp(0);
    }
    packet.set_packet_type(PacketType::Host);
    packet.set_mac_header(0);
    packet.set_network_header(Ethernet::LEN as isize, len);
}
