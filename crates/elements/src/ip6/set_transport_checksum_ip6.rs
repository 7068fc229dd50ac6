//! `SetTransportChecksumIP6`: computes transport checksums over IPv6.

use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Tcp, Udp, ip_proto};

/// Computes and sets the checksums of TCP, UDP and ICMPv6 over IPv6.
///
/// The element finds the transport header behind extension headers too. Packets
/// of other protocols pass unchanged.
///
/// ```click
/// in -> s :: SetTransportChecksumIP6 -> out
/// > in  [1::1]:1 > [2::2]:2 tcp "data" badcheck
/// > in  [1::1]:1 > [2::2]:2 udp nocheck id 7 frag 0
/// > in  1::1 > 2::2 icmp6 badcheck
/// > in  1::1 > 2::2 proto 9
/// > in  [1::1]:1 > [2::2]:2 udp id 7 frag 0+
/// > in  [1::1]:1 > [2::2]:2 udp len 60 short 1
/// < out [1::1]:1 > [2::2]:2 tcp "data"
/// < out [1::1]:1 > [2::2]:2 udp id 7 frag 0
/// < out 1::1 > 2::2 icmp6
/// < out 1::1 > 2::2 proto 9
/// = s.drops.malformed 2
/// ```
#[derive(Element)]
#[element(room = "ip6")]
#[element(alias = "SetTCPChecksumIP6", alias = "SetUDPChecksumIP6", alias = "SetICMPChecksumIP6")]
pub struct SetTransportChecksumIP6;

#[derive(Fate)]
pub enum SetTransportChecksumIP6Exit {
    /// Packets with a valid checksum, and packets of other protocols.
    Right,
    /// Fragments, and truncated packets.
    #[drop]
    Malformed,
}

impl PerPacket for SetTransportChecksumIP6 {
    type On = on::Ipv6;
    type Local = ();
    type Fate = SetTransportChecksumIP6Exit;

    #[inline]
    fn packet(&self, (): &mut (), mut ip: Ipv6) -> SetTransportChecksumIP6Exit {
        let upper = ip.upper_layer();
        let is_fragment = upper.fragment.is_some_and(|fragment| !fragment.is_atomic());
        if is_fragment || usize::from(ip.payload_len()) > ip.payload().len() {
            return SetTransportChecksumIP6Exit::Malformed;
        }
        let pseudo = ip.pseudo(upper.protocol, ip.payload().len() - upper.offset);
        let segment = &mut ip.payload_mut()[upper.offset..];
        let updated =
            match upper.protocol {
                ip_proto::TCP => Tcp::from_prefix_mut(segment)
                    .map(|(tcp, rest)| tcp.update_checksum(pseudo, rest)),
                ip_proto::UDP => Udp::from_prefix_mut(segment)
                    .map(|(udp, rest)| udp.update_checksum(pseudo, rest)),
                ip_proto::ICMPV6 => Icmp::from_prefix_mut(segment)
                    .map(|(icmp, rest)| icmp.update_checksum_v6(pseudo, rest)),
                _ => Some(()),
            };
        updated
            .map_or(SetTransportChecksumIP6Exit::Malformed, |()| SetTransportChecksumIP6Exit::Right)
    }
}
