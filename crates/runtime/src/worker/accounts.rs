//! Processor time of one worker by account: which account runs next, and who pays for what; and who
//! pays for memory.
//!
//! Time is read from the time-stamp counter once a run, so all of it is charged. The counter goes on
//! while the system runs another thread on the core. So about every millisecond the charges are
//! compared with the processor time of the thread, and what was charged too much is given back.

mod account_state;
mod crossings;
mod cut_runs;
mod memory;
mod run_bound;
mod tick_counter;

use super::meter::VISIT;
use super::{Tasks, Worker};
use crate::graph::Graph;
use crate::graph::assign::accounts::{OWN, receivers};
use crate::graph::assign::{AccountPlan, Assignment};
use crate::graph::task::TaskKind;
use account_state::{AccountState, Arrivals, MOST_WAITS};
use castanet_element::exec::{Counters, ExecState};
use castanet_element::time::{Clock, Time};
use castanet_kit::cpu_shares::{CpuChoice, CpuShare, CpuShares};
use castanet_packet::HeapPayment;
use crossings::Crossings;
use memory::KeptRound;
use nix::time::{ClockId, clock_gettime};
use run_bound::{RunBound, aim};
use std::time::Duration;
use tick_counter::TickCounter;

/// Time at full speed for which an account with a limit may save up while it has no work.
const SAVED: Duration = Duration::from_millis(2);
/// Time after which charges are compared with the processor time of the thread.
const SETTLEMENT: Duration = Duration::from_millis(1);
/// Time of a visit of an element, until one has been seen.
const VISIT_TIME: Duration = Duration::from_nanos(200);
/// The least part of a processor by which the router's own tasks have their turn.
const LEAST_OWN: f64 = 0.1;
/// Time after which a timer that is due is looked at again, while its account is held.
const HELD_TIMER: Duration = Duration::from_millis(10);
/// The longest run of more than one burst, where nobody was promised a delay.
const LONG_RUN: Duration = Duration::from_micros(100);

/// The accounts of one worker.
pub(crate) struct Accounts {
    states: Vec<AccountState>,
    /// The payment for memory on the heap while a command runs.
    payment: Option<HeapPayment>,
    kept_round: KeptRound,
    /// Shares in ticks.
    shares: CpuShares,
    counter: TickCounter,
    /// By element: its account.
    of: Vec<usize>,
    /// Ticks that the timers of one turn may take.
    most_of_timers: u64,
    crossings: Crossings,
    /// Runs of all accounts.
    runs: u64,
    /// Whether packets have come into an account with the last run, in real time.
    has_arrivals: bool,
    /// Whether the last run of the router's own tasks moved a whole burst, so that more packets wait
    /// outside.
    is_backlogged: bool,
    /// The accounts to which the router's own tasks bring packets, if those do nothing else.
    receivers: Vec<usize>,
    /// Runs of all accounts up to the last one of the router's own tasks, and the counter at its end.
    own_run: (u64, u64),
    /// Ticks of [`LONG_RUN`].
    long_run: u64,
    /// The account that pays for the present command.
    payer: usize,
    /// The counter up to which all time is charged.
    mark: u64,
    /// Whether the worker has rested since.
    rests: bool,
    /// The counter and the processor time of the thread at the last settlement, without the rests since.
    settled: Option<(u64, Duration)>,
    settlement: u64,
}

/// Use of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AccountReport {
    /// Processor time that it has used.
    pub cpu_time: Duration,
    /// The part of that for its packets in the router's own tasks.
    pub device_time: Duration,
    /// Time for which it could not run because of its limit.
    pub limited_time: Duration,
    /// The longest run of one of its tasks.
    pub longest_run: Duration,
    /// Runs of its tasks.
    pub runs: u64,
    /// Runs with one packet that took longer than the delays of others allow.
    pub overruns: u64,
    /// Packets that a run may take.
    pub burst: usize,
}

