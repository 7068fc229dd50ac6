//! The running instance: its name, its control socket, and what clients can ask it for.

mod client_budget;
mod directory;
mod handlers;
mod http_arguments;
mod moves;
mod process_reports;
mod service;
mod site;
mod tenant_faults;
mod tenants;
mod web_site;

pub(crate) use directory::{RuntimeDirectory, is_name};
pub(crate) use handlers::{CONTROL_VERSION, INSTANCE, InstanceDescription, METRICS, observation};
pub(crate) use http_arguments::{HttpAccess, HttpArguments};
pub(crate) use moves::TenantExport;
pub(crate) use service::{InstanceService, default_name, is_socket};
pub(crate) use tenants::tenant_handlers;

use clap::Args;
use std::path::PathBuf;

/// Arguments about the control socket of an instance.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InstanceArguments {
    /// Name of this instance, for `castanet ctl NAME` [default: that of the file]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// Listen for `castanet ctl` at this socket, in place of NAME.sock in the runtime directory
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Let the members of this group connect, too: they can do all that the router's user can
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub(crate) control_group: Option<u32>,
    /// Listen for no `castanet ctl`
    #[arg(long, conflicts_with_all = ["name", "control", "control_group"])]
    pub(crate) no_control: bool,
    #[command(flatten)]
    pub(crate) http: HttpArguments,
}

fn parse_name(text: &str) -> Result<String, String> {
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("a name has up to 64 letters, digits and . _ -, and begins with a letter or digit"
                .into())
        }
    }
}

/// The number of a group, by its name or number.
///
/// # Errors
/// There is no such group.
pub(crate) fn group(text: &str) -> Result<u32, String> {
    let by_number = || text.parse().ok();
    match nix::unistd::Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        _ => by_number().ok_or_else(|| format!("there is no group '{text}'")),
    }
}
