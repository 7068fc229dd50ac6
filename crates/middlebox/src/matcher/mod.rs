//! Which rules are about a packet: found in a table, however many there are.

mod compile;
mod keys;
mod places;
#[cfg(test)]
mod tests;

use crate::headers::Headers;
use crate::holds::Seen;
use crate::rules::{Change, Entry, Rules};
use castanet_kit::parallel;
use castanet_kit::rules::{Hit, Key, Mask, Table, WORDS};
use castanet_packet::Packet;
use compile::Compiled;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(crate) use places::{ACCEPTS, CHANGES, DROPS, Places, Reference, STATEFUL, VAGUE};

/// With so many new rules at once it is worth it to choose the table's probes anew.
const MANY: usize = 100;
/// So many new rules are compiled before the first of them is put into the table.
const ROUND: usize = 1 << 14;

/// A rule that a packet met.
#[derive(Clone, Copy)]
struct Met {
    /// The packet's number.
    key: u32,
    /// The rule's place.
    rule: u32,
    /// What the rule does, in short.
    does: u8,
}

/// Finds the rules that are about packets. The same as asking each rule
/// ([`Rule::holds`](crate::rule::Rule::holds)), for many rules and a burst of packets.
#[derive(Clone, Default)]
pub struct Matcher {
    table: Table,
    pub(crate) places: Places,
    /// Whether a rule looks at TCP options.
    with_options: bool,
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
    /// Learns the rules as they are now, if `before` is what it knows. What a few commands
    /// have changed is a matter of microseconds; else it looks at all.
    pub fn follow(&mut self, before: &Rules, rules: &Rules) {
        match rules.changes_since(before) {
            Some(changes) => changes.iter().for_each(|change| self.change(change)),
            None => self.learn(rules),
        }
        self.with_options =
            self.table.masks().any(|it| it.mask & keys::OF_OPTIONS != Key::default());
    }

