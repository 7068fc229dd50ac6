//! One account on one worker.

use super::AccountRun;
use super::crossings::CrossingCount;
use super::cut_runs::CutRun;
use super::run_bound::RunBound;
use crate::graph::assign::AccountPlan;
use castanet_packet::{HeapPayment, MAX_BURST};

/// The most runs of others for which an account with fewer packets than a run may take waits for more. The router's own tasks wait
/// for as many while accounts have enough, or for one of each account.
pub(super) const MOST_WAITS: u64 = 16;

/// An account on one worker: its plan, its use and its runs.
pub(super) struct AccountState {
    pub(super) plan: AccountPlan,
    pub(super) usage: AccountUsage,
    /// How long its runs may take.
    pub(super) bound: RunBound,
    /// The remainder of a run that was too long.
    pub(super) cut_run: CutRun,
    pub(super) arrivals: Arrivals,
}

/// The use that one account has made of a worker, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AccountUsage {
    pub(super) ticks: u64,
    pub(super) device_ticks: u64,
    pub(super) runs: u64,
    pub(super) longest: u64,
    pub(super) overruns: u64,
    pub(super) limited: u64,
    /// The time until which its reached limit is counted.
    pub(super) limited_until: u64,
    /// Ticks since the last settlement.
    pub(super) fresh: u64,
}

/// The packets that have come into an account and wait there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals {
    packets: u64,
    /// Runs of all accounts before the first of them came, or before the account's last run.
    since: u64,
    /// Packets for which the fullest of their stores has room.
    room: usize,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals { packets: 0, since: 0, room: usize::MAX }
    }
}

impl Arrivals {
    /// Notes that packets have come, in the run after so many.
    #[inline]
    pub(super) fn come(&mut self, it: &CrossingCount, runs: u64) {
        if self.packets == 0 {
            self.since = runs;
        }
        self.packets += it.packets;
        self.room = self.room.min(it.room);
    }

    /// Notes that the last of so many runs, one of the account, took packets. The wait of others begins
    /// again.
    #[inline]
    pub(super) fn leave(&mut self, packets: u64, runs: u64) {
        let taken = usize::try_from(packets).unwrap_or(usize::MAX);
        *self = Arrivals {
            packets: self.packets.saturating_sub(packets),
            since: runs,
            room: self.room.saturating_add(taken),
        };
    }
}

impl AccountUsage {
    /// Sets the counts to zero.
    pub(super) fn reset(&mut self) {
        let AccountUsage { limited_until, fresh, .. } = *self;
        *self = AccountUsage { limited_until, fresh, ..AccountUsage::default() };
    }
}

impl AccountState {
    /// That of an account that has not run yet.
    pub(super) fn new(plan: &AccountPlan, bound: RunBound) -> AccountState {
        AccountState {
            plan: plan.clone(),
            usage: AccountUsage::default(),
            bound,
            cut_run: CutRun::default(),
            arrivals: Arrivals::default(),
        }
    }

    /// Whether it waits until as many packets have come as a run may take, where bursts have `burst`, after so many
    /// runs of all accounts. One whose delay is bounded does not, nor one of which a store is nearly full.
    #[inline]
    pub(super) fn waits(&self, burst: usize, runs: u64) -> bool {
        let Arrivals { packets, since, room } = self.arrivals;
        let may_wait = self.plan.delay.is_none() && room >= burst && runs - since < MOST_WAITS;
        may_wait && (1..self.bound.burst_of(burst) as u64).contains(&packets)
    }

    /// Whether as many packets wait as a run may take, where bursts have `burst`.
    #[inline]
    pub(super) fn has_whole_run(&self, burst: usize) -> bool {
        self.arrivals.packets >= self.bound.burst_of(burst) as u64
    }

    /// Whether a store has no room for all that a device may bring at once.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.arrivals.room < MAX_BURST
    }

    /// Has the account pay for memory that this thread allocates, until the result is dropped.
    #[inline]
    pub(super) fn payment(&self) -> Option<HeapPayment> {
        Some(self.plan.memory.as_ref()?.heap()?.pay())
    }

    /// Notes a run that took so many ticks and moved so many packets.
    #[inline]
    pub(super) fn note_run(&mut self, ticks: u64, packets: u64, run: &AccountRun) {
        let most = self.bound.most.unwrap_or(u64::MAX);
        let AccountUsage { runs, longest, overruns, .. } = &mut self.usage;
        *runs += 1;
        *longest = ticks.max(*longest);
        *overruns += u64::from(packets <= 1 && ticks > most);
        self.bound.observe(ticks, packets, run);
    }

    /// Goes on with the use of an account of the same name in another configuration.
    pub(super) fn inherit(&mut self, before: &AccountState) {
        self.usage = before.usage;
        self.bound.per_packet = before.bound.per_packet;
        self.bound.per_visit = before.bound.per_visit;
    }
}
