//! The timer wheel of flows: a flow is moved only when its old deadline comes, however often the
//! deadline was postponed.

use super::Entry;
use super::entries::{Entries, Id};

/// Lists in the wheel. Flows whose deadline is more than this many ticks (18 minutes) away wait in
/// the last list and are checked again then.
const TICKS: u32 = 8192;
/// A tick in nanoseconds, as a power of two: 134 ms. A flow expires this much late at most.
pub(super) const TICK: u32 = 27;
/// Marks a link that is the end of a list.
const END: u32 = 1 << 31;
const WORD: u32 = u64::BITS;

/// A timer wheel.
pub(super) struct Wheel {
    /// The first and the last flow of each list, or the list's own mark.
    ends: Box<[(u32, u32)]>,
    /// The lists that are not empty, as bits.
    used: [u64; (TICKS / WORD) as usize],
    /// The current tick, counted from `start`.
    tick: u32,
    /// The last tick that is over.
    last: u32,
    start: u64,
    /// The position at which the search for a flow to evict stopped: a flow or a list's end, and
    /// the list's tick. Flows before it were checked and may not go.
    search_position: Option<(u32, u32)>,
}

impl Wheel {
    pub(super) fn new() -> Wheel {
        let used = [0; (TICKS / WORD) as usize];
        Wheel { ends: Box::default(), used, tick: 0, last: 0, start: 0, search_position: None }
    }

