//! Files that the process can open from now on (Landlock).

use super::failed;
use crate::instance::RuntimeDirectory;
use crate::privileges::{Privilege, Privileges};
use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of Landlock whose rights are restricted; those that the kernel does not have are left out.
const VERSION: ABI = ABI::V5;

/// Folders that the system's own state is read from: devices, memory, processors, time.
const SYSTEM: &[&str] = &["/proc", "/sys"];
/// Files that the program and its libraries read.
const READ: &[&str] = &["/dev/tty", "/dev/urandom", "/etc/group"];
/// Files that anybody may write.
const WRITE: &[&str] = &["/dev/null"];

/// Rights by path.
type Rights = BTreeMap<PathBuf, BitFlags<AccessFs>>;

/// Restricts the process to the files of these privileges, those below `folders`, and those of the store of
/// tenants' configurations.
pub(super) fn restrict(
    privileges: &Privileges,
    folders: &[PathBuf],
    store: Option<&Path>,
) -> Result<String, String> {
    let wrong = |error: landlock::RulesetError| failed("Landlock", &error);
    let all = AccessFs::from_all(VERSION);
    let ruleset = Ruleset::default().handle_access(all).and_then(Ruleset::create).map_err(wrong)?;
    let rights = rights(privileges, folders, store);
    let ruleset = rights.into_iter().try_fold(ruleset, add).map_err(wrong)?;
    let status = ruleset.restrict_self().map_err(wrong)?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => "all files of its user, for this kernel has no Landlock",
        _ => "no files but those of the configuration",
    }
    .to_owned())
}

fn rights(privileges: &Privileges, folders: &[PathBuf], store: Option<&Path>) -> Rights {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate;
    let bind = AccessFs::MakeSock | AccessFs::RemoveFile;
    let mut rights = Rights::new();
    let mut grant = |path: &Path, access: BitFlags<AccessFs>| {
        *rights.entry(path.to_owned()).or_default() |= access;
    };
    SYSTEM.iter().for_each(|path| grant(Path::new(path), read));
    READ.iter().for_each(|path| grant(Path::new(path), AccessFs::ReadFile.into()));
    WRITE.iter().for_each(|path| grant(Path::new(path), write | AccessFs::ReadFile));
    let clickpath = std::env::var("CLICKPATH").unwrap_or_default();
    clickpath.split(':').filter(|it| !it.is_empty()).for_each(|it| grant(Path::new(it), read));
    // An editor puts a new file in the place of the old one.
    privileges.reads.iter().for_each(|it| grant(folder_of(Path::new(&it.name)), read));
    for Privilege { name, .. } in &privileges.writes {
        let device: BitFlags<AccessFs> = if name.starts_with("/dev/") {
            AccessFs::ReadFile | AccessFs::IoctlDev
        } else {
            BitFlags::EMPTY
        };
        grant(Path::new(name), write | device);
    }
    let sockets = privileges.sockets.iter().filter_map(|it| it.name.strip_prefix("UNIX "));
    sockets.for_each(|path| grant(folder_of(Path::new(path)), bind));
    grant(RuntimeDirectory::own().path(), bind | AccessFs::ReadDir);
    for folder in folders {
        grant(folder, read | write | AccessFs::MakeReg);
    }
    if let Some(folder) = store {
        grant(folder, read | write | AccessFs::MakeReg | AccessFs::RemoveFile);
    }
    rights
}

/// Adds a rule, unless there is no such file.
fn add(
    ruleset: RulesetCreated,
    (path, mut access): (PathBuf, BitFlags<AccessFs>),
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(opened) = PathFd::new(&path) else { return Ok(ruleset) };
    if !path.is_dir() {
        access &= AccessFs::from_file(VERSION);
    }
    ruleset.add_rule(PathBeneath::new(opened, access))
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
