//! The table behind ARP and neighbour discovery: addresses learnt, and packets that wait for
//! an answer.
//!
//! There is no clock here: callers say what time it is, in nanoseconds.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use rapidhash::fast::RandomState;

use crate::address::Address;

const SECOND: u64 = 1_000_000_000;
/// How long to wait between two queries for one address, and after ten without an answer.
const POLL_GAP: u64 = SECOND / 10;
const POLL_GAP_SLOW: u64 = 2 * SECOND;
const PATIENCE: u8 = 10;

/// How many places are looked at for one piece of a listing: some 200 µs.
const PIECE: usize = 256;

/// Lines of [`ArpTable::listing`] by age, the oldest first.
pub fn oldest_first(text: String) -> String {
    // Micros are six digits, so the age is a number without the point.
    let age = |line: &&str| -> Option<u64> {
        line.trim_end().rsplit(' ').next()?.replace('.', "").parse().ok()
    };
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_by_cached_key(|line| std::cmp::Reverse(age(line)));
    lines.concat()
}

/// How much a table may hold, in Click's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `CAPACITY`: packets waiting in all; 0 means [`Limits::MOST`].
    pub capacity: usize,
    /// `ENTRY_CAPACITY`: entries; 0 means [`Limits::MOST`].
    pub entry_capacity: usize,
    /// `ENTRY_PACKET_CAPACITY`: packets waiting for one address; 0 means no limit but `capacity`.
    pub entry_packet_capacity: usize,
    /// `PACKET_TIMEOUT`: nanoseconds after which the packets that wait for an address are given
    /// up, counted from the first of them; 0 for never.
    pub packet_timeout: u64,
    /// `CAPACITY_SLIM_FACTOR`: one of so many waiting packets is dropped if there are too many.
    pub slim_factor: usize,
    /// `TIMEOUT`: nanoseconds after which an entry expires, 0 for never.
    pub timeout: u64,
}

impl Limits {
    /// What stands in for "unlimited", which nothing that strangers can fill may be.
    pub const MOST: usize = 1 << 20;
    /// Entries, unless said otherwise: as many as hosts on a link may have, some 8 MB.
    pub const ENTRIES: u32 = 1 << 16;
    /// Packets that may wait for one address, unless said otherwise: about as
    /// many short ones as Linux keeps (`unres_qlen_bytes`, which are 101 long ones).
    pub const ENTRY_PACKETS: u32 = 256;
    /// How long they may wait, unless said otherwise: as long as Linux asks (`mcast_solicit`
    /// times `retrans_time`).
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
    /// Since when there have been any that wait.
    waits_since: u64,
    /// Its neighbours in the list of its age, and in that of entries for which packets wait.
    links: [Links; 2],
}

/// The entries before and behind, or those that begin and end a list.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    behind: u32,
}

/// No entry.
const NIL: u32 = u32::MAX;
const NONE: Links = Links { before: NIL, behind: NIL };

/// The lists of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    /// Entries whose address is known, or was until it expired, by `live_at`.
    Known,
    /// The others, by `live_at`.
    Unknown,
    /// Those for which packets wait, by since when.
    Waiting,
}

impl List {
    /// The list of an entry's age.
    fn of_age(known: bool) -> List {
        if known { List::Known } else { List::Unknown }
    }

    /// Which of an entry's links it uses.
    fn links(self) -> usize {
        usize::from(self == List::Waiting)
    }
}