    /// Learns the rules of another configuration: those that say the same as one `before` go
    /// on counting for it. By which rules are remembered from now on.
    pub(crate) fn adopt(&mut self, before: &Rules, rules: &Rules) -> HashMap<Reference, Reference> {
        let old = self.places.clone();
        self.follow(before, rules);
        let counterparts = before.counterparts(rules);
        let heirs = before.entries().filter_map(|entry| {
            let new = counterparts[entry.slot]?;
            self.places.set_count(new.slot, old.counted(entry.slot));
            Some((Reference::to(entry), Reference::to(new)))
        });
        heirs.collect()
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Came(rank, entry) => self.put(entry, *rank),
            Change::Went(entry) => self.take(entry.slot),
            Change::Moved(rank, entry) => self.places.rank(entry.slot, *rank),
        }
    }

    /// Looks at all rules.
    fn learn(&mut self, rules: &Rules) {
        self.places.grow(rules.slots());
        let mut is_used = vec![false; self.places.slots()];
        let mut new = Vec::new();
        for (rank, entry) in rules.ranked() {
            is_used[entry.slot] = true;
            match self.places.entry(entry.slot as u32) {
                Some(held) if Arc::ptr_eq(held, entry) => self.places.rank(entry.slot, rank),
                _ => new.push((rank, entry)),
            }
        }
        for some in new.chunks(ROUND) {
            let compiled = parallel::map(some, MANY, |(_, entry)| Compiled::of(&entry.rule));
            for ((rank, entry), compiled) in some.iter().zip(&compiled) {
                self.take(entry.slot);
                self.put_compiled(entry, *rank, compiled);
            }
        }
        let unused = is_used.iter().enumerate().filter(|(_, is_used)| !**is_used);
        unused.for_each(|(slot, _)| self.take(slot));
        if new.len() > MANY {
            self.table.settle();
        }
    }

    fn put(&mut self, entry: &Arc<Entry>, rank: u64) {
        self.put_compiled(entry, rank, &Compiled::of(&entry.rule));
    }

    fn put_compiled(&mut self, entry: &Arc<Entry>, rank: u64, compiled: &Compiled) {
        for key in &compiled.keys {
            self.table.insert(entry.slot as u32, key);
        }
        self.places.put(entry, rank, compiled);
    }

    fn take(&mut self, slot: usize) {
        if let Some(entry) = self.places.take(slot) {
            for key in &Compiled::of(&entry.rule).keys {
                self.table.remove(slot as u32, key);
            }
        }
    }

    /// The masks of the rules.
    pub fn masks(&self) -> impl Iterator<Item = Mask> {
        self.table.masks()
    }

    /// The table that rules are found by; `verbose` with its masks and their rules.
    pub fn tables(&self, verbose: bool) -> String {
        let (table, count) = (&self.table, self.places.len());
        let mut text = format!(
            "table of {count} rules, {} keys, {} masks, {} probes, {} bytes\n",
            table.len(),
            table.masks().count(),
            table.probes(),
            table.memory()
        );
        if verbose {
            self.contents().iter().for_each(|line| text.push_str(line));
        }
        text
    }

    /// The masks, and under each the rules that have keys of it.
    fn contents(&self) -> Vec<String> {
        let mut rules: BTreeMap<[u64; WORDS], BTreeMap<u64, String>> = BTreeMap::new();
        for (rank, entry) in self.places.iter() {
            for key in Compiled::of(&entry.rule).keys {
                let line = || format!("  id{} {}\n", entry.id, entry.rule);
                let of_mask = rules.entry(key.mask().0).or_default();
                of_mask.entry(rank).or_insert_with(line);
            }
        }
        let counts: HashMap<Key, usize> =
            self.table.masks().map(|mask| (mask.mask, mask.values)).collect();
        let lines = rules.into_iter().flat_map(|(mask, rules)| {
            let words: Vec<String> = mask.iter().map(|it| format!("{it:x}")).collect();
            let keys = counts.get(&Key(mask)).copied().unwrap_or_default();
            let head = format!("mask {} keys {keys}\n", words.join(" "));
            std::iter::once(head).chain(rules.into_values())
        });
        lines.collect()
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
        let with_options = self.with_options;
        if let Some(key) = self.next() {
            keys::fill(key, bytes, headers, with_options);
        }
    }

    /// The same; a packet that is none of IP meets no rule.
    #[inline]
    pub(crate) fn ask_any(&mut self, packet: &Packet) {
        let with_options = self.with_options;
        let Some(key) = self.next() else { return };
        let network = packet.network_offset().and_then(|at| usize::try_from(at).ok());
        let plain = network.and_then(|at| packet.bytes().get(at..));
        if plain.and_then(|bytes| keys::fill_plain(key, bytes, with_options)).is_some() {
            return;
        }
        if let Some(headers) = Headers::plain(packet) {
            return keys::fill(key, packet.bytes(), &headers, with_options);
        }
        match Headers::find(packet) {
            Some(headers) => keys::fill(key, packet.bytes(), &headers, with_options),
            None => (*key, self.has_others) = (Key::default(), true),
        }
    }

    /// Looks all packets of the burst up.
    pub fn look(&mut self) {
        let Matcher { table, places, keys, met, .. } = self;
        let keys = keys.get(..self.asked).unwrap_or_default();
        met.clear();
        table.each_of(keys, |Hit { key, rule }| met.push(Met { key, rule, does: 0 }));
        // All lines of all rules at once.
        met.iter_mut().for_each(|met| met.does = places.does(met.rule));
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
        let wanted = self.met(number).iter().filter(|it| it.does & STATEFUL == 0);
        wanted.fold(0, |all, met| all | met.does)
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
            (does, at) = (does | met.does, at + 1);
        }
        if does & unless == 0 {
            for met in self.met.get(self.first..at).unwrap_or_default() {
                self.places.count(met.rule, bytes);
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
            if met.does & STATEFUL == 0 {
                self.places.count(met.rule, bytes);
            }
        }
    }

    /// Puts the places of all rules that are about a packet of the burst into `found`, in
    /// the order of the rules; packets are asked about in order too.
    pub fn matching(&mut self, number: u32, seen: &Seen, found: &mut Vec<u32>) {
        found.clear();
        found.extend(self.met(number).iter().map(|met| met.rule));
        self.retain(seen, found);
    }

    /// The same of a packet of no burst.
    pub(crate) fn matching_alone(&self, seen: &Seen, found: &mut Vec<u32>) {
        let mut key = Key::default();
        keys::fill(&mut key, seen.bytes, seen.headers, self.with_options);
        found.clear();
        self.table.each(&key, |rule| found.push(rule));
        self.retain(seen, found);
    }

    /// Leaves of rules that were found those that are about the packet, in order.
    fn retain(&self, seen: &Seen, found: &mut Vec<u32>) {
        let holds = |slot: u32| self.places.entry(slot).is_some_and(|it| it.rule.holds(seen));
        found.retain(|&slot| self.places.does(slot) & VAGUE == 0 || holds(slot));
        self.places.sort(found);
    }
}
