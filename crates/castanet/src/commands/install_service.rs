//! `castanet install-service`: the unit of systemd, its user, and a first configuration.

use super::{CommandError, CommandResult, write_out};
use crate::load::io_error_text;
use castanet_element::files::{OFlag, beneath};
use clap::Args;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The unit, for a program at [`PROGRAM`] and a user [`USER`].
const UNIT: &str = include_str!("../systemd/castanet@.service");
/// The declaration of the user.
const SYSUSERS: &str = include_str!("../systemd/castanet.sysusers");
/// The first configuration.
const EXAMPLE: &str = include_str!("../systemd/example.click");

/// The program in the unit as it is written here.
const PROGRAM: &str = "/usr/bin/castanet";
/// The user in the unit as it is written here.
const USER: &str = "castanet";

/// Arguments of `castanet install-service`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Install below this directory, as if it were the root of the file system
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Run routers as this user; only `castanet` is declared for systemd-sysusers
    #[arg(long, value_name = "NAME", default_value = USER, value_parser = user_name)]
    user: String,
    /// Run this program [default: the one that runs this command]
    #[arg(long, value_name = "PATH", value_parser = program_path)]
    program: Option<String>,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// Print the unit, and install nothing
    #[arg(long)]
    print: bool,
}

/// A file to install: its path below the root, and its text.
type FileToInstall = (&'static str, String);

/// Installs the files, or none if one is there already.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => own_program()?,
    };
    let unit = unit(&program, &arguments.user);
    if arguments.print {
        return write_out(None, &unit);
    }
    let mut files: Vec<FileToInstall> = vec![
        ("etc/systemd/system/castanet@.service", unit),
        ("etc/castanet/example.click", EXAMPLE.to_owned()),
    ];
    if arguments.user == USER {
        files.push(("etc/sysusers.d/castanet.conf", SYSUSERS.to_owned()));
    }
    let is_there = |(path, _): &&FileToInstall| {
        arguments.root.join(path).symlink_metadata().is_ok() && !arguments.force
    };
    let taken: Vec<String> = files
        .iter()
        .filter(is_there)
        .map(|(path, _)| format!("{} is there, and stays", arguments.root.join(path).display()))
        .collect();
    if !taken.is_empty() {
        let help = "\ncastanet: nothing was installed; --force replaces these files";
        return Err((taken.join("\ncastanet: ") + help).into());
    }
    let mut report = String::new();
    for (path, text) in &files {
        let whole = arguments.root.join(path);
        install(&arguments.root, Path::new(path), text, arguments.force)
            .map_err(|error| format!("{}: {}", whole.display(), io_error_text(&error)))?;
        report += &format!("{}\n", whole.display());
    }
    if arguments.user == USER {
        report += "next: systemd-sysusers && systemctl daemon-reload\n";
    } else {
        report += "next: systemctl daemon-reload\n";
    }
    report += "then: systemctl start castanet@example\n";
    write_out(None, &report)
}

/// The unit for a program and a user.
fn unit(program: &str, user: &str) -> String {
    UNIT.replace(&format!("={PROGRAM} "), &format!("={program} "))
        .replace(&format!("\nUser={USER}\n"), &format!("\nUser={user}\n"))
        .replace(&format!("\nGroup={USER}\n"), &format!("\nGroup={user}\n"))
}

/// The path of this program.
fn own_program() -> Result<String, CommandError> {
    let path = std::env::current_exe().and_then(std::fs::canonicalize);
    let path = path.map_err(|error| format!("its own path: {}", io_error_text(&error)))?;
    let text = path.to_str().map(str::to_owned).unwrap_or_default();
    program_path(&text).map_err(|why| CommandError::usage(format!("{}: {why}", path.display())))
}

/// Writes a file below the root; its folders are made, and links on the way are not followed.
fn install(root: &Path, path: &Path, text: &str, force: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    make_folders(root, folder)?;
    if force {
        match std::fs::remove_file(root.join(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
    beneath(root, path, flags)?.write_all(text.as_bytes())
}

/// Makes the folders of a path below the root, none of which may be a link.
fn make_folders(root: &Path, path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(root)?;
    let mut whole = root.to_owned();
    for name in path {
        whole.push(name);
        match std::fs::create_dir(&whole) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !whole.symlink_metadata()?.is_dir() {
            let words = format!("{} is no folder, and links are not followed", whole.display());
            return Err(io::Error::new(ErrorKind::InvalidInput, words));
        }
    }
    Ok(())
}

/// A name that a unit can have in `User=`.
fn user_name(text: &str) -> Result<String, String> {
    let rest = |c: u8| c.is_ascii_alphanumeric() || b"_-".contains(&c);
    let first = |c: u8| c.is_ascii_alphabetic() || c == b'_';
    match text.bytes().next().is_some_and(first) && text.bytes().all(rest) && text.len() < 32 {
        true => Ok(text.to_owned()),
        false => Err("a user's name has up to 31 letters, digits and _ -".into()),
    }
}

/// A path that a unit can have in `ExecStart=` as it is.
fn program_path(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    match text.starts_with('/') && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a unit needs an absolute path without spaces and special characters".into()),
    }
}
