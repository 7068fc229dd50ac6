//! `SetIPChecksum`: computes the IPv4 header checksum.

use super::header_checks::complete_header;
use castanet_element::prelude::*;

/// Computes and sets the checksum of IPv4 headers.
///
/// It is needed only for headers with a wrong checksum: elements that change a
/// header update its checksum themselves.
///
/// ```click
/// in -> s :: SetIPChecksum -> out
/// > in  1.0.0.1 > 2.0.0.2 udp badsum
/// > in  1.0.0.1 > 2.0.0.2 udp hl 4
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = s.drops 1
/// = s.drops.malformed 1
/// ```
#[derive(Element)]
#[element(room = "ip")]
pub struct SetIPChecksum;

#[derive(Fate)]
pub enum SetIPChecksumExit {
    /// Packets with a valid checksum.
    Right,
    /// Packets with an invalid header length.
    #[drop]
    Malformed,
}

/// Counter of one worker.
#[derive(Default, Local)]
pub struct SetIPChecksumState {
    /// Number of packets with an invalid header length.
    #[read]
    #[portable]
    drops: u64,
}

impl PerPacket for SetIPChecksum {
    type On = on::Ipv4;
    type Local = SetIPChecksumState;
    type Fate = SetIPChecksumExit;

    #[inline]
    fn packet(&self, state: &mut SetIPChecksumState, mut ip: Ipv4) -> SetIPChecksumExit {
        let Some(mut header) = complete_header(&ip) else {
            state.drops += 1;
            return SetIPChecksumExit::Malformed;
        };
        header.update_checksum(ip.options());
        ip.set_checksum(header.checksum());
        SetIPChecksumExit::Right
    }
}
