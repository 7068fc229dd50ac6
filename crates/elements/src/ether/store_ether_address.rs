//! `StoreEtherAddress`: writes an Ethernet address into packets.

use super::address_offset::AddressOffset;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Writes an Ethernet address into each packet.
///
/// The address is ADDR, or the 6 bytes of the annotation ANNO. OFFSET is an
/// offset from the start of the packet in bytes, or `src` or `dst` for these
/// fields of an Ethernet header. A packet without room for 6 bytes at OFFSET
/// leaves by output 1 unchanged, or is dropped if it is not connected.
///
/// ```click
/// in -> s :: StoreEtherAddress(0:0:0:0:0:3, src) -> out;  s[1] -> short
/// in2 -> StoreEtherAddress(0:0:0:0:0:4, DST) -> out2
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in    hex 01 02 03 04 05 06 07 08 09 0a 0b
/// > in2   eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:3 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < short hex 01 02 03 04 05 06 07 08 09 0a 0b
/// < out2  eth 0:0:0:0:0:1 > 0:0:0:0:0:4 1.0.0.1 > 2.0.0.2 udp
/// = s.addr 00-00-00-00-00-03
/// ! s.addr 0:0:0:0:0:9
/// > in    hex 00 00 00 00 00 00 00 00 00 00 00 00
/// < out   hex 00 00 00 00 00 00 00 00 00 00 00 09
/// ```
/// ```click
/// in -> s :: StoreEtherAddress(OFFSET 1, ANNO 0) -> out
/// > in  hex 00 00 00 00 00 00 00 00 ; dst 1.2.3.4
/// > in  hex 00 00 00 00 00 00 ; dst 1.2.3.4
/// < out hex 00 01 02 03 04 00 00 00
/// = s.drops.no_room 1
/// = s.addr 00-00-00-00-00-00
/// ```
#[derive(Clone, Element)]
#[element(room = "ether", args = StoreEtherAddressArgs, methods, processing = "a/ah")]
pub struct StoreEtherAddress {
    address: MacAddr,
    offset: usize,
    anno: Option<usize>,
}

#[derive(Args)]
pub struct StoreEtherAddressArgs {
    /// Address to write.
    #[arg]
    addr: Option<MacAddr>,
    /// Offset in the packet, in bytes, or `src` or `dst`.
    #[arg]
    offset: AddressOffset,
    /// Annotation to write instead of ADDR.
    #[arg(keyword)]
    anno: Option<AnnoAt<6>>,
}

impl Build for StoreEtherAddress {
    type Args = StoreEtherAddressArgs;
    fn build(args: StoreEtherAddressArgs, _: &Setup) -> Result<Self, ArgError> {
        if args.addr.is_some() == args.anno.is_some() {
            return Err(ArgError::new("must specify exactly one of ADDR/ANNO"));
        }
        let (address, anno) = (args.addr.unwrap_or_default(), args.anno.map(|anno| anno.0));
        Ok(StoreEtherAddress { address, offset: args.offset.0, anno })
    }
}

#[handlers]
impl StoreEtherAddress {
    /// Address to write; zero if ANNO is given.
    #[read]
    fn addr(&self) -> MacAddr {
        self.address
    }
    /// Sets the address, without effect if ANNO is given.
    #[write(addr)]
    fn set_addr(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(StoreEtherAddress { address: MacAddr::from_arg(text, names)?, ..self.clone() })
    }
}

#[derive(Fate)]
pub enum StoreEtherAddressExit {
    /// Packets with the address.
    Written,
    /// Packets without room for 6 bytes at OFFSET.
    #[optional]
    NoRoom,
}

impl PerPacket for StoreEtherAddress {
    type On = on::Any;
    type Local = ();
    type Fate = StoreEtherAddressExit;

    fn packet(&self, (): &mut (), packet: &mut Packet) -> StoreEtherAddressExit {
        const LEN: usize = size_of::<MacAddr>();
        if packet.len() < self.offset.saturating_add(LEN) {
            return StoreEtherAddressExit::NoRoom;
        }
        let address = match self.anno {
            Some(at) => packet.anno_bytes::<LEN>(at.min(anno::SIZE - LEN)),
            None => self.address.octets(),
        };
        if let Some(bytes) = packet.bytes_mut()[self.offset..].first_chunk_mut() {
            *bytes = address;
        }
        StoreEtherAddressExit::Written
    }
}
