//! `SetIPChecksum`: computes the IPv4 header checksum.

use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;

/// Computes and sets the checksum of IPv4 headers.
///
/// It is needed only for headers with a wrong checksum: elements that change a
/// header update its checksum themselves. The header is the marked one, or else at the beginning of the
/// packet; its version does not matter. Each worker reports the first packet that it drops.
///
/// ```click
/// in -> s :: SetIPChecksum -> out
/// > in  1.0.0.1 > 2.0.0.2 udp badsum
/// > in  1.0.0.1 > 2.0.0.2 udp hl 4
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ~ SetIPChecksum: bad input packet
/// = s.drops 1
/// = s.drops.malformed 1
/// ```
///
/// ```click
/// in -> SetIPChecksum -> out
/// > in  hex 450000140000000040110000010000010200000200
/// < out hex 4500001400000000401177d7010000010200000200
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
    /// Whether the worker has reported a dropped packet.
    is_reported: bool,
}

impl PerPacket for SetIPChecksum {
    type On = on::Any;
    type Local = SetIPChecksumState;
    type Fate = SetIPChecksumExit;

    #[inline]
    fn packet(&self, state: &mut SetIPChecksumState, packet: &mut Packet) -> SetIPChecksumExit {
        let offset = usize::try_from(packet.network_offset().unwrap_or(0)).unwrap_or(usize::MAX);
        let header = packet.bytes_mut().get_mut(offset..).and_then(Ipv4Header::from_prefix_mut);
        let options = header.and_then(|(header, rest)| {
            let len = header.header_len().checked_sub(Ipv4Header::LEN)?;
            Some((header, rest.get(..len)?))
        });
        let Some((header, options)) = options else {
            state.drops += 1;
            return SetIPChecksumExit::Malformed;
        };
        header.update_checksum(options);
        SetIPChecksumExit::Right
    }

    fn end_burst(&self, state: &mut SetIPChecksumState, cx: &mut Cx) {
        if state.drops > 0 && !std::mem::replace(&mut state.is_reported, true) {
            cx.chatter("SetIPChecksum: bad input packet");
        }
    }
}
