//! `MarkIPCE`: sets the ECN codepoint CE (congestion experienced).

use castanet_element::prelude::*;

/// Sets the ECN codepoint CE (congestion experienced) of IPv4 packets.
///
/// So receivers learn of congestion without packet loss (RFC 3168). The element
/// drops packets that are not ECN-capable, unless FORCE is true. It updates the
/// header checksum.
///
/// ```click
/// in -> m :: MarkIPCE -> out
/// > in  1.0.0.1 > 2.0.0.2 udp tos 2
/// > in  1.0.0.1 > 2.0.0.2 udp tos 185
/// > in  1.0.0.1 > 2.0.0.2 udp tos 184
/// < out 1.0.0.1 > 2.0.0.2 udp tos 3
/// < out 1.0.0.1 > 2.0.0.2 udp tos 187
/// = m.drops.not_capable 1
/// = m.drops 1
/// ```
/// ```click
/// in -> MarkIPCE(true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp tos 184
/// < out 1.0.0.1 > 2.0.0.2 udp tos 187
/// ```
#[derive(Element)]
#[element(room = "ip")]
pub struct MarkIPCE {
    /// Whether to mark packets that are not ECN-capable, too.
    #[arg(default = false)]
    force: bool,
}

#[derive(Fate)]
pub enum MarkIPCEExit {
    /// Marked packets.
    Experienced,
    /// Packets that are not ECN-capable.
    #[drop]
    NotCapable,
}

/// Counter of one worker.
#[derive(Default, Local)]
pub struct MarkIPCEState {
    /// Number of packets dropped because they are not ECN-capable.
    #[read]
    #[portable]
    drops: u64,
}

/// The ECN codepoint CE (RFC 3168, 5).
const ECN_CE: u8 = 3;

impl PerPacket for MarkIPCE {
    type On = on::Ipv4;
    type Local = MarkIPCEState;
    type Fate = MarkIPCEExit;

    #[inline]
    fn packet(&self, state: &mut MarkIPCEState, mut ip: Ipv4) -> MarkIPCEExit {
        if ip.ecn() == 0 && !self.force {
            state.drops += 1;
            return MarkIPCEExit::NotCapable;
        }
        ip.rewrite_ecn(ECN_CE);
        MarkIPCEExit::Experienced
    }
}
