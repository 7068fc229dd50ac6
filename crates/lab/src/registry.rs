//! What this process has made and must remove, whichever way it ends.

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

/// How every namespace and directory of a lab begins.
const PREFIX: &str = "cst-";

/// Where `ip netns` keeps the names.
pub(crate) const NETNS: &str = "/run/netns";

static MADE: Mutex<Made> = Mutex::new(Made::new());
static START: Once = Once::new();

/// All that lives outside this process on its behalf.
struct Made {
    namespaces: BTreeSet<String>,
    directories: BTreeSet<PathBuf>,
    /// Leaders of process groups that are still running.
    groups: BTreeSet<i32>,
    /// Set once the process is ending: from then on nothing new is made.
    closing: bool,
    labs: u32,
}

impl Made {
    const fn new() -> Made {
        Made {
            namespaces: BTreeSet::new(),
            directories: BTreeSet::new(),
            groups: BTreeSet::new(),
            closing: false,
            labs: 0,
        }
    }
}

/// Opens the registry for one step; fails once the process is ending.
fn open() -> Result<MutexGuard<'static, Made>> {
    let made = lock();
    if made.closing { Err(Error::Interrupted) } else { Ok(made) }
}

fn lock() -> MutexGuard<'static, Made> {
    // A panic while the lock was held leaves at worst a name too many, which cleaning up tolerates.
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a lab: sweeps leftovers and catches signals the first time, then makes its directory.
pub(crate) fn begin(lab: &str) -> Result<(String, PathBuf)> {
    let mut caught = Ok(());
    START.call_once(|| {
        sweep();
        caught = catch_signals();
    });
    caught?;
    let mut made = open()?;
    let prefix = format!("{PREFIX}{}-{lab}{}", std::process::id(), made.labs);
    made.labs += 1;
    let directory = std::env::temp_dir().join(&prefix);
    fs::create_dir(&directory).map_err(Error::io(format!("make {}", directory.display())))?;
    made.directories.insert(directory.clone());
    Ok((prefix, directory))
}

/// Makes a namespace and remembers it.
pub(crate) fn add_namespace(name: &str) -> Result<()> {
    let mut made = open()?;
    let said = ip(&["netns", "add", name]).map_err(Error::io("run ip"))?;
    if !said.status.success() {
        return Err(Error::NoNamespaces(String::from_utf8_lossy(&said.stderr).into_owned()));
    }
    made.namespaces.insert(name.to_owned());
    Ok(())
}

/// Removes a lab's namespaces, whatever runs in them, and its directory.
pub(crate) fn end(namespaces: &[String], directory: &Path) {
    for name in namespaces {
        remove_namespace(name);
        lock().namespaces.remove(name);
    }
    // The directory holds nothing but what tests put there: failing to remove it breaks nothing.
    let _ = fs::remove_dir_all(directory);
    lock().directories.remove(directory);
}

/// Starts a process as leader of its own group and remembers it.
pub(crate) fn spawn(command: &mut Command, shown: &str) -> Result<Child> {
    let mut made = open()?;
    let child = command.spawn().map_err(Error::io(format!("run `{shown}`")))?;
    made.groups.insert(child.id().cast_signed());
    Ok(child)
}

/// Asks whether a process has ended; forgets it, and ends the rest of its group, if so.
pub(crate) fn reap(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    // Under the lock, so that a signal never kills a number that has meanwhile found a new owner.
    let mut made = lock();
    let group = child.id().cast_signed();
    if !made.groups.contains(&group) {
        return child.try_wait();
    }
    let status = child.try_wait()?;
    if status.is_some() {
        made.groups.remove(&group);
    }
    Ok(status)
}

/// Sends a signal to a process and its group, if it still runs.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let made = lock();
    let group = child.id().cast_signed();
    if made.groups.contains(&group) {
        send(group, signal);
    }
}

fn send(group: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(group) {
        // It may have ended by itself: nothing is left to do then.
        let _ = kill_process_group(pid, signal);
    }
}

/// Removes everything on Ctrl-C, `kill` and hang-up, then dies of the signal as usual.
fn catch_signals() -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Error::io("catch signals"))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            if remove_all() {
                eprintln!("\ninterrupted: every test network is removed");
            }
            // Only fails for signals that cannot be emulated; these three can.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Removes everything for good; whether there was a network.
fn remove_all() -> bool {
    let mut made = lock();
    made.closing = true;
    for group in std::mem::take(&mut made.groups) {
        send(group, Signal::KILL);
    }
    let (namespaces, directories) =
        (std::mem::take(&mut made.namespaces), std::mem::take(&mut made.directories));
    namespaces.iter().for_each(|name| remove_namespace(name));
    for directory in directories {
        let _ = fs::remove_dir_all(directory);
    }
    !namespaces.is_empty()
}

/// Removes what processes that no longer live have left behind.
fn sweep() {
    let orphaned = |name: &str| owner(name).is_some_and(|pid| !alive(pid));
    for name in names_in(Path::new(NETNS)).filter(|name| orphaned(name)) {
        remove_namespace(&name);
    }
    let temp = std::env::temp_dir();
    for name in names_in(&temp).filter(|name| orphaned(name)) {
        let _ = fs::remove_dir_all(temp.join(name));
    }
}

fn names_in(directory: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// The process that made a namespace, from its name.
fn owner(name: &str) -> Option<i32> {
    let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    pid.parse().ok()
}

/// Whether a process other than this one has that number; ours has made nothing yet when this is asked.
fn alive(pid: i32) -> bool {
    pid.cast_unsigned() != std::process::id()
        && Pid::from_raw(pid).is_some_and(|pid| match test_kill_process(pid) {
            Ok(()) => true,
            Err(error) => error == rustix::io::Errno::PERM,
        })
}

/// Ends what runs in a namespace, then takes its name away, upon which the kernel frees its links.
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

/// Runs `ip` outside any namespace, in its own group so that Ctrl-C cannot stop a removal half-way.
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
    fn knows_the_living_from_the_dead() {
        assert!(alive(1));
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!alive(child.id().cast_signed()));
    }
}
