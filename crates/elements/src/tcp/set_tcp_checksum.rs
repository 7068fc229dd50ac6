//! `SetTCPChecksum`: computes the TCP checksum.

use crate::ip::transport::pseudo;
use castanet_element::prelude::*;
use castanet_element::wire::Tcp;

/// Computes and sets the checksum of TCP packets.
///
/// The checksum is that of the bytes that there are, also in a first fragment, and whatever the data
/// offset. With FIXOFF the element corrects a data offset below 20 to 20, and one beyond the end of a
/// packet that is no fragment to the end.
///
/// ```click
/// in -> s :: SetTCPChecksum -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp "data" badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp off 60 badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp frag 0+ "fragment" badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp "data" short 2
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp "data"
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp off 60
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp frag 0+ "fragment"
/// = s.drops 1
/// = s.drops.malformed 1
/// = s.drops.not_tcp 1
/// ```
/// ```click
/// in -> s :: SetTCPChecksum(FIXOFF true) -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp off 60
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp
/// ```
#[derive(Element)]
#[element(room = "tcp", headers = Pass)]
pub struct SetTCPChecksum {
    /// Whether to correct a data offset that is too small or too large.
    #[arg(default = false)]
    fixoff: bool,
}

#[derive(Fate)]
pub enum SetTCPChecksumExit {
    /// Packets with a valid checksum.
    Right,
    /// Packets that are shorter than their headers say.
    #[drop]
    Malformed,
}

impl SetTCPChecksum {
    /// The checksum of the packet's segment, or the length in bytes that its header must have first.
    /// `None` for invalid lengths.
    #[inline(always)]
    fn checksum_or_length(&self, packet: &Packet) -> Option<Result<u16, usize>> {
        let (ip, bytes) = packet.ipv4_segment()?;
        let (tcp, _) = Tcp::from_prefix(bytes)?;
        match tcp.header_len() {
            length if self.fixoff && length < Tcp::LEN => Some(Err(Tcp::LEN)),
            length if self.fixoff && length > bytes.len() && !ip.is_fragment() => {
                Some(Err(bytes.len()))
            }
            _ => Some(Ok(tcp.checksum_of(pseudo(packet, ip, bytes.len()), bytes))),
        }
    }
}

/// Counter of one worker.
#[derive(Default, Local)]
pub struct SetTCPChecksumState {
    /// Number of packets that are shorter than their headers say.
    #[read]
    #[portable]
    drops: u64,
}

impl PerPacket for SetTCPChecksum {
    type On = on::Tcp;
    type Local = SetTCPChecksumState;
    type Fate = SetTCPChecksumExit;

    #[inline]
    fn packet(&self, state: &mut SetTCPChecksumState, mut tcp: TcpPacket) -> SetTCPChecksumExit {
        let checksum = match self.checksum_or_length(tcp.packet()) {
            Some(Err(length)) => {
                tcp.set_header_len(length);
                self.checksum_or_length(tcp.packet())
            }
            other => other,
        };
        let Some(Ok(checksum)) = checksum else {
            state.drops += 1;
            return SetTCPChecksumExit::Malformed;
        };
        tcp.set_checksum(checksum);
        SetTCPChecksumExit::Right
    }
}
