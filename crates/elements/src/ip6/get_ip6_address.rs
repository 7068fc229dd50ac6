//! `GetIP6Address`: sets the IPv6 destination annotation from an address in the packet.

use castanet_element::prelude::*;

/// Sets the IPv6 destination annotation to an address in the packet.
///
/// OFFSET is the offset of the address from the start of the packet: 24 for the
/// destination of a packet that begins with its IPv6 header. A packet that ends
/// before the end of the address keeps its annotation.
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
    /// Offset of the address, in bytes.
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
