//! CoDel: drops packets that leave a queue after too long a wait.
//!
//! Nichols and Jacobson, "Controlling Queue Delay" (ACM Queue 10, 5, 2012), with the arithmetic of
//! Click's element. All times are in nanoseconds.

/// The limits of the delay.
#[derive(Clone, Copy, Debug)]
pub struct DelayLimits {
    /// The delay that is good.
    pub target: i64,
    /// The time for which the delay may be longer before the first drop.
    pub interval: i64,
}

/// The state of a queue's delay.
#[derive(Debug, Default)]
pub struct CoDel {
    /// When the delay will have been above the target for an interval; 0 while it is not above.
    first_above: i64,
    /// When to drop the next packet in the dropping state.
    drop_next: i64,
    dropping: bool,
    /// Drops since the dropping state began.
    count: u64,
}

/// A packet from the queue, if there is one, and its delay.
struct QueueHead<P> {
    packet: Option<P>,
    /// Whether the packet has a delay.
    is_timed: bool,
    /// Whether the delay was above the target for long enough.
    is_late: bool,
}

impl CoDel {
    /// Takes packets from the queue, and gives those that wait too long to `drop`, until one may leave.
    ///
    /// `dequeue` returns the next packet with the time when it came, or none if that is unknown.
    pub fn next<P>(
        &mut self,
        limits: &DelayLimits,
        now: i64,
        mut dequeue: impl FnMut() -> Option<(P, Option<i64>)>,
        mut drop: impl FnMut(P),
    ) -> Option<P> {
        let mut head = self.observe(limits, now, dequeue());
        if !head.is_timed || (self.dropping && !head.is_late) {
            self.dropping = false;
        } else if self.dropping {
            while self.dropping && now >= self.drop_next {
                head.packet.into_iter().for_each(&mut drop);
                self.count += 1;
                head = self.observe(limits, now, dequeue());
                match head.is_late {
                    true => self.drop_next = self.following_drop(limits, self.drop_next),
                    false => self.dropping = false,
                }
            }
        } else if head.is_late {
            let was_dropping = now.saturating_sub(self.drop_next) < limits.interval;
            if was_dropping || now.saturating_sub(self.first_above) >= limits.interval {
                head.packet.into_iter().for_each(drop);
                head = self.observe(limits, now, dequeue());
                self.dropping = true;
                self.count = if was_dropping && self.count > 2 { self.count - 2 } else { 1 };
                self.drop_next = self.following_drop(limits, now);
            }
        }
        head.packet
    }

    fn observe<P>(
        &mut self,
        limits: &DelayLimits,
        now: i64,
        next: Option<(P, Option<i64>)>,
    ) -> QueueHead<P> {
        let Some((packet, since)) = next else {
            self.first_above = 0;
            return QueueHead { packet: None, is_timed: false, is_late: false };
        };
        let mut it = QueueHead { packet: Some(packet), is_timed: since.is_some(), is_late: false };
        match since.map(|since| now.saturating_sub(since)) {
            None => {}
            Some(delay) if delay < limits.target => self.first_above = 0,
            Some(_) if self.first_above == 0 => {
                self.first_above = now.saturating_add(limits.interval);
            }
            Some(_) => it.is_late = now >= self.first_above,
        }
        it
    }

    /// The time of the drop after one at `time`: an interval later, divided by the square root of the
    /// number of drops. Intervals count in whole milliseconds, roots in sixteenths.
    fn following_drop(&self, limits: &DelayLimits, time: i64) -> i64 {
        const MS: i64 = 1_000_000;
        const SCALE: i64 = 16;
        let root = self.count.saturating_mul((SCALE * SCALE) as u64).isqrt().max(1);
        let scaled = (limits.interval / MS).saturating_mul(SCALE * MS);
        time.saturating_add(scaled / i64::try_from(root).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const LIMITS: DelayLimits = DelayLimits { target: 5 * MS, interval: 100 * MS };

    /// Takes one packet each 100 ms from a queue whose packets all came at 1 s, and returns the
    /// numbers of those that leave and of those that are dropped.
    fn leave(packets: i64) -> (Vec<i64>, Vec<i64>) {
        let (mut codel, mut queue) = (CoDel::default(), 1..=packets);
        let (mut left, mut dropped) = (Vec::new(), Vec::new());
        for turn in 0..packets {
            let now = 1000 * MS + turn * 100 * MS;
            let next = || queue.next().map(|it| (it, Some(1000 * MS)));
            left.extend(codel.next(&LIMITS, now, next, |it| dropped.push(it)));
        }
        (left, dropped)
    }

    #[test]
    fn drops_become_more_frequent_while_the_delay_lasts() {
        // The first is in time, the second starts the interval, the fourth ends it. Drops are due at
        // 300 ms, 400 ms, then 16/22, 16/27, 16/32 ... intervals later.
        assert_eq!(leave(13), (vec![1, 2, 3, 5, 7, 9, 12], vec![4, 6, 8, 10, 11, 13]));
        assert_eq!(leave(3), (vec![1, 2, 3], vec![]));
    }

    #[test]
    fn packets_without_a_time_end_the_dropping_state() {
        let mut codel = CoDel { dropping: true, count: 9, ..CoDel::default() };
        let next = || Some(((), None));
        assert!(codel.next(&LIMITS, 1000 * MS, next, |()| panic!("dropped")).is_some());
        assert!(!codel.dropping);
        let none = || None;
        assert_eq!(codel.next(&LIMITS, 1000 * MS, none, |()| panic!("dropped")), None);
    }

    #[test]
    fn an_empty_queue_ends_the_dropping_state() {
        let mut codel = CoDel { dropping: true, first_above: 1, ..CoDel::default() };
        let mut queue = [1, 2].into_iter();
        let mut dropped = Vec::new();
        let next = || queue.next().map(|it| (it, Some(0)));
        // With no whole millisecond the next drop is due at once.
        let limits = DelayLimits { target: 5 * MS, interval: 1 };
        assert_eq!(codel.next(&limits, 1000 * MS, next, |it| dropped.push(it)), None);
        assert_eq!((dropped, codel.dropping, codel.first_above), (vec![1, 2], false, 0));
    }
}
