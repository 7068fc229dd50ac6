//! Click's handlers of elements with tasks.

use super::Router;
use crate::console::Console;
use crate::graph::assign::Assignment;
use crate::graph::signals::{Notifier, Signal, SignalKind};
use crate::graph::task::TaskRef;
use castanet_element::error::ArgError;
use castanet_element::handler::HandlerDoc;
use castanet_kit::stride::MAX_TICKETS;

/// Read handlers of elements with tasks.
pub const READS: &[HandlerDoc] = &[
    HandlerDoc { name: "home_thread", doc: "The worker that runs the element's task." },
    HandlerDoc {
        name: "notifiers",
        doc: "Stores that the task hears of: `NAME.empty` is active while there is something \
              to pull, `NAME.full` while there is room.",
    },
    HandlerDoc { name: "scheduled", doc: "Whether the element's task is ready to run." },
    HandlerDoc { name: "tickets", doc: "How many turns the task gets, beside those of others." },
];

/// Write handlers of elements with tasks.
pub const WRITES: &[HandlerDoc] = &[
    HandlerDoc { name: "home_thread", doc: "Moves the task to another worker, where it may move." },
    HandlerDoc { name: "tickets", doc: "Sets how many turns the task gets, 1 to 32768." },
];

/// The task handlers of an element, each with whether it writes.
pub(super) fn task_handlers(
    plan: &Assignment,
    element: usize,
) -> impl Iterator<Item = (HandlerDoc, bool)> + use<> {
    let reads = READS.iter().map(|&doc| (doc, false));
    let all = reads.chain(WRITES.iter().map(|&doc| (doc, true)));
    let has = plan.has_task(element);
    all.filter(move |_| has)
}

impl Router {
    /// Reads a task handler; `None` if it is none.
    pub(super) fn read_task(
        &mut self,
        element: usize,
        name: &str,
    ) -> Result<Option<String>, ArgError> {
        if !self.config.assigned.has_task(element) {
            return Ok(None);
        }
        let home = self.config.assigned[element].home;
        Ok(match name {
            "home_thread" => Some(home.to_string()),
            "notifiers" => Some(self.notifiers(element)?),
            "scheduled" => {
                let ready = self.workers.ask_all(move |it| it.tasks.is_ready(element));
                let ready: Result<Vec<bool>, ArgError> = ready.into_iter().collect();
                Some(ready?.contains(&true).to_string())
            }
            "tickets" => {
                let tickets = self.workers.ask(home, move |worker| worker.tasks.tickets(element));
                tickets?.map(|tickets| tickets.to_string())
            }
            _ => None,
        })
    }

    /// Writes a task handler; `None` if it is none.
    pub(super) fn write_task(
        &mut self,
        element: usize,
        name: &str,
        value: &str,
    ) -> Option<Result<(), ArgError>> {
        if !self.config.assigned.has_task(element) {
            return None;
        }
        let number = value.trim().parse::<i64>().map_err(|_| {
            let error = ArgError::new(format!("`{value}` is not a whole number"));
            error.click("syntax error").of_handler(name)
        });
        Some(match (name, number) {
            ("home_thread" | "tickets", Err(error)) => Err(error),
            ("home_thread", Ok(to)) => {
                let to = usize::try_from(to).unwrap_or(usize::MAX);
                self.move_tasks(element, to).map_err(|e| e.of_handler(name))
            }
            ("tickets", Ok(tickets)) => {
                self.set_tickets(element, tickets);
                Ok(())
            }
            _ => return None,
        })
    }

    /// The stores whose packets or whose room wake the tasks of an element, and whether there are
    /// any now.
    fn notifiers(&mut self, element: usize) -> Result<String, ArgError> {
        let mut text = String::new();
        for store in 0..self.config.graph.elements.len() {
            let plan = &self.config.assigned;
            let tells = |tasks: &[TaskRef]| tasks.iter().any(|it| plan.element(*it) == element);
            let told = (tells(&plan[store].waiters), tells(&plan[store].feeders));
            if told == (false, false) {
                continue;
            }
            let state = self.workers.ask(plan[store].home, move |worker| {
                let store = worker.graph.store(store)?;
                Some((store.held() > 0, store.room() > 0))
            });
            let Some(active) = state? else { continue };
            let name = &self.config.graph.elements[store].name;
            for (told, what, active) in [(told.0, "empty", active.0), (told.1, "full", active.1)] {
                let active = if active { "active" } else { "inactive" };
                if told {
                    text += &format!("{name}.{what} {active}\n");
                }
            }
        }
        Ok(text)
    }

    /// The signal next to an element, as Click writes it.
    pub(super) fn read_signal(&mut self, element: usize) -> Result<String, ArgError> {
        let signal = Signal::at(&self.config.graph, element);
        let Signal::Of(kind, notifiers) = &signal else { return Ok(signal.text(&[])) };
        let kind = *kind;
        let mut on = Vec::new();
        for &Notifier { element, port, .. } in notifiers {
            let home = self.config.assigned[element].home;
            on.push(self.workers.ask(home, move |worker| match kind {
                SignalKind::Empty => worker.graph.may_bring(element, port),
                SignalKind::Full => worker.graph.store(element).is_none_or(|it| it.room() > 0),
            })?);
        }
        Ok(signal.text(&on))
    }

    fn set_tickets(&mut self, element: usize, wanted: i64) {
        let tickets = wanted.clamp(1, i64::from(MAX_TICKETS));
        if tickets != wanted {
            self.control.console.chatter(&format!("warning: tickets pinned at {tickets}\n"));
        }
        self.workers.ask_all(move |it| it.tasks.set_tickets(element, tickets as u32));
    }
}
