//! `castanet tenants`: runs the graphs of many tenants as one.

mod handler_answers;
mod heartbeat;
mod live;
mod moves;
mod probe;
mod process;

use super::{CommandError, CommandResult, check, explain, run, write_json, write_out};
use crate::cli::Configuration;
use crate::library::library;
use crate::load::Origin;
use crate::tenants::{LoadedSystem, load};
use crate::terminal::{bold, colours_on_stdout};
use castanet_runtime::router::ErrorStyle;
use castanet_tenants::sandbox::CgroupPlaces;
use castanet_tenants::{ProcessGraph, SystemTable};
use clap::{Arg, Args, Subcommand};
use serde::Serialize;
use std::collections::BTreeMap;

/// Arguments of `castanet tenants`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: TenantsCommand,
}

#[derive(Subcommand)]
enum TenantsCommand {
    /// Say whether a system file and the configurations of its tenants are right, and everything that is wrong
    #[command(
        mut_arg("words", system_file),
        mut_arg("expression", hidden),
        override_usage = "castanet tenants check [OPTIONS] SYSTEM.toml"
    )]
    Check(check::Arguments),
    /// Show the devices and tenants, the graph that is made of them, and each step to running workers
    #[command(
        mut_arg("words", system_file),
        mut_arg("expression", hidden),
        override_usage = "castanet tenants explain [OPTIONS] SYSTEM.toml"
    )]
    Explain(Box<explain::Arguments>),
    /// Run all tenants of a system file
    #[command(
        mut_arg("words", system_file),
        mut_arg("expression", hidden),
        override_usage = "castanet tenants run [OPTIONS] SYSTEM.toml",
        after_help = "Exit status: 0 ended in good order, as by Ctrl-C, 1 the system file or a configuration is wrong \
                      or could not be started, 2 the command line is wrong, 70 a bug of Castanet, 130 ended by a \
                      second Ctrl-C before that."
    )]
    Run(Box<run::Arguments>),
    /// List the tenants of a running system
    List(live::ListArguments),
    /// Install a configuration of a tenant in a running system, in place of the one that it runs
    Install(live::InstallArguments),
    /// Remove the configuration of a tenant of a running system
    Remove(live::TenantArguments),
    /// Have a tenant of a running system run the configuration of its file again
    Restore(live::TenantArguments),
    /// Move a tenant of a running system to another instance, with its state
    Move(moves::Arguments),
    /// Make a key that instances have in common between which tenants move
    Key(moves::KeyArguments),
    /// Confine a process as that of a tenant with `isolation = "process"`, and say what it can still do
    Probe,
    /// Be the process of a tenant; `castanet tenants run` starts it
    #[command(hide = true)]
    Process(process::Arguments),
}

/// The argument that names a system file, where other commands take a configuration.
fn system_file(argument: Arg) -> Arg {
    let help = "The system file (TOML): devices, tenants, and the files of their configurations";
    argument.value_name("SYSTEM.toml").help(help)
}

fn hidden(argument: Arg) -> Arg {
    argument.hide(true)
}

/// The JSON form of a system.
#[derive(Serialize)]
struct SystemReport<'a> {
    #[serde(flatten)]
    table: &'a SystemTable,
    /// The graph, in the Click language.
    graph: String,
    /// By tenant with a process of its own: the graph that runs there.
    processes: BTreeMap<String, String>,
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
        TenantsCommand::List(arguments) => live::list(&arguments),
        TenantsCommand::Install(arguments) => live::install(&arguments),
        TenantsCommand::Remove(arguments) => live::remove(&arguments),
        TenantsCommand::Restore(arguments) => live::restore(&arguments),
        TenantsCommand::Move(arguments) => moves::main(&arguments),
        TenantsCommand::Key(arguments) => moves::make_key(&arguments),
        TenantsCommand::Probe => probe::main(),
        TenantsCommand::Process(arguments) => process::main(&arguments),
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
    let LoadedSystem { configuration, table, processes, .. } = load(path, &vars, &library(), None);
    if configuration.found.has_errors() {
        configuration.report(ErrorStyle::Castanet);
        return Err(CommandError::REPORTED);
    }
    let text = |it: ProcessGraph| (it.tenant, castanet_lang::print::flat(&it.graph));
    let processes: BTreeMap<String, String> = processes.into_iter().map(text).collect();
    if arguments.json {
        let graph = castanet_lang::print::flat(&configuration.flat);
        return write_json(&SystemReport { table: &table, graph, processes });
    }
    write_out(None, &(table.text() + "\n" + &process_text(&processes)))?;
    explain::main(arguments)
}

/// The graphs of other processes, and the limits that this process cannot set for them.
fn process_text(processes: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    if !processes.is_empty() {
        for (protection, why) in CgroupPlaces::of_this_process().obstacles() {
            if !why.is_empty() {
                text += &format!("no {protection} here: {why}\n\n");
            }
        }
    }
    let colours = colours_on_stdout();
    for (tenant, graph) in processes {
        text += &bold(&format!("the process of {tenant}"), colours);
        text += "\n";
        text += &graph.lines().fold(String::new(), |text, line| text + "  " + line + "\n");
        text += "\n";
    }
    text
}
