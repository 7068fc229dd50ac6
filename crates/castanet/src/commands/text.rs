//! `castanet flatten` and `castanet pretty`: configurations printed back.

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
pub(crate) fn flatten(arguments: &Arguments) -> i32 {
    match super::load_or_report(&arguments.configuration, &library()) {
        Ok(loaded) => {
            let text = castanet_lang::print::flat(&loaded.flat);
            super::write_out(arguments.output.as_deref(), &text)
        }
        Err(status) => status,
    }
}

/// Prints the configuration in one style, structure and comments kept.
pub(crate) fn pretty(arguments: &Arguments) -> i32 {
    match super::load_or_report(&arguments.configuration, &library()) {
        Ok(loaded) => {
            let text = loaded.tree.as_ref().map(castanet_lang::print::pretty).unwrap_or_default();
            super::write_out(arguments.output.as_deref(), &text)
        }
        Err(status) => status,
    }
}
