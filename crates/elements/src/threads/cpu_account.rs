//! `CPUAccount`: an account of processor time for the elements of a compound.

use castanet_element::prelude::*;
use std::time::Duration;

/// Guarantees and limits the processor time of an element or a compound.
///
/// The elements have an account on each worker, to which their tasks, timers and handlers are charged.
/// Of a task that belongs to no account, as that of a `FromDevice` for all, an account pays its
/// packets' part: those that come into its elements, or out of them. Time in which the system runs
/// another program on the core is nobody's.
///
/// An account with work has its GUARANTEE at least; time that others leave is divided in proportion
/// to the guarantees. The guarantees of all accounts are at most 100 % together; the router's own
/// tasks have the rest. An account with a LIMIT gets no more than that, even if the processor is
/// idle. Time beyond the limit is paid for before the next run, so the limit holds however long a run
/// is (against figures 11 and 12 of *Data plane virtualisation*).
///
/// DELAY bounds the runs of all other accounts: their bursts become so small that a run takes no
/// longer, and a run whose packets visit too many elements is cut and goes on at its account's next
/// turn. A run of one packet that takes longer is counted in `overruns`.
/// Where no other account has a DELAY, a run takes up to four bursts, if that takes no more than 100 µs.
///
/// Tasks of the router that only bring packets to accounts wait while all of these have full queues, or, for 100 µs, enough for
/// a run: more packets would be of no use.
///
/// While an account is HELD its tasks and timers wait, and packets wait for it where they are kept, such as in
/// queues; handlers answer, and the router's own tasks may take packets out of its queues.
///
/// [Handlers](../handlers.md) say what the account has used, and change its shares.
///
/// ```click
/// tenant :: { input -> Queue -> Unqueue -> Counter -> output };
/// in -> tenant -> out;
/// account :: CPUAccount(tenant, GUARANTEE 20%, LIMIT 30%, DELAY 100us)
/// > in  1.0.0.1 > 2.0.0.2 udp
/// + 10ms
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = account.guarantee 20%
/// = account.limit 30%
/// = account.delay 0.0001
/// = account.overruns 0
/// ! account.limit 50%
/// = account.limit 50%
/// ! account.guarantee 10%
/// = account.guarantee 10%
/// ! account.delay 1ms
/// = account.delay 0.001
/// ! account.held true
/// = account.held true
/// > in  1.0.0.1:2 > 2.0.0.2:3 udp
/// + 10ms
/// ! account.held false
/// + 10ms
/// < out 1.0.0.1:2 > 2.0.0.2:3 udp
/// ! account.reset_counts
/// = account.runs 0
/// = account.cpu_time 0.000000
/// = account.device_time 0.000000
/// = account.limited_time 0.000000
/// = account.longest_run 0.000000
/// ```
#[derive(Element)]
#[element(room = "threads")]
pub struct CPUAccount {
    /// The element or compound that the account pays for.
    #[arg]
    name: String,
    /// The part of a processor that it has whenever it has work.
    #[arg(keyword, default = CpuPart(0.0))]
    guarantee: CpuPart,
    /// The part of a processor that it gets at most.
    #[arg(keyword)]
    limit: Option<CpuPart>,
    /// The longest time for which one run of another account may keep it waiting.
    #[arg(keyword)]
    delay: Option<Duration>,
    /// Whether its tasks and timers wait until a handler releases them.
    #[arg(keyword, default = false)]
    held: bool,
}

impl Info for CPUAccount {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        if facts.accounts.iter().any(|it| it.name == self.name) {
            return Err(ArgError::new(format!("'{}' has an account already", self.name)));
        }
        check(self.guarantee, self.limit)?;
        let sum: f64 = facts.accounts.iter().map(|it| it.guarantee.0).sum();
        if sum + self.guarantee.0 > 1.0 + 1e-9 {
            let left = (1.0 - sum).max(0.0) * 100.0;
            return Err(ArgError::new(format!(
                "GUARANTEE: the accounts before it leave {left:.0}%"
            )));
        }
        facts.accounts.push(CpuAccount {
            name: self.name.clone(),
            guarantee: self.guarantee,
            limit: self.limit,
            delay: self.delay,
            held: self.held,
            element: None,
        });
        Ok(())
    }
}

fn check(guarantee: CpuPart, limit: Option<CpuPart>) -> Result<(), ArgError> {
    match limit {
        Some(CpuPart(0.0)) => Err(ArgError::new("LIMIT: an account without time could not run")),
        Some(limit) if limit < guarantee => {
            Err(ArgError::new("LIMIT: it is lower than the guarantee"))
        }
        _ => Ok(()),
    }
}
