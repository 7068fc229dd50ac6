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
/// = ttl.drops 1
/// ```
#[derive(Clone, Element)]
#[element(room = "ip")]
pub struct DecIPTTL {
    /// Whether to touch packets at all.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether multicast packets lose a hop too.
    #[arg(keyword, default = true)]
    multicast: bool,
}

/// What one worker has seen.
#[derive(Default, Local)]
pub struct Tally {
    /// Whether every packet of the burst loses a hop.
    all: bool,
    /// Packets at their last hop.
    #[read]
    drops: u64,
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
    type On = on::PinnedIpv4;
    type Local = Tally;
    type Fate = Hop;

    #[inline]
    fn burst(&self, tally: &mut Tally, _: Time) {
        tally.all = self.active && self.multicast;
    }

    #[inline]
    fn packet(&self, tally: &mut Tally, mut ip: PinnedIpv4) -> Hop {
        if !tally.all && (!self.active || ip.dst().is_multicast()) {
            return Hop::Onward;
        }
        if ip.decrement_ttl().is_some() {
            return Hop::Onward;
        }
        tally.drops += 1;
        Hop::Expired
    }
}
