//! `SetIP6Address`: sets the IPv6 destination annotation to a constant address.

use castanet_element::prelude::*;

/// Sets the IPv6 destination annotation to a constant address.
///
/// ```click
/// in -> s :: SetIP6Address(2::2) -> out
/// > in  1::1 > 3::3 udp
/// < out 1::1 > 3::3 udp ; dst6 2::2
/// ! s.ipaddr 4::4
/// = s.ipaddr 4::4
/// > in  1::1 > 3::3 udp
/// < out 1::1 > 3::3 udp ; dst6 4::4
/// ```
#[derive(Clone, Element)]
#[element(room = "ip6")]
pub struct SetIP6Address {
    /// IPv6 address.
    #[arg(name = "IPADDR", live)]
    ip6: Ipv6Addr,
}

impl PerPacket for SetIP6Address {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        packet.set_dst6(self.ip6);
    }
}
