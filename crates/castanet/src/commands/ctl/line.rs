//! The commands of `castanet ctl`: on its command line, and in its shell.

use super::{CaptureArguments, DropsArguments, TopArguments, TraceArguments};
use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;

/// A command to a running instance.
#[derive(Parser)]
#[command(
    name = "castanet ctl",
    subcommand_help_heading = "Commands, behind [NAME|PATH] where there are several instances",
    disable_version_flag = true,
    override_usage = "castanet ctl [NAME|PATH] [COMMAND]"
)]
pub(super) struct ClientLine {
    #[command(subcommand)]
    pub(super) command: ClientCommand,
    /// Print JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Subcommand)]
pub(super) enum ClientCommand {
    /// List the running instances
    List,
    /// Describe the instance
    Info,
    /// Read a handler
    Read {
        /// ELEMENT.HANDLER, or a handler of the router
        handler: String,
        /// Words behind it, for handlers that take any
        #[arg(allow_hyphen_values = true)]
        parameters: Vec<String>,
    },
    /// Write a handler
    Write {
        /// ELEMENT.HANDLER, or a handler of the router
        handler: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: Vec<String>,
    },
    /// List the handlers of an element, or those of the router
    Handlers {
        /// The element
        element: Option<String>,
    },
    /// List the elements
    Elements,
    /// Print the configuration that runs
    Config {
        /// With all compound elements expanded
        #[arg(long)]
        flat: bool,
    },
    /// Replace the configuration by its file, or by another one, without losing a packet
    Reload {
        /// Another file
        file: Option<PathBuf>,
    },
    /// Show rates, drops and costs of elements, live
    Top(TopArguments),
    /// Say why packets were dropped
    Drops(DropsArguments),
    /// Follow the next packets through the graph
    Trace(TraceArguments),
    /// Capture packets at places of the graph, or those that are dropped
    Capture(CaptureArguments),
    /// Print the metrics, as `--metrics` of `castanet run` shows them to Prometheus
    Metrics {
        /// In the format OpenMetrics
        #[arg(long)]
        openmetrics: bool,
    },
    /// Measure the cycles of every element for some time, all of them one by one
    Cycles {
        /// Seconds to measure
        #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
        interval: f64,
    },
    /// Print the last lines of the log
    Log {
        /// Go on with the lines to come
        #[arg(short, long)]
        follow: bool,
        /// Number of lines
        #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
        lines: usize,
    },
    /// Execute a command of a middlebox, such as `list` or `add tcp-syn drop`
    Middlebox {
        /// The command
        #[arg(required = true, allow_hyphen_values = true, trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// End the instance in good order
    Stop,
}

/// Whether a word is a command, and not an instance.
pub(super) fn is_command(word: &str) -> bool {
    word == "help" || ClientLine::command().find_subcommand(word).is_some()
}

/// The names of all commands.
pub(super) fn names() -> Vec<String> {
    let command = ClientLine::command();
    let names = command.get_subcommands().map(|it| it.get_name().to_owned());
    names.chain(["help".to_owned(), "quit".to_owned()]).collect()
}

/// The command line for its man page.
pub(crate) fn man_page() -> clap::Command {
    ClientLine::command().name("castanet-ctl").about("Attach to running instances of Castanet")
}

/// The words of a line. Blanks separate them, but not inside of quotation marks.
///
/// # Errors
/// A quotation mark is open at the end.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    match castanet_lang::shell_words(line) {
        (_, Some(open)) => Err(format!("a quotation mark {open} is not closed")),
        (words, None) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_divided_into_words() {
        let all = |line: &str| words(line).unwrap_or_default();
        assert_eq!(all(" read  c.count "), ["read", "c.count"]);
        assert_eq!(all("write x.y 'a  b' \"\" c\"d e\"f"), ["write", "x.y", "a  b", "", "cd ef"]);
        assert_eq!(all(""), [""; 0]);
        assert!(words("write x.y 'a").is_err());
    }

    #[test]
    fn commands_are_no_names() {
        assert!(is_command("read") && is_command("help") && is_command("top"));
        assert!(!is_command("router"));
        ClientLine::command().debug_assert();
    }
}
