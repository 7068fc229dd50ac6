//! `DecIPTTL`: decrements the IPv4 TTL.

use castanet_element::fate::none_taken;
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;

/// Decrements the IPv4 TTL and updates the header checksum.
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
    /// Whether the element is active; if not, it passes all packets on unchanged.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether to decrement the TTL of multicast packets too.
    #[arg(keyword, default = true)]
    multicast: bool,
}

/// State of one worker.
#[derive(Default, Local)]
pub struct DecIPTTLState {
    /// Whether the element decrements the TTL of every packet of the burst.
    decrements_all: bool,
    /// Number of packets whose TTL has expired.
    #[read]
    #[portable]
    drops: u64,
}

#[derive(Fate)]
pub enum Hop {
    /// Packets whose TTL has not expired.
    Onward,
    /// Packets whose TTL has expired (0 or 1 on arrival), for an `ICMPError`. If there are many,
    /// look for a routing loop.
    #[optional]
    Expired,
}

impl PerPacket for DecIPTTL {
    type On = on::PinnedIpv4;
    type Local = DecIPTTLState;
    type Fate = Hop;
    const BYTE_ACCESS: ByteAccess = ByteAccess::ReadsAndWrites;

    #[inline(always)]
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        match burst.is_ipv4() {
            true => BurstEffect::Keeps,
            false => BurstEffect::Unknown,
        }
    }

    #[inline]
    fn begin_burst(&self, state: &mut DecIPTTLState, _: Time) {
        state.decrements_all = self.decrements_all();
    }

    #[inline]
    fn packet(&self, state: &mut DecIPTTLState, ip: PinnedIpv4) -> Hop {
        if !state.decrements_all && (!self.active || ip.dst().is_multicast()) {
            return Hop::Onward;
        }
        DecIPTTL::decrement(state, ip)
    }

    fn byte_length(&self) -> Option<usize> {
        self.decrements_all().then_some(0)
    }

    fn handle_bytes(&self, _: &mut DecIPTTLState, bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        if !bytes.is_plain_ipv4() {
            return none_taken(fates);
        }
        find_expired(bytes, fates, (Hop::Onward, Hop::Expired))
    }

    fn write_bytes(&self, _: &mut DecIPTTLState, bytes: &mut BurstBytes) {
        decrement_all(bytes);
    }

    fn native(&self) -> Option<String> {
        self.decrements_all().then(|| "Element::decrement(local, packet)".to_owned())
    }
}

/// Finds the fates of packets without descriptors that have IPv4 headers: `live`, or `expired`.
#[inline(always)]
pub(crate) fn find_expired<F: Fate>(
    bytes: &BurstBytes,
    fates: &mut [u8],
    (live, expired): (F, F),
) -> u8 {
    let is_live =
        |header: &[u8]| Ipv4Header::from_prefix(header).is_some_and(|(header, _)| header.ttl() > 1);
    let (live, expired) = (live.index(), expired.index());
    if bytes.headers().fold(true, |all, header| all & is_live(header)) {
        fates.fill(live);
        return live;
    }
    for (header, fate) in bytes.headers().zip(fates) {
        *fate = if is_live(header) { live } else { expired };
    }
    live | expired
}

/// Decrements the TTL of all packets without descriptors, which have IPv4 headers.
#[inline(always)]
pub(crate) fn decrement_all(bytes: &mut BurstBytes) {
    for (header, _) in bytes.headers_mut().filter_map(Ipv4Header::from_prefix_mut) {
        header.decrement_ttl();
    }
}

impl DecIPTTL {
    /// Whether it decrements the TTL of every packet.
    pub(crate) fn decrements_all(&self) -> bool {
        self.active && self.multicast
    }

    /// Decrements the TTL of a packet.
    #[inline(always)]
    pub fn decrement(state: &mut DecIPTTLState, mut ip: PinnedIpv4) -> Hop {
        if ip.decrement_ttl().is_some() {
            return Hop::Onward;
        }
        state.drops += 1;
        Hop::Expired
    }
}
