//! The table behind ARP and neighbour discovery: addresses learnt, and packets that wait for
//! an answer.
//!
//! There is no clock here: callers say what time it is, in nanoseconds.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::fmt::Write as _;

use rapidhash::fast::RandomState;

use crate::address::Address;

const SECOND: u64 = 1_000_000_000;
/// How long to wait between two queries for one address, and after ten without an answer.
const POLL_GAP: u64 = SECOND / 10;
const POLL_GAP_SLOW: u64 = 2 * SECOND;
const PATIENCE: u8 = 10;

/// How much a table may hold, in Click's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `CAPACITY`: packets waiting in all; 0 means [`Limits::MOST`].
    pub capacity: usize,
    /// `ENTRY_CAPACITY`: entries; 0 means [`Limits::MOST`].
    pub entry_capacity: usize,
    /// `ENTRY_PACKET_CAPACITY`: packets waiting for one address; 0 means no limit but `capacity`.
    pub entry_packet_capacity: usize,
    /// `CAPACITY_SLIM_FACTOR`: one of so many waiting packets is dropped if there are too many.
    pub slim_factor: usize,
    /// `TIMEOUT`: nanoseconds after which an entry expires, 0 for never.
    pub timeout: u64,
}

impl Limits {
    /// What stands in for "unlimited", which nothing that strangers can fill may be.
    pub const MOST: usize = 1 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            capacity: 2048,
            entry_capacity: 0,
            entry_packet_capacity: 0,
            slim_factor: 2,
            timeout: 300 * SECOND,
        }
    }
}

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The Ethernet address.
    Known([u8; 6]),
    /// The Ethernet address, which is getting old: ask for it again.
    Stale([u8; 6]),
    /// Nothing, or something expired.
    Unknown,
}

/// What became of a packet that was to wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Wait<P> {
    /// It waits; if `query`, it is time to ask for the address.
    Queued {
        /// Whether to send a query now.
        query: bool,
    },
    /// The address is known after all; here is the packet again.
    Known([u8; 6], P),
    /// Too many packets wait for this address already; here it is again.
    Full(P),
}

#[derive(Debug)]
struct Entry<P, A> {
    ip: A,
    ether: [u8; 6],
    known: bool,
    /// Queries since the last answer.
    polls: u8,
    live_at: u64,
    polled_at: Option<u64>,
    waiting: VecDeque<P>,
    /// Neighbours in the order of `live_at`.
    older: u32,
    younger: u32,
}

/// No neighbour.
const NIL: u32 = u32::MAX;

/// Ethernet addresses by IPv4 address (IPv6 with `u128`), in host byte order, and packets of
/// type `P` that wait for them. Packets that have to go are dropped and counted.
#[derive(Debug)]
pub struct ArpTable<P, A = u32> {
    limits: Limits,
    index: HashMap<A, u32, RandomState>,
    entries: Vec<Entry<P, A>>,
    free: Vec<u32>,
    oldest: u32,
    youngest: u32,
    waiting: usize,
    drops: u64,
}

impl<P, A: Address> ArpTable<P, A> {
    /// An empty table.
    pub fn new(limits: Limits) -> Self {
        ArpTable {
            limits,
            index: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            oldest: NIL,
            youngest: NIL,
            waiting: 0,
            drops: 0,
        }
    }

