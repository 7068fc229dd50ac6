//! `DecIPTTL`: one hop less.

use castanet_engine::prelude::*;

/// Takes one hop off each IPv4 packet and mends its checksum.
///
/// ```click
/// in -> ttl :: DecIPTTL(MULTICAST false) -> out;  ttl[1] -> expired
/// > in      1.0.0.1 > 2.0.0.2 udp ttl 64
/// > in      1.0.0.1 > 2.0.0.2 udp ttl 1
/// > in      1.0.0.1 > 224.0.0.5 udp ttl 1
/// < out     1.0.0.1 > 2.0.0.2 udp ttl 63
/// < expired 1.0.0.1 > 2.0.0.2 udp ttl 1
/// < out     1.0.0.1 > 224.0.0.5 udp ttl 1
/// ```
#[derive(Clone, Element)]
pub struct DecIPTTL {
    /// Whether to touch packets at all.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether multicast packets lose a hop too.
    #[arg(keyword, default = true)]
    multicast: bool,
}

#[derive(Fate)]
pub enum Hop {
    /// Packets that may travel on.
    Onward,
    /// Packets at their last hop, for an `ICMPError`.
    #[optional]
    Expired,
}

impl PerPacket for DecIPTTL {
    type On = on::Ipv4;
    type Local = ();
    type Fate = Hop;

    fn packet(&self, _: &mut (), mut ip: Ipv4) -> Hop {
        if !self.active || (!self.multicast && ip.dst().is_multicast()) {
            return Hop::Onward;
        }
        ip.decrement_ttl().map_or(Hop::Expired, |_| Hop::Onward)
    }
}
