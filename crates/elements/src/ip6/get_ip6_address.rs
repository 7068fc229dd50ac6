//! `GetIP6Address`: where an IPv6 packet goes, read from its bytes.

use castanet_engine::prelude::*;

/// Sets the IPv6 destination annotation to an address that the packet contains.
///
/// The address lies at OFFSET, 24 for the destination where the packet begins
/// with its IPv6 header. Packets that end before it keep the annotation they
/// have.
///
/// ```click
/// in -> GetIP6Address(24) -> out
/// > in  1::1 > 2::2 udp ; dst6 9::9
/// > in  hex 60 00 ; dst6 9::9
/// < out 1::1 > 2::2 udp ; dst6 2::2
/// < out hex 60 00 ; dst6 9::9
/// ```
#[derive(Element)]
#[element(room = "ip6")]
pub struct GetIP6Address {
    /// Where the address begins, in bytes.
    #[arg]
    offset: u16,
}

impl PerPacket for GetIP6Address {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let bytes = packet.bytes().get(usize::from(self.offset)..);
        if let Some(&octets) = bytes.and_then(<[u8]>::first_chunk::<16>) {
            packet.set_dst6(Ipv6Addr::from(octets));
        }
    }
}
