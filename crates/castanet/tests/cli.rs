//! What the two command lines print and how they end: needs neither root nor devices.
#![allow(clippy::unwrap_used)] // In a test it is an assertion.

mod common;

use common::{Ran, castanet, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A graph that ends by itself.
const FIVE: &str = "InfiniteSource(LIMIT 5, LENGTH 60, STOP true) -> c :: Counter -> Discard";

/// A file of the repository's `conf` directory.
fn conf(name: &str) -> String {
    format!("{}/../../conf/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A directory of its own, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("castanet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the program through a link named `click`.
fn click(scratch: &Scratch, words: &[&str], input: &str) -> Ran {
    let link = scratch.path("click");
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_castanet"), &link).unwrap();
    }
    run(Command::new(link).args(words), input.as_bytes())
}

#[test]
fn a_run_ends_with_0_and_prints_handlers() {
    let ran = castanet(&["run", "-e", FIVE, "--handler", "c.count"], b"");
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "5\n"), "{}", ran.err);
    let both = ["--handler", "c.count", "--handler", "c.byte_count"];
    let ran = castanet(&[&["run", "-"], &both[..]].concat(), FIVE.as_bytes());
    assert_eq!(ran.out, "c.count:\n5\n\nc.byte_count:\n300\n\n");
    let ran = castanet(&["run", "-e", FIVE, "--handler", "d.count"], b"");
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains('d'), "{}", ran.err);
}

#[test]
fn faults_have_their_exit_status() {
    for (words, status) in [
        (&["run", "-e", "Idle -> Discrad"][..], 1),
        (&["run", "/no/such/file"], 1),
        (&["run"], 2),
        (&["run", "--no-such-option"], 2),
        (&["frobnicate"], 2),
        (&["element", "NoSuchClass"], 1),
        (&["--version"], 0),
        (&["run", "--help"], 0),
    ] {
        let ran = castanet(words, b"");
        assert_eq!(ran.status, Some(status), "{words:?}: {}{}", ran.out, ran.err);
        assert_eq!(ran.out.is_empty(), status != 0, "{words:?}: {}", ran.out);
    }
}

#[test]
fn check_collects_everything_that_is_wrong() {
    let text = "Idle -> Strip(fourteen) -> Queue(-1) -> Discard;\nIdle -> Paint(256) -> Discard;";
    let ran = castanet(&["check", "-e", text], b"");
    assert_eq!(ran.status, Some(1));
    for part in ["fourteen", "-1", "256", "config:1:", "config:2:"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let ran = castanet(&["check", "--json", "-e", "Idle -> Discrad"], b"");
    assert!(ran.out.contains(r#""help": "did you mean 'Discard'?""#), "{}", ran.out);
    let ran = castanet(&["check", &conf("router.click")], b"");
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn the_router_is_explained_drawn_and_printed() {
    let scratch = Scratch::new("graph");
    let router = conf("router.click");
    let ran = castanet(&["explain", &router], b"");
    for step in [
        "1. parsed and expanded",
        "2. ports resolved",
        "3. what each edge carries",
        "4. devices, queues and workers assigned",
        "5. thread vectors",
    ] {
        assert!(ran.out.contains(step), "{step}: {}", ran.out);
    }
    let path = scratch.path("router.svg");
    let ran = castanet(&["graph", &router, "-o", path.to_str().unwrap()], b"");
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    let drawn = fs::read_to_string(path).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
    assert_eq!(drawn.matches(">DecIPTTL<").count(), 3);
    // What is printed is the same graph: it prints as itself again.
    for command in ["flatten", "pretty"] {
        let once = castanet(&[command, &router], b"").out;
        assert!(once.contains("StaticIPLookup"), "{once}");
        assert_eq!(castanet(&[command, "-"], once.as_bytes()).out, once, "{command}");
    }
}

#[test]
fn the_manual_page_is_the_test() {
    let ran = castanet(&["element", "DecIPTTL"], b"");
    for part in ["# DecIPTTL", "```click", "< expired", "`MULTICAST`", "`drops.not_ip`"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let list = castanet(&["elements"], b"").out;
    assert!(list.contains("DecIPTTL") && list.contains("FromDevice"), "{list}");
}

#[test]
fn click_prints_what_click_prints() {
    let scratch = Scratch::new("click");
    let ran = click(&scratch, &["-e", FIVE, "-h", "c.count"], "");
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (Some(0), "5\n", ""));
    // Options in one cluster, the configuration on standard input.
    let ran = click(&scratch, &["-qhc.count"], FIVE);
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "0\n"), "{}", ran.err);
    let ran =
        click(&scratch, &["-e", "Idle -> Queue(a) -> Discard;\nIdle -> Strip -> Discard"], "");
    assert_eq!(ran.status, Some(1));
    assert_eq!(
        ran.err,
        "config:1: While configuring 'Queue@2 :: Queue':\n  CAPACITY: invalid number\n\
         config:2: While configuring 'Strip@5 :: Strip':\n  LENGTH: required argument missing\n\
         Router could not be initialized!\n"
    );
    let ran = click(&scratch, &["-"], "Idle -> ->");
    assert!(ran.err.starts_with("<stdin>:1: syntax error"), "{}", ran.err);
    assert!(!ran.err.contains("could not be initialized"), "{}", ran.err);
    let ran = click(&scratch, &["-e", "require(package no_such); Idle -> Discard"], "");
    assert_eq!(ran.err, "config:1: requirement 'no_such' not available\n");
}

#[test]
fn simulated_time_is_the_same_each_time() {
    let scratch = Scratch::new("simtime");
    let text = "TimedSource(0.25) -> c :: Counter -> Discard; Script(wait 2s, print $(now), stop)";
    let once = click(&scratch, &["--simtime", "-e", text, "-h", "c.count"], "");
    assert!(once.out.starts_with("1000000002"), "{}{}", once.out, once.err);
    let again = click(&scratch, &["--simtime", "-e", text, "-h", "c.count"], "");
    assert_eq!((once.status, once.out), (Some(0), again.out));
}

#[test]
fn man_pages_and_completions_are_written() {
    let scratch = Scratch::new("man");
    let ran = castanet(&["man", scratch.0.to_str().unwrap()], b"");
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert!(Path::exists(&scratch.path("castanet-run.1")));
    let ran = castanet(&["completions", "bash"], b"");
    assert!(ran.out.contains("castanet"), "{}", ran.out);
}
