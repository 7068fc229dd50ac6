//! Runs that are cut because they take too long: the remainder waits for the account's next turn.

use crate::graph::assign::accounts::OWN;
use crate::worker::Worker;
use crate::worker::meter::VISIT;
use crate::worker::slot::PendingBatch;
use crate::worker::transfer;
use crate::worker::transfer::limits::{Deadline, MAX_HOPS};

/// Elements that any run may visit in simulated time.
const LEAST_VISITS: u64 = 64;

/// The remainder of an account's run.
#[derive(Default)]
pub(super) struct CutRun {
    /// Batches on their way, the next one last.
    batches: Vec<PendingBatch>,
    /// Elements that the run has visited.
    visits: u32,
}

impl CutRun {
    /// Whether there is something left of a run.
    #[inline]
    pub(super) fn is_some(&self) -> bool {
        !self.batches.is_empty()
    }
}

impl Worker {
    /// Sets the time at which the run of an account is cut, or the elements that it may visit.
    #[inline]
    pub(in crate::worker) fn bound_run(&mut self, account: usize) {
        let Some(accounts) = &self.accounts else { return };
        match accounts.states[account].bound.aim() {
            Some(aim) if account != OWN => self.set_deadline(account, aim),
            _ => {}
        }
    }

    fn set_deadline(&mut self, account: usize, aim: u64) {
        let Some(accounts) = &self.accounts else { return };
        let bound = &accounts.states[account].bound;
        match &accounts.counter.counter {
            Some(counter) => {
                let (counter, at) = (counter.clone(), accounts.mark + aim);
                self.graph.most_hops = bound.step;
                self.graph.deadline = Some(Deadline { counter, at, step: bound.step });
            }
            // Simulated time stands still during a run.
            None => {
                self.graph.most_hops = (aim / VISIT).clamp(LEAST_VISITS, MAX_HOPS.into()) as u32
            }
        }
    }

    /// Sets the remainder of a run aside that was cut. Where a batch waits for a call of a handler, the run goes on
    /// after the call instead.
    #[inline]
    pub(in crate::worker) fn set_remainder_aside(&mut self, account: usize) {
        (self.graph.most_hops, self.graph.deadline) = (MAX_HOPS, None);
        if std::mem::take(&mut self.graph.is_cut) {
            self.keep_remainder(account);
        }
    }

    #[cold]
    fn keep_remainder(&mut self, account: usize) {
        let Some(accounts) = &mut self.accounts else { return };
        if self.graph.stack.iter().any(|it| it.call.is_some()) {
            return;
        }
        let remainder = &mut accounts.states[account].cut_run;
        remainder.visits = remainder.visits.saturating_add(self.graph.hops);
        // That of an earlier run comes first.
        let earlier =
            std::mem::replace(&mut remainder.batches, std::mem::take(&mut self.graph.stack));
        remainder.batches.extend(earlier);
    }

    /// Goes on with the remainder of an account's run; drops it if it goes in circles.
    #[cold]
    pub(super) fn run_remainder(&mut self, account: usize) {
        let Some(accounts) = &mut self.accounts else { return };
        let CutRun { batches, visits } = std::mem::take(&mut accounts.states[account].cut_run);
        (self.graph.progress, self.exec.pulls) = (0, 0);
        if visits > MAX_HOPS {
            return self.drop_in_part(account, CutRun { batches, visits });
        }
        self.graph.stack = batches;
        transfer::drain_all(&mut self.graph, &mut self.exec);
        if self.graph.is_cut
            && let Some(accounts) = &mut self.accounts
        {
            accounts.states[account].cut_run.visits = visits;
        }
    }

    /// Drops as many batches of a remainder as a run visits elements between two looks at the clock.
    fn drop_in_part(&mut self, account: usize, mut remainder: CutRun) {
        let most = usize::try_from(self.graph.most_hops).unwrap_or(usize::MAX);
        let dropped = remainder.batches.len().min(most);
        let rest = remainder.batches.len() - dropped;
        self.graph.hops = dropped as u32;
        let dropped = remainder.batches.split_off(rest);
        self.drop_batches(dropped);
        if let Some(accounts) = &mut self.accounts {
            accounts.states[account].cut_run = remainder;
        }
    }

    /// Goes on with the remainders of all accounts, each for a run that may not be longer than others, and drops what
    /// is left then: before another configuration takes the place of this one.
    pub(crate) fn finish_remainders(&mut self) {
        let count = self.accounts.as_ref().map_or(0, |accounts| accounts.states.len());
        for account in 0..count {
            let accounts = self.accounts.as_ref();
            if !accounts.is_some_and(|accounts| accounts.states[account].cut_run.is_some()) {
                continue;
            }
            self.bound_run(account);
            self.run_remainder(account);
            self.set_remainder_aside(account);
            if let Some(accounts) = &mut self.accounts {
                let remainder = std::mem::take(&mut accounts.states[account].cut_run);
                self.drop_batches(remainder.batches);
            }
        }
    }

    fn drop_batches(&mut self, batches: Vec<PendingBatch>) {
        for mut it in batches {
            transfer::limits::drop_looped(&mut self.exec, it.node, &mut it.batch);
        }
    }

    /// The account of an element.
    pub(in crate::worker) fn account_of(&self, element: usize) -> usize {
        self.accounts.as_ref().map_or(OWN, |accounts| accounts.of(element))
    }
}