impl Accounts {
    /// The accounts of a configuration, if it has any.
    pub(crate) fn new(graph: &Graph, plan: &Assignment, clock: &Clock) -> Option<Accounts> {
        if plan.accounts.is_empty() {
            return None;
        }
        let counter = TickCounter::new(clock);
        let mut shares: Vec<CpuShare> = plan.accounts.iter().map(|it| it.share).collect();
        shares[OWN] = own_share(shares[OWN]);
        let per_visit = match counter.counter {
            Some(_) => counter.ticks(VISIT_TIME),
            None => VISIT,
        };
        let bound = RunBound::new(per_visit, counter.ticks(LONG_RUN));
        let mark = counter.now(clock.now());
        let mut accounts = Accounts {
            receivers: receivers(graph, plan),
            own_run: (0, mark),
            long_run: counter.ticks(LONG_RUN),
            shares: CpuShares::new(&shares, counter.ticks(SAVED), mark),
            of: plan.elements.iter().map(|it| it.account).collect(),
            states: plan.accounts.iter().map(|it| AccountState::new(it, bound)).collect(),
            most_of_timers: u64::MAX,
            crossings: Crossings::new(graph, plan),
            runs: 0,
            has_arrivals: false,
            is_backlogged: false,
            payment: None,
            kept_round: KeptRound::default(),
            payer: OWN,
            mark,
            rests: true,
            settled: None,
            settlement: counter.ticks(SETTLEMENT),
            counter,
        };
        accounts.bound_runs();
        Some(accounts)
    }

    /// Sets the longest runs: each account's by the delays that all others may have.
    fn bound_runs(&mut self) {
        for account in 0..self.states.len() {
            let others = self.states.iter().enumerate().filter(|&(other, _)| other != account);
            let most = others.filter_map(|(_, it)| it.plan.delay).min();
            self.states[account].bound.set_most(most.map(|most| self.counter.ticks(most)));
        }
        let least = self.states.iter().filter_map(|it| it.plan.delay).min();
        self.most_of_timers = least.map_or(u64::MAX, |least| aim(self.counter.ticks(least)));
    }

    /// The account of an element.
    fn of(&self, element: usize) -> usize {
        self.of[element]
    }

    /// Has the account of `element` pay for the command that runs.
    pub(crate) fn set_payer(&mut self, element: usize) {
        self.payer = self.of(element);
        self.payment = self.states[self.payer].payment();
    }

    /// Goes on behind a rest, in which no time is charged.
    #[inline]
    fn go_on(&mut self, now: Time) {
        if std::mem::take(&mut self.rests) {
            let now = self.counter.now(now);
            let rest = now.saturating_sub(self.mark);
            self.mark = now;
            if let Some((ticks, _)) = &mut self.settled {
                *ticks += rest;
            }
        }
    }

    /// Begins on another thread, whose processor time is not known yet.
    pub(super) fn begin_thread(&mut self) {
        (self.rests, self.settled) = (true, None);
    }

    /// Time since the last charge; in simulated time that of so many visits of elements.
    fn elapsed(&mut self, now: Time, visits: u32) -> u64 {
        match &self.counter.counter {
            Some(counter) => {
                let now = counter.raw();
                now.saturating_sub(std::mem::replace(&mut self.mark, now))
            }
            None => {
                self.mark = now.nanos();
                (u64::from(visits) + 1) * VISIT
            }
        }
    }

    #[inline]
    fn charge(&mut self, account: usize, ticks: u64) {
        self.note_use(account, ticks);
        self.shares.charge(account, ticks);
        self.note_limit(account);
    }

    fn note_use(&mut self, account: usize, ticks: u64) {
        self.kept_round.is_stale = true;
        let usage = &mut self.states[account].usage;
        usage.ticks += ticks;
        usage.fresh += ticks;
    }

    /// Notes whether an account that was charged has reached its limit.
    fn note_limit(&mut self, account: usize) {
        if let Some(due) = self.shares.reached(account, self.mark) {
            let usage = &mut self.states[account].usage;
            let from = usage.limited_until.max(self.mark);
            usage.limited += due.saturating_sub(from);
            usage.limited_until = usage.limited_until.max(due);
        }
    }

    /// Charges a command to the account that pays for it.
    fn charge_command(&mut self, now: Time) {
        let ticks = self.elapsed(now, 0);
        self.charge(self.payer, ticks);
        (self.payer, self.payment) = (OWN, None);
    }

    /// Charges the timer of an element; returns the ticks that it took.
    fn charge_timer(&mut self, element: usize, now: Time, visits: u32) -> u64 {
        let (account, ticks) = (self.of(element), self.elapsed(now, visits));
        self.charge(account, ticks);
        ticks
    }

