//! The packets that peers send, as a capture and as one frame.

use crate::bench::traffic::{FRAME, Frames, frames};
use castanet_wire::{Ethernet, Ipv4Header, MacAddr, Udp, ether_type, ip_proto};
use std::net::Ipv4Addr;
use std::path::Path;
use zerocopy::IntoBytes;

/// Writes the traffic of `castanet bench router` as a capture.
pub(super) fn write_capture(path: &Path) -> Result<(), String> {
    std::fs::write(path, capture(&frames()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A classic capture file of Ethernet frames.
fn capture(frames: &Frames) -> Vec<u8> {
    const ETHERNET: u32 = 1;
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, ETHERNET] {
        file.extend(u32::to_le_bytes(word));
    }
    for frame in frames.iter() {
        let len = frame.len() as u32;
        // No time, whole, so long.
        for word in [0, 0, len, len] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(frame);
    }
    file
}

/// A frame of UDP from 10.1.255.255 to 20.1.0.0: with any 16 bits in the one's
/// address and their complement in the other's, its checksum stays right.
pub(super) fn frame(to: MacAddr, from: MacAddr) -> [u8; FRAME] {
    let (src, dst) = (Ipv4Addr::new(10, 1, 255, 255), Ipv4Addr::new(20, 1, 0, 0));
    let ether = Ethernet::new(to, from, ether_type::IPV4);
    let length = FRAME - size_of::<Ethernet>();
    let mut ip = Ipv4Header::new(ip_proto::UDP, src, dst, length as u16);
    ip.update_checksum(&[]);
    let mut frame = [0; FRAME];
    let (head, rest) = frame.split_at_mut(size_of::<Ethernet>());
    head.copy_from_slice(ether.as_bytes());
    let (head, rest) = rest.split_at_mut(size_of::<Ipv4Header>());
    head.copy_from_slice(ip.as_bytes());
    rest[..size_of::<Udp>()].copy_from_slice(&[0, 53, 0, 53, 0, 30, 0, 0]);
    frame
}
