//! Handlers of elements that have tasks, as Click's users know them.

use super::Router;
use crate::args::ArgError;
use crate::class::HandlerDoc;
use crate::graph::assign::Plan;
use crate::node;
use crate::worker::{Console, TaskRef};

/// The most tickets that a task can have, as in Click.
const MOST_TICKETS: i64 = 1 << 15;

/// What elements with tasks can be asked.
const READS: &[HandlerDoc] = &[
    HandlerDoc { name: "home_thread", doc: "The worker that runs the element's task." },
    HandlerDoc {
        name: "notifiers",
        doc: "Stores that the task hears of: `NAME.empty` is active while there is something \
              to pull, `NAME.full` while there is room.",
    },
    HandlerDoc { name: "scheduled", doc: "Whether the element's task is ready to run." },
    HandlerDoc { name: "tickets", doc: "How many turns the task gets, beside those of others." },
];

/// What they can be told.
const WRITES: &[HandlerDoc] = &[
    HandlerDoc { name: "home_thread", doc: "Moves the task to another worker, where it may move." },
    HandlerDoc { name: "tickets", doc: "Sets how many turns the task gets, 1 to 32768." },
];

/// The handlers that an element has for its tasks, and whether they write.
pub(super) fn task_handlers(
    plan: &Plan,
    element: usize,
) -> impl Iterator<Item = (HandlerDoc, bool)> + use<> {
    let reads = READS.iter().map(|&doc| (doc, false));
    let all = reads.chain(WRITES.iter().map(|&doc| (doc, true)));
    let has = plan.has_task(element);
    all.filter(move |_| has)
}

impl Router {
    /// Answers a handler about an element's tasks; `None` if it is none of these.
    pub(super) fn read_task(&mut self, element: usize, name: &str) -> Option<String> {
        if !self.assigned.has_task(element) {
            return None;
        }
        let home = self.assigned.homes[element];
        match name {
            "home_thread" => Some(home.to_string()),
            "notifiers" => Some(self.notifiers(element)),
            "scheduled" => {
                let mut any = false;
                for worker in 0..self.crew.len() {
                    let ready = self.crew.ask(worker, move |it| it.tasks.is_ready(element));
                    any |= ready.unwrap_or(false);
                }
                Some(any.to_string())
            }
            "tickets" => {
                let tickets = self.crew.ask(home, move |worker| worker.tasks.tickets(element));
                tickets.flatten().map(|tickets| tickets.to_string())
            }
            _ => None,
        }
    }

    /// Obeys a handler about an element's tasks; `None` if it is none of these.
    pub(super) fn write_task(
        &mut self,
        element: usize,
        name: &str,
        value: &str,
    ) -> Option<Result<(), ArgError>> {
        if !self.assigned.has_task(element) {
            return None;
        }
        let number = value.trim().parse::<i64>().map_err(|_| {
            let error = ArgError::new(format!("`{value}` is not a whole number"));
            error.click("syntax error").at(name)
        });
        Some(match (name, number) {
            ("home_thread" | "tickets", Err(error)) => Err(error),
            ("home_thread", Ok(to)) => {
                let to = usize::try_from(to).unwrap_or(usize::MAX);
                self.move_tasks(element, to).map_err(|e| e.at(name))
            }
            ("tickets", Ok(tickets)) => {
                self.set_tickets(element, tickets);
                Ok(())
            }
            _ => return None,
        })
    }

    /// The stores whose packets or whose room wake the tasks of an element, and
    /// whether there are any now.
    fn notifiers(&mut self, element: usize) -> String {
        let mut text = String::new();
        for store in 0..self.graph.elements.len() {
            let plan = &self.assigned;
            let tells = |tasks: &[TaskRef]| tasks.iter().any(|it| plan.element(*it) == element);
            let told = (tells(&plan.waiters[store]), tells(&plan.feeders[store]));
            if told == (false, false) {
                continue;
            }
            let state = self.crew.ask(plan.homes[store], move |worker| {
                let node = node::at(&worker.slots, store)?;
                Some((node.held() > 0, node.room() > 0))
            });
            let Some(active) = state.flatten() else { continue };
            let name = &self.graph.elements[store].name;
            for (told, what, active) in [(told.0, "empty", active.0), (told.1, "full", active.1)] {
                let active = if active { "active" } else { "inactive" };
                if told {
                    text += &format!("{name}.{what} {active}\n");
                }
            }
        }
        text
    }

    fn set_tickets(&mut self, element: usize, wanted: i64) {
        let tickets = wanted.clamp(1, MOST_TICKETS);
        if tickets != wanted {
            self.console.chatter(&format!("warning: tickets pinned at {tickets}\n"));
        }
        for worker in 0..self.crew.len() {
            self.crew.ask(worker, move |it| it.tasks.set_tickets(element, tickets as u32));
        }
    }
}
