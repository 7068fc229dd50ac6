//! `GetEtherAddress`: sets an annotation to an Ethernet address in the packet.

use super::address_offset::AddressOffset;
use castanet_element::prelude::*;

/// Sets an annotation to an Ethernet address in the packet.
///
/// OFFSET is an offset from the start of the packet in bytes, or `src` or `dst` for these fields of an
/// Ethernet header. A packet that ends before the address leaves by output 1, or is dropped if it is not
/// connected.
///
/// ```click
/// in -> g :: GetEtherAddress(16, src) -> StoreEtherAddress(OFFSET dst, ANNO 16) -> out;  g[1] -> short
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in    hex 01 02 03 04 05 06 07 08 09 0a 0b
/// < out   eth 0:0:0:0:0:1 > 0:0:0:0:0:1 1.0.0.1 > 2.0.0.2 udp
/// < short hex 01 02 03 04 05 06 07 08 09 0a 0b
/// ```
/// ```click
/// in -> g :: GetEtherAddress(0, OFFSET 1) -> out
/// > in  hex 00 01 02 03 04 05
/// = g.drops.no_address 1
/// ```
#[derive(Element)]
#[element(room = "ether", processing = "a/ah")]
pub struct GetEtherAddress {
    /// The annotation, of 6 bytes.
    #[arg]
    anno: AnnoAt<6>,
    /// Offset in the packet, in bytes, or `src` or `dst`.
    #[arg]
    offset: AddressOffset,
}

#[derive(Fate)]
pub enum GetEtherAddressExit {
    /// Packets with an address at OFFSET.
    Found,
    /// Packets that end before the address.
    #[optional]
    NoAddress,
}

impl PerPacket for GetEtherAddress {
    type On = on::Any;
    type Local = ();
    type Fate = GetEtherAddressExit;

    fn packet(&self, (): &mut (), packet: &mut Packet) -> GetEtherAddressExit {
        let bytes = packet.bytes().get(self.offset.0..).and_then(<[u8]>::first_chunk);
        match bytes.copied() {
            Some(address) => {
                packet.set_anno_bytes::<{ size_of::<MacAddr>() }>(self.anno.0, address);
                GetEtherAddressExit::Found
            }
            None => GetEtherAddressExit::NoAddress,
        }
    }
}
