//! `MarkIPCE`: packets that have seen congestion.

use castanet_engine::prelude::*;

/// Tells receivers of IPv4 packets of congestion, rather than dropping the packets (RFC 3168).
///
/// Packets whose ends do not understand that are dropped, unless FORCE is set.
/// The header checksum is mended.
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
    /// Whether to mark all packets.
    #[arg(default = false)]
    force: bool,
}

#[derive(Fate)]
pub enum Marked {
    /// Packets that tell of congestion.
    Experienced,
    /// Packets that cannot.
    #[drop]
    NotCapable,
}

/// What was dropped.
#[derive(Default, Local)]
pub struct Dropped {
    /// Packets whose ends do not understand.
    #[read]
    drops: u64,
}

/// The codepoint CE of congestion notification (RFC 3168, 5).
const EXPERIENCED: u8 = 3;

impl PerPacket for MarkIPCE {
    type On = on::Ipv4;
    type Local = Dropped;
    type Fate = Marked;

    #[inline]
    fn packet(&self, dropped: &mut Dropped, mut ip: Ipv4) -> Marked {
        if ip.ecn() == 0 && !self.force {
            dropped.drops += 1;
            return Marked::NotCapable;
        }
        ip.rewrite_ecn(EXPERIENCED);
        Marked::Experienced
    }
}
