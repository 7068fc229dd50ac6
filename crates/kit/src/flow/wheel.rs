//! When flows end: a wheel of lists, in which a flow is moved only when its old
//! deadline comes, however often that was put off.

use super::Flow;
use super::entries::{Entries, Id};

/// Lists in the wheel: deadlines further away than this many ticks, 18 minutes, wait in the
/// last, and are looked at again then.
const TICKS: u32 = 8192;
/// A tick in nanoseconds, as a power of two: 134 ms. So much later than at its deadline is a
/// flow found to be over.
const TICK: u32 = 27;
/// Marks a link that is a list's end.
const END: u32 = 1 << 31;
const WORD: u32 = u64::BITS;

/// The wheel.
pub(super) struct Wheel {
    /// The first and the last of each list, or its own mark.
    ends: Box<[(u32, u32)]>,
    /// Which lists have any.
    used: [u64; (TICKS / WORD) as usize],
    /// The tick that is looked at, counted from the start.
    tick: u32,
    /// The last that is over.
    last: u32,
    start: u64,
    /// Where the search for a flow that may go stopped: a flow or a list's end, and the list's
    /// tick. Flows before it were looked at, and may not.
    searched: Option<(u32, u32)>,
}

impl Wheel {
    pub(super) fn new(now: u64) -> Wheel {
        let ends = (0..TICKS).map(|list| (END | list, END | list)).collect();
        let used = [0; (TICKS / WORD) as usize];
        Wheel { ends, used, tick: 0, last: 0, start: now, searched: None }
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

    /// Puts a flow that is in no list into that of its deadline.
    pub(super) fn arm<F: Flow>(&mut self, all: &mut Entries<F>, id: Id, until: u64) {
        all.at(id).set_deadline(until);
        self.link(all, id, self.tick(until));
    }

    /// Changes a flow's deadline.
    #[inline]
    pub(super) fn keep<'a, F: Flow>(
        &mut self,
        all: &'a mut Entries<F>,
        id: Id,
        until: u64,
    ) -> &'a mut F {
        if until < all.at(id).deadline() {
            self.disarm(all, id);
            self.link(all, id, self.tick(until));
        }
        let entry = all.at_mut(id);
        entry.set_deadline(until);
        &mut entry.flow
    }

    /// Puts a flow's deadline off, which moves it nowhere. Whether it was not to be earlier than
    /// now: clocks of those who do so at once may be a tick apart.
    #[inline]
    pub(super) fn put_off<F: Flow>(&self, all: &Entries<F>, id: Id, until: u64) -> bool {
        let entry = all.at(id);
        let before = entry.deadline();
        if until > before {
            entry.set_deadline(until);
        }
        until.saturating_add(1 << TICK) >= before
    }

    /// Whether there may be flows whose time is over.
    #[inline]
    pub(super) fn is_due(&self, now: u64) -> bool {
        let last = (now.saturating_sub(self.start) >> TICK) as u32;
        let (at, bit) = (self.tick % TICKS / WORD, self.tick % WORD);
        last > self.tick || self.used[at as usize] >> bit & 1 != 0
    }

    fn link<F: Flow>(&mut self, all: &mut Entries<F>, id: Id, deadline: u32) {
        let at = deadline.clamp(self.tick + 1, self.tick + TICKS - 1) % TICKS;
        let (mark, last) = (END | at, self.ends[at as usize].1);
        all.at_mut(id).links = (last, mark);
        self.set_next(all, last, id.0);
        self.ends[at as usize].1 = id.0;
        self.used[(at / WORD) as usize] |= 1 << (at % WORD);
    }

    /// Takes a flow out of its list.
    pub(super) fn disarm<F: Flow>(&mut self, all: &mut Entries<F>, id: Id) {
        let (before, behind) = all.at(id).links;
        if let Some((next, _)) = self.searched.as_mut().filter(|(next, _)| *next == id.0) {
            *next = behind;
        }
        self.set_next(all, before, behind);
        match behind & END {
            0 => all.at_mut(Id(behind)).links.0 = before,
            _ => self.ends[(behind % TICKS) as usize].1 = before,
        }
        if before & behind & END != 0 {
            let at = before % TICKS;
            self.used[(at / WORD) as usize] &= !(1 << (at % WORD));
        }
    }

    fn set_next<F: Flow>(&mut self, all: &mut Entries<F>, of: u32, next: u32) {
        match of & END {
            0 => all.at_mut(Id(of)).links.1 = next,
            _ => self.ends[(of % TICKS) as usize].0 = next,
        }
    }

    /// The first flow of the next list, up to that of tick `last`, that has any;
    /// with that list's tick.
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

    /// The next flows, in the order of their lists, whose time may be over at `now`;
    /// how many there are. [`Wheel::is_over`] has to be asked of each.
    pub(super) fn due<F: Flow>(&mut self, all: &Entries<F>, now: u64, ids: &mut [Id]) -> usize {
        // A tick is over when the next begins.
        let last = (now.saturating_sub(self.start) >> TICK) as u32;
        // After a long silence each list is looked at once.
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

    /// Whether the time of a flow from [`Wheel::due`] is over; if not, it is moved to
    /// where it is looked at again.
    pub(super) fn is_over<F: Flow>(&mut self, all: &mut Entries<F>, id: Id) -> bool {
        let deadline = self.tick(all.at(id).deadline());
        if deadline > self.last {
            self.disarm(all, id);
            self.link(all, id, deadline);
        }
        deadline <= self.last
    }

    /// Of the first flows that would end, one that `may` be taken; looks at `most`, from
    /// where it stopped the last time: however many may not go, who asks often finds those
    /// behind them. Flows whose deadline was put off are moved to where that is meanwhile; if
    /// there are only such, it is the first of them.
    pub(super) fn soonest<F: Flow>(
        &mut self,
        all: &mut Entries<F>,
        most: usize,
        mut may: impl FnMut(&F) -> bool,
    ) -> Option<Id> {
        let last = self.tick + TICKS - 1;
        let begun = self.searched.take().filter(|(_, tick)| *tick >= self.tick);
        let mut from_start = begun.is_none();
        let (mut found, mut tick) = match begun {
            Some(place) => place,
            None => self.first(self.tick, last).map(|(id, tick)| (id.0, tick))?,
        };
        let mut best: Option<(u32, Id)> = None;
        for _ in 0..most {
            if found & END != 0 {
                let mut next = self.first(tick + 1, last);
                if next.is_none() && !from_start {
                    from_start = true;
                    next = self.first(self.tick, last);
                }
                let Some((id, of)) = next else { return best.map(|(_, id)| id) };
                (found, tick) = (id.0, of);
            }
            let (id, entry) = (Id(found), all.at(Id(found)));
            let (next, deadline) = (entry.links.1, self.tick(entry.deadline()));
            if may(&entry.flow) {
                if deadline <= tick {
                    self.searched = Some((found, tick));
                    return Some(id);
                }
                best = best.filter(|(soonest, _)| *soonest <= deadline).or(Some((deadline, id)));
            }
            // What ends behind the last list waits as well where it is.
            if deadline > tick && deadline < last {
                self.disarm(all, id);
                self.link(all, id, deadline);
            }
            found = next;
        }
        self.searched = Some((found, tick));
        best.map(|(_, id)| id)
    }
}
