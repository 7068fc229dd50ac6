//! `SetIP6DSCP`: sets the differentiated services code point of IPv6 packets.

use castanet_element::prelude::*;

/// Sets the differentiated services code point of IPv6 packets.
///
/// The code point is the upper six bits of the traffic class (RFC 2474,
/// section 3); the ECN codepoint in the lower two bits stays as it is.
///
/// ```click
/// in -> d :: SetIP6DSCP(46) -> out
/// > in  1::1 > 2::2 udp class 3 flow 7
/// < out 1::1 > 2::2 udp class 187 flow 7
/// = d.dscp 46
/// ! d.dscp 0
/// > in  1::1 > 2::2 udp class 187
/// < out 1::1 > 2::2 udp class 3
/// ```
#[derive(Clone, Element)]
#[element(room = "ip6")]
pub struct SetIP6DSCP {
    /// Code point, 0 to 63.
    #[arg(live, range = 0..=63)]
    dscp: u8,
}

impl PerPacket for SetIP6DSCP {
    type On = on::Ipv6;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), mut ip: Ipv6) {
        ip.set_dscp(self.dscp);
    }
}
