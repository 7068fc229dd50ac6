//! `EtherRewrite`: sets the source and destination Ethernet addresses.

use super::for_each_header;
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// Sets the source and destination addresses in the Ethernet header of each packet.
///
/// The Ethernet type stays as it is. The element suits links with one host at
/// the other end.
///
/// ```click
/// in -> e :: EtherRewrite(1:1:1:1:1:1, 2:2:2:2:2:2) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 1:1:1:1:1:1 > 2:2:2:2:2:2 1.0.0.1 > 2.0.0.2 udp
/// ! e.dst 2:2:2:2:2:3
/// = e.src 01-01-01-01-01-01
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 1:1:1:1:1:1 > 2:2:2:2:2:3 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "ether")]
pub struct EtherRewrite {
    /// Source address.
    #[arg(live)]
    src: MacAddr,
    /// Destination address.
    #[arg(live)]
    dst: MacAddr,
}

impl PerPacket for EtherRewrite {
    type On = on::Ether;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Writes;

    fn byte_length(&self) -> Option<usize> {
        Some(Ethernet::LEN)
    }

    #[inline]
    fn write_bytes(&self, _: &mut (), bytes: &mut BurstBytes) {
        for_each_header(bytes, |header| self.rewrite(header));
    }

    #[inline]
    fn packet(&self, _: &mut (), mut frame: Ether) {
        self.rewrite(&mut frame);
    }
}

impl EtherRewrite {
    #[inline]
    fn rewrite(&self, header: &mut Ethernet) {
        header.set_src(self.src);
        header.set_dst(self.dst);
    }
}
