//! `SetUDPChecksum`: the UDP checksum, afresh.

use crate::ip::transport::datagram;
use castanet_engine::prelude::*;

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
#[element(room = "udp")]
pub struct SetUDPChecksum;

#[derive(Fate)]
pub enum Outcome {
    /// Packets with a right checksum.
    Right,
    /// Fragments, and packets with a wrong length.
    #[drop]
    Malformed,
}

impl PerPacket for SetUDPChecksum {
    type On = on::Udp;
    type Local = ();
    type Fate = Outcome;

    #[inline]
    fn packet(&self, _: &mut (), mut udp: UdpPacket) -> Outcome {
        let Some((mut header, pseudo, payload)) = datagram(udp.packet()) else {
            return Outcome::Malformed;
        };
        header.update_checksum(pseudo, payload);
        *udp = header;
        Outcome::Right
    }
}
