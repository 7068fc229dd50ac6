//! A client of a running middlebox.

use crate::terminal::complain;
use castanet_io::control::ControlClient;
use castanet_lang::{Diagnostics, SourceMap};
use castanet_middlebox::language::{Command, ListFormat, command};
use std::path::Path;

pub(super) use castanet_io::control::ControlAnswer;

/// The element of the configuration that `castanet middlebox` runs.
const ELEMENT: &str = "rules";

/// A connection to a middlebox.
pub(super) struct Client(ControlClient);

impl Client {
    /// Connects to a socket, and hears what it says first.
    pub(super) fn connect(socket: &Path) -> Result<Client, String> {
        ControlClient::connect(socket, "the middlebox").map(Client)
    }

    /// Whether the middlebox has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    /// Reads a handler of the rules.
    pub(super) fn read(&mut self, handler: &str) -> ControlAnswer {
        self.0.read(&format!("{ELEMENT}.{handler}"))
    }

    /// Executes a line of the language.
    pub(super) fn obey(&mut self, line: &str) -> ControlAnswer {
        obey_on(&mut self.0, ELEMENT, line)
    }
}

/// Executes a line of the language on an element with rules. An error in the line itself is shown
/// with the word in question.
pub(in crate::commands) fn obey_on(
    client: &mut ControlClient,
    element: &str,
    line: &str,
) -> ControlAnswer {
    let mut read = |handler: &str| client.read(&format!("{element}.{handler}"));
    let command = command(line).map_err(|fault| {
        let mut sources = SourceMap::new();
        let file = sources.add("command", line);
        let found: Diagnostics = [fault.diagnostic(file)].into_iter().collect();
        found.render_rich(&sources, false).trim_end().to_owned()
    })?;
    match command {
        None => Ok(String::new()),
        Some(Command::List(ListFormat::Text)) => read("list"),
        Some(Command::List(ListFormat::Json)) => read("list_json"),
        Some(Command::ShowTables { verbose: false }) => read("tables"),
        Some(Command::ShowTables { verbose: true }) => read("tables_verbose"),
        Some(Command::ShowConnections { verbose: false }) => read("connections"),
        Some(Command::ShowConnections { verbose: true }) => read("connections_verbose"),
        Some(Command::ListConnections) => read("connections_json"),
        Some(Command::ShowSets { verbose: false }) => read("sets"),
        Some(Command::ShowSets { verbose: true }) => read("sets_verbose"),
        Some(Command::ShowTimeouts) => read("timeouts"),
        Some(_) => {
            client.write(&format!("{element}.command"), line.trim())?;
            client.read(&format!("{element}.said")).map(without_warnings)
        }
    }
}

/// An answer without its warnings, which are for a person and not for a program.
fn without_warnings(said: String) -> String {
    let is_warning = |line: &&str| line.starts_with("warning: ");
    let (warnings, answer): (Vec<&str>, Vec<&str>) = said.lines().partition(is_warning);
    warnings.into_iter().for_each(complain);
    answer.join("\n")
}
