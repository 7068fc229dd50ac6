//! The log of `castanet run`: its forms, its levels, and the limit on messages of one cause.

use crate::program::{castanet, command, folder, run};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

/// Prints 100 lines that differ in a number, and ends.
const HUNDRED: &str =
    "InfiniteSource(LIMIT 100, STOP true) -> NumberPacket -> Print(p, 8) -> Discard;";
/// Lines of one cause that are written, one after another.
const MOST: u64 = 20;

/// Standard error of a run that ends by itself.
fn told(words: &[&str]) -> String {
    let words = [&["run", "-e", HUNDRED, "--no-control"], words].concat();
    let result = castanet(&words, b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    result.err
}

#[test]
fn without_a_choice_lines_are_plain_and_all_are_written() {
    let told = told(&[]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "castanet: running", "{told}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("p: ")).count(), 100, "{told}");
    assert_eq!(lines.len(), 101, "{told}");
}

#[test]
fn lines_of_text_have_time_and_level() {
    let told = told(&["--log", "text"]);
    for line in told.lines() {
        let mut words = line.split_whitespace();
        let time = words.next().unwrap();
        assert!(time.len() == 24 && time.contains('T') && time.ends_with('Z'), "{line}");
        assert_eq!(words.next(), Some("info"), "{line}");
    }
    assert!(told.lines().next().unwrap().ends_with(" info    castanet: running"), "{told}");
}

#[test]
fn json_has_an_object_a_line_and_counts_what_it_leaves_out() {
    let told = told(&["--log", "json"]);
    let records: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of_packets = |it: &&Value| it["message"].as_str().unwrap().starts_with("p: ");
    let written: Vec<&Value> = records.iter().filter(of_packets).collect();
    let suppressed: u64 = records.iter().filter_map(|it| it["suppressed"].as_u64()).sum();
    assert_eq!((written.len() as u64, suppressed), (MOST, 100 - MOST), "{told}");
    let cause = &written[0]["cause"];
    assert!(written.iter().all(|it| it["cause"] == *cause && it["level"] == "info"), "{told}");
    let summary = records.iter().find(|it| it["suppressed"].is_u64()).unwrap();
    assert_eq!(summary["cause"], *cause);
    assert!(summary["message"].as_str().unwrap().contains("80 more like this"), "{summary}");
}

#[test]
fn lines_for_the_journal_have_priorities_and_levels_leave_lines_out() {
    let journal = told(&["--log", "journal"]);
    assert!(journal.starts_with("<6>castanet: running\n<6>p: "), "{journal}");
    assert_eq!(told(&["--log", "journal", "--log-level", "warning"]), "");
    assert_eq!(told(&["--log-level", "error"]), "");
    // Errors say their level.
    let words = ["run", "-e", "Idle -> Bluh", "--log", "journal", "--log-level", "error"];
    let result = castanet(&words, b"");
    assert_eq!(result.status, Some(1));
    assert!(result.err.starts_with("<3>error: undeclared element 'Bluh'"), "{}", result.err);
    assert!(result.err.lines().all(|line| line.starts_with("<3>")), "{}", result.err);
    let result = castanet(&["run", "-e", "Idle -> Discard", "--log", "pdf"], b"");
    assert_eq!(result.status, Some(2));
    assert!(result.err.contains("possible values: text, json, journal"), "{}", result.err);
}

#[test]
fn a_stream_to_the_journal_is_recognized() {
    let path = folder("log").join(format!("journal-{}", std::process::id()));
    for (is_journal, begin) in [(true, "<6>castanet: running\n"), (false, "castanet: running\n")] {
        let file = std::fs::File::create(&path).unwrap();
        let it = file.metadata().unwrap();
        let stream = format!("{}:{}", it.dev(), it.ino() + u64::from(!is_journal));
        let mut child = command()
            .args(["run", "-e", HUNDRED, "--no-control"])
            .env("JOURNAL_STREAM", stream)
            .stderr(Stdio::from(file))
            .spawn()
            .unwrap();
        assert!(child.wait().unwrap().success());
        let told = std::fs::read_to_string(&path).unwrap();
        assert!(told.starts_with(begin), "{told}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn lines_of_click_are_as_ever() {
    let mut click = std::process::Command::new(crate::program::link("click"));
    let result = run(click.args(["-e", HUNDRED]), b"");
    assert_eq!(result.status, Some(0));
    assert_eq!(result.err.lines().filter(|line| line.starts_with("p: ")).count(), 100);
}
