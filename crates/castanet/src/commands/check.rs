//! `castanet check`.

use super::{CommandError, CommandResult, load_words, write_out};
use crate::cli::Configuration;
use crate::console::Terminal;
use crate::library::library;
use crate::load::LoadedConfiguration;
use castanet_element::class::Library;
use castanet_lang::Severity;
use castanet_runtime::router::{ErrorStyle, Options, Router};
use clap::Args;
use serde::Serialize;
use std::sync::Arc;

/// Arguments of `castanet check`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    severity: &'static str,
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    message: &'a str,
    help: Option<&'a str>,
}

/// Checks everything that can be checked without opening a device.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    let loaded = load_checked(&arguments.configuration, &library())?;
    write_out(None, &answer(&loaded, arguments.json))?;
    if loaded.found.has_errors() { Err(CommandError::REPORTED) } else { Ok(()) }
}

/// Loads what the command line names, whose classes are in `library`, and checks it; everything wrong is
/// in `found`.
pub(super) fn load_checked(
    configuration: &Configuration,
    library: &Library,
) -> Result<LoadedConfiguration, CommandError> {
    let mut loaded = load_words(configuration, library)?;
    if !loaded.found.has_errors() {
        let mut options = Options::new(Arc::new(Terminal));
        options.interfaces = Some(castanet_io::elements::address_of);
        Router::check(&loaded.flat, library, &options, &mut loaded.found);
    }
    Ok(loaded)
}

/// Text for standard output; errors for people go to standard error.
fn answer(loaded: &LoadedConfiguration, json: bool) -> String {
    if json {
        return as_json(loaded);
    }
    loaded.report(ErrorStyle::Castanet);
    if loaded.found.has_errors() {
        return String::new();
    }
    let (elements, connections) = (loaded.flat.elements.len(), loaded.flat.connections.len());
    format!("right: {elements} elements, {connections} connections\n")
}

fn as_json(loaded: &LoadedConfiguration) -> String {
    let findings: Vec<Message> = loaded
        .found
        .iter()
        .map(|d| {
            let at = d.span.map(|span| loaded.sources.location(span));
            Message {
                severity: match d.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                    Severity::Note => "note",
                },
                file: at.as_ref().map(|at| at.name.to_string()),
                line: at.as_ref().map(|at| at.line as usize),
                column: at.as_ref().map(|at| at.column as usize),
                message: &d.message,
                help: d.help.as_deref(),
            }
        })
        .collect();
    serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n"
}
