//! Shares of one processor: the account that runs next, by guarantees and limits.
//!
//! Guarantees are kept by start-time fair queueing of processor time (Goyal, Vin, Cheng: *Start-time
//! Fair Queuing*, SIGCOMM 1996): of the accounts with work, the one with the lowest virtual time runs,
//! and what it used takes it back in proportion to its weight. So an account with work gets its weight's
//! part at least, and what others leave is divided by weight. A limit is a token bucket of time that may
//! go negative: a run that takes longer than there were tokens is paid for before the next one, so the
//! long-term share is the limit however long a run is (against figures 11 and 12 of *Data plane
//! virtualisation*).
//!
//! There is no clock: callers pass times, in ticks of any unit. Time that goes backwards counts as
//! standing still.

/// Weights and rates are in units of this part of the processor.
const UNIT: u64 = 1 << 20;
/// The least weight, so that no account waits for ever.
const LEAST: u64 = UNIT / 1000;

/// The part of a processor that an account may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuShare {
    /// The part that it has whenever it has work, 0 to 1.
    pub guarantee: f64,
    /// The part that it gets at most, above 0 to 1.
    pub limit: Option<f64>,
}

/// The choice of [`CpuShares::choose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuChoice {
    /// This account runs.
    Run(usize),
    /// Every account with work has reached its limit until this time.
    Wait(u64),
    /// No account has work.
    Idle,
}

/// Accounts that share one processor.
#[derive(Clone, Debug)]
pub struct CpuShares {
    accounts: Vec<Account>,
    /// Virtual time of the account that ran last, when it began.
    virtual_time: u64,
    /// Ticks of full speed that an account with a limit may save up.
    burst: u64,
}

#[derive(Clone, Debug)]
struct Account {
    share: CpuShare,
    /// Virtual time of a tick: the inverse of the weight, in units of 2^-32.
    pace: u64,
    virtual_time: u64,
    bucket: Option<Bucket>,
}

/// Tokens in ticks times [`UNIT`].
#[derive(Clone, Debug)]
struct Bucket {
    /// Tokens that it gets in a tick.
    rate: u64,
    tokens: i64,
    /// The time of the last filling.
    filled: u64,
}

impl Bucket {
    fn new(limit: f64, now: u64) -> Bucket {
        Bucket { rate: units(limit).max(1), tokens: 0, filled: now }
    }

    /// Adds the tokens up to `now`, but no more than those of `burst` ticks.
    fn fill(&mut self, now: u64, burst: u64) {
        let Some(elapsed) = now.checked_sub(self.filled) else { return };
        self.filled = now;
        let most = burst.saturating_mul(self.rate).min(i64::MAX as u64) as i64;
        let earned = i64::try_from(elapsed.saturating_mul(self.rate)).unwrap_or(i64::MAX);
        self.tokens = self.tokens.saturating_add(earned).min(most);
    }

    /// The time at which it has tokens again, if it gets them from the last filling on.
    fn due(&self) -> u64 {
        let lacking = u64::try_from(1 - self.tokens).unwrap_or(0);
        self.filled.saturating_add(lacking.div_ceil(self.rate))
    }
}

/// A part of the processor in units.
fn units(part: f64) -> u64 {
    (part.clamp(0.0, 1.0) * UNIT as f64).round() as u64
}

impl Account {
    fn new(share: CpuShare, now: u64) -> Account {
        let weight = units(share.guarantee).max(LEAST);
        let bucket = share.limit.map(|limit| Bucket::new(limit, now));
        Account { share, pace: (UNIT << 32) / weight, virtual_time: 0, bucket }
    }

    /// The virtual time of so many ticks.
    fn virtual_ticks(&self, ticks: u64) -> u64 {
        let virtual_ticks = (u128::from(ticks) * u128::from(self.pace)) >> 32;
        u64::try_from(virtual_ticks).unwrap_or(u64::MAX)
    }

    fn charge(&mut self, ticks: u64) {
        self.virtual_time = self.virtual_time.saturating_add(self.virtual_ticks(ticks));
        if let Some(bucket) = &mut self.bucket {
            bucket.tokens = bucket.tokens.saturating_sub(tokens(ticks));
        }
    }

    fn refund(&mut self, ticks: u64) {
        self.virtual_time = self.virtual_time.saturating_sub(self.virtual_ticks(ticks));
        if let Some(bucket) = &mut self.bucket {
            bucket.tokens = bucket.tokens.saturating_add(tokens(ticks));
        }
    }
}

