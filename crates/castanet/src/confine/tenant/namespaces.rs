//! Namespaces of a tenant's process.

use castanet_tenants::sandbox::Protection;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, chdir, getegid, geteuid, pivot_root, setgroups, setresgid, setresuid};

/// The user that a process of root becomes: `nobody`, by its number on all Linux systems.
const NOBODY: u32 = 65534;

/// The namespaces of a process that is about to run a tenant.
#[derive(Default)]
pub(crate) struct Separation {
    /// Whether it has a user namespace already.
    pub(crate) has_user_namespace: bool,
    /// Protections that the kernel does not give, each with the reason.
    pub(crate) lacking: Vec<(Protection, String)>,
}

/// Separates this process, and its children, from the namespaces of the host. With the privilege to do
/// so the user namespace comes last ([`leave_user`]), so that the process owns none of the others; else
/// it comes first, for it gives the privilege.
pub(crate) fn separate() -> Separation {
    let mut done = Separation::default();
    if unshare(CloneFlags::CLONE_NEWNS).is_err() {
        match new_user_namespace() {
            Ok(()) => done.has_user_namespace = true,
            Err(why) => done.lacking.push((Protection::UserNamespace, why)),
        }
    }
    for (protection, flag) in [
        (Protection::MountNamespace, CloneFlags::CLONE_NEWNS),
        (Protection::NetworkNamespace, CloneFlags::CLONE_NEWNET),
        (Protection::PidNamespace, CloneFlags::CLONE_NEWPID),
        (Protection::IpcNamespace, CloneFlags::CLONE_NEWIPC),
        (Protection::UtsNamespace, CloneFlags::CLONE_NEWUTS),
    ] {
        if let Err(error) = unshare(flag) {
            done.lacking.push((protection, reason(error)));
        }
    }
    done
}

fn reason(error: Errno) -> String {
    match error {
        Errno::EINVAL => "the kernel has none".to_owned(),
        Errno::EPERM => "the kernel or a security module refuses it to this user".to_owned(),
        Errno::ENOSPC => "there are as many as `/proc/sys/user` allows".to_owned(),
        error => error.to_string(),
    }
}

/// Makes a user namespace in which this user is root, and nobody else is anybody.
fn new_user_namespace() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(reason)?;
    for (file, contents) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ] {
        std::fs::write(format!("/proc/self/{file}"), contents)
            .map_err(|error| format!("/proc/self/{file}: {error}"))?;
    }
    Ok(())
}

/// Becomes nobody, in a user namespace that has no other users.
pub(super) fn leave_user() -> Result<(), String> {
    if geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        setgroups(&[])
            .and_then(|()| setresgid(group, group, group))
            .and_then(|()| setresuid(user, user, user))
            .map_err(|error| format!("user {NOBODY}: {error}"))?;
    }
    unshare(CloneFlags::CLONE_NEWUSER).map_err(reason)
}

/// Puts an empty folder that cannot be written in the place of the root directory.
pub(super) fn empty_root() -> Result<(), String> {
    let none: Option<&str> = None;
    // A folder that is there on every system; nothing of it is left in the end.
    let folder = "/proc";
    let tight = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let steps = || -> nix::Result<()> {
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        let options = Some("size=4k,nr_inodes=2,mode=555");
        mount(Some("tmpfs"), folder, Some("tmpfs"), tight, options)?;
        chdir(folder)?;
        pivot_root(".", ".")?;
        umount2(".", MntFlags::MNT_DETACH)?;
        chdir("/")?;
        mount(none, "/", none, tight | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, none)
    };
    steps().map_err(|error| format!("no empty root directory: {error}"))
}
