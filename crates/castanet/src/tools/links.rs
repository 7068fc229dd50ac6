//! `castanet install-links`: the names by which the program is Click and its tools.

use super::TOOLS;
use crate::commands::{CommandResult, write_out};
use crate::load::io_error_text;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// State of a path at which a link is to be made.
enum LinkState {
    /// Nothing.
    Free,
    /// A link to this program.
    Ours,
    /// A link to a castanet that is elsewhere, or no more.
    Old,
    /// Something else, which is not ours to remove.
    Taken(String),
}

/// Makes all links in a directory, or none if something is in the way.
pub(crate) fn install(dir: &Path) -> CommandResult {
    match links(dir) {
        Ok(text) => write_out(None, &text),
        Err(errors) => Err(errors.join("\ncastanet: ").into()),
    }
}

fn links(dir: &Path) -> Result<String, Vec<String>> {
    let words =
        |what: &Path, e: io::Error| vec![format!("{}: {}", what.display(), io_error_text(&e))];
    std::fs::create_dir_all(dir).map_err(|e| words(dir, e))?;
    let program = std::env::current_exe().and_then(std::fs::canonicalize);
    let program = program.map_err(|e| words(Path::new("castanet"), e))?;
    let target = target(&program, dir);
    let names = std::iter::once("click").chain(TOOLS.iter().map(|tool| tool.name));
    let (mut errors, mut text, mut work) = (Vec::new(), String::new(), Vec::new());
    for link in names.map(|name| dir.join(name)) {
        match place(&link, &program) {
            LinkState::Ours => text += &format!("{} is there\n", link.display()),
            LinkState::Taken(what) => {
                errors.push(format!("{} is {what}, and stays", link.display()))
            }
            LinkState::Free => work.push((link, false)),
            LinkState::Old => work.push((link, true)),
        }
    }
    if !errors.is_empty() {
        errors.push("no link was made".to_owned());
        return Err(errors);
    }
    for (link, replace) in work {
        if replace {
            std::fs::remove_file(&link).map_err(|e| words(&link, e))?;
        }
        symlink(&target, &link).map_err(|e| words(&link, e))?;
        text += &format!("{} -> {}\n", link.display(), target.display());
    }
    Ok(text)
}

/// Target of a link: relative if the program lies beside it, so that both can be moved.
fn target(program: &Path, dir: &Path) -> PathBuf {
    let beside = dir.canonicalize().is_ok_and(|dir| program.parent() == Some(&dir));
    match program.file_name() {
        Some(name) if beside => name.into(),
        _ => program.to_owned(),
    }
}

fn place(link: &Path, program: &Path) -> LinkState {
    match std::fs::symlink_metadata(link) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => LinkState::Free,
        Err(e) => LinkState::Taken(format!("not to be seen ({})", io_error_text(&e))),
        Ok(found) if found.is_symlink() => {
            let points = std::fs::read_link(link).unwrap_or_default();
            if link.canonicalize().is_ok_and(|end| end == program) {
                LinkState::Ours
            } else if points.file_name() == program.file_name() {
                LinkState::Old
            } else {
                LinkState::Taken(format!("a link to {}", points.display()))
            }
        }
        Ok(found) if found.is_dir() => LinkState::Taken("a directory".to_owned()),
        Ok(_) => LinkState::Taken("a file that castanet did not make".to_owned()),
    }
}
