//! The lookup of the connections of a burst.

use super::table::{Connections, Hit};
use crate::field::Layer;
use crate::headers::Headers;
use castanet_kit::conntrack::{Address, LookupBatch, Tuple4, Tuple6, TupleKey};

/// Position of a packet in the batches.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum LookupKey {
    /// The packet is in no batch and is looked up alone.
    #[default]
    Unbatched,
    /// Index among the IPv4 keys, and whether source and destination are swapped in the key.
    Ip4((u32, bool)),
    /// The same among the IPv6 keys.
    Ip6((u32, bool)),
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

    /// Adds the next packet of the burst.
    #[inline(always)]
    pub(crate) fn push(&mut self, bytes: &[u8], headers: &Headers) -> LookupKey {
        if headers.is_fragment || !matches!(headers.upper, Layer::Tcp | Layer::Udp) {
            return LookupKey::Unbatched;
        }
        let key = match headers.is_ip6 {
            false => push(&mut self.ip4, bytes, headers).map(LookupKey::Ip4),
            true => push(&mut self.ip6, bytes, headers).map(LookupKey::Ip6),
        };
        key.unwrap_or_default()
    }

    /// Looks up all packets of the burst.
    pub(crate) fn look_up(&mut self, connections: &Connections) {
        self.ip4.look_up(&connections.ip4);
        self.ip6.look_up(&connections.ip6);
    }

    /// Whether the lookup found a connection for a packet.
    #[inline]
    pub(crate) fn is_known(&self, key: LookupKey) -> bool {
        self.hit(key).is_some()
    }

    /// Returns the result for a packet, as the table was; `None` also if it is in no batch.
    #[inline(always)]
    pub(super) fn hit(&self, key: LookupKey) -> Option<Hit> {
        match key {
            LookupKey::Unbatched => None,
            LookupKey::Ip4((n, swapped)) => Hit::new(self.ip4.slot(n as usize), swapped, false),
            LookupKey::Ip6((n, swapped)) => Hit::new(self.ip6.slot(n as usize), swapped, true),
        }
    }

    /// Looks a packet up again, as the table is now.
    pub(super) fn look_up_again(&self, key: LookupKey, connections: &Connections) -> Option<Hit> {
        match key {
            LookupKey::Unbatched => None,
            LookupKey::Ip4((n, swapped)) => {
                Hit::new(connections.ip4.find_slot(&self.ip4.key(n as usize)), swapped, false)
            }
            LookupKey::Ip6((n, swapped)) => {
                Hit::new(connections.ip6.find_slot(&self.ip6.key(n as usize)), swapped, true)
            }
        }
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
