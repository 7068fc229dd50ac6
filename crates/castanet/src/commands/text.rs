//! `castanet flatten` and `castanet pretty`: configurations printed back.

use super::{CommandResult, load_or_report, write_out};
use crate::cli::Configuration;
use crate::library::library;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `castanet flatten` and `castanet pretty`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: Configuration,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints the flat configuration.
pub(crate) fn flatten(arguments: &Arguments) -> CommandResult {
    let loaded = load_or_report(&arguments.configuration, &library())?;
    write_out(arguments.output.as_deref(), &castanet_lang::print::flat(&loaded.flat))
}

/// Prints the configuration in one style, structure and comments kept.
pub(crate) fn pretty(arguments: &Arguments) -> CommandResult {
    let loaded = load_or_report(&arguments.configuration, &library())?;
    let text = loaded.tree.as_ref().map(castanet_lang::print::pretty).unwrap_or_default();
    write_out(arguments.output.as_deref(), &text)
}
