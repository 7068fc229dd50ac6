//! The packets that peers send, as a capture.

use crate::traffic::{FLOWS, FRAME, Traffic, frames};
use std::path::Path;

/// Writes traffic of a kind as a capture.
pub(super) fn write_capture(path: &Path, traffic: Traffic) -> Result<(), String> {
    std::fs::write(path, capture(&frames(traffic, FLOWS)))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A classic capture file of Ethernet frames.
fn capture(frames: &[[u8; FRAME]]) -> Vec<u8> {
    const ETHERNET: u32 = 1;
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, ETHERNET] {
        file.extend(u32::to_le_bytes(word));
    }
    for frame in frames {
        let len = frame.len() as u32;
        // No time, whole, so long.
        for word in [0, 0, len, len] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(frame);
    }
    file
}
