//! Which rules are about a packet: found in a table, however many there are.

mod compile;
mod counts;
mod keys;
mod places;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use crate::headers::Headers;
use crate::holds::Seen;
use castanet_kit::rules::{Key, RuleMatch};
use castanet_packet::Packet;
use std::sync::Arc;

use counts::Counts;
use places::Number;
pub(crate) use places::{ACCEPTS, CHANGES, DROPS, PLACES, Places, Reference, STATEFUL, VAGUE};
pub use tables::Tables;

/// A rule that a packet met.
#[derive(Clone, Copy)]
struct Met {
    /// The packet's number.
    key: u32,
    /// The rule.
    rule: Number,
}

/// Finds the rules that are about packets, for one worker, and counts for them. The same as
/// asking each rule ([`Rule::holds`](crate::rule::Rule::holds)), for many rules and a burst of
/// packets.
#[derive(Default)]
pub struct Matcher {
    tables: Arc<Tables>,
    counts: Counts,
    /// Of the packets of a burst; those behind `asked` are of an earlier one.
    keys: Vec<Key>,
    asked: usize,
    /// Whether one of them is no IP packet.
    has_others: bool,
    met: Vec<Met>,
    /// The first of the packet that was asked about last.
    first: usize,
}

impl Matcher {
    /// Looks rules up in these tables from now on. Counters stay with their rules.
    pub fn follow(&mut self, tables: &Arc<Tables>) {
        let before = std::mem::replace(&mut self.tables, tables.clone());
        self.counts.follow(before.rules(), tables.rules());
    }

    /// The tables.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// The rules by their places.
    #[inline]
    pub(crate) fn places(&self) -> &Places {
        &self.tables.places
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts a packet for the rule in a place.
    #[inline]
    pub(crate) fn count(&mut self, slot: u32, bytes: usize) {
        self.counts.count(slot, bytes);
    }

    /// Begins a burst: its packets come in order, by [`Matcher::ask`].
    pub fn begin(&mut self) {
        (self.asked, self.has_others) = (0, false);
    }

    /// The key of the next packet.
    #[inline]
    fn next(&mut self) -> Option<&mut Key> {
        if self.asked == self.keys.len() {
            self.keys.push(Key::default());
        }
        self.asked += 1;
        self.keys.get_mut(self.asked - 1)
    }

    /// The next packet of the burst.
    #[inline]
    pub fn ask(&mut self, bytes: &[u8], headers: &Headers) {
        let with_options = self.tables.with_options;
        if let Some(key) = self.next() {
            keys::fill(key, bytes, headers, with_options);
        }
    }

    /// The same; a packet that is none of IP meets no rule. Whether it is a fragment, or cut short.
    #[inline]
    pub(crate) fn ask_any(&mut self, packet: &Packet) -> bool {
        let with_options = self.tables.with_options;
        let Some(key) = self.next() else { return false };
        let network = packet.network_offset().and_then(|at| usize::try_from(at).ok());
        let plain = network.and_then(|at| packet.bytes().get(at..));
        if plain.and_then(|bytes| keys::fill_plain(key, bytes, with_options)).is_some() {
            return false;
        }
        if let Some(headers) = Headers::plain(packet) {
            keys::fill(key, packet.bytes(), &headers, with_options);
            return false;
        }
        match Headers::find(packet) {
            Some(headers) => {
                keys::fill(key, packet.bytes(), &headers, with_options);
                headers.is_fragment || headers.is_cut()
            }
            None => {
                (*key, self.has_others) = (Key::default(), true);
                false
            }
        }
    }

    /// Whether some packet of the burst is none of IP.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        self.has_others
    }

    /// Looks all packets of the burst up.
    pub fn look(&mut self) {
        let Matcher { tables, keys, met, .. } = self;
        let keys = keys.get(..self.asked).unwrap_or_default();
        met.clear();
        tables.table.for_each_match_of(keys, |RuleMatch { key, rule }| {
            met.push(Met { key, rule: Number(rule) })
        });
        if self.has_others {
            met.retain(|met| keys.get(met.key as usize).is_some_and(keys::is_of_ip));
        }
        self.first = 0;
    }

    /// What a packet of the burst met; packets are asked about in their order.
    #[inline]
    fn met(&mut self, number: u32) -> &[Met] {
        let mut rest = self.met.get(self.first..).unwrap_or_default();
        while let Some((first, behind)) = rest.split_first()
            && first.key < number
        {
            (rest, self.first) = (behind, self.first + 1);
        }
        let own = rest.iter().take_while(|met| met.key == number).count();
        rest.get(..own).unwrap_or_default()
    }

    /// What the rules do together that are about a packet of the burst, or may be
    /// ([`VAGUE`]), but those about connections.
    #[inline]
    pub(crate) fn stateless_does(&mut self, number: u32) -> u8 {
        let wanted = self.met(number).iter().map(|met| met.rule.does());
        wanted.filter(|does| does & STATEFUL == 0).fold(0, |all, does| all | does)
    }

    /// What all rules do together that are about a packet of the burst, or may be. Counts it
    /// for them, if none of them does any of `unless`.
    #[inline]
    pub(crate) fn counted(&mut self, number: u32, unless: u8, bytes: usize) -> u8 {
        let mut at = self.first;
        while self.met.get(at).is_some_and(|met| met.key < number) {
            at += 1;
        }
        self.first = at;
        let mut does = 0;
        while let Some(met) = self.met.get(at).filter(|met| met.key == number) {
            (does, at) = (does | met.rule.does(), at + 1);
        }
        if does & unless == 0 {
            for met in self.met.get(self.first..at).unwrap_or_default() {
                self.counts.count(met.rule.slot(), bytes);
            }
        }
        does
    }

    /// From here on packets are asked about that come after this one, again.
    pub(crate) fn again(&mut self) {
        self.first = 0;
    }

    /// Counts a packet of the burst for the rules that are not about connections.
    pub(crate) fn count_stateless(&mut self, number: u32, bytes: usize) {
        let own = self.met(number).len();
        for met in self.met.iter().skip(self.first).take(own) {
            if met.rule.does() & STATEFUL == 0 {
                self.counts.count(met.rule.slot(), bytes);
            }
        }
    }

    /// Puts the places of all rules that are about a packet of the burst into `found`, in
    /// the order of the rules; packets are asked about in order too.
    pub fn matching(&mut self, number: u32, seen: &Seen, found: &mut Vec<u32>) {
        found.clear();
        found.extend(self.met(number).iter().map(|met| met.rule.0));
        self.tables.retain(seen, found);
    }

    /// The same of a packet of no burst.
    pub(crate) fn matching_alone(&self, seen: &Seen, found: &mut Vec<u32>) {
        self.tables.matching(seen, found);
    }
}
