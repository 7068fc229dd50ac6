//! Completion in the shell: commands, elements, handlers and their present values.

use super::instances::Attachment;
use super::line;
use crate::commands::line_editor::complete;
use castanet_io::control::ControlClient;
use rustyline::completion::Completer;
use rustyline::{Context, Helper, Highlighter, Hinter, Validator};
use std::cell::RefCell;
use std::path::Path;

/// Completes the words of a command.
#[derive(Helper, Highlighter, Hinter, Validator)]
pub(super) struct HandlerCompleter {
    /// Names of elements.
    elements: Vec<String>,
    /// Handlers of the router.
    globals: Vec<String>,
    /// A connection of its own, by which it asks for handlers and values.
    client: RefCell<Option<ControlClient>>,
}

impl HandlerCompleter {
    /// For an instance.
    pub(super) fn of(instance: &mut Attachment) -> HandlerCompleter {
        let client = ControlClient::connect(instance.client.socket(), "the router").ok();
        let client = RefCell::new(client);
        let (elements, globals) = (Vec::new(), Vec::new());
        let mut completer = HandlerCompleter { elements, globals, client };
        completer.refresh(instance);
        completer
    }

    /// Learns the names of elements again, which a reload may have changed.
    pub(super) fn refresh(&mut self, instance: &mut Attachment) {
        if instance.client.is_gone() {
            return;
        }
        let list = instance.client.read("list").unwrap_or_default();
        self.elements = list.lines().skip(1).map(str::to_owned).collect();
        self.globals = first_words(&instance.client.read("handlers").unwrap_or_default());
    }

    /// Handlers of an element, or the value of a handler.
    fn ask(&self, handler: &str) -> Option<String> {
        self.client.borrow_mut().as_mut()?.read(handler).ok()
    }

    /// The words that may stand behind `before` and begin with `word`.
    fn candidates(&self, before: &str, word: &str) -> Vec<String> {
        let said: Vec<&str> = before.split_whitespace().collect();
        let mut words: Vec<String> = match said[..] {
            [] => line::names(),
            ["read" | "write"] => match word.rsplit_once('.') {
                Some((element, _)) if self.elements.iter().any(|it| it == element) => {
                    let handlers = self.ask(&format!("{element}.handlers")).unwrap_or_default();
                    first_words(&handlers).iter().map(|it| format!("{element}.{it}")).collect()
                }
                _ => {
                    let elements = self.elements.iter().map(|it| format!("{it}."));
                    elements.chain(self.globals.iter().cloned()).collect()
                }
            },
            ["handlers"] | ["capture", ..] | ["trace", .., "--from"] => self.elements.clone(),
            // The present value, to be edited.
            ["write", handler] => {
                let value = self.ask(handler).filter(|it| it.trim().lines().count() == 1);
                value.into_iter().map(|it| it.trim().to_owned()).collect()
            }
            ["reload"] => files(word),
            _ => Vec::new(),
        };
        words.retain(|candidate| candidate.starts_with(word));
        words.sort();
        words.dedup();
        words
    }
}

/// The first word of each line.
fn first_words(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// Files whose path begins with `word`.
fn files(word: &str) -> Vec<String> {
    let folder = match word.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/"),
        None => String::new(),
    };
    let place = if folder.is_empty() { Path::new(".") } else { Path::new(&folder) };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|it| it.is_dir());
        let name = entry.file_name().into_string().ok()?;
        Some(format!("{folder}{name}{}", if is_folder { "/" } else { "" }))
    };
    entries.filter_map(name).collect()
}

impl Completer for HandlerCompleter {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(line, at, |before, word| self.candidates(before, word)))
    }
}
