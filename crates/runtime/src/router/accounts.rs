//! Handlers about accounts of processor time and memory.

use super::{Router, RunningConfig, memory_limits};
use crate::graph::assign::accounts::{OWN, give_rest};
use crate::graph::assign::{AccountPlan, Assignment};
use crate::worker::{AccountReport, Worker};
use castanet_element::account::CpuPart;
use castanet_element::args::{FromArg, Names};
use castanet_element::error::ArgError;
use castanet_element::handler::HandlerDoc;
use std::fmt::Write;
use std::time::Duration;

/// Read handlers of elements that declare accounts.
pub const READS: &[HandlerDoc] = &[
    HandlerDoc {
        name: "guarantee",
        doc: "The part of a processor that the account has whenever it has work.",
    },
    HandlerDoc {
        name: "limit",
        doc: "The part of a processor that the account gets at most; `none` without a limit.",
    },
    HandlerDoc {
        name: "delay",
        doc: "The longest time for which one run of another account may keep it waiting; `none` without one.",
    },
    HandlerDoc {
        name: "held",
        doc: "Whether the account's tasks and timers wait until it is released.",
    },
    HandlerDoc {
        name: "cpu_time",
        doc: "Processor time that the account has used, `device_time` included.",
    },
    HandlerDoc {
        name: "device_time",
        doc: "Processor time of the router's own tasks that the account has paid for its packets.",
    },
    HandlerDoc {
        name: "limited_time",
        doc: "Time for which the account could not run because of its limit.",
    },
    HandlerDoc { name: "longest_run", doc: "The longest run of one of the account's tasks." },
    HandlerDoc { name: "runs", doc: "Runs of the account's tasks." },
    HandlerDoc {
        name: "overruns",
        doc: "Runs with one packet that took longer than the delays of other accounts allow.",
    },
    HandlerDoc {
        name: "burst",
        doc: "Packets that a run may take, so that it is not too long; the least of all workers.",
    },
];

/// Write handlers of elements that declare accounts.
pub const WRITES: &[HandlerDoc] = &[
    HandlerDoc { name: "guarantee", doc: "Sets the guarantee, 0 to 100%." },
    HandlerDoc { name: "limit", doc: "Sets the limit, above 0 to 100%, or `none`." },
    HandlerDoc { name: "delay", doc: "Sets the delay, or `none`." },
    HandlerDoc { name: "held", doc: "Holds the account's tasks and timers, or releases them." },
    HandlerDoc { name: "reset_counts", doc: "Counts the account's time from zero." },
];

/// The head of the table of accounts.
const COLUMNS: &str = "account\tguarantee\tlimit\tcpu_time\tdevice_time\tlimited_time\truns\tlongest_run\toverruns\theap\tpackets\n";

/// The handlers of an element about the account or the limits that it declares, each with whether it
/// writes.
pub(super) fn account_handlers(
    plan: &Assignment,
    element: usize,
) -> impl Iterator<Item = (HandlerDoc, bool)> + use<> {
    let of = |reads: &'static [HandlerDoc], writes: &'static [HandlerDoc], has: bool| {
        let reads = reads.iter().map(|&doc| (doc, false));
        reads.chain(writes.iter().map(|&doc| (doc, true))).filter(move |_| has)
    };
    let has_limits = memory_limits::declared(plan, element).is_some();
    let of_limits = of(memory_limits::READS, memory_limits::WRITES, has_limits);
    of(READS, WRITES, declared(plan, element).is_some()).chain(of_limits)
}

/// The account that an element declares.
fn declared(plan: &Assignment, element: usize) -> Option<usize> {
    plan.accounts.iter().position(|account| account.element == Some(element))
}

/// A part of a processor, as text.
fn percent(part: f64) -> String {
    let text = format!("{:.3}", part * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn limit_text(account: &AccountPlan) -> String {
    account.share.limit.map_or("none".to_owned(), percent)
}

fn seconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64())
}

/// `none`, or a value.
pub(super) fn optional<T: FromArg>(text: &str) -> Result<Option<T>, ArgError> {
    match text {
        "none" => Ok(None),
        _ => T::from_arg(text, &Names::default()).map(Some),
    }
}

