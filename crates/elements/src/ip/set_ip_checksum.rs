//! `SetIPChecksum`: the IPv4 header's checksum, afresh.

use super::header_checks::whole_header;
use castanet_engine::prelude::*;

/// Computes the checksum of IPv4 headers afresh.
///
/// Only for headers that others have left wrong: elements that change a
/// header mend its checksum themselves.
///
/// ```click
/// in -> s :: SetIPChecksum -> out
/// > in  1.0.0.1 > 2.0.0.2 udp badsum
/// > in  1.0.0.1 > 2.0.0.2 udp hl 4
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = s.drops.malformed 1
/// ```
#[derive(Element)]
#[element(room = "ip")]
pub struct SetIPChecksum;

#[derive(Fate)]
pub enum Outcome {
    /// Packets with a right checksum.
    Right,
    /// Packets whose header's length is wrong.
    #[drop]
    Malformed,
}

impl PerPacket for SetIPChecksum {
    type On = on::Ipv4;
    type Local = ();
    type Fate = Outcome;

    #[inline]
    fn packet(&self, _: &mut (), mut ip: Ipv4) -> Outcome {
        let Some(mut header) = whole_header(&ip) else { return Outcome::Malformed };
        header.update_checksum(ip.options());
        ip.set_checksum(header.checksum());
        Outcome::Right
    }
}
