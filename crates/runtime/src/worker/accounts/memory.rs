//! Memory of accounts: who pays on a worker's thread, and how many packets elements keep.

use super::SETTLEMENT;
use crate::worker::{Worker, slot};
use castanet_element::time::Time;
use castanet_packet::HeapPayment;

/// The inverse of the part of the time that counts of kept packets may take.
const MOST_COUNTING: u32 = 50;
/// Elements whose packets are counted between two runs: each may miss the caches several times.
const COUNTED_AT_ONCE: usize = 32;
/// Elements of which is asked between two runs whether they keep packets.
const SEEN_AT_ONCE: usize = 4096;

/// A round over all elements, which counts the packets that they keep and goes on from run to run.
#[derive(Default)]
pub(super) struct KeptRound {
    /// The element that is counted next.
    next: usize,
    /// The time at which it begins again.
    due: Time,
    /// Ticks that it has taken since it began.
    ticks: u64,
    /// Whether something was charged since it began.
    pub(super) is_stale: bool,
}

impl KeptRound {
    /// Whether it has begun, or is due.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.next > 0 || self.due <= now
    }

    /// Whether it tells what elements keep at present.
    fn is_complete(&self) -> bool {
        self.next == 0 && !self.is_stale
    }
}

impl Worker {
    /// Has the account of an element pay for what this thread allocates, until the result is dropped.
    pub(in crate::worker) fn payment(&self, element: usize) -> Option<HeapPayment> {
        let accounts = self.accounts.as_ref()?;
        accounts.states[accounts.of(element)].payment()
    }

    /// Begins a rest: the worker sleeps, or its thread ends. Returns whether it may sleep long: kept packets are
    /// counted first.
    pub(in crate::worker) fn rest(&mut self) -> bool {
        let Some(accounts) = &mut self.accounts else { return true };
        accounts.rests = true;
        if !accounts.kept_round.is_complete() {
            self.count_kept();
        }
        self.accounts.as_ref().is_none_or(|accounts| accounts.kept_round.is_complete())
    }

    /// Counts the packets that the next elements keep, for their accounts.
    #[inline(never)]
    pub(super) fn count_kept(&mut self) {
        let Some(accounts) = &mut self.accounts else { return };
        let now = self.exec.now;
        let begun = accounts.counter.now(now);
        let KeptRound { next, ticks, .. } = accounts.kept_round;
        if next == 0 {
            accounts.kept_round = KeptRound::default();
        }
        let (mut end, mut counted) = (next, 0);
        let most = self.exec.kept.len().min(next + SEEN_AT_ONCE);
        while end < most && counted < COUNTED_AT_ONCE {
            counted += usize::from(self.count_of(end));
            end += 1;
        }
        let Some(accounts) = &mut self.accounts else { return };
        let ticks = ticks + accounts.counter.now(now).saturating_sub(begun);
        let count = &mut accounts.kept_round;
        if end < self.exec.kept.len() {
            (count.next, count.ticks) = (end, ticks);
        } else {
            // With very many elements, less often: it takes a small part of the time.
            let pause = SETTLEMENT.max(accounts.counter.time(ticks) * MOST_COUNTING);
            (count.next, count.ticks, count.due) = (0, 0, now + pause);
        }
    }

    /// Counts the packets that an element keeps, if it may keep any; returns whether it may.
    #[inline]
    fn count_of(&self, element: usize) -> bool {
        let Some(kept) = &self.exec.kept[element] else { return false };
        if let Some(node) = slot::at(&self.graph.slots, element)
            && (!node.is_shared() || self.exec.at_home[element])
        {
            kept.count(node.held());
        }
        true
    }
}