    /// What the table may hold.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Changes what the table may hold; what is too much goes with the next packet or expiry.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.index.len()
    }

    /// How many packets wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many packets had to go.
    pub fn drops(&self) -> u64 {
        self.drops
    }

    /// The Ethernet address of `ip`. Past `poll` nanoseconds (0 for never) without news it is
    /// stale, every tenth of a second at most.
    #[inline]
    pub fn lookup(&mut self, ip: A, now: u64, poll: u64) -> Lookup {
        let Some(&at) = self.index.get(&ip) else { return Lookup::Unknown };
        let timeout = self.limits.timeout;
        let entry = &mut self.entries[at as usize];
        if !entry.known || entry.expired(now, timeout) {
            return Lookup::Unknown;
        }
        if poll != 0 && now >= entry.live_at.saturating_add(poll) && entry.may_poll(now) {
            entry.mark_poll(now);
            return Lookup::Stale(entry.ether);
        }
        Lookup::Known(entry.ether)
    }

    /// Whether `ip` has been asked for, or is known.
    pub fn contains(&self, ip: A) -> bool {
        self.index.contains_key(&ip)
    }

    /// The address whose Ethernet address is `ether`, if one is known.
    pub fn reverse_lookup(&self, ether: [u8; 6]) -> Option<A> {
        self.ages().find(|e| e.known && e.ether == ether).map(|e| e.ip)
    }

    /// Learns an address, and returns the packets that waited for it, in order.
    ///
    /// The broadcast address makes the entry unknown again.
    pub fn insert(&mut self, ip: A, ether: [u8; 6], now: u64) -> VecDeque<P> {
        let at = self.ensure(ip, now);
        self.unlink(at);
        let after = self.place_for(now);
        self.link(at, after);
        let entry = &mut self.entries[at as usize];
        entry.ether = ether;
        entry.known = ether != [0xFF; 6];
        entry.live_at = now;
        entry.polls = 0;
        entry.polled_at = None;
        let packets = std::mem::take(&mut entry.waiting);
        self.waiting -= packets.len();
        packets
    }

    /// Makes a packet wait for the address of `ip`.
    pub fn wait(&mut self, ip: A, packet: P, now: u64) -> Wait<P> {
        let at = self.ensure(ip, now);
        let limits = self.limits;
        let entry = &self.entries[at as usize];
        if entry.known && !entry.expired(now, limits.timeout) {
            return Wait::Known(entry.ether, packet);
        }
        self.keep(at, now);
        let entry = &self.entries[at as usize];
        let most = limits.entry_packet_capacity;
        if most != 0 && entry.waiting.len() >= most {
            self.drops += 1;
            return Wait::Full(packet);
        }
        if self.waiting + 1 > limit(limits.capacity) {
            self.slim_packets(1);
        }
        let entry = &mut self.entries[at as usize];
        entry.waiting.push_back(packet);
        self.waiting += 1;
        let query = entry.may_poll(now);
        if query {
            entry.mark_poll(now);
        }
        Wait::Queued { query }
    }

    /// Forgets what has expired, and what there is no room for. To be called every so often.
    pub fn expire(&mut self, now: u64) {
        self.slim_entries(now, 0);
        if self.waiting > limit(self.limits.capacity) {
            self.slim_packets(0);
        }
    }

    /// Gives up all packets that wait, those for the oldest entries first.
    pub fn take_waiting(&mut self) -> Vec<P> {
        let (mut all, mut at) = (Vec::with_capacity(self.waiting), self.oldest);
        while let Some(entry) = self.entries.get_mut(at as usize) {
            all.extend(entry.waiting.drain(..));
            at = entry.younger;
        }
        self.waiting = 0;
        all
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.drops += self.waiting as u64;
        let drops = self.drops;
        *self = ArpTable { drops, ..ArpTable::new(self.limits) };
    }

    /// What Click's `table` handler answers: address, 1 if known, Ethernet address and age of
    /// each entry, the oldest first.
    pub fn listing(&self, now: u64) -> String {
        let mut text = String::new();
        for entry in self.ages() {
            let known = entry.known && !entry.expired(now, self.limits.timeout);
            let age = now.saturating_sub(entry.live_at) / 1000;
            let ether = entry.ether.map(|b| format!("{b:02X}")).join("-");
            let (ip, known) = (A::Shown::from(entry.ip), u8::from(known));
            let (seconds, micros) = (age / 1_000_000, age % 1_000_000);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{ip} {known} {ether} {seconds}.{micros:06}");
        }
        text
    }

    fn ages(&self) -> impl Iterator<Item = &Entry<P, A>> {
        let entry = |at: u32| self.entries.get(at as usize);
        std::iter::successors(entry(self.oldest), move |e| entry(e.younger))
    }

    /// The entry of `ip`, a new one if there is none.
    fn ensure(&mut self, ip: A, now: u64) -> u32 {
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
            waiting: VecDeque::new(),
            older: NIL,
            younger: NIL,
        };
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(at as usize) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.index.insert(ip, at);
        let after = self.place_for(now);
        self.link(at, after);
        at
    }

    /// Keeps an entry that packets still ask for just this side of expiry.
    fn keep(&mut self, at: u32, now: u64) {
        let timeout = self.limits.timeout;
        let least = now.saturating_sub(timeout);
        if timeout == 0 || self.entries[at as usize].live_at >= least {
            return;
        }
        self.unlink(at);
        self.entries[at as usize].live_at = least;
        let mut after = NIL;
        let mut next = self.oldest;
        while let Some(entry) = self.entries.get(next as usize).filter(|e| e.live_at < least) {
            (after, next) = (next, entry.younger);
        }
        self.link(at, after);
    }

    /// Drops expired entries, and the oldest until there is room for `more`.
    fn slim_entries(&mut self, now: u64, more: usize) {
        while let Some(entry) = self.entries.get(self.oldest as usize) {
            let crowded = self.index.len() + more > limit(self.limits.entry_capacity);
            if !crowded && !entry.expired(now, self.limits.timeout) {
                return;
            }
            let (at, ip) = (self.oldest, entry.ip);
            self.unlink(at);
            self.index.remove(&ip);
            self.free.push(at);
            let packets = std::mem::take(&mut self.entries[at as usize].waiting);
            self.waiting -= packets.len();
            self.drops += packets.len() as u64;
        }
    }

    /// Drops packets of the oldest entries, one of `slim_factor`, and makes room for `more`.
    fn slim_packets(&mut self, more: usize) {
        let capacity = limit(self.limits.capacity);
        let keep = (capacity - capacity / self.limits.slim_factor.max(1)).max(1) - more;
        let mut at = self.oldest;
        while self.waiting > keep
            && let Some(entry) = self.entries.get_mut(at as usize)
        {
            let surplus = entry.waiting.len().min(self.waiting - keep);
            entry.waiting.drain(..surplus);
            self.waiting -= surplus;
            self.drops += surplus as u64;
            at = entry.younger;
        }
    }

    /// The entry after which one that is live at `now` belongs: the youngest, unless the
    /// clock was set back.
    fn place_for(&self, now: u64) -> u32 {
        let mut after = self.youngest;
        while let Some(entry) = self.entries.get(after as usize).filter(|e| e.live_at > now) {
            after = entry.older;
        }
        after
    }

    fn link(&mut self, at: u32, after: u32) {
        let next = match self.entries.get_mut(after as usize) {
            Some(entry) => std::mem::replace(&mut entry.younger, at),
            None => std::mem::replace(&mut self.oldest, at),
        };
        match self.entries.get_mut(next as usize) {
            Some(entry) => entry.older = at,
            None => self.youngest = at,
        }
        let entry = &mut self.entries[at as usize];
        (entry.older, entry.younger) = (after, next);
    }

    fn unlink(&mut self, at: u32) {
        let Entry { older, younger, .. } = self.entries[at as usize];
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.younger = younger,
            None => self.oldest = younger,
        }
        match self.entries.get_mut(younger as usize) {
            Some(entry) => entry.older = older,
            None => self.youngest = older,
        }
    }
}

