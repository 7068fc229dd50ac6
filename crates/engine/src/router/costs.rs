//! What elements cost: Click's handlers about cycles.

use super::Router;
use crate::class::HandlerDoc;
use crate::worker::visits::{Bill, Cost, Visits};
use nix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The handler of every element, to read and to write.
pub(super) const CYCLES: HandlerDoc = HandlerDoc {
    name: "cycles",
    doc: "What the element's tasks, timers and transfers cost since somebody asks; a write begins anew.",
};

/// The columns about one kind of runs, as Click names them.
const COLUMNS: &str = "task_calls,task_cycles,cycles_per_task,timer_calls,timer_cycles,\
    cycles_per_timer,xfer_calls,xfer_cycles,cycles_per_xfer,any_cycles,cycles_per_any";

/// How much of each processor was used when somebody looked last.
pub(super) struct Load {
    started: Instant,
    /// By worker: the processor time of its thread, and when that was.
    last: Vec<(Duration, Instant)>,
}

impl Load {
    pub(super) fn new() -> Load {
        Load { started: Instant::now(), last: Vec::new() }
    }
}

impl Router {
    /// A line for each worker: its number, and in which share of the time since the
    /// last look, or since the start, its thread had a processor.
    pub(super) fn load(&mut self) -> String {
        let mut text = String::new();
        for worker in 0..self.crew.len() {
            let spent = self.crew.ask(worker, |_| clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID));
            let spent = spent.and_then(Result::ok).map_or(Duration::ZERO, Duration::from);
            let Load { started, last } = &mut self.load;
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

    /// What every element has cost by itself since the first call, all workers
    /// together. Workers count from then on, until [`Router::count_cycles`] ends it.
    pub fn costs(&mut self) -> Vec<Cost> {
        let mut sums = vec![Cost::default(); self.graph.elements.len()];
        for worker in 0..self.crew.len() {
            let theirs = self.crew.ask(worker, |worker| worker.count_cycles().costs.clone());
            for (sum, cost) in sums.iter_mut().zip(theirs.iter().flatten()) {
                sum.add(cost);
            }
        }
        sums
    }

    /// Whether workers take down what elements cost.
    pub(super) fn counts_cycles(&mut self) -> bool {
        self.crew.ask(0, |worker| worker.core.visits.is_some()).unwrap_or(false)
    }

    /// Begins or ends to take down what elements cost.
    pub fn count_cycles(&mut self, on: bool) {
        for worker in 0..self.crew.len() {
            self.crew.ask(worker, move |worker| match on {
                true => _ = worker.count_cycles(),
                false => worker.core.visits = None,
            });
        }
    }

    /// Forgets what one element, or every one, has cost.
    pub(super) fn reset_cycles(&mut self, element: Option<usize>) {
        for worker in 0..self.crew.len() {
            self.crew.ask(worker, move |worker| {
                let Visits { costs, .. } = worker.count_cycles();
                match element {
                    Some(element) => costs[element] = Cost::default(),
                    None => costs.fill(Cost::default()),
                }
            });
        }
    }

    /// An element's handler `cycles`, as Click prints it.
    pub(super) fn cycles_text(&mut self, element: usize) -> String {
        let cost = self.costs()[element];
        let bills = [("tasks", cost.tasks), ("timers", cost.timers), ("xfer", cost.transfers)];
        let ran = bills.into_iter().filter(|(_, bill)| bill.calls > 0);
        ran.fold(String::new(), |text, (why, Bill { calls, cycles })| {
            text + &format!("{why} {calls} {cycles}\n")
        })
    }

    /// Click's table of elements that have cost anything.
    pub(super) fn element_cycles(&mut self) -> String {
        let costs = self.costs();
        let mut text = format!("name,class,{COLUMNS}\n");
        for (element, cost) in self.graph.elements.iter().zip(&costs) {
            if cost.total().cycles > 0 {
                _ = writeln!(text, "{},{},{}", element.name, element.class.spec.class, row(cost));
            }
        }
        text
    }

    /// The same by class, in the order in which classes appear.
    pub(super) fn class_cycles(&mut self) -> String {
        let costs = self.costs();
        let mut classes: Vec<(&str, u64, Cost)> = Vec::new();
        for (element, cost) in self.graph.elements.iter().zip(&costs) {
            let class = element.class.spec.class;
            if cost.total().cycles == 0 {
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

/// What the columns say of one element, or class.
fn row(cost: &Cost) -> String {
    let mean = |bill: Bill| bill.cycles / bill.calls.max(1);
    let mut text = String::new();
    for bill in [cost.tasks, cost.timers, cost.transfers] {
        _ = write!(text, "{},{},{},", bill.calls, bill.cycles, mean(bill));
    }
    let any = cost.total();
    text + &format!("{},{}", any.cycles, mean(any))
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, row};
    use crate::worker::visits::{Bill, Cost};

    #[test]
    fn a_row_has_sums_and_means() {
        let bill = |calls, cycles| Bill { calls, cycles };
        let cost = Cost { tasks: bill(2, 100), timers: bill(0, 0), transfers: bill(3, 70) };
        assert_eq!(row(&cost), "2,100,50,0,0,0,3,70,23,170,34");
        assert_eq!(row(&cost).split(',').count(), COLUMNS.split(',').count());
    }
}