/// Has accounts go on with the memory of those of the same name.
pub(super) fn take_memory(now: &mut [AccountPlan], before: &[AccountPlan]) {
    for plan in now {
        if let Some(old) = before.iter().find(|old| old.name == plan.name) {
            plan.memory.clone_from(&old.memory);
        }
    }
}

/// Keeps the shares, delays and limits that handlers have changed, where the arguments are the same.
pub(super) fn keep_changes(now: &mut RunningConfig, before: &RunningConfig) {
    let arguments = |config: &RunningConfig, element: Option<usize>| {
        Some(config.graph.elements[element?].config.clone())
    };
    for n in 1..now.assigned.accounts.len() {
        let plan = &now.assigned.accounts[n];
        let old = before.assigned.accounts.iter().find(|old| old.name == plan.name);
        if let Some(old) = old {
            let declares = |plan: &AccountPlan| plan.limits.as_ref().and_then(|it| it.element);
            let same_share = arguments(now, plan.element) == arguments(before, old.element);
            let same_limits = arguments(now, declares(plan)) == arguments(before, declares(old));
            let (share, delay, held) = (old.share, old.delay, old.held);
            let limits = old.limits.clone();
            let plan = &mut now.assigned.accounts[n];
            if same_share {
                (plan.share, plan.delay, plan.held) = (share, delay, held);
            }
            if let (true, Some(now), Some(before)) = (same_limits, &mut plan.limits, limits) {
                (now.heap, now.packets) = (before.heap, before.packets);
            }
        }
        now.assigned.accounts[n].apply_limits();
    }
    give_rest(&mut now.assigned.accounts);
}

impl AccountReport {
    /// Adds that of another worker.
    fn add(&mut self, other: &AccountReport) {
        self.cpu_time += other.cpu_time;
        self.device_time += other.device_time;
        self.limited_time += other.limited_time;
        self.longest_run = self.longest_run.max(other.longest_run);
        self.runs += other.runs;
        self.overruns += other.overruns;
        self.burst = if self.burst == 0 { other.burst } else { self.burst.min(other.burst) };
    }
}

