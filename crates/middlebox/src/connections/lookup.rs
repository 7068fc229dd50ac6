//! The lookup of the connections of a burst.

use super::packet_connection::Hit;
use super::table::Connections;
use crate::field::Layer;
use crate::headers::Headers;
use castanet_kit::conntrack::{Address, LookupBatch, Tuple4, Tuple6, TupleKey};

/// Position of a packet in the batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupKey {
    number: u32,
    /// Whether source and destination are swapped in the key.
    swapped: bool,
    is_ip6: bool,
}

/// The keys of a burst and the results of their lookup.
#[derive(Default)]
pub(crate) struct BurstLookup {
    ip4: LookupBatch<Tuple4>,
    ip6: LookupBatch<Tuple6>,
}

impl BurstLookup {
    /// Clears the batches for the next burst.
    pub(crate) fn clear(&mut self) {
        self.ip4.clear();
        self.ip6.clear();
    }

    /// Adds the next packet of the burst; `None` if it is to be looked up alone.
    #[inline(always)]
    pub(crate) fn push(&mut self, bytes: &[u8], headers: &Headers) -> Option<LookupKey> {
        if headers.is_fragment || !matches!(headers.upper, Layer::Tcp | Layer::Udp) {
            return None;
        }
        let is_ip6 = headers.is_ip6;
        let (number, swapped) = match is_ip6 {
            false => push(&mut self.ip4, bytes, headers)?,
            true => push(&mut self.ip6, bytes, headers)?,
        };
        Some(LookupKey { number, swapped, is_ip6 })
    }

    /// Looks up all packets of the burst.
    pub(crate) fn look_up(&mut self, connections: &Connections) {
        self.ip4.look_up(&connections.ip4);
        self.ip6.look_up(&connections.ip6);
    }

    /// Whether the lookup found a connection for a packet.
    #[inline]
    pub(crate) fn is_known(&self, key: Option<LookupKey>) -> bool {
        key.is_some_and(|key| self.hit(key).is_some())
    }

    /// Returns the result for a packet, as the tables were.
    #[inline(always)]
    pub(super) fn hit(&self, LookupKey { number, swapped, is_ip6 }: LookupKey) -> Option<Hit> {
        let number = number as usize;
        let slot = if is_ip6 { self.ip6.slot(number) } else { self.ip4.slot(number) };
        Hit::new(slot, swapped, is_ip6)
    }

    /// Looks a packet up again, as the tables are now.
    pub(super) fn look_up_again(&self, key: LookupKey, connections: &Connections) -> Option<Hit> {
        let LookupKey { number, swapped, is_ip6 } = key;
        let slot = match is_ip6 {
            false => connections.ip4.find_slot(&self.ip4.key(number as usize)),
            true => connections.ip6.find_slot(&self.ip6.key(number as usize)),
        };
        Hit::new(slot, swapped, is_ip6)
    }
}

/// Adds the key of a packet. Returns its index and whether the ends are swapped; `None` if the
/// packet has no key.
#[inline(always)]
fn push<A: Address>(
    batch: &mut LookupBatch<TupleKey<A>>,
    bytes: &[u8],
    headers: &Headers,
) -> Option<(u32, bool)> {
    let (header, segment) = (bytes.get(headers.network..)?, bytes.get(headers.transport..)?);
    let (key, swapped) = TupleKey::of_packet(header, segment, headers.protocol)?.ordered();
    Some((batch.push(key) as u32, swapped))
}
