//! Other arguments for an element that runs, by its handler `config`.

use super::Router;
use super::places::Places;
use crate::args::ArgError;
use crate::board::Board;
use crate::class::{Class, Nodes, Role};
use crate::node;
use crate::worker::Console;
use std::cell::RefCell;

/// Whether elements of a class may get other arguments while they run, if these
/// let them go on.
pub(super) fn may(class: &Class) -> bool {
    // Those that name stores have been tied to them when the graph was.
    !matches!(class.role, Role::Info | Role::Control)
        && class.program.is_none()
        && class.watch.is_none()
}

impl Router {
    /// Gives an element other arguments, under which it goes on with what it
    /// keeps; those that it cannot go on under are refused, and nothing changes.
    pub(super) fn reconfigure(&mut self, it: usize, text: &str) -> Result<(), ArgError> {
        let text = text.trim().to_owned();
        let board = Board::default();
        let nodes = self.nodes_of(it, &text, &board).map_err(joined)?;
        let Some(new) = nodes.into_iter().next() else { return Ok(()) };
        // What is shared with others is theirs too.
        if !board.is_empty() {
            return Err(self.stays(it));
        }
        let (config, home) = (new.config(), self.assigned.homes[it]);
        let before = self.crew.ask(home, move |worker| {
            let node = node::at(&worker.slots, it)?;
            Some(node.config())
        });
        // It ends here, after all have followed, and not on a worker: that may take its time.
        let Some(before) = before.flatten().filter(|before| new.continues(before)) else {
            return Err(self.stays(it));
        };
        let config = new.prepare(&before).unwrap_or(config);
        let calls = self.graph.elements[it].class.calls;
        if calls.is_some_and(|find| find(&text, &self.names).is_some()) {
            self.let_call(it);
        }
        // Together: what workers share moves with the first that follows.
        let ran = self.halt();
        for worker in 0..self.crew.len() {
            let config = config.clone();
            self.crew.ask(worker, move |worker| {
                worker.install(it, config);
                if worker.index == home {
                    worker.resume(it);
                    worker.run_emitted();
                }
            });
        }
        self.go_on(ran);
        self.make_calls(home);
        self.rewritten[it] = None;
        self.declare(it, text);
        Ok(())
    }

    /// Why an element keeps the arguments that it has.
    fn stays(&self, it: usize) -> ArgError {
        let label = self.graph.label(it);
        ArgError::new(format!("'{label}' cannot go on under other arguments"))
            .help("a whole configuration can be replaced by `hotconfig`")
    }

    /// What an element of these arguments would be here.
    fn nodes_of(&self, it: usize, text: &str, board: &Board) -> Result<Nodes, Vec<ArgError>> {
        let places = Places {
            graph: &self.graph,
            assigned: &self.assigned,
            checksums: &self.checksums,
            names: &self.names,
            board,
            started: self.clock.now(),
            warnings: RefCell::default(),
        };
        let nodes = places.at(it, |setup| (self.graph.elements[it].class.make)(text, setup, 1));
        for text in places.warnings.take() {
            let label = self.graph.label(it);
            self.console.chatter(&format!("While configuring '{label}':\n  warning: {text}\n"));
        }
        nodes
    }

    /// Notes the arguments, also in the flat configuration.
    fn declare(&mut self, it: usize, text: String) {
        let element = &mut self.graph.elements[it];
        let line = |config: &str| {
            let (name, class) = (&element.name, &element.source.class);
            let arguments = if config.is_empty() { String::new() } else { format!("({config})") };
            format!("{name} :: {class}{arguments};\n")
        };
        let (old, new) = (line(&element.config), line(&text));
        self.flat_text = self.flat_text.replacen(&old, &new, 1);
        element.config = text;
    }
}

/// All that is wrong with arguments, as one error.
fn joined(errors: Vec<ArgError>) -> ArgError {
    let messages: Vec<String> = errors.iter().map(ArgError::message).collect();
    let clicks: Vec<String> = errors.iter().filter_map(ArgError::in_click_words).collect();
    ArgError::new(messages.join("\n")).click(clicks.join("\n"))
}
