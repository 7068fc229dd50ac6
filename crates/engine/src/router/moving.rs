//! Tasks that move between workers: what they cost, and the moves.

use super::Router;
use crate::args::ArgError;
use crate::class::Class;
use crate::worker::Meter;
use std::time::Duration;

/// What workers have to do, since the router began.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Loads {
    /// By worker: the processor time of everything that cannot move.
    pub stays: Vec<Duration>,
    /// The tasks that can.
    pub tasks: Vec<TaskLoad>,
}

/// What the tasks of one element cost, since the router began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskLoad {
    /// The element.
    pub element: usize,
    /// The worker that has them now.
    pub worker: usize,
    /// Their processor time, on whatever worker.
    pub cost: Duration,
}

impl Class {
    /// The same class, for programs that move tasks between workers.
    pub const fn moves_tasks(mut self) -> Class {
        self.declare = Some(|_, _, facts| {
            facts.balanced = true;
            Ok(())
        });
        self
    }
}

impl Router {
    /// What workers have to do. Bills are written from the first time on that
    /// somebody asks.
    pub(super) fn loads(&mut self) -> Loads {
        let workers = self.crew.len();
        let plan = &self.assigned;
        let movable = (0..plan.homes.len()).filter(|&it| plan.movable[it]);
        let tasks = movable.map(|element| TaskLoad {
            element,
            worker: plan.homes[element],
            cost: Duration::ZERO,
        });
        let mut loads = Loads { stays: vec![Duration::ZERO; workers], tasks: tasks.collect() };
        for worker in 0..workers {
            let bills = self.crew.ask(worker, |worker| {
                let (elements, clock) = (worker.slots.len(), &worker.clock);
                worker.meter.get_or_insert_with(|| Meter::new(elements, clock)).settle()
            });
            for (element, bill) in bills.into_iter().flatten().enumerate() {
                let owner = self.assigned.with[element].unwrap_or(element);
                let task = loads.tasks.iter_mut().find(|task| task.element == owner);
                *task.map_or(&mut loads.stays[worker], |task| &mut task.cost) +=
                    Duration::from_nanos(bill);
            }
        }
        loads
    }

    /// Moves the tasks of an element, and the elements that go with them, to
    /// another worker, between two bursts of both.
    pub(super) fn move_tasks(&mut self, element: usize, to: usize) -> Result<(), ArgError> {
        let (from, label) = (self.assigned.homes[element], self.graph.label(element));
        if to >= self.crew.len() {
            let count = self.crew.len();
            return Err(ArgError::new(format!("there is no worker {to}"))
                .click(format!("thread {to} out of range"))
                .help(format!("there are {count}, counted from 0")));
        }
        if from == to {
            return Ok(());
        }
        if !self.assigned.movable[element] {
            let why = self.assigned.stays(element);
            return Err(ArgError::new(format!("'{label}' stays on worker {from}: {why}")));
        }
        let with = self.assigned.following(element);
        // Whoever asks either of them for anything afterwards finds it moved.
        for &it in with.iter().chain([&element]) {
            self.assigned.homes[it] = to;
        }
        let gone = self.crew.ask(from, move |worker| worker.send(element, &with, to));
        let there = self.crew.ask(to, |worker| _ = worker.read_mail());
        let back = self.crew.ask(from, |worker| _ = worker.read_mail());
        gone.and(there)
            .and(back)
            .ok_or_else(|| ArgError::new(format!("'{label}' waits for a worker")))
    }
}
