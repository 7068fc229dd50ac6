//! `DecIP6HLIM`: one hop less.

use castanet_engine::prelude::*;

/// Takes one hop off each IPv6 packet.
///
/// ```click
/// in -> h :: DecIP6HLIM -> out;  h[1] -> expired
/// > in      1::1 > 2::2 udp hop 64
/// > in      1::1 > 2::2 udp hop 1
/// > in      1::1 > 2::2 udp hop 0
/// < out     1::1 > 2::2 udp hop 63
/// < expired 1::1 > 2::2 udp hop 1
/// < expired 1::1 > 2::2 udp hop 0
/// = h.drops 2
/// ```
#[derive(Element)]
#[element(room = "ip6")]
pub struct DecIP6HLIM;

/// What one worker has seen.
#[derive(Default, Local)]
pub struct Tally {
    /// Packets at their last hop.
    #[read]
    drops: u64,
}

#[derive(Fate)]
pub enum Hop {
    /// Packets that may travel on.
    Onward,
    /// Packets at their last hop, for an `ICMP6Error`.
    #[optional]
    Expired,
}

impl PerPacket for DecIP6HLIM {
    type On = on::Ipv6;
    type Local = Tally;
    type Fate = Hop;

    #[inline]
    fn packet(&self, tally: &mut Tally, mut ip: Ipv6) -> Hop {
        if ip.hop_limit() > 1 {
            ip.decrement_hop_limit();
            return Hop::Onward;
        }
        tally.drops += 1;
        Hop::Expired
    }
}
