//! The neighbour table of ARP and neighbour discovery: addresses, and packets that wait for their
//! resolution.
//!
//! The table has no clock: callers pass the time in nanoseconds.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use rapidhash::fast::RandomState;

use crate::address::Address;
use entry::{Entry, Links, List, NIL, NONE};

const SECOND: u64 = 1_000_000_000;
/// How many entries one part of a listing covers: about 200 µs.
const ENTRIES_PER_PART: usize = 256;

/// Sorts lines of [`ArpTable::listing`] by age, the oldest first.
pub fn sort_oldest_first(text: String) -> String {
    // Microseconds have six digits, so the age without the point is a number.
    let age = |line: &&str| -> Option<u64> {
        line.trim_end().rsplit(' ').next()?.replace('.', "").parse().ok()
    };
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_by_cached_key(|line| std::cmp::Reverse(age(line)));
    lines.concat()
}

/// The limits of a table, in Click's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `CAPACITY`: queued packets in all; 0 means [`Limits::MAX`].
    pub capacity: usize,
    /// `ENTRY_CAPACITY`: entries; 0 means [`Limits::MAX`].
    pub entry_capacity: usize,
    /// `ENTRY_PACKET_CAPACITY`: queued packets for one address; 0 means no limit but `capacity`.
    pub entry_packet_capacity: usize,
    /// `PACKET_TIMEOUT`: nanoseconds after which the packets for an address are dropped, counted
    /// from the first of them; 0 for never.
    pub packet_timeout: u64,
    /// `CAPACITY_SLIM_FACTOR`: one of so many queued packets is dropped if there are too many.
    pub slim_factor: usize,
    /// `TIMEOUT`: nanoseconds after which an entry expires, 0 for never.
    pub timeout: u64,
}

impl Limits {
    /// The limit for "unlimited": other hosts can fill the table, so there must be one.
    pub const MAX: usize = 1 << 20;
    /// The default number of entries: as many as hosts on a link may have, about 8 MB.
    pub const ENTRIES: u32 = 1 << 16;
    /// The default number of packets for one address: about as many short ones as Linux queues
    /// (`unres_qlen_bytes`, which is 101 long ones).
    pub const ENTRY_PACKETS: u32 = 256;
    /// The default packet timeout: as long as Linux sends queries (`mcast_solicit` times
    /// `retrans_time`).
    pub const PACKET_TIMEOUT: Duration = Duration::from_secs(3);
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            capacity: 2048,
            entry_capacity: Limits::ENTRIES as usize,
            entry_packet_capacity: Limits::ENTRY_PACKETS as usize,
            packet_timeout: Limits::PACKET_TIMEOUT.as_nanos() as u64,
            slim_factor: 2,
            timeout: 300 * SECOND,
        }
    }
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The Ethernet address.
    Known([u8; 6]),
    /// The Ethernet address, which is getting old: the caller should send a query.
    Stale([u8; 6]),
    /// The address is unknown or has expired.
    Unknown,
}

/// The result of queueing a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum EnqueueResult<P> {
    /// The packet is queued; if `query`, the caller should send a query.
    Queued {
        /// Whether to send a query now.
        query: bool,
    },
    /// The address is known; the packet is returned.
    Known([u8; 6], P),
    /// Too many packets are queued for this address; the packet is returned.
    Full(P),
}

/// Ethernet addresses by IPv4 address (IPv6 with `u128`), in host byte order, and queued packets of
/// type `P`. Packets that the table drops are counted.
///
/// The work per packet is bounded, apart from the removal of expired entries. If there is no room
/// for another entry, the oldest one without a reply is removed, and only if there is none the
/// oldest of all: a scan of unused addresses displaces no neighbour.
#[derive(Debug)]
pub struct ArpTable<P, A = u32> {
    limits: Limits,
    index: HashMap<A, u32, RandomState>,
    entries: Vec<Entry<P, A>>,
    free: Vec<u32>,
    /// The first and the last entry of each [`List`], as `next` and `previous`.
    ends: [Links; 3],
    queued: usize,
    drops: u64,
    /// The latest packet that was dropped and not taken.
    dropped: Option<P>,
    /// Entries visited to make room.
    #[cfg(test)]
    visits: u64,
}

impl<P, A: Address> ArpTable<P, A> {
    /// An empty table.
    pub fn new(limits: Limits) -> Self {
        ArpTable {
            limits,
            index: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            ends: [NONE; 3],
            queued: 0,
            drops: 0,
            dropped: None,
            #[cfg(test)]
            visits: 0,
        }
    }

    /// The limits of the table.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Changes the limits; surplus entries and packets are dropped with the next packet or expiry.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The number of entries.
    pub fn count(&self) -> usize {
        self.index.len()
    }

