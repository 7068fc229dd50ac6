//! Output to the user, for all commands; in colours only on a terminal.

use crate::load::io_error_text;
use crate::log::{self, Level};
use anstyle::{AnsiColor, Style};
use castanet_element::streams::StandardOutput;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

/// Writes to standard output; says what went wrong.
pub(crate) fn say(text: &str) -> Result<(), String> {
    say_on(text).map(|_| ())
}

/// The same for output without an end; `false` if the reader has gone.
pub(crate) fn say_on(text: &str) -> Result<bool, String> {
    let mut out = StandardOutput;
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // `castanet ... | head` is no failure.
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(format!("cannot write: {}", io_error_text(&e))),
        Ok(()) => Ok(true),
    }
}

/// Writes a message to the log, which is standard error: an error, unless it says otherwise, as
/// `warning: ...` does. A closed standard error is ignored.
pub(crate) fn complain(line: impl Display) {
    let line = line.to_string();
    log::message(Level::of(&line).unwrap_or(Level::Error), &line);
}

/// The same for a message about the ordinary course of the program.
pub(crate) fn inform(line: impl Display) {
    log::message(Level::Info, &line.to_string());
}

/// Whether standard error is a terminal that wants colours.
pub(crate) fn colours_on_stderr() -> bool {
    std::io::stderr().is_terminal() && wants_colours()
}

/// Whether standard output is a terminal that wants colours.
pub(crate) fn colours_on_stdout() -> bool {
    std::io::stdout().is_terminal() && wants_colours()
}

/// `NO_COLOR` (no-color.org) and dumb terminals want none.
fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Text in bold, if `on`.
pub(crate) fn bold(text: &str, on: bool) -> String {
    styled(text, Style::new().bold(), on)
}

/// Text in a colour, if `on`.
pub(crate) fn coloured(text: &str, colour: AnsiColor, on: bool) -> String {
    styled(text, colour.on_default(), on)
}

fn styled(text: &str, style: Style, on: bool) -> String {
    if on { format!("{style}{text}{style:#}") } else { text.to_owned() }
}
