//! `SetUDPChecksum`: computes the UDP checksum.

use crate::ip::transport::datagram;
use castanet_element::prelude::*;

/// Computes and sets the checksum of UDP packets.
///
/// ```click
/// in -> s :: SetUDPChecksum -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" nocheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" ulen 99
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// = s.drops 1
/// = s.drops.malformed 1
/// = s.drops.not_udp 1
/// ```
///
/// ```click
/// in -> s :: SetUDPChecksum -> out;  s[1] -> wrong
/// > in    1.0.0.1:1 > 2.0.0.2:2 udp "data" ulen 7
/// < wrong 1.0.0.1:1 > 2.0.0.2:2 udp "data" ulen 7
/// = s.drops 1
/// ```
#[derive(Element)]
#[element(room = "udp", headers = Pass)]
pub struct SetUDPChecksum;

#[derive(Fate)]
pub enum SetUDPChecksumExit {
    /// Packets with a valid checksum.
    Right,
    /// Fragments, and packets with an invalid length.
    #[optional]
    Malformed,
}

/// Counter of one worker.
#[derive(Default, Local)]
pub struct SetUDPChecksumState {
    /// Number of fragments, and of packets with an invalid length.
    #[read]
    #[portable]
    drops: u64,
}

impl PerPacket for SetUDPChecksum {
    type On = on::Udp;
    type Local = SetUDPChecksumState;
    type Fate = SetUDPChecksumExit;

    #[inline]
    fn packet(&self, state: &mut SetUDPChecksumState, mut udp: UdpPacket) -> SetUDPChecksumExit {
        let Some((header, pseudo, bytes)) = datagram(udp.packet()) else {
            state.drops += 1;
            return SetUDPChecksumExit::Malformed;
        };
        let checksum = header.checksum_of(pseudo, bytes);
        udp.set_checksum(checksum);
        SetUDPChecksumExit::Right
    }
}