    /// The number of queued packets.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// The number of dropped packets.
    pub fn drops(&self) -> u64 {
        self.drops
    }

    /// The Ethernet address of `ip`. If no reply came for `poll` nanoseconds (0 for never), the
    /// result is `Stale`, at most every tenth of a second.
    #[inline]
    pub fn lookup(&mut self, ip: A, now: u64, poll: u64) -> Lookup {
        let Some(at) = self.known(ip, now) else { return Lookup::Unknown };
        let entry = &mut self.entries[at];
        if entry.is_to_poll(now, poll) {
            entry.mark_poll(now);
            return Lookup::Stale(entry.ether);
        }
        Lookup::Known(entry.ether)
    }

    /// The Ethernet address of `ip` where [`lookup`](ArpTable::lookup) would find it `Known`; changes nothing.
    #[inline]
    pub fn peek(&self, ip: A, now: u64, poll: u64) -> Option<[u8; 6]> {
        let entry = &self.entries[self.known(ip, now)?];
        (!entry.is_to_poll(now, poll)).then_some(entry.ether)
    }

    /// The place of the entry for `ip`, if it has an address.
    #[inline]
    fn known(&self, ip: A, now: u64) -> Option<usize> {
        let at = *self.index.get(&ip)? as usize;
        let entry = &self.entries[at];
        (entry.known && !entry.expired(now, self.limits.timeout)).then_some(at)
    }

    /// Whether there is an entry for `ip`, with or without an address.
    pub fn contains(&self, ip: A) -> bool {
        self.index.contains_key(&ip)
    }

    /// The address whose Ethernet address is `ether`, if one is known.
    pub fn reverse_lookup(&self, ether: [u8; 6]) -> Option<A> {
        self.list(List::Known).find(|e| e.ether == ether).map(|e| e.ip)
    }

    /// Sets the Ethernet address of `ip` and returns the packets that were queued for it, in order.
    ///
    /// The broadcast address makes the entry unknown again.
    pub fn insert(&mut self, ip: A, ether: [u8; 6], now: u64) -> VecDeque<P> {
        let at = self.find_or_add(ip, now);
        self.unlink(List::of_age(self.entries[at as usize].known), at);
        let entry = &mut self.entries[at as usize];
        entry.ether = ether;
        entry.known = ether != [0xFF; 6];
        entry.live_at = now;
        entry.polls = 0;
        entry.polled_at = None;
        let list = List::of_age(entry.known);
        self.link(list, at, self.insertion_point(list, now));
        self.take_packets(at)
    }

