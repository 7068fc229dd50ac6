//! Outputs that cannot be written: full disks, missing folders, closed pipes.

use crate::program::{castanet, command, folder};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
        let result = command().args(*words).stdout(full).output().unwrap();
        let err = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(1), "{words:?}\n{err}");
        assert!(err.ends_with("castanet: cannot write: No space left on device\n"), "{err}");
    }
}

#[test]
fn script_output_to_a_full_disk_is_lost_with_a_message() {
    let script = "Script(print one, print two, stop)";
    let script = script.replace("one", "\"one\"").replace("two", "\"two\"");
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let result = command().args(["run", "-q", "-e", &script]).stdout(full()).output().unwrap();
    let err = String::from_utf8_lossy(&result.stderr);
    assert_eq!(err, "cannot write: No space left on device\n");
    assert_eq!(result.status.code(), Some(1));
}

/// A packet, a file that takes nothing, and all that is said.
#[test]
fn write_errors_of_elements_are_reported_once_in_the_systems_words() {
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
        format!("{source} -> MarkIPHeader -> IPPrint(OUTFILE {folder}) -> Discard"),
        format!("{source} -> ARPPrint(OUTFILE {folder}) -> Discard"),
    ] {
        let result = castanet(&["run", "-e", &element], b"");
        assert_eq!(result.status, Some(1), "{element}");
        let line = result.err.lines().next().unwrap();
        // In Rust's words or in the system's, but without its number.
        let line = line.to_lowercase();
        assert!(line.ends_with(&format!("{folder}: is a directory").to_lowercase()), "{line}");
    }
}

#[test]
fn an_address_in_use_is_an_error_with_a_remedy() {
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
            let result = castanet(&["run", "-e", &format!("{class}({place})")], b"");
            assert_eq!(result.status, Some(1));
            assert!(result.err.contains("Address already in use"), "{}", result.err);
            assert!(result.err.contains(&format!("help: {want}")), "{}", result.err);
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
        let result = command().args(words).output().unwrap();
        let err = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(1), "{err}");
        assert_eq!(err, format!("castanet: cannot write {path}: No such file or directory\n"));
    }
    let result = command().args(["man", "/dev/null/man"]).output().unwrap();
    let err = String::from_utf8_lossy(&result.stderr);
    assert_eq!(result.status.code(), Some(1));
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
        let result = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(0), "{words:?}\n{err}");
        assert!(!err.contains("panicked") && !err.contains("cannot write"), "{words:?}\n{err}");
    }
}

#[test]
fn a_closed_standard_error_stops_no_router() {
    for words in [&["check", "no-such.click"][..], &["frobnicate"], &["element", "Countre"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let result = command().args(words).stderr(full).output().unwrap();
        assert!(matches!(result.status.code(), Some(1 | 2)), "{words:?}: {}", result.status);
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

/// Tells a process to end.
fn terminate(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

/// Waits for the end, not for ever.
fn ended(child: &mut Child) -> Option<i32> {
    for _ in 0..200 {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    panic!("it does not end");
}

fn run(config: &str) -> Child {
    let mut command = command();
    command.args(["run", "-e", config]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn no_worker_waits_for_the_reader_of_messages() {
    const PACKETS: usize = 60_000;
    let config = format!(
        "InfiniteSource(LIMIT {PACKETS}, LENGTH 100) -> Print(x, 100) -> c :: Counter -> Discard;
         Script(label again, wait 10ms, goto again $(lt $(c.count) {PACKETS}), print \"done\")"
    );
    let mut child = run(&config);
    let mut out = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut out).unwrap();
    assert_eq!(out, "done\n");
    // Once somebody reads, what waited comes, and how much did not.
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let (mut came, mut line) = (0, String::new());
    let dropped: usize = loop {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0);
        came += usize::from(line.starts_with("x:"));
        if let Some((_, output)) = line.split_once("standard error was blocked; ") {
            break output.split_whitespace().next().unwrap().parse().unwrap();
        }
    };
    assert_eq!(came + dropped, PACKETS);
    assert!(dropped > 0);
    terminate(&child);
    assert_eq!(ended(&mut child), Some(0));
}

#[test]
fn a_blocked_standard_error_does_not_delay_the_exit() {
    for config in [
        "InfiniteSource -> Print(x) -> Discard",
        "Script(label again, read nobody.there, wait 1us, goto again)",
    ] {
        let mut child = run(config);
        // Time to fill the pipe, which nothing reports; ended earlier, the program ends all the same.
        std::thread::sleep(Duration::from_millis(500));
        terminate(&child);
        assert!(ended(&mut child).is_some(), "{config}");
    }
}

#[test]
fn a_blocked_standard_output_does_not_delay_the_exit() {
    for config in [
        "InfiniteSource -> ToDump(-)",
        "InfiniteSource -> ToIPSummaryDump(-)",
        "Script(label again, print \"some words and more\", wait 10us, goto again)",
    ] {
        let mut child = run(config);
        // Time to fill the pipe, which nothing reports; ended earlier, the program ends all the same.
        std::thread::sleep(Duration::from_millis(500));
        terminate(&child);
        assert!(ended(&mut child).is_some(), "{config}");
    }
}