impl<P, A> Entry<P, A> {
    fn expired(&self, now: u64, timeout: u64) -> bool {
        timeout != 0 && now > self.live_at.saturating_add(timeout)
    }

    fn may_poll(&self, now: u64) -> bool {
        let gap = if self.polls >= PATIENCE { POLL_GAP_SLOW } else { POLL_GAP };
        self.polled_at.is_none_or(|polled| now >= polled.saturating_add(gap))
    }

    fn mark_poll(&mut self, now: u64) {
        self.polled_at = Some(now);
        self.polls = self.polls.saturating_add(1);
    }
}

/// A limit of which zero means that Click would have none.
fn limit(given: usize) -> usize {
    if given == 0 { Limits::MOST } else { given.min(Limits::MOST) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [0, 1, 2, 3, 4, 5];
    const MS: u64 = 1_000_000;

    fn table(limits: Limits) -> ArpTable<u32> {
        ArpTable::new(limits)
    }

    #[test]
    fn packets_wait_for_the_answer_in_order() {
        let mut t = table(Limits::default());
        assert_eq!(t.lookup(1, 0, 0), Lookup::Unknown);
        assert_eq!(t.wait(1, 10, 0), Wait::Queued { query: true });
        assert_eq!(t.wait(1, 11, 50 * MS), Wait::Queued { query: false });
        assert_eq!(t.wait(1, 12, 100 * MS), Wait::Queued { query: true });
        assert_eq!(t.insert(1, MAC, 200 * MS), [10, 11, 12]);
        assert_eq!(t.wait(1, 13, 300 * MS), Wait::Known(MAC, 13));
        assert_eq!((t.waiting(), t.drops(), t.count()), (0, 0, 1));
        assert_eq!(t.reverse_lookup(MAC), Some(1));
        assert_eq!(t.listing(300 * MS), "0.0.0.1 1 00-01-02-03-04-05 0.100000\n");
    }

    #[test]
    fn queries_slow_down_without_answers() {
        let mut t = table(Limits::default());
        let queries = (0..60u64)
            .filter(|&i| t.wait(1, 0, i * 100 * MS) == Wait::Queued { query: true })
            .count();
        assert_eq!(queries, 10 + 2);
    }

    #[test]
    fn entries_get_stale_and_expire() {
        let mut t = table(Limits { timeout: 10 * SECOND, ..Limits::default() });
        t.insert(1, MAC, 0);
        assert_eq!(t.lookup(1, 4 * SECOND, 5 * SECOND), Lookup::Known(MAC));
        assert_eq!(t.lookup(1, 5 * SECOND, 5 * SECOND), Lookup::Stale(MAC));
        assert_eq!(t.lookup(1, 5 * SECOND + MS, 5 * SECOND), Lookup::Known(MAC));
        assert_eq!(t.lookup(1, 10 * SECOND, 0), Lookup::Known(MAC));
        assert_eq!(t.lookup(1, 10 * SECOND + 1, 0), Lookup::Unknown);
        assert_eq!(t.wait(1, 7, 11 * SECOND), Wait::Queued { query: true });
        t.expire(11 * SECOND);
        assert_eq!((t.count(), t.drops()), (1, 0), "kept, since a packet asks for it");
        t.expire(12 * SECOND);
        assert_eq!((t.count(), t.waiting(), t.drops()), (0, 0, 1));
        t.insert(2, MAC, 0);
        assert_eq!(t.insert(2, [0xFF; 6], 0), []);
        assert_eq!(t.lookup(2, 0, 0), Lookup::Unknown);
    }

    #[test]
    fn capacities_hold() {
        let limits = Limits {
            capacity: 4,
            entry_capacity: 3,
            entry_packet_capacity: 2,
            ..Limits::default()
        };
        let mut t = table(limits);
        t.wait(1, 0, 0);
        t.wait(1, 1, 0);
        assert_eq!(t.wait(1, 2, 0), Wait::Full(2));
        t.wait(2, 3, 1);
        t.wait(2, 4, 1);
        assert_eq!((t.waiting(), t.drops()), (4, 1));
        t.wait(3, 5, 2);
        assert_eq!((t.waiting(), t.drops()), (2, 4), "half is left, the new one included");
        t.wait(4, 6, 3);
        assert_eq!((t.count(), t.reverse_lookup(MAC)), (3, None));
        assert_eq!(t.take_waiting(), [4, 5, 6]);
        assert_eq!((t.count(), t.waiting()), (3, 0));
        t.wait(2, 4, 3);
        t.wait(3, 5, 3);
        t.wait(4, 6, 3);
        assert_eq!(t.insert(2, MAC, 4), [4]);
        t.clear();
        assert_eq!((t.count(), t.waiting(), t.drops()), (0, 0, 6));
    }

    proptest! {
        #[test]
        fn never_more_than_allowed_and_nothing_lost(
            steps in prop::collection::vec((0u8..4, 0u32..12, 0u64..3 * SECOND), 1..200),
            capacity in 1usize..10, entry_capacity in 1usize..6, each in 0usize..4,
            slim_factor in 1usize..4,
        ) {
            let timeout = 10 * SECOND;
            let limits =
                Limits { capacity, entry_capacity, entry_packet_capacity: each, slim_factor, timeout };
            let mut t = table(limits);
            let (mut now, mut given, mut back) = (0, 0, 0);
            for (step, ip, wait) in steps {
                now += wait;
                match step {
                    0 => back += t.insert(ip, MAC, now).len() as u64,
                    1 => t.expire(now),
                    _ => {
                        given += 1;
                        back += u64::from(matches!(t.wait(ip, ip, now), Wait::Known(..)));
                    }
                }
                prop_assert!(t.count() <= entry_capacity && t.waiting() <= capacity);
                prop_assert_eq!(given, back + t.waiting() as u64 + t.drops());
                let ages: Vec<u64> = t.ages().map(|e| e.live_at).collect();
                prop_assert!(ages.is_sorted() && ages.len() == t.count());
                let queued: usize = t.ages().map(|e| e.waiting.len()).sum();
                prop_assert_eq!(queued, t.waiting());
            }
        }
    }
}
