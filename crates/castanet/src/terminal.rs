//! Colours, but only where somebody sees them.

use anstyle::{AnsiColor, Style};
use std::io::IsTerminal;

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
