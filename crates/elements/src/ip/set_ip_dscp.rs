//! `SetIPDSCP`: sets the differentiated services code point of IPv4 packets.

use castanet_element::prelude::*;

/// Sets the differentiated services code point of IPv4 packets.
///
/// The code point is the upper six bits of the type of service (RFC 2474,
/// section 3); the ECN codepoint in the lower two bits stays as it is. The
/// element updates the header checksum.
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
    /// Code point, 0 to 63.
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
