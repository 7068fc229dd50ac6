//! `castanet bench router` from outside: its records, and those of built programs. A script stands in
//! for the compiler; `tests/built` has a program that is compiled.

use crate::build::Place;
use crate::program::{RunResult, castanet, command, run, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SHORT: [&str; 10] =
    ["bench", "router", "--frames", "512", "-j", "1", "--rounds", "2", "--milliseconds", "3"];

/// The case and the program of each record, all of which have figures.
fn rows(json: &str) -> Vec<(String, String)> {
    let records: Vec<Value> = serde_json::from_str(json).unwrap();
    for record in &records {
        assert_eq!((&record["frames"], &record["workers"]), (&512.into(), &1.into()), "{record}");
        for key in ["ns_per_packet", "cycles_per_packet", "mpps", "limit_ns_per_packet", "ratio"] {
            assert!(record[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {record}");
        }
    }
    let word = |record: &Value, key| record[key].as_str().unwrap().to_owned();
    records.iter().map(|record| (word(record, "case"), word(record, "program"))).collect()
}

/// The same rows in words.
fn named<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    rows.into_iter().map(|(case, program)| (case.to_owned(), program.to_owned())).collect()
}

/// A place where the compiler makes this script.
fn place(name: &str, program: &str) -> Place {
    let more = format!(
        "cat > \"$2/release/castanet-built\" <<'END'\n#!/bin/sh\n{program}\nEND\n\
         chmod +x \"$2/release/castanet-built\""
    );
    Place::new(name, "1.95.0", &more)
}

/// The benchmark with built programs.
fn built(place: &Place, words: &[&str]) -> Command {
    let mut bench = place.program(command().get_program());
    bench.args(SHORT).arg("--built").args(words);
    bench
}

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Folders that a process has left behind.
fn left_behind(id: u32) -> usize {
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("cst-{id}-"))).count()
}

#[test]
fn each_case_has_a_record() {
    let RunResult { status, out, err } = castanet(&[&SHORT[..], &["--json"]].concat(), b"");
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let cases = ["forward", "router", "router-4-ways"];
    assert_eq!(rows(&out), named(cases.map(|case| (case, "plain"))));
}

#[test]
fn built_programs_have_records_behind_those_of_this_one() {
    // The script is castanet itself: its words and answers are those of a built program.
    let place = place("bench", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_castanet")));
    let child = start(&mut built(&place, &["--case", "router,router-4-ways", "--json"]));
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{err}");
    let [one, four] = ["router", "router-4-ways"].map(|case| [(case, "plain"), (case, "built")]);
    assert_eq!(rows(&String::from_utf8_lossy(&output.stdout)), named([one, four].concat()));
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 4, "{err}");
    assert_eq!(lines[0], "castanet: building router (1 of 2), which may take two minutes", "{err}");
    assert!(lines[1].starts_with("castanet: router: built in ") && lines[1].ends_with(" s"));
    assert_eq!(lines[2], "castanet: building router-4-ways (2 of 2)");
    assert_eq!(left_behind(id), 0);
    // In the table.
    let RunResult { status, out, err } = run(&mut built(&place, &["--case", "router"]), b"");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((status, lines.len()), (Some(0), 3), "{out}{err}");
    let firsts = lines.iter().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
    let expected = [["case", "program"], ["router", "plain"], ["router", "built"]];
    assert!(firsts.eq(expected.map(|words| words.to_vec())), "{out}");
}

#[test]
fn what_cannot_be_built_or_does_not_answer_is_named() {
    let broken = place("bench-broken", "echo broken >&2; exit 3");
    let bench = |place: &Place| {
        let words = ["--case", "router", "--json"];
        let RunResult { status, out, err } = run(&mut built(place, &words), b"");
        assert_eq!((status, rows(&out)), (Some(0), named([("router", "plain")])), "{err}");
        err.lines().last().unwrap().to_owned()
    };
    let why = "castanet: without router (built): ";
    assert_eq!(
        bench(&broken),
        format!("{why}the built program has ended (exit status: 3): broken")
    );
    std::fs::remove_file(broken.path("bin/cargo")).unwrap();
    let line = bench(&broken);
    assert!(line.starts_with(&format!("{why}cannot run /")), "{line}");
    assert!(line.contains("bin/cargo: install Rust from https://rustup.rs"), "{line}");
    let wrong = run(&mut built(&broken, &["--no-fuse"]), b"");
    assert_eq!((wrong.status, wrong.out.as_str()), (Some(2), ""), "{}", wrong.err);
}

#[test]
fn a_signal_ends_the_compiler_or_the_built_program_and_leaves_nothing() {
    let pid_in = |path: &Path| -> Option<i32> {
        std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok())
    };
    for (name, status) in [("bench-build", Some(130)), ("bench-run", None)] {
        let waits = "echo $$ > \"$PID\"; exec sleep 600";
        let place = match status {
            Some(_) => Place::new(name, "1.95.0", waits),
            None => place(name, waits),
        };
        let pid = place.path("pid");
        let child = start(built(&place, &["--case", "router"]).env("PID", &pid));
        let id = child.id();
        wait_until("it starts", || pid_in(&pid).is_some());
        // Not SIGINT, which is ignored where a shell has started this in the background.
        kill(Pid::from_raw(id.cast_signed()), Signal::SIGTERM).unwrap();
        assert_eq!(child.wait_with_output().unwrap().status.code(), status, "{name}");
        let other = pid_in(&pid).unwrap();
        wait_until("it has ended", || !Path::new(&format!("/proc/{other}")).exists());
        assert_eq!(left_behind(id), 0, "{name}");
    }
}
