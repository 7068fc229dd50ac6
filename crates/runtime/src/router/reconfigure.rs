//! New arguments for a running element, by its handler `config`.

use super::Router;
use super::build::declarations;
use super::setup_builder::SetupBuilder;
use crate::console::Console;
use castanet_element::args::{ArgKind, ArgSpec};
use castanet_element::class::{Class, Nodes, Role};
use castanet_element::error::ArgError;
use castanet_element::shared::SharedState;
use castanet_lang::args;
use std::cell::RefCell;

/// Whether elements of a class may get new arguments while they run.
pub(super) fn may(class: &Class) -> bool {
    // Elements that name stores were tied to them when the graph was planned.
    !matches!(class.role, Role::Info | Role::Control)
        && class.factory.program.is_none()
        && class.factory.watch.is_none()
}

impl Router {
    /// Gives an element new arguments, under which it goes on with its state. If it cannot, that is
    /// an error, and nothing changes.
    pub(super) fn reconfigure(&mut self, it: usize, text: &str) -> Result<(), ArgError> {
        let text = text.trim().to_owned();
        let shared = SharedState::default();
        let nodes = self.nodes_of(it, &text, &shared).map_err(joined)?;
        let declarations = declarations(&nodes);
        let Some(new) = nodes.into_iter().next() else { return Ok(()) };
        // Shared state belongs to other elements, too.
        if !shared.is_empty() {
            return Err(self.stays(it));
        }
        let new = new.node();
        let (config, home) = (new.config(), self.config.assigned[it].home);
        // The old configuration is dropped here, after all workers have the new one: that may take
        // time.
        let before = self.config_of(it)?;
        let Some(before) = before.filter(|before| new.can_take_state(before)) else {
            return Err(self.stays(it));
        };
        let config = new.merged_config(&before).unwrap_or(config);
        let element = &self.config.graph.elements[it];
        let (calls, names) = (element.class.factory.calls, self.config.names.of(&element.name));
        if calls.is_some_and(|find| find(&text, names).is_some()) {
            self.let_call(it);
        }
        // All workers at once: shared state changes with the first of them.
        let ran = self.halt();
        self.workers.ask_all(move |worker| {
            worker.install(it, config);
            if worker.index == home {
                worker.resume(it);
                worker.run_emitted();
            }
        });
        self.go_on(ran);
        self.make_calls(home);
        self.config.rewritten[it] = None;
        self.config.graph.elements[it].declarations = declarations;
        self.declare(it, text);
        Ok(())
    }

    /// The error about an element that keeps its arguments.
    fn stays(&self, it: usize) -> ArgError {
        let label = self.config.graph.label(it);
        ArgError::new(format!("'{label}' cannot go on under other arguments"))
            .help("a whole configuration can be replaced by `hotconfig`")
    }

    /// The nodes of an element with new arguments.
    fn nodes_of(
        &self,
        it: usize,
        text: &str,
        shared: &SharedState,
    ) -> Result<Nodes, Vec<ArgError>> {
        let places = SetupBuilder {
            graph: &self.config.graph,
            assigned: &self.config.assigned,
            names: &self.config.names,
            shared,
            started: self.control.clock.peek(),
            warnings: RefCell::default(),
        };
        let nodes = places
            .at(it, |setup| (self.config.graph.elements[it].class.factory.make)(text, setup, 1));
        let warnings = places.warnings.take();
        if !warnings.is_empty() {
            let label = self.config.graph.label(it);
            let lines = warnings.iter().map(|text| format!("  warning: {text}\n"));
            let text = format!("While configuring '{label}':\n{}", lines.collect::<String>());
            self.control.console.chatter(&text);
        }
        nodes
    }

    /// Shows the value of an argument that a handler has written where the arguments are shown.
    pub(super) fn show_written(&mut self, it: usize, handler: &str, value: &str) {
        let element = &self.config.graph.elements[it];
        let before = self.config.shown[it].as_ref().unwrap_or(&element.config);
        let Some(text) = with_argument(element.class.args, before, handler, value) else { return };
        self.replace_line(it, &text);
        self.config.shown[it] = Some(text);
    }

    /// Sets the arguments, in the flat configuration, too.
    fn declare(&mut self, it: usize, text: String) {
        self.replace_line(it, &text);
        self.config.shown[it] = None;
        self.config.graph.elements[it].config = text;
    }

    /// Replaces the arguments of an element in the flat configuration.
    fn replace_line(&mut self, it: usize, text: &str) {
        let element = &self.config.graph.elements[it];
        let before = self.config.shown[it].as_ref().unwrap_or(&element.config);
        let line = |config: &str| {
            let (name, class) = (&element.name, &element.source.class);
            let arguments = if config.is_empty() { String::new() } else { format!("({config})") };
            format!("{name} :: {class}{arguments};\n")
        };
        let (old, new) = (line(before), line(text));
        self.config.flat_text = self.config.flat_text.replacen(&old, &new, 1);
    }
}

/// The text of arguments with another value for the one that a handler is named after; `None` if there is
/// no such argument. The value replaces the argument where it stands, by its keyword or in its place; else
/// it is added with the keyword, as in Click.
fn with_argument(specs: &[ArgSpec], config: &str, handler: &str, value: &str) -> Option<String> {
    let spec = specs.iter().find(|spec| spec.name.eq_ignore_ascii_case(handler))?;
    let mut texts: Vec<String> = args::split(config).into_iter().map(|arg| arg.text).collect();
    let keyword = |text: &str| {
        let (word, rest) = args::shift_word(text);
        specs.iter().find(|spec| spec.name == word && !rest.is_empty()).map(|spec| spec.name)
    };
    let by_keyword = texts.iter().position(|text| keyword(text) == Some(spec.name));
    let places = specs.iter().filter(|spec| spec.kind == ArgKind::Place);
    let place = places.map(|spec| spec.name).position(|name| name == spec.name);
    let in_place = place
        .and_then(|place| (0..texts.len()).filter(|&at| keyword(&texts[at]).is_none()).nth(place));
    match (by_keyword, in_place) {
        (Some(at), _) => texts[at] = format!("{} {value}", spec.name),
        (None, Some(at)) => value.clone_into(&mut texts[at]),
        (None, None) => texts.push(format!("{} {value}", spec.name)),
    }
    Some(texts.join(", "))
}

/// All errors about arguments as one.
fn joined(errors: Vec<ArgError>) -> ArgError {
    let messages: Vec<String> = errors.iter().map(ArgError::message).collect();
    let clicks: Vec<String> = errors.iter().filter_map(ArgError::in_click_words).collect();
    ArgError::new(messages.join("\n")).click(clicks.join("\n"))
}
