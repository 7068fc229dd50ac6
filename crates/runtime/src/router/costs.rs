//! Cycles of elements: Click's handlers about them.

use super::Router;
use castanet_element::exec::{CycleAccounting, ElementCost, RunCost};
use castanet_element::handler::HandlerDoc;
use nix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The handler `cycles` of every element.
pub(super) const CYCLES: HandlerDoc = HandlerDoc {
    name: "cycles",
    doc: "What the element's tasks, timers and transfers cost since somebody asks; a write begins anew.",
};

/// The columns about one kind of runs, as Click names them.
const COLUMNS: &str = "task_calls,task_cycles,cycles_per_task,timer_calls,timer_cycles,\
    cycles_per_timer,xfer_calls,xfer_cycles,cycles_per_xfer,any_cycles,cycles_per_any";

/// Use of each processor, for the handler `load`.
pub(super) struct CpuLoad {
    started: Instant,
    /// By worker: processor time of its thread at the last read, and the time of that read.
    last: Vec<(Duration, Instant)>,
}

impl CpuLoad {
    pub(super) fn new() -> CpuLoad {
        CpuLoad { started: Instant::now(), last: Vec::new() }
    }
}

impl Router {
    /// A line for each worker: its number, and the share of the time since the last read, or since
    /// the start, in which its thread had a processor.
    pub(super) fn load(&mut self) -> String {
        let mut text = String::new();
        let spent = self.workers.ask_all(|_| clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID));
        for (worker, spent) in spent.into_iter().enumerate() {
            let spent = spent.ok().and_then(Result::ok).map_or(Duration::ZERO, Duration::from);
            let CpuLoad { started, last } = &mut self.control.load;
            if last.len() <= worker {
                last.resize(worker + 1, (Duration::ZERO, *started));
            }
            let now = (spent, Instant::now());
            let before = std::mem::replace(&mut last[worker], now);
            let wall = now.1.duration_since(before.1).as_secs_f64();
            let share = now.0.saturating_sub(before.0).as_secs_f64() / wall.max(1e-9);
            _ = writeln!(text, "{worker} {:.3}", share.min(1.0));
        }
        text
    }

    /// Cycles of every element by itself since the first call, summed over workers. Workers count
    /// from then on, until [`Router::count_cycles`] ends it.
    pub fn costs(&mut self) -> Vec<ElementCost> {
        let mut sums = vec![ElementCost::default(); self.config.graph.elements.len()];
        let costs = self.workers.ask_all(|worker| worker.count_cycles().costs.clone());
        for theirs in costs.iter().flatten() {
            sums.iter_mut().zip(theirs).for_each(|(sum, cost)| sum.add(cost));
        }
        sums
    }

    /// Whether workers count the cycles of elements.
    pub(super) fn counts_cycles(&mut self) -> bool {
        self.workers.ask(0, |worker| worker.exec.cycles.is_some()).unwrap_or(false)
    }

    /// Begins or ends to count the cycles of elements.
    pub fn count_cycles(&mut self, on: bool) {
        self.workers.ask_all(move |worker| match on {
            true => _ = worker.count_cycles(),
            false => worker.end_cycles(),
        });
    }

    /// Resets the cycles of one element, or of all.
    pub(super) fn reset_cycles(&mut self, element: Option<usize>) {
        self.workers.ask_all(move |worker| {
            let CycleAccounting { costs, .. } = worker.count_cycles();
            match element {
                Some(element) => costs[element] = ElementCost::default(),
                None => costs.fill(ElementCost::default()),
            }
        });
    }

    /// An element's handler `cycles`, as Click prints it.
    pub(super) fn cycles_text(&mut self, element: usize) -> String {
        let cost = self.costs()[element];
        let times = [("tasks", cost.tasks), ("timers", cost.timers), ("xfer", cost.transfers)];
        let ran = times.into_iter().filter(|(_, bill)| bill.calls > 0);
        ran.fold(String::new(), |text, (why, RunCost { calls, ticks })| {
            text + &format!("{why} {calls} {ticks}\n")
        })
    }

    /// Click's table of elements with cycles.
    pub(super) fn element_cycles(&mut self) -> String {
        let costs = self.costs();
        let mut text = format!("name,class,{COLUMNS}\n");
        for (element, cost) in self.config.graph.elements.iter().zip(&costs) {
            if cost.total().ticks > 0 {
                _ = writeln!(text, "{},{},{}", element.name, element.class.spec.class, row(cost));
            }
        }
        text
    }

    /// The same by class, in the order in which classes appear.
    pub(super) fn class_cycles(&mut self) -> String {
        let costs = self.costs();
        let mut classes: Vec<(&str, u64, ElementCost)> = Vec::new();
        for (element, cost) in self.config.graph.elements.iter().zip(&costs) {
            let class = element.class.spec.class;
            if cost.total().ticks == 0 {
                continue;
            }
            match classes.iter_mut().find(|(known, ..)| *known == class) {
                Some((_, count, sum)) => {
                    *count += 1;
                    sum.add(cost);
                }
                None => classes.push((class, 1, *cost)),
            }
        }
        let header = format!("class,nelements,{COLUMNS}\n");
        classes.iter().fold(header, |text, (class, count, cost)| {
            text + &format!("{class},{count},{}\n", row(cost))
        })
    }
}

/// The columns of one element, or class.
fn row(cost: &ElementCost) -> String {
    let mean = |bill: RunCost| bill.ticks / bill.calls.max(1);
    let mut text = String::new();
    for bill in [cost.tasks, cost.timers, cost.transfers] {
        _ = write!(text, "{},{},{},", bill.calls, bill.ticks, mean(bill));
    }
    let any = cost.total();
    text + &format!("{},{}", any.ticks, mean(any))
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, row};
    use castanet_element::exec::{ElementCost, RunCost};

    #[test]
    fn a_row_has_sums_and_means() {
        let bill = |calls, ticks| RunCost { calls, ticks };
        let cost = ElementCost { tasks: bill(2, 100), timers: bill(0, 0), transfers: bill(3, 70) };
        assert_eq!(row(&cost), "2,100,50,0,0,0,3,70,23,170,34");
        assert_eq!(row(&cost).split(',').count(), COLUMNS.split(',').count());
    }
}
