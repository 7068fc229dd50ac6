//! The confinement of a tenant's process: it comes after its files and channels are open, and before
//! its first packet.
//!
//! The order is forced: namespaces and mounts need capabilities, which go next; Landlock forbids mounts,
//! and the filter of system calls forbids all of this.

mod allowed_calls;
mod limits;
mod namespaces;

pub(crate) use allowed_calls::is_refused;
pub(crate) use namespaces::{Separation, separate};

use super::{capabilities, has_threads};
use castanet_tenants::sandbox::{ProcessDescription, Protection};
use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
use nix::sys::signal::Signal;

/// The newest version of Landlock whose rights are taken away.
const VERSION: ABI = ABI::V7;

/// The result of a confinement.
#[derive(Default)]
pub(crate) struct Confinement {
    /// The protections that hold, as words for people.
    pub(crate) holds: Vec<&'static str>,
    /// Protections that the kernel does not give, each with the reason.
    pub(crate) lacking: Vec<(Protection, String)>,
}

impl Confinement {
    fn add(&mut self, protection: Protection, words: &'static str, given: Result<(), String>) {
        match given {
            Ok(()) => self.holds.push(words),
            Err(why) => self.lacking.push((protection, why)),
        }
    }
}

/// Confines this process, which has one thread, but for its system calls, which [`restrict_calls`]
/// restricts. `has_user_namespace` says whether it has a user namespace already.
///
/// # Errors
/// The process has other threads, or keeps capabilities.
pub(crate) fn confine(
    description: &ProcessDescription,
    has_user_namespace: bool,
) -> Result<Confinement, String> {
    if has_threads() {
        return Err("it has other threads already, which would not be confined".into());
    }
    let mut done = Confinement::default();
    let data = limits::reserved_data();
    let root = namespaces::empty_root();
    done.add(Protection::MountNamespace, "an empty root directory", root);
    let user = match has_user_namespace {
        true => Ok(()),
        false => namespaces::leave_user(),
    };
    done.add(Protection::UserNamespace, "a user namespace", user);
    // The change of the user has cleared it.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|e| format!("parent's death: {e}"))?;
    limits::set(description, data);
    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("no_new_privs: {error}"))?;
    done.add(Protection::Landlock, "Landlock without any right", restrict_files());
    capabilities::keep(&[])?;
    done.holds.push("no capabilities");
    Ok(done)
}

/// Restricts system calls to those on a list.
pub(crate) fn restrict_calls(done: &mut Confinement) {
    done.add(Protection::Seccomp, "a list of system calls", allowed_calls::restrict());
}

/// Takes away all rights to files, TCP ports, and to other processes by abstract sockets and signals.
fn restrict_files() -> Result<(), String> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))
        .and_then(|it| it.handle_access(AccessNet::from_all(VERSION)))
        .and_then(|it| it.scope(Scope::from_all(VERSION)))
        .and_then(Ruleset::create);
    let status = ruleset.and_then(landlock::RulesetCreated::restrict_self);
    match status.map_err(|error| error.to_string())?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel has no Landlock".into()),
        _ => Ok(()),
    }
}
