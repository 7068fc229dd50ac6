//! `GetIPAddress`: where a packet goes, read from its bytes.

use super::set_ip_address::IpAnno;
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv4Header;

/// Sets the destination annotation to an address that the packet contains.
///
/// The address lies at OFFSET, 16 for the destination where the packet begins
/// with its IPv4 header; or IP names the source or destination of the marked
/// header. Packets that end before it keep the annotation they have.
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
#[element(room = "ip", args = Where)]
pub struct GetIPAddress {
    from: From,
    anno: usize,
}

enum From {
    Offset(usize),
    Src,
    Dst,
}

#[derive(Args)]
pub struct Where {
    /// Where the address begins, in bytes.
    #[arg]
    offset: Option<u16>,
    /// Which annotation to set.
    #[arg(default = IpAnno(anno::DST_IP))]
    anno: IpAnno,
    /// Instead of OFFSET: `src` or `dst` of the IPv4 header.
    #[arg(keyword)]
    ip: Option<String>,
}

impl Build for GetIPAddress {
    type Args = Where;
    fn build(args: Where, _: &Setup) -> Result<Self, ArgError> {
        let from = match (args.offset, args.ip.as_deref()) {
            (Some(offset), None) => From::Offset(offset.into()),
            (None, Some("src")) => From::Src,
            (None, Some("dst")) => From::Dst,
            (None, Some(_)) => return Err(ArgError::new("bad IP").help("IP is src or dst")),
            _ => return Err(ArgError::new("set one of OFFSET, IP")),
        };
        Ok(GetIPAddress { from, anno: args.anno.0 })
    }
}

impl PerPacket for GetIPAddress {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let address = match self.from {
            From::Offset(offset) => {
                let bytes = packet.bytes().get(offset..).and_then(<[u8]>::first_chunk::<4>);
                bytes.map(|&octets| Ipv4Addr::from(octets))
            }
            From::Src => packet.ipv4_header().map(Ipv4Header::src),
            From::Dst => packet.ipv4_header().map(Ipv4Header::dst),
        };
        match address {
            Some(address) if self.anno == anno::DST_IP => packet.set_dst(address),
            Some(address) => packet.set_anno_bytes(self.anno, address.octets()),
            None => {}
        }
    }
}
