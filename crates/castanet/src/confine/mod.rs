//! `--confine`: the process gives up what a running router does not need, after devices and files are
//! open and before the first worker runs.

mod capabilities;
mod files;
mod system_calls;
pub(crate) mod tenant;

use crate::load::LoadedConfiguration;
use crate::privileges::Privileges;
use crate::tenants::TenantStore;
use castanet_element::error::ArgError;
use castanet_runtime::router::Router;
use clap::Args;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process is confined.
static IS_CONFINED: AtomicBool = AtomicBool::new(false);

/// Arguments about the confinement of the process.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfinementArguments {
    /// Once devices and files are open, drop all capabilities, refuse system calls that no router
    /// makes, and reach no files but those of the configuration
    #[arg(long)]
    pub(crate) confine: bool,
    /// With --confine, keep the capabilities that the configuration needs, so that a reload can open
    /// its devices again
    #[arg(long, requires = "confine")]
    keep_capabilities: bool,
    /// With --confine, restrict no files (Landlock)
    #[arg(long, requires = "confine")]
    no_landlock: bool,
    /// With --confine, refuse no system calls (seccomp)
    #[arg(long, requires = "confine")]
    no_seccomp: bool,
}

/// Confines the process of a router that is built and does not run yet; returns sentences about it.
/// `folders` are those below which handlers may name files.
///
/// # Errors
/// The process has threads, which would not be confined, or the kernel refuses.
pub(crate) fn confine(
    arguments: &ConfinementArguments,
    router: &Router,
    loaded: &LoadedConfiguration,
    folders: &[PathBuf],
) -> Result<Vec<String>, String> {
    if has_threads() {
        return Err("--confine comes too late: the process has other threads already, \
                    such as those of DPDK"
            .into());
    }
    let mut privileges = Privileges::new(router.graph(), router.resources(), &loaded.sources);
    let mut store = None;
    if let Some(tenants) = &loaded.tenants {
        privileges = privileges.with_tenants(tenants);
        store = tenants.store();
    }
    let store = store.as_ref().map(TenantStore::folder);
    nix::sys::prctl::set_no_new_privs().map_err(|error| failed("no_new_privs", &error))?;
    let mut sentences = Vec::new();
    if !arguments.no_landlock {
        sentences.push(files::restrict(&privileges, folders, store)?);
    }
    let wanted: Vec<&str> = match arguments.keep_capabilities {
        true => privileges.capabilities.iter().map(|it| it.name.as_str()).collect(),
        false => Vec::new(),
    };
    sentences.push(capabilities::keep(&wanted)?);
    if !arguments.no_seccomp {
        let needs_bpf = privileges.capabilities.iter().any(|it| it.name == "CAP_BPF");
        sentences.push(system_calls::refuse(needs_bpf)?);
    }
    IS_CONFINED.store(true, Ordering::Relaxed);
    Ok(sentences)
}

/// Gives up all capabilities but that to send signals, and the means to get new ones. A process of
/// another user, such as a tenant's, ends with this one only if this one may send it signals.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn give_up_privileges() -> Result<(), String> {
    nix::sys::prctl::set_no_new_privs().map_err(|error| failed("no_new_privs", &error))?;
    capabilities::keep(&["CAP_KILL"]).map(drop)
}

/// The reason why a reload may be refused.
const REASON: &str = "under --confine a reload opens no devices and files but those of the \
                      configuration at the start; restart the process for others, or see \
                      --keep-capabilities and --no-landlock";

/// The reason why an interface that is back may not be opened.
const LINK_REASON: &str = "under --confine an interface that was gone can be opened again only with \
                           --keep-capabilities";

/// The error of a reload, with the reason if the confinement is it.
pub(crate) fn explained(error: ArgError) -> ArgError {
    let text = error.to_string();
    match is_confinement(&text) {
        true => ArgError::new(format!("{text}\ncastanet: {REASON}")),
        false => error,
    }
}

/// A notice about an interface, with the reason if the confinement is it.
pub(crate) fn explained_notice(text: String) -> String {
    if is_confinement(&text) { format!("{text}; {LINK_REASON}") } else { text }
}

/// Whether an error is one of the confinement of this process.
fn is_confinement(text: &str) -> bool {
    let is_refusal = ["not permitted", "Permission denied"].iter().any(|it| text.contains(it));
    IS_CONFINED.load(Ordering::Relaxed) && is_refusal
}

/// Whether the process has threads beside this one.
fn has_threads() -> bool {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) > 1
}

fn failed(doing: &str, error: &dyn std::fmt::Display) -> String {
    format!("--confine: {doing}: {error}")
}
