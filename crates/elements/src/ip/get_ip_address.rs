//! `GetIPAddress`: sets the destination annotation from an address in the packet.

use super::set_ip_address::IpAnno;
use castanet_element::fate::none_taken;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;

/// Sets the destination annotation to an IPv4 address in the packet.
///
/// OFFSET is the offset of the address from the start of the packet: 16 for the
/// destination of a packet that begins with its IPv4 header. Instead, IP
/// selects the source or destination of the marked header. A packet that ends
/// before the address keeps its annotation.
///
/// ```click
/// in -> GetIPAddress(16) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; dst 9.9.9.9
/// > in  hex 45 00 ; dst 9.9.9.9
/// < out 1.0.0.1 > 2.0.0.2 udp ; dst 2.0.0.2
/// < out hex 45 00 ; dst 9.9.9.9
/// ```
/// ```click
/// in -> GetIPAddress(IP src) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; dst 1.0.0.1
/// ```
#[derive(Element)]
#[element(room = "ip", args = GetIPAddressArgs)]
pub struct GetIPAddress {
    source: AddressSource,
    anno: usize,
}

/// The location of the address.
enum AddressSource {
    Offset(usize),
    Src,
    Dst,
}

#[derive(Args)]
pub struct GetIPAddressArgs {
    /// Offset of the address, in bytes.
    #[arg]
    offset: Option<u16>,
    /// Annotation to set.
    #[arg(default = IpAnno(anno::DST_IP))]
    anno: IpAnno,
    /// Field of the IPv4 header, instead of OFFSET: `src` or `dst`.
    #[arg(keyword)]
    ip: Option<String>,
}

impl Build for GetIPAddress {
    type Args = GetIPAddressArgs;
    fn build(args: GetIPAddressArgs, _: &Setup) -> Result<Self, ArgError> {
        let source = match (args.offset, args.ip.as_deref()) {
            (Some(offset), None) => AddressSource::Offset(offset.into()),
            (None, Some("src")) => AddressSource::Src,
            (None, Some("dst")) => AddressSource::Dst,
            (None, Some(_)) => return Err(ArgError::new("bad IP").help("IP is src or dst")),
            _ => return Err(ArgError::new("set one of OFFSET, IP")),
        };
        Ok(GetIPAddress { source, anno: args.anno.0 })
    }
}

impl PerPacket for GetIPAddress {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;

    fn byte_length(&self) -> Option<usize> {
        Some(self.offset_of_dst()? + size_of::<u32>())
    }

    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        match self.offset_of_dst() {
            Some(offset) if bytes.mark_destinations(offset) => 0,
            _ => none_taken(fates),
        }
    }

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let address = match self.source {
            AddressSource::Offset(offset) => address_at(packet.bytes(), offset),
            AddressSource::Src => packet.ipv4_header().map(Ipv4Header::src),
            AddressSource::Dst => packet.ipv4_header().map(Ipv4Header::dst),
        };
        match address {
            Some(address) if self.anno == anno::DST_IP => packet.set_dst(address),
            Some(address) => packet.set_anno_bytes(self.anno, address.octets()),
            None => {}
        }
    }

    fn native(&self) -> Option<String> {
        Some(format!("Element::set_dst_from(packet, {})", self.offset_of_dst()?))
    }
}

impl GetIPAddress {
    /// The offset of the address, if the element sets the destination annotation to one at an offset.
    #[inline(always)]
    fn offset_of_dst(&self) -> Option<usize> {
        match self.source {
            AddressSource::Offset(offset) if self.anno == anno::DST_IP => Some(offset),
            _ => None,
        }
    }

    /// Sets the destination annotation to the address at `offset`, if the packet has one there.
    #[inline(always)]
    pub fn set_dst_from(packet: &mut Packet, offset: usize) {
        if let Some(address) = address_at(packet.bytes(), offset) {
            packet.set_dst(address);
        }
    }
}

/// The address at `offset`.
#[inline(always)]
fn address_at(bytes: &[u8], offset: usize) -> Option<Ipv4Addr> {
    let bytes = bytes.get(offset..).and_then(<[u8]>::first_chunk::<4>);
    bytes.map(|&octets| Ipv4Addr::from(octets))
}
