//! Outputs that take nothing: full disks, folders that are not there, readers that went away.

use crate::program::{command, folder};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Commands that write to standard output.
const WRITERS: &[&[&str]] = &[
    &["--help"],
    &["elements"],
    &["elements", "--json"],
    &["element", "Counter"],
    &["explain", "conf/router.click"],
    &["graph", "conf/router.click"],
    &["flatten", "conf/router.click"],
    &["pretty", "conf/router.click"],
    &["check", "conf/router.click"],
    &["completions", "bash"],
    &["run", "-e", "Idle -> c :: Counter -> Discard", "--simtime", "--handler", "c.count"],
];

#[test]
fn a_full_disk_is_an_error() {
    for words in WRITERS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = command().args(*words).stdout(full).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{words:?}\n{err}");
        assert!(err.ends_with("castanet: cannot write: No space left on device\n"), "{err}");
    }
}

#[test]
fn a_path_that_cannot_be_written_is_an_error() {
    let missing = folder("unwritable").join("no/such/folder/file");
    let path = missing.to_str().unwrap();
    for words in [
        ["graph", "conf/router.click", "-o", path],
        ["flatten", "conf/router.click", "-o", path],
        ["pretty", "conf/router.click", "-o", path],
    ] {
        let ran = command().args(words).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{err}");
        assert_eq!(err, format!("castanet: cannot write {path}: No such file or directory\n"));
    }
    let ran = command().args(["man", "/dev/null/man"]).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1));
    assert_eq!(err, "castanet: cannot write man pages into /dev/null/man: Not a directory\n");
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    for words in WRITERS {
        let mut child = command()
            .args(*words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{words:?}\n{err}");
        assert!(!err.contains("panicked") && !err.contains("cannot write"), "{words:?}\n{err}");
    }
}

#[test]
fn nobody_hears_complaints_and_all_goes_on() {
    for words in [&["check", "no-such.click"][..], &["frobnicate"], &["element", "Countre"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = command().args(words).stderr(full).output().unwrap();
        assert!(matches!(ran.status.code(), Some(1 | 2)), "{words:?}: {}", ran.status);
    }
}

#[test]
fn the_first_line_is_enough() {
    let mut child = command().arg("elements").stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "source\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
