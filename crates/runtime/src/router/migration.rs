//! Migration of tasks between workers, and their processor times.

use super::Router;
use crate::worker::TaskMeter;
use castanet_element::control::{Loads, TaskLoad};
use castanet_element::error::ArgError;
use std::time::Duration;

impl Router {
    /// Processor times of tasks. Workers measure them from the first call on.
    pub(super) fn loads(&mut self) -> Loads {
        let plan = &self.config.assigned;
        let movable = (0..plan.elements.len()).filter(|&it| plan[it].movable);
        let tasks = movable.map(|element| TaskLoad {
            element,
            worker: plan[element].home,
            cost: Duration::ZERO,
        });
        let zeros = vec![Duration::ZERO; self.workers.len()];
        let (stays, busy, spent) = (zeros.clone(), zeros.clone(), zeros);
        let mut loads = Loads { stays, busy, spent, tasks: tasks.collect() };
        let times = self.workers.ask_all(|worker| {
            let (elements, clock) = (worker.graph.slots.len(), &worker.clock);
            worker.meter.get_or_insert_with(|| TaskMeter::new(elements, clock)).settle()
        });
        for (worker, times) in times.into_iter().enumerate() {
            let Ok(times) = times else { continue };
            loads.busy[worker] = Duration::from_nanos(times.busy);
            loads.spent[worker] = Duration::from_nanos(times.spent);
            for (element, bill) in times.elements.into_iter().enumerate() {
                let owner = self.config.assigned[element].moves_with.unwrap_or(element);
                let task = loads.tasks.iter_mut().find(|task| task.element == owner);
                *task.map_or(&mut loads.stays[worker], |task| &mut task.cost) +=
                    Duration::from_nanos(bill);
            }
        }
        loads
    }

    /// Moves the tasks of an element, and the elements that go with them, to another worker,
    /// between two bursts of both.
    pub(super) fn move_tasks(&mut self, element: usize, to: usize) -> Result<(), ArgError> {
        let (from, label) = (self.config.assigned[element].home, self.config.graph.label(element));
        if to >= self.workers.len() {
            let count = self.workers.len();
            return Err(ArgError::new(format!("there is no worker {to}"))
                .click(format!("thread {to} out of range"))
                .help(format!("there are {count}, counted from 0")));
        }
        if from == to {
            return Ok(());
        }
        if !self.config.assigned[element].movable {
            let why = self.config.assigned.stays(element);
            return Err(ArgError::new(format!("'{label}' stays on worker {from}: {why}")));
        }
        let with = self.config.assigned.following(element);
        // Later commands to either worker find the element moved.
        for &it in with.iter().chain([&element]) {
            self.config.assigned[it].home = to;
        }
        let gone = self.workers.ask(from, move |worker| worker.migrate(element, &with, to));
        let there = self.workers.ask(to, |worker| _ = worker.run_commands());
        let back = self.workers.ask(from, |worker| _ = worker.run_commands());
        gone.and(there).and(back).map_err(|e| e.at(format_args!("'{label}'")))
    }
}
