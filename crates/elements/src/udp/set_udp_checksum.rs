//! `SetUDPChecksum`: the UDP checksum, afresh.

use crate::transport::segment;
use castanet_engine::prelude::*;
use castanet_engine::wire::Udp;

/// Computes the checksum of UDP packets afresh.
///
/// ```click
/// in -> s :: SetUDPChecksum -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" nocheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" ulen 99
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// = s.drops.malformed 1
/// = s.drops.not_udp 1
/// ```
#[derive(Element)]
pub struct SetUDPChecksum;

#[derive(Fate)]
pub enum Outcome {
    /// Packets with a right checksum.
    Right,
    /// Fragments, and packets with a wrong length.
    #[drop]
    Malformed,
}

/// The packet's header with a right checksum, if all it covers is there.
fn checked(packet: &Packet) -> Option<Udp> {
    let (_, bytes) = segment(packet)?;
    let mut udp = *Udp::from_prefix(bytes)?.0;
    let len = usize::from(udp.length());
    let payload = bytes.get(Udp::LEN..len)?;
    udp.update_checksum(packet.ipv4_header()?.pseudo(len), payload);
    Some(udp)
}

impl PerPacket for SetUDPChecksum {
    type On = on::Udp;
    type Local = ();
    type Fate = Outcome;

    #[inline]
    fn packet(&self, _: &mut (), mut udp: UdpPacket) -> Outcome {
        let Some(header) = checked(udp.packet()) else { return Outcome::Malformed };
        *udp = header;
        Outcome::Right
    }
}