    /// Charges a run of a task.
    #[inline]
    fn charge_run(&mut self, run: &AccountRun, packets: u64, exec: &mut ExecState) {
        let ticks = self.elapsed(exec.now, run.visits);
        let own = match run.account {
            OWN => ticks.saturating_sub(self.charge_crossings(ticks, packets, exec)),
            _ => ticks,
        };
        exec.store_inputs.iter_mut().for_each(Vec::clear);
        // Others pay for the rest. It counts for whose turn it is all the same: else a flood of packets
        // would leave no time for the work on them.
        self.note_use(run.account, own);
        self.shares.charge(run.account, ticks);
        self.note_limit(run.account);
        self.runs += 1;
        let (runs, state) = (self.runs, &mut self.states[run.account]);
        match run.account {
            OWN => {
                self.is_backlogged = packets >= run.burst as u64;
                self.own_run = (runs, self.mark);
            }
            _ => state.arrivals.leave(packets, runs),
        }
        let most = state.bound.most.unwrap_or(u64::MAX);
        let is_long = ticks > most.min(state.usage.longest);
        // A long run may have been interrupted.
        let ticks = ticks.saturating_sub(self.settle(is_long));
        self.states[run.account].note_run(ticks, packets, run);
    }

    /// Charges a run of the router's own to the accounts whose packets it moved; returns what they
    /// pay.
    fn charge_crossings(&mut self, ticks: u64, packets: u64, exec: &mut ExecState) -> u64 {
        let crossed = self.crossings.take(exec);
        let all = crossed.max(packets).max(1);
        let mut paid = 0;
        for at in 0..self.crossings.found.len() {
            let it = self.crossings.found[at];
            // Mostly a burst is for one account.
            let part = match it.packets == all {
                true => ticks,
                false => ticks.saturating_mul(it.packets) / all,
            };
            let state = &mut self.states[it.account];
            if it.comes_in {
                state.arrivals.come(&it, self.runs);
                self.has_arrivals = self.counter.counter.is_some();
            }
            paid += part;
            state.usage.device_ticks += part;
            self.charge(it.account, part);
        }
        paid
    }

    /// Compares the charges since the last settlement with the processor time of the thread, and
    /// gives back what was charged too much, by accounts in proportion; returns how much that was. It
    /// does so at the end of an interval, or `at_once`.
    #[inline]
    fn settle(&mut self, at_once: bool) -> u64 {
        let due = self
            .settled
            .is_none_or(|(begun, _)| self.mark.saturating_sub(begun) >= self.settlement);
        if due || at_once { self.settle_now() } else { 0 }
    }

    #[inline(never)]
    fn settle_now(&mut self) -> u64 {
        if self.counter.counter.is_none() {
            return 0;
        }
        let Some(now) = thread_time() else { return 0 };
        let Some((begun, spent)) = self.settled.replace((self.mark, now)) else {
            self.states.iter_mut().for_each(|it| it.usage.fresh = 0);
            return 0;
        };
        let elapsed = self.mark.saturating_sub(begun);
        let used = self.counter.ticks(now.saturating_sub(spent));
        let fresh: u64 = self.states.iter().map(|it| it.usage.fresh).sum();
        let lost = elapsed.saturating_sub(used).min(fresh);
        for (account, AccountState { usage, .. }) in self.states.iter_mut().enumerate() {
            let part = u128::from(usage.fresh) * u128::from(lost) / u128::from(fresh.max(1));
            let part = part as u64;
            usage.ticks = usage.ticks.saturating_sub(part);
            usage.fresh = 0;
            if part > 0 {
                self.shares.refund(account, part);
            }
        }
        lost
    }

    /// The account that runs next, with bursts of at most `burst` packets. While packets wait outside, an
    /// account without a bound on its delay waits until it has as many as a run may take: the cost of a run beside its
    /// packets is then shared by more. The router's own tasks do not wait for an account that has them: packets of
    /// others may be among those outside. While all accounts have them, see [`Self::own_tasks_wait`].
    #[inline]
    fn choose(&mut self, tasks: &Tasks, burst: usize) -> CpuChoice {
        let has_own = tasks.has_ready(OWN);
        let collects = self.is_backlogged && has_own;
        let own_waits = has_own && self.own_tasks_wait(tasks, burst);
        let Accounts { states, shares, runs, .. } = self;
        let may_run = |account: usize| {
            let state = &states[account];
            let may_run = || tasks.has_ready(account) && !(collects && state.waits(burst, *runs));
            (state.cut_run.is_some() || may_run()) && !state.plan.held
        };
        if own_waits {
            let other = shares.choose(self.mark, |account| account != OWN && may_run(account));
            if matches!(other, CpuChoice::Run(_)) {
                return other;
            }
        }
        shares.choose(self.mark, may_run)
    }

