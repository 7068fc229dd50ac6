//! The packets of a burst that may be of connections: looked up together.

use super::key::Family;
use super::side::{Hit, Side};
use super::table::Connections;
use crate::field::Layer;
use crate::headers::Headers;
use castanet_kit::flow::{Slot, Tuple4, Tuple6};

/// A packet of a burst that may be of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Looked {
    /// It has to be looked at by itself.
    #[default]
    Alone,
    /// With others of IPv4: its number there, and whether its ends are in the other order.
    Four((u32, bool)),
    /// The same of IPv6.
    Six((u32, bool)),
}

/// The packets of a burst, and what was found of them.
#[derive(Default)]
pub(crate) struct Asked {
    pub(super) four: Keys<Tuple4>,
    pub(super) six: Keys<Tuple6>,
}

impl Asked {
    /// Begins a burst.
    pub(crate) fn begin(&mut self) {
        self.four.keys.clear();
        self.six.keys.clear();
    }

    /// The next packet of the burst.
    #[inline(always)]
    pub(crate) fn ask(&mut self, bytes: &[u8], headers: &Headers) -> Looked {
        if headers.is_fragment || !matches!(headers.upper, Layer::Tcp | Layer::Udp) {
            return Looked::Alone;
        }
        let looked = match headers.is_ip6 {
            false => self.four.ask(bytes, headers).map(Looked::Four),
            true => self.six.ask(bytes, headers).map(Looked::Six),
        };
        looked.unwrap_or_default()
    }

    /// Looks for the connections of all packets of the burst.
    pub(crate) fn look(&mut self, connections: &Connections) {
        self.four.look(&connections.four);
        self.six.look(&connections.six);
    }

    /// Whether a packet of the burst had a connection when it was looked up.
    #[inline]
    pub(crate) fn is_known(&self, looked: Looked) -> bool {
        match looked {
            Looked::Alone => false,
            Looked::Four(at) => self.four.looked(at).is_some(),
            Looked::Six(at) => self.six.looked(at).is_some(),
        }
    }
}

/// Those of one family.
pub(super) struct Keys<K> {
    keys: Vec<K>,
    slots: Vec<Slot>,
}

impl<K> Default for Keys<K> {
    fn default() -> Self {
        Keys { keys: Vec::new(), slots: Vec::new() }
    }
}

impl<K: Family> Keys<K> {
    /// The next packet, and whether its ends are in the other order in its key; nothing, if it
    /// has none.
    #[inline(always)]
    fn ask(&mut self, bytes: &[u8], headers: &Headers) -> Option<(u32, bool)> {
        let (key, swapped) = K::of_packet(bytes, headers)?.ordered();
        self.keys.push(key);
        Some((self.keys.len() as u32 - 1, swapped))
    }

    fn look(&mut self, side: &Side<K>) {
        self.slots.clear();
        self.slots.resize(self.keys.len(), Slot::NONE);
        side.find_all(&self.keys, &mut self.slots);
    }

    /// What was found for a packet.
    #[inline]
    pub(super) fn looked(&self, (number, swapped): (u32, bool)) -> Option<Hit> {
        let (id, is_second) = self.slots.get(number as usize)?.entry()?;
        Some(Hit { id, is_second, swapped })
    }

    /// What is found for it now.
    pub(super) fn look_again(&self, (number, swapped): (u32, bool), side: &Side<K>) -> Option<Hit> {
        side.find_key(self.keys.get(number as usize)?, swapped)
    }
}
