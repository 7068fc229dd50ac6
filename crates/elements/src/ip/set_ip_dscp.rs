//! `SetIPDSCP`: the differentiated services code point.

use castanet_engine::prelude::*;

/// Sets the differentiated services code point of IPv4 packets.
///
/// The code point is the upper six bits of the type of service (RFC 2474,
/// section 3); congestion notification in the lower two stays as it is. The
/// header checksum is mended.
///
/// ```click
/// in -> d :: SetIPDSCP(46) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp tos 3
/// < out 1.0.0.1 > 2.0.0.2 udp tos 187
/// = d.dscp 46
/// ! d.dscp 0
/// > in  1.0.0.1 > 2.0.0.2 udp tos 187
/// < out 1.0.0.1 > 2.0.0.2 udp tos 3
/// ```
#[derive(Clone, Element)]
#[element(room = "ip")]
pub struct SetIPDSCP {
    /// The code point.
    #[arg(live, range = 0..=63)]
    dscp: u8,
}

impl PerPacket for SetIPDSCP {
    type On = on::Ipv4;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), mut ip: Ipv4) {
        ip.rewrite_dscp(self.dscp);
    }
}
