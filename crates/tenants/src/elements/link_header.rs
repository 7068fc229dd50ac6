//! The link header of frames that reach a virtual device.

use castanet_element::packet::{Packet, PacketType};
use castanet_wire::{Ethernet, MacAddr};

/// Marks the header of an Ethernet frame, and sets the packet type annotation by its destination
/// address; all other marks and annotations are those of a frame from a device. A packet that is too short for a header
/// stays as it is.
#[inline]
pub(super) fn mark_ethernet(packet: &mut Packet) {
    let Some((header, _)) = Ethernet::from_prefix(packet.bytes()) else { return };
    // Apart: nearly all frames are for one station.
    let kind = if header.is_to_group() { group_type(header) } else { PacketType::Host };
    // Marks and annotations of outer headers are not for the tenant.
    packet.mark_received(kind);
}

#[cold]
fn group_type(header: &Ethernet) -> PacketType {
    match header.dst() {
        MacAddr::BROADCAST => PacketType::Broadcast,
        _ => PacketType::Multicast,
    }
}
