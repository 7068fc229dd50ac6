//! `castanet install-links`, man pages and completions for all names.

use super::EVERY;
use crate::program::{castanet, folder, run};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Names of the links, in the order in which they are made.
fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("click").chain(EVERY)
}

fn empty(name: &str) -> std::path::PathBuf {
    let dir = folder("links").join(format!("{}-{name}", std::process::id()));
    _ = fs::remove_dir_all(&dir);
    dir
}

fn held(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn links_are_made_once() {
    let dir = empty("once").join("new/bin");
    let path = dir.to_str().unwrap();
    let result = castanet(&["install-links", path], b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_castanet")).unwrap();
    let line = |name: &str| format!("{path}/{name} -> {}\n", program.display());
    assert_eq!(result.out, names().map(line).collect::<String>());
    assert_eq!(held(&dir), names().map(str::to_owned).collect());
    let again = castanet(&["install-links", path], b"");
    assert_eq!((again.status, again.err.as_str()), (Some(0), ""));
    let line = |name| format!("{path}/{name} is there\n");
    assert_eq!(again.out, names().map(line).collect::<String>());
    for name in names() {
        let result = run(Command::new(dir.join(name)).arg("--version"), b"");
        assert!(result.out.starts_with(&format!("{name} (Click)")), "{}", result.out);
    }
}

#[test]
fn links_to_a_program_that_moved_are_renewed() {
    let dir = empty("moved");
    fs::create_dir_all(&dir).unwrap();
    symlink("/nowhere/castanet", dir.join("click-check")).unwrap();
    let result = castanet(&["install-links", dir.to_str().unwrap()], b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_castanet")).unwrap();
    assert_eq!(fs::canonicalize(dir.join("click-check")).unwrap(), program);
}

#[test]
fn links_beside_the_program_have_no_path() {
    let dir = empty("beside");
    fs::create_dir_all(&dir).unwrap();
    // A copy, while another test forks, would be open for writing in its child, and busy.
    fs::hard_link(env!("CARGO_BIN_EXE_castanet"), dir.join("castanet")).unwrap();
    let mut command = Command::new(dir.join("castanet"));
    let result = run(command.args(["install-links", dir.to_str().unwrap()]), b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    assert_eq!(fs::read_link(dir.join("click")).unwrap(), Path::new("castanet"));
}

#[test]
fn existing_files_stay_and_no_link_is_made() {
    let dir = empty("taken");
    fs::create_dir_all(dir.join("click-check")).unwrap();
    fs::write(dir.join("click"), "theirs").unwrap();
    symlink("/bin/true", dir.join("click-align")).unwrap();
    let path = dir.to_str().unwrap();
    let result = castanet(&["install-links", path], b"");
    assert_eq!((result.status, result.out.as_str()), (Some(1), ""));
    assert_eq!(
        result.err,
        format!(
            "castanet: {path}/click is a file that castanet did not make, and stays\n\
             castanet: {path}/click-align is a link to /bin/true, and stays\n\
             castanet: {path}/click-check is a directory, and stays\n\
             castanet: no link was made\n"
        )
    );
    assert_eq!(held(&dir), ["click", "click-align", "click-check"].map(str::to_owned).into());
    assert_eq!(fs::read_to_string(dir.join("click")).unwrap(), "theirs");
    let file = dir.join("click");
    let result = castanet(&["install-links", file.to_str().unwrap()], b"");
    assert_eq!(
        (result.status, result.err.contains(file.to_str().unwrap())),
        (Some(1), true),
        "{}",
        result.err
    );
}

#[test]
fn every_name_has_a_man_page_and_completions() {
    let dir = empty("man");
    let result = castanet(&["man", dir.to_str().unwrap()], b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    for name in names().chain(["castanet", "castanet-install-links"]) {
        let page = fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH DESCRIPTION"), "{name}");
    }
    let page = fs::read_to_string(dir.join("click-xform.1")).unwrap();
    assert!(page.contains("PATTERNFILE") && page.contains("\\-\\-reverse"), "{page}");
    for name in names().chain(["castanet"]) {
        let result = castanet(&["completions", "bash", name], b"");
        assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
        assert!(result.out.contains(name) && result.out.contains("--"), "{name}");
    }
    let result = castanet(&["completions", "bash", "clack"], b"");
    assert_eq!(
        (result.status, result.err.as_str()),
        (Some(2), "castanet: it has no name 'clack'\n")
    );
}
