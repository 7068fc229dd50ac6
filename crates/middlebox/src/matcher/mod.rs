//! Looks up the rules that match packets, in tables.

mod compile;
mod counters;
mod keys;
mod rule_key;
mod slots;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use crate::ct_state::CtState;
use crate::headers::{self, Headers};
use crate::match_packet::PacketView;
use castanet_kit::rules::{Key, RuleMatch};
use castanet_packet::Packet;
use std::sync::Arc;

#[cfg(test)]
pub(crate) use compile::CompiledRule;
use counters::RuleCounters;
use rule_key::RuleIndex;
pub(crate) use rule_key::RuleKey;
use slots::PackedRule;
pub(crate) use slots::{ACCEPTS, CHANGES, DROPS, INEXACT, MAX_SLOTS, RuleRef, RuleSlots, STATEFUL};
pub use tables::Tables;

/// A rule that the table found for a packet.
#[derive(Clone, Copy)]
struct Match {
    /// Index of the packet's key.
    key: u32,
    /// The rule.
    rule: PackedRule,
}

/// The hits of one packet among those of a burst.
#[derive(Clone, Copy, Default)]
pub(crate) struct PacketHits {
    first: usize,
    count: usize,
}

impl PacketHits {
    /// The packet's own of all hits.
    #[inline]
    fn of(self, all: &[Match]) -> &[Match] {
        all.get(self.first..self.first + self.count).unwrap_or_default()
    }
}

/// Finds the rules that match the packets of a burst, for one worker, and counts the matches. The
/// result is that of [`Rule::matches_packet`](crate::rule::Rule::matches_packet) for each rule.
#[derive(Default)]
pub struct Matcher {
    tables: Arc<Tables>,
    counters: RuleCounters,
    rule_index: RuleIndex,
    /// Keys of the burst; entries from `burst_len` on are left over from earlier bursts.
    keys: Vec<Key>,
    burst_len: usize,
    /// Whether a packet of the burst is not IP.
    has_non_ip: bool,
    hits: Vec<Match>,
    /// Index of the first hit of the packet that was asked for last.
    next_hit: usize,
}

impl Matcher {
    /// Switches to other tables. Counters stay with their rules.
    pub fn set_tables(&mut self, tables: &Arc<Tables>) {
        let before = std::mem::replace(&mut self.tables, tables.clone());
        self.counters.set_rules(before.rules(), tables.rules());
    }

    /// The tables.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Returns the rules by slot.
    #[inline]
    pub(crate) fn slots(&self) -> &RuleSlots {
        &self.tables.slots
    }

    /// Returns the counters.
    pub(crate) fn counters(&self) -> &RuleCounters {
        &self.counters
    }

    /// Counts a packet for the rule in a slot.
    #[inline]
    pub(crate) fn count(&mut self, slot: u32, bytes: usize) {
        self.counters.count(slot, bytes);
    }

    /// Starts a burst; the caller adds its packets in order with [`Matcher::push`].
    pub fn start_burst(&mut self) {
        (self.burst_len, self.has_non_ip) = (0, false);
    }

    /// Returns the key of the next packet.
    #[inline]
    fn next_key(&mut self) -> Option<&mut Key> {
        if self.burst_len == self.keys.len() {
            self.keys.push(Key::default());
        }
        self.burst_len += 1;
        self.keys.get_mut(self.burst_len - 1)
    }