    /// Starts an empty wheel at time `now`.
    pub(super) fn restart(&mut self, now: u64) {
        if self.ends.is_empty() {
            self.ends = (0..TICKS).map(|list| (END | list, END | list)).collect();
        }
        (self.start, self.tick, self.last, self.search_position) = (now, 0, 0, None);
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.ends)
    }

    /// The first tick that is not before `time`.
    #[inline]
    fn tick(&self, time: u64) -> u32 {
        let ticks = time.saturating_sub(self.start).div_ceil(1 << TICK);
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Links an unlinked flow into the list of its deadline.
    pub(super) fn arm<E: Entry>(&mut self, all: &mut Entries<E>, id: Id, until: u64) {
        all.at(id).set_deadline(until);
        self.link(all, id, self.tick(until));
    }

    /// Changes a flow's deadline.
    #[inline]
    pub(super) fn set_deadline<'a, E: Entry>(
        &mut self,
        all: &'a mut Entries<E>,
        id: Id,
        until: u64,
    ) -> &'a mut E {
        if until < all.at(id).deadline() {
            self.disarm(all, id);
            self.link(all, id, self.tick(until));
        }
        let entry = all.at_mut(id);
        entry.set_deadline(until);
        &mut entry.entry
    }

    /// Whether some flows may have expired.
    #[inline]
    pub(super) fn is_due(&self, now: u64) -> bool {
        let last = (now.saturating_sub(self.start) >> TICK) as u32;
        let (at, bit) = (self.tick % TICKS / WORD, self.tick % WORD);
        last > self.tick || self.used[at as usize] >> bit & 1 != 0
    }

    fn link<E: Entry>(&mut self, all: &mut Entries<E>, id: Id, deadline: u32) {
        let at = deadline.clamp(self.tick + 1, self.tick + TICKS - 1) % TICKS;
        let (mark, last) = (END | at, self.ends[at as usize].1);
        all.at_mut(id).links = (last, mark);
        self.set_next(all, last, id.0);
        self.ends[at as usize].1 = id.0;
        self.used[(at / WORD) as usize] |= 1 << (at % WORD);
    }

    /// Unlinks a flow from its list.
    pub(super) fn disarm<E: Entry>(&mut self, all: &mut Entries<E>, id: Id) {
        let (before, next) = all.at(id).links;
        if let Some((flow, _)) = self.search_position.as_mut().filter(|(flow, _)| *flow == id.0) {
            *flow = next;
        }
        self.set_next(all, before, next);
        match next & END {
            0 => all.at_mut(Id(next)).links.0 = before,
            _ => self.ends[(next % TICKS) as usize].1 = before,
        }
        if before & next & END != 0 {
            let at = before % TICKS;
            self.used[(at / WORD) as usize] &= !(1 << (at % WORD));
        }
    }

    fn set_next<E: Entry>(&mut self, all: &mut Entries<E>, of: u32, next: u32) {
        match of & END {
            0 => all.at_mut(Id(of)).links.1 = next,
            _ => self.ends[(of % TICKS) as usize].0 = next,
        }
    }

    /// The first flow of the next list up to that of tick `last` that is not empty, and the list's
    /// tick.
    fn first(&self, from: u32, last: u32) -> Option<(Id, u32)> {
        let mut tick = from;
        while tick <= last {
            let at = tick % TICKS;
            let ahead = self.used[(at / WORD) as usize] >> (at % WORD);
            if ahead == 0 {
                tick = tick.saturating_add(WORD - at % WORD);
                continue;
            }
            tick += ahead.trailing_zeros();
            let id = self.ends[(tick % TICKS) as usize].0;
            return (tick <= last).then_some((Id(id), tick));
        }
        None
    }

    /// Writes the next flows that may have expired at `now` to `ids`, in the order of their lists,
    /// and returns how many there are. The caller checks each with [`Wheel::check_expired`].
    pub(super) fn due<E: Entry>(&mut self, all: &Entries<E>, now: u64, ids: &mut [Id]) -> usize {
        // A tick is over when the next begins.
        let last = (now.saturating_sub(self.start) >> TICK) as u32;
        // After a long pause each list is checked once.
        let from = self.tick.max(last.saturating_sub(TICKS - 1));
        self.last = self.last.max(last);
        let Some((Id(mut next), tick)) = self.first(from, last) else {
            self.tick = self.tick.max(last);
            return 0;
        };
        self.tick = tick;
        let mut count = 0;
        while let Some(id) = ids.get_mut(count).filter(|_| next & END == 0) {
            *id = Id(next);
            next = all.at(*id).links.1;
            count += 1;
        }
        count
    }

    /// Whether a flow from [`Wheel::due`] has expired; if not, it is moved to the list of its
    /// deadline.
    pub(super) fn check_expired<E: Entry>(&mut self, all: &mut Entries<E>, id: Id) -> bool {
        let deadline = self.tick(all.at(id).deadline());
        if deadline > self.last {
            self.disarm(all, id);
            self.link(all, id, deadline);
        }
        deadline <= self.last
    }

    /// Finds a flow to evict among the first to expire: one for which `may` is true. Checks `limit`
    /// flows from the position of the last search, so that repeated searches get past any number of
    /// flows that may not go. Postponed flows are moved to their present deadline; if all are
    /// postponed, the first to expire is returned.
    pub(super) fn find_evictable<E: Entry>(
        &mut self,
        all: &mut Entries<E>,
        limit: usize,
        mut may: impl FnMut(&E) -> bool,
    ) -> Option<Id> {
        let last = self.tick + TICKS - 1;
        let position = self.search_position.take().filter(|(_, tick)| *tick >= self.tick);
        let mut from_start = position.is_none();
        let (mut current, mut tick) = match position {
            Some(position) => position,
            None => self.first(self.tick, last).map(|(id, tick)| (id.0, tick))?,
        };
        let mut best: Option<(u32, Id)> = None;
        for _ in 0..limit {
            if current & END != 0 {
                let mut next = self.first(tick + 1, last);
                if next.is_none() && !from_start {
                    from_start = true;
                    next = self.first(self.tick, last);
                }
                let Some((id, of)) = next else { return best.map(|(_, id)| id) };
                (current, tick) = (id.0, of);
            }
            let (id, entry) = (Id(current), all.at(Id(current)));
            let (next, deadline) = (entry.links.1, self.tick(entry.deadline()));
            if may(&entry.entry) {
                if deadline <= tick {
                    self.search_position = Some((current, tick));
                    return Some(id);
                }
                best = best.filter(|(soonest, _)| *soonest <= deadline).or(Some((deadline, id)));
            }
            // A deadline beyond the last list leaves the flow where it is.
            if deadline > tick && deadline < last {
                self.disarm(all, id);
                self.link(all, id, deadline);
            }
            current = next;
        }
        self.search_position = Some((current, tick));
        best.map(|(_, id)| id)
    }
}