/// Ticks at full speed as tokens of a bucket.
fn tokens(ticks: u64) -> i64 {
    i64::try_from(ticks.saturating_mul(UNIT)).unwrap_or(i64::MAX)
}

impl CpuShares {
    /// Accounts with these shares from `now` on. An account with a limit saves up the tokens of at
    /// most `burst` ticks while it has no work.
    pub fn new(shares: &[CpuShare], burst: u64, now: u64) -> CpuShares {
        let accounts = shares.iter().map(|&share| Account::new(share, now)).collect();
        CpuShares { accounts, virtual_time: 0, burst }
    }

    /// The share of an account.
    pub fn share(&self, account: usize) -> CpuShare {
        self.accounts[account].share
    }

    /// Gives an account another share; debts stay.
    pub fn set_share(&mut self, account: usize, share: CpuShare, now: u64) {
        let before = self.accounts[account].bucket.take();
        let mut new = Account::new(share, now);
        if let (Some(bucket), Some(before)) = (&mut new.bucket, before) {
            bucket.tokens = before.tokens.min(0);
        }
        new.virtual_time = self.accounts[account].virtual_time;
        self.accounts[account] = new;
    }

    /// Takes over the debts of an account of other shares, whose time goes on here.
    pub fn inherit(&mut self, account: usize, before: &CpuShares, their: usize) {
        let (new, old) = (&mut self.accounts[account], &before.accounts[their]);
        let ahead = old.virtual_time.saturating_sub(before.virtual_time);
        new.virtual_time = self.virtual_time.saturating_add(ahead);
        if let (Some(bucket), Some(before)) = (&mut new.bucket, &old.bucket) {
            (bucket.tokens, bucket.filled) = (before.tokens, before.filled);
        }
    }

    /// Chooses among the accounts with work the one that runs next.
    #[inline]
    pub fn choose(&mut self, now: u64, has_work: impl Fn(usize) -> bool) -> CpuChoice {
        let (mut best, mut due) = (None, None::<u64>);
        for (index, account) in self.accounts.iter_mut().enumerate() {
            if !has_work(index) {
                continue;
            }
            if let Some(bucket) = &mut account.bucket {
                bucket.fill(now, self.burst);
                if bucket.tokens <= 0 {
                    due = Some(due.map_or(bucket.due(), |due| due.min(bucket.due())));
                    continue;
                }
            }
            // Time without work is not saved up.
            let start = account.virtual_time.max(self.virtual_time);
            if best.is_none_or(|(least, _)| start < least) {
                best = Some((start, index));
            }
        }
        match (best, due) {
            (Some((start, index)), _) => {
                self.virtual_time = start;
                self.accounts[index].virtual_time = start;
                CpuChoice::Run(index)
            }
            (None, Some(due)) => CpuChoice::Wait(due),
            (None, None) => CpuChoice::Idle,
        }
    }

    /// The time until which an account has reached its limit, if it has.
    pub fn reached(&mut self, account: usize, now: u64) -> Option<u64> {
        let bucket = self.accounts[account].bucket.as_mut()?;
        bucket.fill(now, self.burst);
        (bucket.tokens <= 0).then(|| bucket.due())
    }

    /// Charges time to an account, after it was used.
    #[inline]
    pub fn charge(&mut self, account: usize, ticks: u64) {
        self.accounts[account].charge(ticks);
    }