    /// Calls `each` with some of the addresses whose Ethernet address is known, with that and the time at
    /// which it was confirmed, from position `from` on; returns the position behind them, if there are more.
    pub fn export(&self, from: u64, mut each: impl FnMut(A, [u8; 6], u64)) -> Option<u64> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let end = from.saturating_add(ENTRIES_PER_PART).min(self.entries.len());
        let entries = self.entries.get(from..end).unwrap_or_default();
        for (at, entry) in (from..end).zip(entries) {
            // The entry may be free.
            if entry.known && self.index.get(&entry.ip) == Some(&(at as u32)) {
                each(entry.ip, entry.ether, entry.live_at);
            }
        }
        (end < self.entries.len()).then_some(end as u64)
    }

    /// Takes over the Ethernet address of `ip`, which was confirmed at `live_at`; returns the packets that
    /// were queued for it, in order.
    pub fn import(&mut self, ip: A, ether: [u8; 6], live_at: u64, now: u64) -> VecDeque<P> {
        let packets = self.insert(ip, ether, now);
        if let Some(&at) = self.index.get(&ip) {
            let list = List::of_age(self.entries[at as usize].known);
            self.unlink(list, at);
            let live_at = live_at.min(now);
            self.entries[at as usize].live_at = live_at;
            self.link(list, at, self.insertion_point(list, live_at));
        }
        packets
    }

    /// Removes the entry of `ip`, and drops the packets that are queued for it.
    pub fn forget(&mut self, ip: A) {
        if let Some(&at) = self.index.get(&ip) {
            self.remove(at);
        }
    }

    /// Queues a packet until the address of `ip` is known.
    pub fn enqueue(&mut self, ip: A, packet: P, now: u64) -> EnqueueResult<P> {
        let at = self.find_or_add(ip, now);
        let limits = self.limits;
        let entry = &self.entries[at as usize];
        if entry.known && !entry.expired(now, limits.timeout) {
            return EnqueueResult::Known(entry.ether, packet);
        }
        self.keep_unresolved(at, now);
        self.drop_timed_out(now);
        let entry = &self.entries[at as usize];
        let max_packets = limits.entry_packet_capacity;
        if max_packets != 0 && entry.queued.len() >= max_packets {
            self.drops += 1;
            return EnqueueResult::Full(packet);
        }
        if self.queued + 1 > limit(limits.capacity) {
            self.slim_packets(1);
        }
        if self.entries[at as usize].queued.is_empty() {
            self.entries[at as usize].queued_since = now;
            self.link(List::Queued, at, self.ends[List::Queued as usize].previous);
        }
        let entry = &mut self.entries[at as usize];
        entry.queued.push_back(packet);
        self.queued += 1;
        let query = entry.may_poll(now);
        if query {
            entry.mark_poll(now);
        }
        EnqueueResult::Queued { query }
    }

    /// Drops expired entries, and surplus entries and packets. The caller runs this periodically.
    pub fn expire(&mut self, now: u64) {
        self.slim_entries(now, 0);
        self.drop_timed_out(now);
        if self.queued > limit(self.limits.capacity) {
            self.slim_packets(0);
        }
    }

    /// Takes all queued packets; those for the address that has been unresolved longest come first.
    pub fn take_queued(&mut self) -> Vec<P> {
        let mut all = Vec::with_capacity(self.queued);
        while let Some(at) = self.first(List::Queued) {
            all.extend(self.take_packets(at));
        }
        all
    }

    /// Removes all entries and drops all packets.
    pub fn clear(&mut self) {
        let queued = self.take_queued().into();
        self.discard(queued);
        let (drops, dropped) = (self.drops, self.dropped.take());
        *self = ArpTable { drops, dropped, ..ArpTable::new(self.limits) };
    }

    /// The latest packet that the table has dropped, which nobody has taken; as an example of them.
    pub fn take_dropped(&mut self) -> Option<P> {
        self.dropped.take()
    }

    /// Keeps a packet for [`ArpTable::take_dropped`] that was returned as [`EnqueueResult::Full`].
    pub fn set_dropped(&mut self, packet: P) {
        self.dropped = Some(packet);
    }

    /// Drops and counts packets; keeps the last one for [`ArpTable::take_dropped`].
    fn discard(&mut self, mut packets: VecDeque<P>) {
        self.drops += packets.len() as u64;
        if let Some(last) = packets.pop_back() {
            self.dropped = Some(last);
        }
    }

    /// One part of Click's `table` handler, from entry `from` on, and the start of the next part:
    /// address, 1 if known, Ethernet address and age of each entry. [`sort_oldest_first`] puts the
    /// lines in Click's order.
    pub fn listing(&self, now: u64, from: usize) -> (String, Option<usize>) {
        let (mut text, end) =
            (String::new(), from.saturating_add(ENTRIES_PER_PART).min(self.entries.len()));
        for (at, entry) in (from..end).zip(self.entries.get(from..end).unwrap_or_default()) {
            // The entry may be free.
            if self.index.get(&entry.ip) != Some(&(at as u32)) {
                continue;
            }
            let known = entry.known && !entry.expired(now, self.limits.timeout);
            let age = now.saturating_sub(entry.live_at) / 1000;
            let ether = entry.ether.map(|b| format!("{b:02X}")).join("-");
            let (ip, known) = (entry.ip.shown(), u8::from(known));
            let (seconds, micros) = (age / 1_000_000, age % 1_000_000);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{ip} {known} {ether} {seconds}.{micros:06}");
        }
        (text, (end < self.entries.len()).then_some(end))
    }

    fn list(&self, list: List) -> impl Iterator<Item = &Entry<P, A>> {
        let entry = |at: u32| self.entries.get(at as usize);
        let first = entry(self.ends[list as usize].next);
        std::iter::successors(first, move |e| entry(e.links[list.links()].next))
    }

    fn first(&self, list: List) -> Option<u32> {
        Some(self.ends[list as usize].next).filter(|&at| at != NIL)
    }

    /// The entry of `ip`, a new one if there is none.
    fn find_or_add(&mut self, ip: A, now: u64) -> u32 {
        if let Some(&at) = self.index.get(&ip) {
            return at;
        }
        self.slim_entries(now, 1);
        let entry = Entry {
            ip,
            ether: [0xFF; 6],
            known: false,
            polls: 0,
            live_at: now,
            polled_at: None,
            queued: VecDeque::new(),
            queued_since: now,
            links: [NONE; 2],
        };
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(at as usize) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.index.insert(ip, at);
        self.link(List::Unknown, at, self.insertion_point(List::Unknown, now));
        at
    }

    /// Keeps an expired entry that packets still ask for, without its address.
    fn keep_unresolved(&mut self, at: u32, now: u64) {
        let timeout = self.limits.timeout;
        let oldest_live = now.saturating_sub(timeout);
        let entry = &mut self.entries[at as usize];
        if timeout == 0 || entry.live_at >= oldest_live {
            return;
        }
        entry.live_at = oldest_live;
        let was_known = std::mem::take(&mut entry.known);
        self.unlink(List::of_age(was_known), at);
        // All older entries have expired.
        self.drop_expired(List::Unknown, now);
        self.link(List::Unknown, at, NIL);
    }

    /// Drops expired entries, then the oldest until there is room for `more`: those without a reply
    /// first.
    fn slim_entries(&mut self, now: u64, more: usize) {
        self.drop_expired(List::Unknown, now);
        self.drop_expired(List::Known, now);
        while self.index.len() + more > limit(self.limits.entry_capacity)
            && let Some(at) = self.first(List::Unknown).or(self.first(List::Known))
        {
            self.remove(at);
        }
    }

    fn drop_expired(&mut self, list: List, now: u64) {
        while let Some(at) = self.first(list)
            && self.entries[at as usize].expired(now, self.limits.timeout)
        {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: u32) {
        self.count_visit();
        let packets = self.take_packets(at);
        self.discard(packets);
        let Entry { ip, known, .. } = self.entries[at as usize];
        self.unlink(List::of_age(known), at);
        self.index.remove(&ip);
        self.free.push(at);
    }

    /// Drops packets that have been queued too long.
    fn drop_timed_out(&mut self, now: u64) {
        let timeout = self.limits.packet_timeout;
        while timeout != 0
            && let Some(at) = self.first(List::Queued)
            && now >= self.entries[at as usize].queued_since.saturating_add(timeout)
        {
            self.count_visit();
            let packets = self.take_packets(at);
            self.discard(packets);
        }
    }

    /// Drops one of `slim_factor` packets and makes room for `more`. Packets for the address that
    /// has been unresolved longest go first.
    fn slim_packets(&mut self, more: usize) {
        let capacity = limit(self.limits.capacity);
        let keep = (capacity - capacity / self.limits.slim_factor.max(1)).max(1) - more;
        while self.queued > keep
            && let Some(at) = self.first(List::Queued)
        {
            self.count_visit();
            let entry = &mut self.entries[at as usize];
            let surplus = self.queued - keep;
            if entry.queued.len() > surplus {
                let packets = entry.queued.drain(..surplus).collect();
                self.queued -= surplus;
                self.discard(packets);
            } else {
                let packets = self.take_packets(at);
                self.discard(packets);
            }
        }
    }

    /// Takes all packets that are queued for an entry.
    fn take_packets(&mut self, at: u32) -> VecDeque<P> {
        let packets = std::mem::take(&mut self.entries[at as usize].queued);
        if !packets.is_empty() {
            self.unlink(List::Queued, at);
        }
        self.queued -= packets.len();
        packets
    }

    /// The entry after which one with `live_at` equal to `now` is inserted in a list by age: the
    /// last, unless the clock was set back or the entry comes from another table. Only some entries
    /// are looked at: one that is placed behind younger ones expires with them, at the latest.
    fn insertion_point(&self, list: List, now: u64) -> u32 {
        const MOST: usize = 256;
        let mut after = self.ends[list as usize].previous;
        for _ in 0..MOST {
            let Some(entry) = self.entries.get(after as usize).filter(|e| e.live_at > now) else {
                break;
            };
            after = entry.links[list.links()].previous;
        }
        after
    }

    fn link(&mut self, list: List, at: u32, after: u32) {
        let next = std::mem::replace(&mut self.links_of(list, after).next, at);
        self.links_of(list, next).previous = at;
        *self.links_of(list, at) = Links { previous: after, next };
    }

    fn unlink(&mut self, list: List, at: u32) {
        let Links { previous, next } = *self.links_of(list, at);
        self.links_of(list, previous).next = next;
        self.links_of(list, next).previous = previous;
    }

    /// The links of an entry, or the ends of the list.
    fn links_of(&mut self, list: List, at: u32) -> &mut Links {
        match self.entries.get_mut(at as usize) {
            Some(entry) => &mut entry.links[list.links()],
            None => &mut self.ends[list as usize],
        }
    }

    fn count_visit(&mut self) {
        #[cfg(test)]
        {
            self.visits += 1;
        }
    }
}

/// A limit from Click's arguments, where 0 means unlimited.
fn limit(value: usize) -> usize {
    if value == 0 { Limits::MAX } else { value.min(Limits::MAX) }
}
