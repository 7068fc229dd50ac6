//! `DecIP6HLIM`: decrements the IPv6 hop limit.

use castanet_element::prelude::*;

/// Decrements the IPv6 hop limit.
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

/// Counter of one worker.
#[derive(Default, Local)]
pub struct DecIP6HLIMState {
    /// Number of packets whose hop limit has expired.
    #[read]
    #[portable]
    drops: u64,
}

#[derive(Fate)]
pub enum Hop {
    /// Packets whose hop limit has not expired.
    Onward,
    /// Packets whose hop limit has expired (0 or 1 on arrival), for an `ICMP6Error`. If there are
    /// many, look for a routing loop.
    #[optional]
    Expired,
}

impl PerPacket for DecIP6HLIM {
    type On = on::Ipv6;
    type Local = DecIP6HLIMState;
    type Fate = Hop;

    #[inline]
    fn packet(&self, state: &mut DecIP6HLIMState, mut ip: Ipv6) -> Hop {
        if ip.hop_limit() > 1 {
            ip.decrement_hop_limit();
            return Hop::Onward;
        }
        state.drops += 1;
        Hop::Expired
    }
}