    /// Whether the router's own tasks wait for others: because all accounts to which they bring packets have full stores, or,
    /// for the time of a long run of each, as many packets as a run may take. They wait for [`MOST_WAITS`] runs at most, or for one
    /// of each account. More packets would be dropped there, or would be out of the cache when they are processed.
    #[inline]
    fn own_tasks_wait(&self, tasks: &Tasks, burst: usize) -> bool {
        let (runs, mark) = self.own_run;
        let receivers = self.receivers.len() as u64;
        if receivers == 0 || self.runs - runs >= MOST_WAITS.max(receivers) {
            return false;
        }
        let is_soon = self.mark.saturating_sub(mark) < self.long_run * receivers;
        self.receivers.iter().all(|&account| {
            let state = &self.states[account];
            let has_enough = state.is_full() || is_soon && state.has_whole_run(burst);
            has_enough && tasks.has_ready(account)
        })
    }

    /// The time at which the timer of an element may run, if its account is held or has reached its limit.
    fn postponed(&mut self, element: usize, now: Time) -> Option<Time> {
        if self.states[self.of(element)].plan.held {
            return Some(now + HELD_TIMER);
        }
        let due = self.shares.reached(self.of(element), self.mark)?;
        Some(self.time_of(due, now))
    }

    fn time_of(&self, due: u64, now: Time) -> Time {
        now + self.counter.time(due.saturating_sub(self.mark)).max(Duration::from_nanos(1))
    }

    /// The use of an account on a worker with bursts of at most `burst` packets.
    pub(crate) fn report(&self, account: usize, burst: usize) -> AccountReport {
        let AccountState { usage, bound, .. } = &self.states[account];
        let time = |ticks| self.counter.time(ticks);
        AccountReport {
            cpu_time: time(usage.ticks),
            device_time: time(usage.device_ticks),
            limited_time: time(usage.limited),
            longest_run: time(usage.longest),
            runs: usage.runs,
            overruns: usage.overruns,
            burst: bound.burst_of(burst),
        }
    }

    /// Sets the counts of an account to zero; its debts stay.
    pub(crate) fn reset(&mut self, account: usize) {
        self.states[account].usage.reset();
    }

    /// Gives an account the share, the delay and the hold of this plan.
    pub(crate) fn change(&mut self, account: usize, to: &AccountPlan) {
        let plan = &mut self.states[account].plan;
        (plan.share, plan.delay, plan.held) = (to.share, to.delay, to.held);
        let share = if account == OWN { own_share(to.share) } else { to.share };
        self.shares.set_share(account, share, self.mark);
        self.bound_runs();
    }

    /// Goes on with the use and the debts of accounts of the same name, under shares that handlers
    /// may have changed.
    pub(crate) fn inherit(&mut self, before: &Accounts, plans: &[AccountPlan]) {
        for (account, plan) in plans.iter().enumerate() {
            let state = &mut self.states[account];
            plan.clone_into(&mut state.plan);
            self.shares.set_share(account, plan.share, self.mark);
            let is_same = |it: &AccountState| it.plan.name == plan.name;
            let Some(their) = before.states.iter().position(is_same) else { continue };
            self.shares.inherit(account, &before.shares, their);
            state.inherit(&before.states[their]);
        }
        self.crossings.begin();
        self.bound_runs();
    }
}

/// The share of the router's own tasks: never so small that packets could not come in.
fn own_share(share: CpuShare) -> CpuShare {
    CpuShare { guarantee: share.guarantee.max(LEAST_OWN), ..share }
}

/// Processor time of this thread.
fn thread_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

/// A run of a task, to be charged.
struct AccountRun {
    account: usize,
    /// Packets that it might have moved.
    burst: usize,
    visits: u32,
    /// Whether a remainder of it is left.
    is_cut: bool,
}

/// Packets that a task has moved in all.
fn moved(kind: TaskKind, counters: &[Counters]) -> u64 {
    match kind {
        TaskKind::Source(element) | TaskKind::Store(element) => counters[element].output,
        TaskKind::Sink { node, .. } => counters[node].input,
    }
}