    /// Gives back time that was charged to an account, but was not used.
    pub fn refund(&mut self, account: usize, ticks: u64) {
        self.accounts[account].refund(ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ticks of a second.
    const SECOND: u64 = 3_000_000_000;
    const BURST: u64 = SECOND / 1000;

    fn share(guarantee: f64, limit: Option<f64>) -> CpuShare {
        CpuShare { guarantee, limit }
    }

    /// Time that each account gets until `end`, where a run of each takes these ticks and all always
    /// have work; idle time comes last.
    fn run(shares: &mut CpuShares, runs: &[u64], begin: u64, end: u64) -> Vec<u64> {
        let (mut now, mut used) = (begin, vec![0; runs.len() + 1]);
        while now < end {
            match shares.choose(now, |_| true) {
                CpuChoice::Run(index) => {
                    now += runs[index];
                    used[index] += runs[index];
                    shares.charge(index, runs[index]);
                }
                CpuChoice::Wait(due) => {
                    assert!(due > now, "it waits for the past");
                    used[runs.len()] += due - now;
                    now = due;
                }
                CpuChoice::Idle => unreachable!("all have work"),
            }
        }
        used
    }

    #[test]
    fn a_limit_holds_for_any_length_of_a_run() {
        // 5000 to 100 000 cycles a packet, alone and in bursts of 32.
        for run_ticks in [5000, 20_000, 100_000, 32 * 5000, 32 * 100_000] {
            let mut shares = CpuShares::new(&[share(0.15, Some(0.15)), share(0.8, None)], BURST, 0);
            let used = run(&mut shares, &[run_ticks, 60_000], 0, SECOND);
            let part = used[0] as f64 / SECOND as f64;
            let most = run_ticks as f64 / SECOND as f64 + 0.0001;
            assert!((part - 0.15).abs() <= most, "{run_ticks}: {part}");
        }
    }

    #[test]
    fn a_limit_holds_in_windows_of_100_milliseconds() {
        let mut shares = CpuShares::new(&[share(0.15, Some(0.15)), share(0.8, None)], BURST, 0);
        let window = SECOND / 10;
        for number in 0..50 {
            let (begin, end) = (number * window, (number + 1) * window);
            let part = run(&mut shares, &[100_000, 60_000], begin, end)[0] as f64 / window as f64;
            assert!((part - 0.15).abs() < 0.005, "window {number}: {part}");
        }
    }

    #[test]
    fn a_limit_leaves_the_processor_idle() {
        let mut shares = CpuShares::new(&[share(0.5, Some(0.25))], BURST, 0);
        let used = run(&mut shares, &[10_000], 0, SECOND);
        assert!((used[1] as f64 / SECOND as f64 - 0.75).abs() < 0.01, "{used:?}");
    }

    #[test]
    fn time_without_work_is_not_saved_up() {
        let mut shares = CpuShares::new(&[share(0.5, None), share(0.5, None)], BURST, 0);
        for _ in 0..1000 {
            assert_eq!(shares.choose(0, |it| it == 0), CpuChoice::Run(0));
            shares.charge(0, 10_000);
        }
        let used = run(&mut shares, &[10_000, 10_000], 0, 1_000_000);
        assert!(used[0].abs_diff(used[1]) <= 20_000, "{used:?}");
    }

    #[test]
    fn nobody_runs_without_work() {
        let mut shares = CpuShares::new(&[share(0.5, None)], BURST, 0);
        assert_eq!(shares.choose(5, |_| false), CpuChoice::Idle);
        assert_eq!(shares.reached(0, 5), None);
    }

    #[test]
    fn debts_go_with_an_account() {
        let mut before = CpuShares::new(&[share(0.5, None), share(0.1, Some(0.1))], BURST, 0);
        assert_eq!(before.choose(10, |it| it == 1), CpuChoice::Run(1));
        before.charge(1, SECOND);
        let mut after = CpuShares::new(&[share(0.1, Some(0.1)), share(0.5, None)], BURST, 20);
        after.inherit(0, &before, 1);
        assert!(after.reached(0, 20).is_some_and(|due| due > 9 * SECOND));
        after.set_share(0, share(0.1, Some(1.0)), 30);
        assert!(after.reached(0, 30).is_some_and(|due| due > SECOND / 2));
        after.set_share(0, share(0.1, None), 40);
        assert_eq!(after.reached(0, 40), None);
    }

    proptest! {
        #[test]
        fn guarantees_hold_beside_any_neighbours(
            accounts in prop::collection::vec((1u32..100, 1000u64..200_000, any::<bool>()), 1..8),
        ) {
            let sum: u32 = accounts.iter().map(|it| it.0).sum();
            let guarantee = |it: &(u32, u64, bool)| f64::from(it.0) / f64::from(sum);
            let all: Vec<CpuShare> = accounts
                .iter()
                .map(|it| share(guarantee(it), it.2.then(|| guarantee(it))))
                .collect();
            let runs: Vec<u64> = accounts.iter().map(|it| it.1).collect();
            let mut shares = CpuShares::new(&all, BURST, 0);
            let used = run(&mut shares, &runs, 0, SECOND);
            // A run of another account may come between, for each account once.
            let slack = runs.iter().sum::<u64>() as f64 * 2.0 + SECOND as f64 * 0.002;
            for (index, it) in accounts.iter().enumerate() {
                let part = used[index] as f64;
                prop_assert!(part + slack >= guarantee(it) * SECOND as f64, "{index} of {all:?}: {used:?}");
                if it.2 {
                    prop_assert!(part - slack <= guarantee(it) * SECOND as f64, "{index} of {all:?}: {used:?}");
                }
            }
        }
    }
}
