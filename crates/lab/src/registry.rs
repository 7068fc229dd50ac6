//! The resources that this process has created outside itself, and their removal however it ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};
use crate::tools::search_path;

/// Prefix of the names of a lab's namespaces and directory.
const PREFIX: &str = "cst-";

/// Directory in which `ip netns` keeps the names.
pub(crate) const NETNS: &str = "/run/netns";

static RESOURCES: Mutex<Resources> = Mutex::new(Resources::new());
static START: Once = Once::new();

/// The namespaces, directories and processes that this process has created.
struct Resources {
    namespaces: BTreeSet<String>,
    directories: BTreeSet<PathBuf>,
    /// IDs of the process groups whose leaders still run.
    groups: BTreeSet<i32>,
    /// Whether the process is ending, after which no resource is created.
    closing: bool,
    /// Number of labs started.
    labs: u32,
}

impl Resources {
    const fn new() -> Resources {
        Resources {
            namespaces: BTreeSet::new(),
            directories: BTreeSet::new(),
            groups: BTreeSet::new(),
            closing: false,
            labs: 0,
        }
    }
}

/// Locks the registry; fails if the process is ending.
fn lock_open() -> Result<MutexGuard<'static, Resources>> {
    let resources = lock();
    if resources.closing { Err(Error::Interrupted) } else { Ok(resources) }
}

fn lock() -> MutexGuard<'static, Resources> {
    // A panic of a thread that held the lock leaves at worst a superfluous name, which removal
    // tolerates.
    RESOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a lab: creates its directory, and returns its prefix and directory. The first call also
/// removes leftovers and installs the signal handler.
pub(crate) fn start_lab(lab: &str) -> Result<(String, PathBuf)> {
    let mut installed = Ok(());
    START.call_once(|| {
        remove_leftovers();
        installed = catch_signals();
    });
    installed?;
    let mut resources = lock_open()?;
    let prefix = format!("{PREFIX}{}-{lab}{}", std::process::id(), resources.labs);
    resources.labs += 1;
    let directory = std::env::temp_dir().join(&prefix);
    fs::create_dir(&directory).map_err(Error::io(format!("make {}", directory.display())))?;
    resources.directories.insert(directory.clone());
    Ok((prefix, directory))
}

/// Creates a namespace and registers it.
pub(crate) fn add_namespace(name: &str) -> Result<()> {
    let mut resources = lock_open()?;
    let output = ip(&["netns", "add", name]).map_err(Error::io("run ip"))?;
    if !output.status.success() {
        return Err(Error::NoNamespaces(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    resources.namespaces.insert(name.to_owned());
    Ok(())
}

/// Removes a lab's namespaces, with the processes in them, and its directory.
pub(crate) fn remove_lab(namespaces: &[String], directory: &Path) {
    for name in namespaces {
        remove_namespace(name);
        lock().namespaces.remove(name);
    }
    // The directory holds only files of tests: a failure to remove it is harmless.
    let _ = fs::remove_dir_all(directory);
    lock().directories.remove(directory);
}

/// Starts a process, which must be the leader of its own group, and registers it.
pub(crate) fn spawn(command: &mut Command, command_line: &str) -> Result<Child> {
    let mut resources = lock_open()?;
    let child = command.spawn().map_err(Error::io(format!("run `{command_line}`")))?;
    resources.groups.insert(child.id().cast_signed());
    Ok(child)
}

/// Returns the exit status of a process if it has ended, and then removes it from the registry.
pub(crate) fn reap(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    // The lock is held, so that no signal goes to a process ID that the kernel has meanwhile
    // reused.
    let mut resources = lock();
    let group = child.id().cast_signed();
    if !resources.groups.contains(&group) {
        return child.try_wait();
    }
    let status = child.try_wait()?;
    if status.is_some() {
        resources.groups.remove(&group);
    }
    Ok(status)
}

/// Sends a signal to a process and its group, if it still runs.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let resources = lock();
    let group = child.id().cast_signed();
    if resources.groups.contains(&group) {
        send(group, signal);
    }
}

fn send(group: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(group) {
        // The group may have ended by itself, which is not an error.
        let _ = kill_process_group(pid, signal);
    }
}

/// Starts a thread that removes all resources on SIGINT, SIGTERM and SIGHUP, and then ends the
/// process by the signal.
fn catch_signals() -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Error::io("catch signals"))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            if remove_all() {
                eprintln!("\ninterrupted: every test network is removed");
            }
            // It fails only for signals that it does not know, and it knows these three.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Removes all resources and closes the registry; returns whether there was a namespace.
fn remove_all() -> bool {
    let mut resources = lock();
    resources.closing = true;
    for group in std::mem::take(&mut resources.groups) {
        send(group, Signal::KILL);
    }
    let (namespaces, directories) =
        (std::mem::take(&mut resources.namespaces), std::mem::take(&mut resources.directories));
    namespaces.iter().for_each(|name| remove_namespace(name));
    for directory in directories {
        let _ = fs::remove_dir_all(directory);
    }
    !namespaces.is_empty()
}

/// Removes the namespaces and directories of processes that no longer run.
fn remove_leftovers() {
    let is_orphaned = |name: &str| owner(name).is_some_and(|pid| !is_alive(pid));
    for name in names_in(Path::new(NETNS)).filter(|name| is_orphaned(name)) {
        remove_namespace(&name);
    }
    let temp = std::env::temp_dir();
    for name in names_in(&temp).filter(|name| is_orphaned(name)) {
        let _ = fs::remove_dir_all(temp.join(name));
    }
}

fn names_in(directory: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// Returns the ID of the process that has created a namespace, from its name.
fn owner(name: &str) -> Option<i32> {
    let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    pid.parse().ok()
}

/// Whether another process with this ID runs. The own process counts as dead, because it has
/// created nothing yet when leftovers are removed.
fn is_alive(pid: i32) -> bool {
    pid.cast_unsigned() != std::process::id()
        && Pid::from_raw(pid).is_some_and(|pid| match test_kill_process(pid) {
            Ok(()) => true,
            Err(error) => error == rustix::io::Errno::PERM,
        })
}

/// Kills the processes in a namespace, then deletes its name, upon which the kernel removes its
/// links.
fn remove_namespace(name: &str) {
    if let Ok(pids) = ip(&["netns", "pids", name]) {
        for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
    let _ = ip(&["netns", "del", name]);
}

/// Runs `ip` outside any namespace, in its own group so that Ctrl-C does not interrupt a removal.
fn ip(args: &[&str]) -> std::io::Result<std::process::Output> {
    use std::os::unix::process::CommandExt;
    Command::new("ip")
        .args(args)
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .process_group(0)
        .output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_owner_from_a_name() {
        assert_eq!(owner("cst-4242-router0-h1"), Some(4242));
        assert_eq!(owner("cst-4242"), None);
        assert_eq!(owner("cst-x-y"), None);
        assert_eq!(owner("other-4242-y"), None);
    }

    #[test]
    fn running_and_ended_processes_are_distinguished() {
        assert!(is_alive(1));
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(child.id().cast_signed()));
    }
}
