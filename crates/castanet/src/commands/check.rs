//! `castanet check`.

use super::{CommandError, CommandResult, load_words, write_out};
use crate::cli::Configuration;
use crate::console::Terminal;
use crate::library::library;
use crate::lints;
use crate::load::LoadedConfiguration;
use castanet_element::class::Library;
use castanet_lang::{Diagnostic, Severity};
use castanet_runtime::router::{CheckedConfig, ErrorStyle, Options, Router};
use clap::Args;
use serde::Serialize;
use std::sync::Arc;

/// Arguments of `castanet check`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// Say also whether this handler can be read, as `castanet run` does when it ends (may be
    /// repeated)
    #[arg(long = "handler", value_name = "ELEMENT.HANDLER")]
    handlers: Vec<String>,
    /// Do not warn of what this lint finds (may be repeated)
    #[arg(long, value_name = "LINT")]
    allow: Vec<String>,
    /// List the lints: warnings about what is allowed, and rarely meant
    #[arg(long, exclusive = true)]
    lints: bool,
    /// Explain a lint, and how to silence it
    #[arg(long, value_name = "LINT", exclusive = true)]
    explain: Option<String>,
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
    /// Absent where no lint has found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    lint: Option<&'static str>,
}

/// Checks everything that can be checked without opening a device.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    if arguments.lints {
        return write_out(None, &lints::list());
    }
    if let Some(name) = &arguments.explain {
        return write_out(None, &lints::explanation(lints::find(name)?));
    }
    arguments.allow.iter().try_for_each(|name| lints::find(name).map(drop))?;
    let (mut loaded, checked) = load_checked(&arguments.configuration, &library())?;
    if let Some(checked) = checked {
        checked.check_programs(&mut loaded.found);
        let warnings = checked.lints.iter().map(|it| it.warning.clone());
        warnings.for_each(|warning| loaded.found.push(warning));
        for handler in &arguments.handlers {
            if let Err(error) = checked.find_handler(handler, false) {
                let message = format!("--handler {handler}: {}", error.message());
                loaded.found.push(Diagnostic::error(None, message).with_maybe_help(error.hint));
            }
        }
    }
    lints::silence(&mut loaded.found, &loaded.sources, &arguments.allow);
    loaded.found.sort_by_place();
    write_out(None, &answer(&loaded, arguments.json))?;
    if loaded.found.has_errors() { Err(CommandError::REPORTED) } else { Ok(()) }
}

/// Loads what the command line names, whose classes are in `library`, and checks it; everything wrong is
/// in `found`. Of a text that cannot be understood no more is checked.
pub(super) fn load_checked(
    configuration: &Configuration,
    library: &Library,
) -> Result<(LoadedConfiguration, Option<CheckedConfig>), CommandError> {
    let mut loaded = load_words(configuration, library)?;
    // The graph of tenants is made of right configurations only.
    let is_graph = loaded.is_parsed || loaded.tenants.is_some() && !loaded.found.has_errors();
    let checked = is_graph.then(|| {
        let mut options = Options::new(Arc::new(Terminal));
        options.interfaces = Some(castanet_io::elements::address_of);
        Router::check(&loaded.flat, library, &options, &mut loaded.found)
    });
    Ok((loaded, checked))
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
                lint: d.lint,
            }
        })
        .collect();
    serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n"
}
