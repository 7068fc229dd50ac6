//! Memory of accounts: who pays on a worker's thread, and how many packets elements keep.

use super::{Accounts, SETTLEMENT};
use crate::worker::{Worker, slot};
use castanet_packet::HeapPayment;

/// The inverse of the part of the time that counts of kept packets may take.
const MOST_COUNTING: u32 = 50;

impl Accounts {
    /// Has an account pay for memory that this thread allocates, until the result is dropped.
    #[inline]
    pub(super) fn payment(&self, account: usize) -> Option<HeapPayment> {
        Some(self.plans[account].memory.as_ref()?.heap()?.pay())
    }
}

impl Worker {
    /// Has the account of an element pay for what this thread allocates, until the result is dropped.
    pub(in crate::worker) fn payment(&self, element: usize) -> Option<HeapPayment> {
        let accounts = self.accounts.as_ref()?;
        accounts.payment(accounts.of(element))
    }

    /// Begins a rest: the worker sleeps, or its thread ends.
    pub(in crate::worker) fn rest(&mut self) {
        if let Some(accounts) = &mut self.accounts
            && !std::mem::replace(&mut accounts.rests, true)
            && !accounts.is_counted
        {
            self.count_kept();
        }
    }

    /// Counts the packets that elements keep, for their accounts.
    #[inline(never)]
    pub(super) fn count_kept(&mut self) {
        let now = self.exec.now;
        let begun = self.accounts.as_ref().map(|accounts| accounts.counter.now(now));
        for (element, kept) in self.exec.kept.iter().enumerate() {
            let (Some(kept), Some(node)) = (kept, slot::at(&self.graph.slots, element)) else {
                continue;
            };
            if !node.is_shared() || self.exec.at_home[element] {
                kept.count(node.held());
            }
        }
        if let (Some(accounts), Some(begun)) = (&mut self.accounts, begun) {
            let spent = accounts.counter.now(now).saturating_sub(begun);
            // With very many elements, less often: it takes a small part of the time.
            let pause = SETTLEMENT.max(accounts.counter.time(spent) * MOST_COUNTING);
            (accounts.count_due, accounts.is_counted) = (now + pause, true);
        }
    }
}