/// Ethernet addresses by IPv4 address (IPv6 with `u128`), in host byte order, and packets of
/// type `P` that wait for them. Packets that have to go are dropped and counted.
///
/// No packet looks at more than a fixed number of entries, beside those that end. Where there is
/// no room for another entry, the oldest without an answer makes room, and only if there is none
/// the oldest of all: a sweep of addresses that nobody has costs no neighbour its place.
#[derive(Debug)]
pub struct ArpTable<P, A = u32> {
    limits: Limits,
    index: HashMap<A, u32, RandomState>,
    entries: Vec<Entry<P, A>>,
    free: Vec<u32>,
    /// The first and last entry of each [`List`], as `behind` and `before`.
    ends: [Links; 3],
    waiting: usize,
    drops: u64,
    /// Entries looked at to make room.
    #[cfg(test)]
    looks: u64,
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
            waiting: 0,
            drops: 0,
            #[cfg(test)]
            looks: 0,
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
        self.list(List::Known).find(|e| e.ether == ether).map(|e| e.ip)
    }

    /// Learns an address, and returns the packets that waited for it, in order.
    ///
    /// The broadcast address makes the entry unknown again.
    pub fn insert(&mut self, ip: A, ether: [u8; 6], now: u64) -> VecDeque<P> {
        let at = self.ensure(ip, now);
        self.unlink(List::of_age(self.entries[at as usize].known), at);
        let entry = &mut self.entries[at as usize];
        entry.ether = ether;
        entry.known = ether != [0xFF; 6];
        entry.live_at = now;
        entry.polls = 0;
        entry.polled_at = None;
        let list = List::of_age(entry.known);
        self.link(list, at, self.place_for(list, now));
        self.take_packets(at)
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
        self.give_up(now);
        let entry = &self.entries[at as usize];
        let most = limits.entry_packet_capacity;
        if most != 0 && entry.waiting.len() >= most {
            self.drops += 1;
            return Wait::Full(packet);
        }
        if self.waiting + 1 > limit(limits.capacity) {
            self.slim_packets(1);
        }
        if self.entries[at as usize].waiting.is_empty() {
            self.entries[at as usize].waits_since = now;
            self.link(List::Waiting, at, self.ends[List::Waiting as usize].before);
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
        self.give_up(now);
        if self.waiting > limit(self.limits.capacity) {
            self.slim_packets(0);
        }
    }

    /// Gives up all packets that wait, those first whose address has been waited for longest.
    pub fn take_waiting(&mut self) -> Vec<P> {
        let mut all = Vec::with_capacity(self.waiting);
        while let Some(at) = self.first(List::Waiting) {
            all.extend(self.take_packets(at));
        }
        all
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.drops += self.waiting as u64;
        let drops = self.drops;
        *self = ArpTable { drops, ..ArpTable::new(self.limits) };
    }

    /// What Click's `table` handler answers: address, 1 if known, Ethernet address and age of
    /// each entry, of as many places as take a moment, from place `from` on, and where others
    /// begin. [`oldest_first`] puts the lines in Click's order.
    pub fn listing(&self, now: u64, from: usize) -> (String, Option<usize>) {
        let (mut text, end) = (String::new(), from.saturating_add(PIECE).min(self.entries.len()));
        for (at, entry) in (from..end).zip(self.entries.get(from..end).unwrap_or_default()) {
            // A place may be free.
            if self.index.get(&entry.ip) != Some(&(at as u32)) {
                continue;
            }
            let known = entry.known && !entry.expired(now, self.limits.timeout);
            let age = now.saturating_sub(entry.live_at) / 1000;
            let ether = entry.ether.map(|b| format!("{b:02X}")).join("-");
            let (ip, known) = (A::Shown::from(entry.ip), u8::from(known));
            let (seconds, micros) = (age / 1_000_000, age % 1_000_000);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{ip} {known} {ether} {seconds}.{micros:06}");
        }
        (text, (end < self.entries.len()).then_some(end))
    }

    fn list(&self, list: List) -> impl Iterator<Item = &Entry<P, A>> {
        let entry = |at: u32| self.entries.get(at as usize);
        let first = entry(self.ends[list as usize].behind);
        std::iter::successors(first, move |e| entry(e.links[list.links()].behind))
    }

    fn first(&self, list: List) -> Option<u32> {
        Some(self.ends[list as usize].behind).filter(|&at| at != NIL)
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
            waits_since: now,
            links: [NONE; 2],
        };
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(at as usize) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.index.insert(ip, at);
        self.link(List::Unknown, at, self.place_for(List::Unknown, now));
        at
    }

    /// Keeps an entry that packets still ask for just this side of expiry, where it has no
    /// address any more.
    fn keep(&mut self, at: u32, now: u64) {
        let timeout = self.limits.timeout;
        let least = now.saturating_sub(timeout);
        let entry = &mut self.entries[at as usize];
        if timeout == 0 || entry.live_at >= least {
            return;
        }
        entry.live_at = least;
        let was_known = std::mem::take(&mut entry.known);
        self.unlink(List::of_age(was_known), at);
        // All that are older have expired.
        self.drop_expired(List::Unknown, now);
        self.link(List::Unknown, at, NIL);
    }

    /// Drops expired entries, and the oldest until there is room for `more`: first of those
    /// without an answer.
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
        self.look();
        self.drops += self.take_packets(at).len() as u64;
        let Entry { ip, known, .. } = self.entries[at as usize];
        self.unlink(List::of_age(known), at);
        self.index.remove(&ip);
        self.free.push(at);
    }

    /// Drops packets that have waited too long.
    fn give_up(&mut self, now: u64) {
        let timeout = self.limits.packet_timeout;
        while timeout != 0
            && let Some(at) = self.first(List::Waiting)
            && now >= self.entries[at as usize].waits_since.saturating_add(timeout)
        {
            self.look();
            self.drops += self.take_packets(at).len() as u64;
        }
    }

    /// Drops packets, one of `slim_factor`, those first whose address has been waited for
    /// longest, and makes room for `more`.
    fn slim_packets(&mut self, more: usize) {
        let capacity = limit(self.limits.capacity);
        let keep = (capacity - capacity / self.limits.slim_factor.max(1)).max(1) - more;
        while self.waiting > keep
            && let Some(at) = self.first(List::Waiting)
        {
            self.look();
            let entry = &mut self.entries[at as usize];
            let surplus = self.waiting - keep;
            if entry.waiting.len() > surplus {
                entry.waiting.drain(..surplus);
                self.waiting -= surplus;
                self.drops += surplus as u64;
            } else {
                self.drops += self.take_packets(at).len() as u64;
            }
        }
    }

    /// Takes all packets that wait for an entry's address.
    fn take_packets(&mut self, at: u32) -> VecDeque<P> {
        let packets = std::mem::take(&mut self.entries[at as usize].waiting);
        if !packets.is_empty() {
            self.unlink(List::Waiting, at);
        }
        self.waiting -= packets.len();
        packets
    }

    /// The entry after which one that is live at `now` belongs in a list of age: the youngest,
    /// unless the clock was set back.
    fn place_for(&self, list: List, now: u64) -> u32 {
        let mut after = self.ends[list as usize].before;
        while let Some(entry) = self.entries.get(after as usize).filter(|e| e.live_at > now) {
            after = entry.links[list.links()].before;
        }
        after
    }

    fn link(&mut self, list: List, at: u32, after: u32) {
        let next = std::mem::replace(&mut self.links_of(list, after).behind, at);
        self.links_of(list, next).before = at;
        *self.links_of(list, at) = Links { before: after, behind: next };
    }

    fn unlink(&mut self, list: List, at: u32) {
        let Links { before, behind } = *self.links_of(list, at);
        self.links_of(list, before).behind = behind;
        self.links_of(list, behind).before = before;
    }

    /// The links of an entry, or the ends of the list.
    fn links_of(&mut self, list: List, at: u32) -> &mut Links {
        match self.entries.get_mut(at as usize) {
            Some(entry) => &mut entry.links[list.links()],
            None => &mut self.ends[list as usize],
        }
    }

    fn look(&mut self) {
        #[cfg(test)]
        {
            self.looks += 1;
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