impl Worker {
    /// Goes on behind a rest, where accounts are charged.
    #[inline]
    pub(super) fn begin_charges(&mut self) {
        if let Some(accounts) = &mut self.accounts {
            accounts.go_on(self.exec.now);
        }
    }

    /// Charges the command that has just run.
    pub(super) fn charge_command(&mut self) {
        if let Some(accounts) = &mut self.accounts {
            accounts.charge_command(self.exec.now);
        }
    }

    /// Has the account of `element` pay for the command that runs.
    pub(crate) fn bill(&mut self, element: usize) {
        if let Some(accounts) = &mut self.accounts {
            accounts.set_payer(element);
        }
    }

    /// Sets the timer of an element later, if its account is held or has reached its limit.
    pub(super) fn postpones(&mut self, element: usize) -> bool {
        let Some(accounts) = &mut self.accounts else { return false };
        let Some(time) = accounts.postponed(element, self.exec.now) else { return false };
        self.exec.timers.set(element, time);
        true
    }

    /// Charges the timer of an element that has just run, and adds its ticks to those of the turn's timers. Returns
    /// whether tasks have to run before other timers.
    pub(super) fn charge_timer(&mut self, element: usize, ticks: &mut u64) -> bool {
        let Some(accounts) = &mut self.accounts else { return false };
        *ticks += accounts.charge_timer(element, self.exec.now, self.graph.hops);
        self.exec.store_inputs.iter_mut().for_each(Vec::clear);
        *ticks >= accounts.most_of_timers
    }

    /// Runs the next task of an account, for a burst of this length; returns the number of packets that it moved,
    /// or `None` if there is none.
    #[inline]
    fn run_task(&mut self, account: usize, burst: usize) -> Option<u64> {
        let task = self.tasks.next_ready(account)?;
        let most = std::mem::replace(&mut self.exec.burst, burst);
        let kind = self.tasks.kind(task);
        let before = moved(kind, &self.exec.counters);
        self.graph.hops = 0;
        match (&self.meter, &self.sampler) {
            (None, None) => self.run::<false>(task),
            _ => self.run_measured(task),
        }
        self.exec.burst = most;
        Some(moved(kind, &self.exec.counters) - before)
    }

    /// Runs a task of the account whose turn it is; where packets have come into an account with that, also one of the
    /// next account, mostly that one. Returns as [`Self::run_account`].
    pub(super) fn run_accounts(&mut self) -> (bool, Option<Time>) {
        let outcome = self.run_account();
        let Some(accounts) = &mut self.accounts else { return outcome };
        if std::mem::take(&mut accounts.has_arrivals) {
            self.after();
            if !self.is_calling() {
                self.run_account();
            }
        }
        outcome
    }

    /// Runs a task of the account whose turn it is, or goes on with a run that was cut; returns whether there was
    /// one, and the time at which an account with work may run again.
    #[inline(never)]
    fn run_account(&mut self) -> (bool, Option<Time>) {
        let Some(accounts) = &mut self.accounts else { return (false, None) };
        let account = match accounts.choose(&self.tasks, self.exec.burst) {
            CpuChoice::Run(account) => account,
            CpuChoice::Wait(due) => return (false, Some(accounts.time_of(due, self.exec.now))),
            CpuChoice::Idle => return (false, None),
        };
        let state = &accounts.states[account];
        let burst = match account {
            OWN => self.exec.burst,
            _ => state.bound.burst_of(self.exec.burst),
        };
        let (payment, has_remainder) = (state.payment(), state.cut_run.is_some());
        self.bound_run(account);
        let moved = match has_remainder {
            true => {
                self.run_remainder(account);
                Some(0)
            }
            false => self.run_task(account, burst),
        };
        let is_cut = self.graph.is_cut;
        self.set_remainder_aside(account);
        drop(payment);
        let Some(packets) = moved else { return (false, None) };
        let has_more = self.tasks.has_ready(account);
        let run = AccountRun { account, burst, visits: self.graph.hops, is_cut };
        if let Some(accounts) = &mut self.accounts {
            accounts.charge_run(&run, packets, &mut self.exec);
            if !has_more {
                accounts.states[account].arrivals = Arrivals::default();
            }
            if accounts.kept_round.is_due(self.exec.now) {
                self.count_kept();
            }
        }
        (true, None)
    }
}
