//! `IPEncap`: one IPv4 header for all.

use super::encap::{Destination, Fields, Fit, Numbers};
use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv4Header;

/// Puts an IPv4 header before each packet.
///
/// Where DST is `DST_ANNO` packets go where their destination annotation says;
/// otherwise it is set to DST. Headers are numbered from 0.
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
#[element(room = "ip", args = Fields, gives = "ip", methods)]
pub struct IPEncap {
    header: Ipv4Header,
    /// Destination address.
    #[read]
    dst: Destination,
}

impl Build for IPEncap {
    type Args = Fields;
    fn build(args: Fields, _: &Setup) -> Result<Self, ArgError> {
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
    type Local = Numbers;
    type Fate = Fit;
    // A number twice would mix the fragments of two packets.
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, numbers: &mut Numbers, packet: &mut Packet) -> Fit {
        let Ok(len) = u16::try_from(Ipv4Header::LEN + packet.len()) else { return Fit::TooLong };
        let dst = self.dst.of(packet);
        if let Some((header, _)) = Ipv4Header::from_prefix_mut(packet.push_front(Ipv4Header::LEN)) {
            *header = self.header;
            header.set_total_len(len);
            header.set_id(numbers.next());
            header.set_dst(dst);
            header.update_checksum(&[]);
        }
        packet.set_network_header(0, Ipv4Header::LEN);
        Fit::Encapsulated
    }
}
