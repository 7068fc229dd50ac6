//! `SetTCPChecksum`: the TCP checksum, afresh.

use crate::ip::transport::segment;
use castanet_engine::prelude::*;
use castanet_engine::wire::Tcp;

/// Computes the checksum of TCP packets afresh.
///
/// With FIXOFF, a data offset beyond the packet's end is set to the end.
///
/// ```click
/// in -> s :: SetTCPChecksum -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp "data" badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp off 60
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp "data"
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
    /// Whether to mend a data offset that is too large.
    #[arg(default = false)]
    fixoff: bool,
}

#[derive(Fate)]
pub enum Outcome {
    /// Packets with a right checksum.
    Right,
    /// Fragments, and packets with a wrong length.
    #[drop]
    Malformed,
}

impl SetTCPChecksum {
    /// The packet's header with a right checksum, if all it covers is there.
    fn checked(&self, packet: &Packet) -> Option<Tcp> {
        let (pseudo, bytes) = segment(packet)?;
        let (tcp, rest) = Tcp::from_prefix(bytes)?;
        let mut tcp = *tcp;
        if tcp.header_len() > bytes.len() && self.fixoff {
            tcp.set_header_len(bytes.len());
        }
        tcp.split_options(rest)?;
        tcp.update_checksum(pseudo, rest);
        Some(tcp)
    }
}

impl PerPacket for SetTCPChecksum {
    type On = on::Tcp;
    type Local = ();
    type Fate = Outcome;

    #[inline]
    fn packet(&self, _: &mut (), mut tcp: TcpPacket) -> Outcome {
        let Some(header) = self.checked(tcp.packet()) else { return Outcome::Malformed };
        *tcp = header;
        Outcome::Right
    }
}
