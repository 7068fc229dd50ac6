//! `castanet tenants`: runs the graphs of many tenants as one.

use super::{CommandError, CommandResult, check, explain, run, write_json, write_out};
use crate::cli::Configuration;
use crate::library::library;
use crate::load::Origin;
use crate::tenants::{LoadedSystem, load};
use castanet_runtime::router::ErrorStyle;
use castanet_tenants::SystemTable;
use clap::{Args, Subcommand};
use serde::Serialize;

/// Arguments of `castanet tenants`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: TenantsCommand,
}

#[derive(Subcommand)]
enum TenantsCommand {
    /// Say whether a system file and the configurations of its tenants are right, and everything that is wrong
    Check(check::Arguments),
    /// Show the devices and tenants, the graph that is made of them, and each step to running workers
    Explain(Box<explain::Arguments>),
    /// Run all tenants of a system file
    Run(Box<run::Arguments>),
}

/// The JSON form of a system.
#[derive(Serialize)]
struct SystemReport<'a> {
    #[serde(flatten)]
    table: &'a SystemTable,
    /// The graph, in the Click language.
    graph: String,
}

/// Runs a command about tenants.
pub(crate) fn main(arguments: Arguments) -> CommandResult {
    match arguments.command {
        TenantsCommand::Check(mut arguments) => {
            arguments.configuration = system(arguments.configuration)?;
            check::main(&arguments)
        }
        TenantsCommand::Explain(mut arguments) => {
            arguments.configuration = system(arguments.configuration)?;
            explain_system(&arguments)
        }
        TenantsCommand::Run(mut arguments) => {
            arguments.configuration = system(arguments.configuration)?;
            run::main(&arguments)
        }
    }
}

fn system(configuration: Configuration) -> Result<Configuration, CommandError> {
    configuration.of_system().map_err(CommandError::usage)
}

/// Prints the devices and tenants, then what `castanet explain` prints about the graph.
fn explain_system(arguments: &explain::Arguments) -> CommandResult {
    let (origin, vars) = arguments.configuration.sort().map_err(CommandError::usage)?;
    let Origin::System(path) = &origin else {
        return Err(CommandError::usage("name a system file".to_owned()));
    };
    let LoadedSystem { configuration, table } = load(path, &vars, &library(), None);
    if configuration.found.has_errors() {
        configuration.report(ErrorStyle::Castanet);
        return Err(CommandError::REPORTED);
    }
    if arguments.json {
        let graph = castanet_lang::print::flat(&configuration.flat);
        return write_json(&SystemReport { table: &table, graph });
    }
    write_out(None, &(table.text() + "\n"))?;
    explain::main(arguments)
}
