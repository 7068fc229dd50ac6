//! Outputs that take nothing: full disks, folders that are not there, readers that went away.

use crate::program::{castanet, command, folder};
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
fn what_scripts_print_onto_a_full_disk_is_lost_but_not_in_silence() {
    let script = "Script(print one, print two, stop)";
    let script = script.replace("one", "\"one\"").replace("two", "\"two\"");
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = command().args(["run", "-q", "-e", &script]).stdout(full()).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(err, "cannot write: No space left on device\n");
    assert_eq!(ran.status.code(), Some(1));
}

/// A packet, a file that takes nothing, and all that is said.
#[test]
fn files_of_elements_that_take_nothing_are_told_once_in_the_systems_words() {
    let source =
        "InfiniteSource(DATA \\<45000014000000004000000001000001 02000002>, LIMIT 9, STOP true)";
    let why = "No space left on device";
    for (sink, want) in [
        ("ToDump(/dev/full)", format!("ToDump(/dev/full): {why}\n")),
        ("ToIPSummaryDump(/dev/full)", format!("ToIPSummaryDump(/dev/full): {why}\n")),
        ("IPPrint(OUTFILE /dev/full) -> Discard", format!("OUTFILE: /dev/full: {why}\n")),
        ("ARPPrint(OUTFILE /dev/full) -> Discard", format!("OUTFILE: /dev/full: {why}\n")),
    ] {
        let config = format!("{source} -> MarkIPHeader -> {sink}");
        assert_eq!(castanet(&["run", "-q", "-e", &config], b"").err, want, "{sink}");
    }
    let folder = folder("a-folder");
    let folder = folder.to_str().unwrap();
    for element in [
        format!("FromDump({folder}) -> Discard"),
        format!("FromIPSummaryDump({folder}) -> Discard"),
        format!("FromTcpdump({folder}) -> Discard"),
        format!("{source} -> ToDump({folder})"),
        format!("{source} -> ToIPSummaryDump({folder})"),
        format!("{source} -> IPPrint(OUTFILE {folder}) -> Discard"),
        format!("{source} -> ARPPrint(OUTFILE {folder}) -> Discard"),
    ] {
        let ran = castanet(&["run", "-e", &element], b"");
        assert_eq!(ran.status, Some(1), "{element}");
        let line = ran.err.lines().next().unwrap();
        // In Rust's words or in the system's, but without its number.
        let line = line.to_lowercase();
        assert!(line.ends_with(&format!("{folder}: is a directory").to_lowercase()), "{line}");
    }
}

#[test]
fn a_place_that_is_taken_says_by_whom_and_what_would_be_right() {
    let file = folder("taken").join("file");
    std::fs::write(&file, "mine").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = "another program listens there";
    for (place, want) in [
        (format!("UNIX, {}", file.display()), "a file that is no socket has this name".to_owned()),
        (format!("TCP, {port}"), format!("{other}; `{port}+` is the next free port")),
    ] {
        for class in ["ControlSocket", "ChatterSocket"] {
            let ran = castanet(&["run", "-e", &format!("{class}({place})")], b"");
            assert_eq!(ran.status, Some(1));
            assert!(ran.err.contains("Address already in use"), "{}", ran.err);
            assert!(ran.err.contains(&format!("help: {want}")), "{}", ran.err);
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
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