    /// Adds the next packet of the burst.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], headers: &Headers) {
        let with_options = self.tables.with_options;
        if let Some(key) = self.next_key() {
            keys::fill(key, bytes, headers, with_options);
        }
    }

    /// As [`Matcher::push`], for any packet: one that is not IP matches no rule. Returns whether
    /// the packet is a fragment or has truncated headers.
    #[inline(always)]
    pub(crate) fn push_packet(&mut self, packet: &Packet) -> bool {
        let with_options = self.tables.with_options;
        let Some(key) = self.next_key() else { return false };
        let network = packet.network_offset().and_then(|at| usize::try_from(at).ok());
        let plain = network.and_then(|at| packet.bytes().get(at..));
        match plain.and_then(|bytes| keys::fill_plain(key, bytes, with_options)) {
            Some(()) => false,
            None => self.fill_last_key(packet),
        }
    }

    /// Adds the state of its connection to the packet that was added last.
    #[inline]
    pub(crate) fn set_state(&mut self, state: CtState) {
        if let Some(key) = self.burst_len.checked_sub(1).and_then(|at| self.keys.get_mut(at)) {
            keys::fill_state(key, state);
        }
    }

    /// Fills the key of the packet that was added last, by a call: as part of the loop over a burst
    /// it would slow down plain packets.
    #[inline(never)]
    fn fill_last_key(&mut self, packet: &Packet) -> bool {
        let with_options = self.tables.with_options;
        let Some(key) = self.keys.get_mut(self.burst_len - 1) else { return false };
        if let Some(headers) = headers::find_plain(packet) {
            keys::fill(key, packet.bytes(), &headers, with_options);
            return false;
        }
        match headers::find(packet) {
            Some(headers) => {
                keys::fill(key, packet.bytes(), &headers, with_options);
                headers.is_fragment || headers.is_cut()
            }
            None => {
                (*key, self.has_non_ip) = (Key::default(), true);
                false
            }
        }
    }

    /// Whether a packet of the burst is not IP.
    #[inline]
    pub(crate) fn has_non_ip(&self) -> bool {
        self.has_non_ip
    }

    /// Looks up all packets of the burst.
    pub fn look_up(&mut self) {
        let Matcher { tables, keys, hits, .. } = self;
        let keys = keys.get(..self.burst_len).unwrap_or_default();
        hits.clear();
        tables.table.for_each_match_of(keys, |RuleMatch { key, rule }| {
            hits.push(Match { key, rule: PackedRule(rule) })
        });
        if self.has_non_ip {
            hits.retain(|hits| keys.get(hits.key as usize).is_some_and(keys::is_of_ip));
        }
        self.next_hit = 0;
    }

    /// Finds the hits of a packet; callers ask for packets in order.
    #[inline]
    fn find_hits(&mut self, number: u32) -> PacketHits {
        let rest = self.hits.get(self.next_hit..).unwrap_or_default();
        let before = rest.iter().take_while(|hits| hits.key < number).count();
        let own = rest.get(before..).unwrap_or_default();
        let count = own.iter().take_while(|hits| hits.key == number).count();
        self.next_hit += before;
        PacketHits { first: self.next_hit, count }
    }

    /// Returns the union of the actions of the stateless rules that match a packet, or may match it
    /// ([`INEXACT`]), and the hits of the packet.
    #[inline]
    pub(crate) fn stateless_actions(&mut self, number: u32) -> (u8, PacketHits) {
        let own = self.find_hits(number);
        let wanted = own.of(&self.hits).iter().map(|hits| hits.rule.actions());
        let stateless = wanted.filter(|actions| actions & STATEFUL == 0);
        (stateless.fold(0, |all, actions| all | actions), own)
    }

    /// Whether all rules that match a packet drop it for certain, and do nothing else.
    pub(crate) fn is_dropped_only(&mut self, number: u32) -> bool {
        let own = self.find_hits(number);
        own.count > 0 && own.of(&self.hits).iter().all(|hits| hits.rule.actions() == DROPS)
    }

    /// Returns the union of the actions of all rules that match a packet, or may match it. Counts
    /// the packet for them, unless one of them has an action in `unless`.
    #[inline]
    pub(crate) fn count_unless(&mut self, number: u32, unless: u8, bytes: usize) -> u8 {
        let own = self.find_hits(number).of(&self.hits);
        let actions = own.iter().fold(0, |all, hits| all | hits.rule.actions());
        if actions & unless == 0 {
            own.iter().for_each(|hits| self.counters.count(hits.rule.slot(), bytes));
        }
        actions
    }

    /// Counts a drop for the first rule in rule order that drops packet `number`, of which
    /// [`Matcher::count_unless`] was asked last: mostly it is the only one.
    #[inline]
    pub(crate) fn count_own_drop(&mut self, number: u32) {
        match self.hits.get(self.next_hit..).unwrap_or_default() {
            [only, rest @ ..] if rest.first().is_none_or(|next| next.key != number) => {
                self.counters.count_drop(only.rule.slot());
            }
            _ => self.count_drop(Some(number), &[]),
        }
    }

    /// Counts a drop for the first rule in rule order that drops a packet: one of those that match it,
    /// or one of its connection.
    #[inline(never)]
    pub(crate) fn count_drop(&mut self, number: Option<u32>, own: &[RuleRef]) {
        let first = self.next_hit;
        let hits = self.hits.iter().skip(first).skip_while(|hit| Some(hit.key) < number);
        let hits = hits.take_while(|hit| Some(hit.key) == number).map(|hit| hit.rule);
        let stateless = hits.filter(|rule| rule.actions() & STATEFUL == 0);
        let slots = &self.tables.slots;
        let drops = |actions: u8| actions & DROPS != 0;
        let matched = stateless.filter(|rule| drops(rule.actions())).map(|rule| rule.slot());
        let own = own.iter().filter(|&&rule| slots.actions_of(rule).is_some_and(drops));
        let all = matched.chain(own.map(|rule| rule.slot));
        if let Some(slot) = all.min_by_key(|&slot| slots.rank(slot)) {
            self.counters.count_drop(slot);
        }
    }

    /// Counts a drop for the rule in a slot.
    pub(crate) fn count_drop_of(&mut self, slot: u32) {
        self.counters.count_drop(slot);
    }

    /// Rewinds, so that callers may ask for packets in order again.
    pub(crate) fn rewind(&mut self) {
        self.next_hit = 0;
    }

    /// Counts a packet of the burst with these hits for its stateless rules.
    #[inline]
    pub(crate) fn count_stateless(&mut self, own: PacketHits, bytes: usize) {
        for hits in own.of(&self.hits) {
            if hits.rule.actions() & STATEFUL == 0 {
                self.counters.count(hits.rule.slot(), bytes);
            }
        }
    }

    /// Puts the slots of all rules that match a packet of the burst into `found`, in rule order;
    /// callers ask for packets in order too.
    pub fn matching_rules(&mut self, number: u32, seen: &PacketView, found: &mut Vec<u32>) {
        found.clear();
        let own = self.find_hits(number);
        found.extend(own.of(&self.hits).iter().map(|hits| hits.rule.0));
        self.tables.retain(seen, found);
    }

    /// As [`Matcher::matching_rules`], for a packet outside a burst.
    pub(crate) fn matching_rules_of(&self, seen: &PacketView, found: &mut Vec<u32>) {
        self.tables.matching_rules(seen, found);
    }
}
