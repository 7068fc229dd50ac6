//! `SetTCPChecksum`: computes the TCP checksum.

use crate::ip::transport::segment;
use castanet_element::prelude::*;
use castanet_element::wire::Tcp;

/// Computes and sets the checksum of TCP packets.
///
/// With FIXOFF the element corrects a data offset beyond the end of the packet
/// to the end.
///
/// ```click
/// in -> s :: SetTCPChecksum -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp "data" badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp off 60
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp "data"
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
#[element(room = "tcp")]
pub struct SetTCPChecksum {
    /// Whether to correct a data offset that is too large.
    #[arg(default = false)]
    fixoff: bool,
}

#[derive(Fate)]
pub enum SetTCPChecksumExit {
    /// Packets with a valid checksum.
    Right,
    /// Fragments, and packets with an invalid length.
    #[drop]
    Malformed,
}

impl SetTCPChecksum {
    /// The checksum of the packet's segment, or the length in bytes that its header must have first.
    /// `None` for fragments and invalid lengths.
    #[inline(always)]
    fn checksum_or_length(&self, packet: &Packet) -> Option<Result<u16, usize>> {
        let (pseudo, bytes) = segment(packet)?;
        let (tcp, rest) = Tcp::from_prefix(bytes)?;
        if tcp.header_len() > bytes.len() && self.fixoff {
            return Some(Err(bytes.len()));
        }
        tcp.split_options(rest)?;
        Some(Ok(tcp.checksum_of(pseudo, bytes)))
    }
}

/// Counter of one worker.
#[derive(Default, Local)]
pub struct SetTCPChecksumState {
    /// Number of fragments, and of packets with an invalid length.
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