impl Router {
    /// The accounts of processor time, the router's own first, each with its use; none if none is declared.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn accounts(&mut self) -> Result<Vec<(AccountPlan, AccountReport)>, ArgError> {
        let reports = self.account_reports()?;
        Ok(self.config.assigned.accounts.iter().cloned().zip(reports).collect())
    }

    /// The use of each account, summed over workers.
    fn account_reports(&mut self) -> Result<Vec<AccountReport>, ArgError> {
        let count = self.config.assigned.accounts.len();
        let mut sums = vec![AccountReport::default(); count];
        let of = move |worker: &mut Worker| -> Vec<AccountReport> {
            let (accounts, burst) = (worker.accounts.iter(), worker.exec.burst);
            accounts.flat_map(|it| (0..count).map(|account| it.report(account, burst))).collect()
        };
        for theirs in self.workers.ask_all(of) {
            sums.iter_mut().zip(&theirs?).for_each(|(sum, report)| sum.add(report));
        }
        Ok(sums)
    }

    /// Reads a handler of an account; `None` if it is none.
    pub(super) fn read_account(
        &mut self,
        element: usize,
        name: &str,
    ) -> Result<Option<String>, ArgError> {
        let Some(account) = declared(&self.config.assigned, element) else { return Ok(None) };
        let plan = &self.config.assigned.accounts[account];
        match name {
            "guarantee" => return Ok(Some(percent(plan.share.guarantee))),
            "limit" => return Ok(Some(limit_text(plan))),
            "delay" => {
                let delay = plan.delay.map(|delay| delay.as_secs_f64().to_string());
                return Ok(Some(delay.unwrap_or("none".to_owned())));
            }
            "held" => return Ok(Some(plan.held.to_string())),
            _ if READS.iter().all(|doc| doc.name != name) => return Ok(None),
            _ => {}
        }
        let report = self.account_reports()?.swap_remove(account);
        Ok(Some(match name {
            "cpu_time" => seconds(report.cpu_time),
            "device_time" => seconds(report.device_time),
            "limited_time" => seconds(report.limited_time),
            "longest_run" => seconds(report.longest_run),
            "runs" => report.runs.to_string(),
            "overruns" => report.overruns.to_string(),
            _ => report.burst.to_string(),
        }))
    }

    /// Writes a handler of an account; `None` if it is none.
    pub(super) fn write_account(
        &mut self,
        element: usize,
        name: &str,
        value: &str,
    ) -> Option<Result<(), ArgError>> {
        let account = declared(&self.config.assigned, element)?;
        if WRITES.iter().all(|doc| doc.name != name) {
            return None;
        }
        if name == "reset_counts" {
            let reset = move |worker: &mut Worker| {
                worker.accounts.iter_mut().for_each(|accounts| accounts.reset(account));
            };
            return Some(self.workers.ask_all(reset).into_iter().collect());
        }
        let changed =
            self.changed_account(account, name, value.trim()).map_err(|e| e.of_handler(name));
        Some(changed.and_then(|plan| self.change_account(account, plan)))
    }

    /// The account with another share or delay.
    fn changed_account(
        &self,
        account: usize,
        name: &str,
        value: &str,
    ) -> Result<AccountPlan, ArgError> {
        let accounts = &self.config.assigned.accounts;
        let mut plan = accounts[account].clone();
        match name {
            "guarantee" => {
                plan.share.guarantee = CpuPart::from_arg(value, &Names::default())?.0;
                let others = accounts.iter().enumerate().skip(1).filter(|&(n, _)| n != account);
                let others: f64 = others.map(|(_, plan)| plan.share.guarantee).sum();
                if others + plan.share.guarantee > 1.0 + 1e-9 {
                    let left = percent((1.0 - others).max(0.0));
                    return Err(ArgError::new(format!("the other accounts leave {left}")));
                }
            }
            "held" => plan.held = bool::from_arg(value, &Names::default())?,
            "limit" => plan.share.limit = optional::<CpuPart>(value)?.map(|limit| limit.0),
            _ => plan.delay = optional(value)?,
        }
        match plan.share.limit {
            Some(0.0) => Err(ArgError::new("an account without time could not run")),
            Some(limit) if limit < plan.share.guarantee => {
                Err(ArgError::new("the limit is lower than the guarantee"))
            }
            _ => Ok(plan),
        }
    }

    fn change_account(&mut self, account: usize, plan: AccountPlan) -> Result<(), ArgError> {
        self.config.assigned.accounts[account] = plan.clone();
        give_rest(&mut self.config.assigned.accounts);
        let own = self.config.assigned.accounts[OWN].clone();
        let change = move |worker: &mut Worker| {
            if let Some(accounts) = &mut worker.accounts {
                accounts.change(account, &plan);
                accounts.change(OWN, &own);
            }
        };
        self.workers.ask_all(change).into_iter().collect()
    }

    /// The global handler `accounts`: a row for each account, the router's own first.
    pub(super) fn accounts_table(&mut self) -> Result<String, ArgError> {
        let accounts = self.accounts()?;
        let mut text = if accounts.is_empty() { String::new() } else { COLUMNS.to_owned() };
        for (n, (plan, report)) in accounts.iter().enumerate() {
            let name = if n == OWN { "-" } else { &plan.name };
            let (guarantee, limit) = (percent(plan.share.guarantee), limit_text(plan));
            let times = [report.cpu_time, report.device_time, report.limited_time].map(seconds);
            let (times, longest) = (times.join("\t"), seconds(report.longest_run));
            let AccountReport { runs, overruns, .. } = report;
            let memory = plan.memory.as_ref();
            let memory = memory.map(|it| format!("{}\t{}", it.heap_bytes(), it.packets()));
            let memory = memory.unwrap_or("-\t-".to_owned());
            _ = writeln!(
                text,
                "{name}\t{guarantee}\t{limit}\t{times}\t{runs}\t{longest}\t{overruns}\t{memory}"
            );
        }
        Ok(text)
    }
}
