//! `IPEncap`: prepends an IPv4 header.

use super::encap::{Destination, EncapExit, IPEncapArgs, IdCounter};
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;

/// Prepends an IPv4 header to each packet.
///
/// With DST `DST_ANNO` the destination address is that of the destination
/// annotation; otherwise the element sets the annotation to DST. It counts the
/// identifications of the headers from 0.
///
/// ```click
/// in -> e :: IPEncap(ipip, 9.0.0.1, 9.0.0.2, TTL 7, DSCP 1, CE true, DF true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 9.0.0.1 > 9.0.0.2 proto 4 ttl 7 tos 7 df [1.0.0.1 > 2.0.0.2 udp] ; dst 9.0.0.2 network 0
/// ! e.src 9.0.0.3
/// = e.src 9.0.0.3
/// ! e.dst DST_ANNO
/// = e.dst DST_ANNO
/// > in  1.0.0.1 > 2.0.0.2 udp ; dst 9.0.0.4
/// < out 9.0.0.3 > 9.0.0.4 proto 4 ttl 7 tos 7 df id 1 [1.0.0.1 > 2.0.0.2 udp]
/// > in  1.0.0.1 > 2.0.0.2 udp len 65516
/// = e.drops.too_long 1
/// ```
#[derive(Clone, Element)]
#[element(room = "ip", args = IPEncapArgs, gives = "ip", methods, headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct IPEncap {
    header: Ipv4Header,
    /// Destination address.
    #[read]
    dst: Destination,
}

impl Build for IPEncap {
    type Args = IPEncapArgs;
    fn build(args: IPEncapArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(IPEncap { header: args.header()?, dst: args.dst })
    }
}

#[handlers]
impl IPEncap {
    /// Source address.
    #[read]
    fn src(&self) -> Ipv4Addr {
        self.header.src()
    }

    /// Sets the source address.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let mut new = self.clone();
        new.header.set_src(Ipv4Addr::from_arg(text, names)?);
        Ok(new)
    }

    /// Sets the destination address.
    #[write(dst)]
    fn set_dst(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(IPEncap { dst: Destination::from_arg(text, names)?, ..self.clone() })
    }
}

impl PerPacket for IPEncap {
    type On = on::Any;
    type Local = IdCounter;
    type Fate = EncapExit;
    // If two workers used one identification, a receiver could mix fragments of two packets.
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, ids: &mut IdCounter, packet: &mut Packet) -> EncapExit {
        let Ok(len) = u16::try_from(Ipv4Header::LEN + packet.len()) else {
            return EncapExit::TooLong;
        };
        let dst = self.dst.set_and_get(packet);
        if let Some((header, _)) = Ipv4Header::from_prefix_mut(packet.push_front(Ipv4Header::LEN)) {
            *header = self.header;
            header.set_total_len(len);
            header.set_id(ids.next());
            header.set_dst(dst);
            header.update_checksum(&[]);
        }
        packet.set_network_header(0, Ipv4Header::LEN);
        EncapExit::Encapsulated
    }
}
