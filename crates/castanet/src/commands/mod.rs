//! The commands of `castanet`, a module for each.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod ctl;
pub(crate) mod elements;
pub(crate) mod explain;
mod explanation;
pub(crate) mod graph;
pub(crate) mod install_service;
mod line_editor;
pub(crate) mod man;
pub(crate) mod middlebox;
pub(crate) mod run;
pub(crate) mod splitbox;
pub(crate) mod tenants;
pub(crate) mod text;

use crate::cli::Configuration;
use crate::exit;
use crate::load::{LoadedConfiguration, io_error_text, load};
use crate::terminal::say;
use castanet_element::class::Library;
use castanet_runtime::router::ErrorStyle;
use serde::Serialize;
use std::path::Path;

/// Why a command has failed: the exit status, and the message unless it is printed already.
#[derive(Debug)]
pub(crate) struct CommandError(pub(crate) i32, pub(crate) Option<String>);

pub(crate) type CommandResult = Result<(), CommandError>;

impl CommandError {
    /// The configuration is wrong, and its errors are printed.
    pub(crate) const REPORTED: CommandError = CommandError(exit::CONFIGURATION, None);

    /// The command line is wrong.
    pub(crate) fn usage(message: String) -> CommandError {
        CommandError(exit::USAGE, Some(message))
    }
}

impl From<String> for CommandError {
    fn from(message: String) -> CommandError {
        CommandError(exit::CONFIGURATION, Some(message))
    }
}

/// Starts DPDK if there are options for it.
fn start_dpdk(options: Option<&str>) -> CommandResult {
    let Some(options) = options else { return Ok(()) };
    let started = castanet_io::dpdk::start(&castanet_io::dpdk::words(options));
    started.map_err(|error| error.to_string().into())
}

/// Loads what the command line names.
fn load_or_report(
    configuration: &Configuration,
    library: &Library,
) -> Result<LoadedConfiguration, CommandError> {
    let loaded = load_words(configuration, library)?;
    if loaded.found.has_errors() {
        loaded.report(ErrorStyle::Castanet);
        return Err(CommandError::REPORTED);
    }
    Ok(loaded)
}

/// Loads what the command line names, whether it is right or not.
fn load_words(
    configuration: &Configuration,
    library: &Library,
) -> Result<LoadedConfiguration, CommandError> {
    let (origin, vars) = configuration.sort().map_err(CommandError::usage)?;
    let mut loaded = load(&origin, &vars, library, None);
    loaded.check_settings(&vars, ErrorStyle::Castanet);
    Ok(loaded)
}

/// Writes to a file, or to standard output without one or for `-`.
pub(crate) fn write_out(path: Option<&Path>, text: &str) -> CommandResult {
    let written = match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => std::fs::write(path, text)
            .map_err(|e| format!("cannot write {}: {}", path.display(), io_error_text(&e))),
        None => say(text),
    };
    Ok(written?)
}

/// Writes JSON to standard output.
fn write_json(value: &(impl Serialize + ?Sized)) -> CommandResult {
    write_out(None, &(serde_json::to_string_pretty(value).unwrap_or_default() + "\n"))
}
