//! The program: `castanet`, and `click` or one of Click's tools when it is called by that name.
#![forbid(unsafe_code)]

mod cli;
mod click;
mod commands;
mod confine;
mod console;
mod control_queue;
mod http;
mod instance;
mod library;
mod links;
mod lints;
mod load;
mod log;
mod messages;
mod metrics;
mod migration;
mod observe;
mod privileges;
mod processor;
mod program;
mod replace;
mod signals;
mod source_files;
mod systemd;
mod tenants;
mod terminal;
mod tools;
mod watch;
mod web;

use castanet_element::packet::AccountAllocator;
use std::process::ExitCode;

/// Counts the memory of accounts.
#[global_allocator]
static ALLOCATOR: AccountAllocator = AccountAllocator;

pub use castanet_element::node::fused::Fusion;
pub use castanet_element::{fuse, native};
pub use processor::reason_against;
pub use program::{BuiltConfiguration, Program};

/// Exit statuses.
pub(crate) mod exit {
    /// The configuration is wrong, or the router could not be started.
    pub(crate) const CONFIGURATION: i32 = 1;
    /// The command line is wrong.
    pub(crate) const USAGE: i32 = 2;
    /// A program cannot be built: no toolchain, no sources, or the compiler failed.
    pub(crate) const UNBUILDABLE: i32 = 3;
    /// Castanet itself is at fault: a panic, a leak.
    pub(crate) const BUG: i32 = 70;
    /// Ended by a second Ctrl-C, before it had ended in good order.
    pub(crate) const INTERRUPTED: i32 = 130;
}

/// Says why the program cannot run here.
pub fn refuse(why: &str) -> ExitCode {
    terminal::complain(format_args!("castanet: {why}"));
    ExitCode::FAILURE
}

/// Runs the command line of this process, for a program with these parts built in.
pub fn main(program: Program) -> ExitCode {
    program::set(program);
    let name = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&name).file_name().unwrap_or_default();
    let status = match name.to_str() {
        Some("click") => click::main(),
        Some(name) => match tools::find(name) {
            Some(tool) => (tool.main)(),
            None if program::is_driver() => click::main(),
            None => cli::main(),
        },
        None => cli::main(),
    };
    log::finish();
    messages::finish();
    ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
}
