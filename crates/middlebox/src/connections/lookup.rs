//! Batch lookup of the connections of a burst.

use super::family_table::{FamilyTable, Hit};
use super::table::Connections;
use super::tuple::Family;
use crate::field::Layer;
use crate::headers::Headers;
use castanet_kit::flow::{Slot, Tuple4, Tuple6};

/// Position of a packet in the batch.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum LookupKey {
    /// The packet is not in the batch and is looked up alone.
    #[default]
    Unbatched,
    /// Index among the IPv4 keys, and whether source and destination are swapped in the key.
    Ip4((u32, bool)),
    /// The same among the IPv6 keys.
    Ip6((u32, bool)),
}

/// The keys of a burst and the results of their lookup.
#[derive(Default)]
pub(crate) struct LookupBatch {
    pub(super) ip4: KeyBatch<Tuple4>,
    pub(super) ip6: KeyBatch<Tuple6>,
}

impl LookupBatch {
    /// Clears the batch for the next burst.
    pub(crate) fn clear(&mut self) {
        self.ip4.keys.clear();
        self.ip6.keys.clear();
    }

    /// Adds the next packet of the burst.
    #[inline(always)]
    pub(crate) fn push(&mut self, bytes: &[u8], headers: &Headers) -> LookupKey {
        if headers.is_fragment || !matches!(headers.upper, Layer::Tcp | Layer::Udp) {
            return LookupKey::Unbatched;
        }
        let hit = match headers.is_ip6 {
            false => self.ip4.push(bytes, headers).map(LookupKey::Ip4),
            true => self.ip6.push(bytes, headers).map(LookupKey::Ip6),
        };
        hit.unwrap_or_default()
    }

    /// Looks up all packets of the burst.
    pub(crate) fn look_up(&mut self, connections: &Connections) {
        self.ip4.look_up(&connections.ip4);
        self.ip6.look_up(&connections.ip6);
    }

    /// Whether the lookup found a connection for a packet.
    #[inline]
    pub(crate) fn is_known(&self, hit: LookupKey) -> bool {
        match hit {
            LookupKey::Unbatched => false,
            LookupKey::Ip4(at) => self.ip4.hit(at).is_some(),
            LookupKey::Ip6(at) => self.ip6.hit(at).is_some(),
        }
    }
}

/// The keys of one family.
pub(super) struct KeyBatch<K> {
    keys: Vec<K>,
    slots: Vec<Slot>,
}

impl<K> Default for KeyBatch<K> {
    fn default() -> Self {
        KeyBatch { keys: Vec::new(), slots: Vec::new() }
    }
}

impl<K: Family> KeyBatch<K> {
    /// Adds the key of the next packet. Returns its index and whether the ends are swapped; `None`
    /// if the packet has no key.
    #[inline(always)]
    fn push(&mut self, bytes: &[u8], headers: &Headers) -> Option<(u32, bool)> {
        let (key, swapped) = K::of_packet(bytes, headers)?.ordered();
        self.keys.push(key);
        Some((self.keys.len() as u32 - 1, swapped))
    }

    fn look_up(&mut self, table: &FamilyTable<K>) {
        self.slots.clear();
        self.slots.resize(self.keys.len(), Slot::NONE);
        table.find_all(&self.keys, &mut self.slots);
    }

    /// Returns the result for a packet.
    #[inline]
    pub(super) fn hit(&self, (number, swapped): (u32, bool)) -> Option<Hit> {
        let (id, is_second) = self.slots.get(number as usize)?.entry()?;
        Some(Hit { id, is_second, swapped })
    }

    /// Looks a packet up again, as the table is now.
    pub(super) fn look_up_again(
        &self,
        (number, swapped): (u32, bool),
        table: &FamilyTable<K>,
    ) -> Option<Hit> {
        table.find_key(self.keys.get(number as usize)?, swapped)
    }
}
