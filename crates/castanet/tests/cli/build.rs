//! `castanet build` up to the compiler, for which a script stands in.

use crate::program::{RunResult, castanet, command, folder, run, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

const TEXT: &str = "InfiniteSource(LIMIT 5, STOP true) -> Paint(1) -> Strip(14) -> c :: Counter -> \
                    Discard";

/// Answers as cargo and rustc do. Puts the generated source where the program is expected.
const CARGO: &str = r#"#!/bin/sh
case "$1" in
    -vV) echo "release: VERSION"; echo "host: none"; exit;;
    --print) [ "$2" = target-cpus ] && echo "    native  - this one" && echo "    generic" && echo "    old"; echo none; exit;;
    --version) echo none; exit;;
    -C) echo "target_feature=\"$2\""; exit;;
    vendor) mkdir -p vendor; exit;;
esac
echo "$@" >> "$0.calls"
while [ "$1" != --target-dir ]; do shift; done
mkdir -p "$2/release"
cp "$CASTANET_PROGRAM" "$2/release/castanet-built"
"#;

/// A folder in which a program is built, with a compiler.
pub(crate) struct Place(PathBuf);

impl Place {
    /// With a compiler of this version, which does `more` before it ends.
    pub(crate) fn new(name: &str, version: &str, more: &str) -> Place {
        let place = Place(folder("build").join(format!("{name}-{}", std::process::id())));
        _ = std::fs::remove_dir_all(&place.0);
        std::fs::create_dir_all(place.path("bin")).unwrap();
        for program in ["cargo", "rustc"] {
            let path = place.path("bin").join(program);
            std::fs::write(&path, CARGO.replace("VERSION", version) + more).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(place.path("five.click"), TEXT).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.program(command().get_program());
        command.arg("build").args(words);
        command
    }

    /// Runs a program here.
    pub(crate) fn run(&self, program: PathBuf, words: &[&str], input: &str) -> RunResult {
        run(self.program(program).args(words), input.as_bytes())
    }

    /// A command here.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0);
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command.env("CARGO", self.path("bin/cargo"));
        command.env("CARGO_TARGET_DIR", self.path("target"));
        command.env_remove("RUSTC").env_remove("CASTANET_SOURCE");
        command
    }

    fn build(&self, words: &[&str]) -> RunResult {
        run(&mut self.command(words), b"")
    }

    /// Standard error of a build that fails with this status and leaves no file.
    fn complaint(&self, status: i32, words: &[&str]) -> String {
        let before = self.files();
        let result = self.build(words);
        assert_eq!((result.status, result.out.as_str()), (Some(status), ""), "{}", result.err);
        assert_eq!(self.files(), before);
        result.err
    }

    /// The files beside the configuration.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|it| it.to_string_lossy().into_owned()).collect();
        names.retain(|name| name != "cache" && name != "target");
        names.sort();
        names
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn calls(&self) -> usize {
        std::fs::read_to_string(self.path("bin/cargo.calls")).unwrap_or_default().lines().count()
    }

    fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn output(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_program_is_built_once_and_then_copied() {
    let place = Place::new("once", "1.95.0", "");
    let RunResult { status, out, err } = place.build(&["five.click"]);
    assert_eq!((status, out.as_str()), (Some(0), ""), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines[0], "castanet: 1 chain of 2 elements to compile", "{err}");
    assert!(
        lines.contains(&"castanet: unchanged: Counter, Discard (takes packets in batches)"),
        "{err}"
    );
    assert!(lines.last().unwrap().starts_with("castanet: five: built in "), "{err}");
    let program = place.text("five");
    assert!(program.contains("five.click"), "{program}");
    let again = place.build(&["five.click", "-o", "again", "--json"]);
    assert_eq!(again.status, Some(0), "{}", again.err);
    let record: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(record["cached"], true);
    assert_eq!(record["output"], "again");
    assert_eq!(record["chains"][0].as_array().unwrap().len(), 2, "{record}");
    assert_eq!(record["unchanged"]["InfiniteSource"], "is asked for packets", "{record}");
    assert_eq!((place.text("again"), place.calls()), (program, 1));
    // Another value of a variable, another text, another profile: another program.
    std::fs::write(place.path("n.click"), TEXT.replace('5', "$n")).unwrap();
    for words in [
        &["n.click", "n=5"][..],
        &["n.click", "n=6", "--output", "n6", "--quiet"],
        &["-e", TEXT, "-o", "expression", "-q"],
    ] {
        let calls = place.calls();
        let result = place.build(words);
        assert_eq!((result.status, place.calls()), (Some(0), calls + 1), "{}", result.err);
        assert!(words.len() < 3 || result.err.is_empty(), "{}", result.err);
    }
    assert!(place.text("n").contains("(\"n\", \"5\"),"), "{}", place.text("n"));
    // And another processor.
    let old = place.build(&["five.click", "-o", "old", "--target-cpu", "old", "--json"]);
    let record: Value = serde_json::from_str(&old.out).unwrap();
    assert_eq!((&record["cached"], &record["target_cpu"]), (&false.into(), &"old".into()));
    let call = place.text("bin/cargo.calls");
    assert!(call.lines().last().unwrap().contains(" -C target-cpu=old"), "{call}");
    let calls = place.calls();
    let err = place.complaint(2, &["five.click", "-o", "older", "--target-cpu", "older"]);
    assert!(err.contains("`older` is no processor that "), "{err}");
    assert_eq!(place.calls(), calls);
    assert!(!place.files().iter().any(|name| name.ends_with(".part")), "{:?}", place.files());
}

#[test]
fn the_source_can_be_seen() {
    let place = Place::new("seen", "1.95.0", "");
    let RunResult { status, out, err } = place.build(&["--expression", TEXT, "--print"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let chain = "castanet::fuse!(packet castanet_elements::annotate::paint::Paint = Code0, \
                 packet castanet_elements::edit::strip::Strip = Code1),";
    assert!(out.contains(chain), "{out}");
    assert!(out.contains("|element, local, packet| Element::strip(packet, 14));"), "{out}");
    assert!(out.contains(r#"("config", b"InfiniteSource(LIMIT 5"#), "{out}");
    let kept = place.build(&["five.click", "--keep", "kept.rs", "--profile", "release"]);
    assert_eq!((kept.status, place.text("kept.rs")), (Some(0), place.text("five")), "{}", kept.err);
}

#[test]
fn a_wrong_configuration_is_reported_as_by_check() {
    let place = Place::new("wrong", "1.95.0", "");
    for text in ["Idle -> Qeue -> Discard", "Idle -> Strip(fourteen) -> Discard", "Idle ->"] {
        let checked = castanet(&["check", "-e", text], b"");
        assert_eq!(place.complaint(1, &["-e", text, "-o", "wrong"]), checked.err);
    }
    assert_eq!(place.calls(), 0);
}

#[test]
fn a_machine_without_a_toolchain_says_where_to_get_one() {
    let place = Place::new("none", "1.89.0", "");
    let err = place.complaint(3, &["five.click"]);
    assert!(err.contains("is of version 1.89.0, which is too old: Castanet needs 1.90"), "{err}");
    std::fs::remove_file(place.path("bin/cargo")).unwrap();
    let err = place.complaint(3, &["five.click"]);
    assert!(err.contains("bin/cargo: install Rust from https://rustup.rs"), "{err}");
}

#[test]
fn a_machine_without_cargo_or_a_place_for_the_cache_is_told_so() {
    let place = Place::new("bare", "1.95.0", "");
    let bare = || {
        let mut build = place.command(&["five.click"]);
        build.env_remove("CARGO").env("PATH", place.path("no")).env("HOME", place.path("home"));
        build
    };
    let result = run(&mut bare(), b"");
    let advice = format!(
        "castanet: cannot run cargo nor {}: install Rust from https://rustup.rs, or set CARGO to the path \
         of cargo\n",
        place.path("home/.cargo/bin/cargo").display()
    );
    assert_eq!((result.status, result.err), (Some(3), advice));
    // That of rustup is found without a search path, too.
    std::fs::create_dir_all(place.path("home/.cargo")).unwrap();
    std::fs::rename(place.path("bin"), place.path("home/.cargo/bin")).unwrap();
    let result = run(bare().env("PATH", "/usr/bin:/bin"), b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    let mut build = place.command(&["five.click"]);
    build.env("CARGO", place.path("home/.cargo/bin/cargo"));
    let result = run(build.env_remove("HOME").env_remove("XDG_CACHE_HOME"), b"");
    let message = "castanet: no folder for the cache: set HOME or XDG_CACHE_HOME\n";
    assert!(result.status == Some(1) && result.err.ends_with(message), "{}", result.err);
}

#[test]
fn classes_that_cannot_be_compiled_stay_as_they_are() {
    let place = Place::new("unchanged", "1.95.0", "");
    let text =
        "Idle -> c :: Counter -> q :: Queue -> Unqueue -> Counter -> Discard; Script(wait 1)";
    let result = place.build(&["-e", text, "-o", "same"]);
    assert_eq!(result.status, Some(0), "{}", result.err);
    let said = "castanet: no chains to compile\n\
                castanet: unchanged: Script (has no packets)\n\
                castanet: unchanged: Unqueue (is asked for packets)\n\
                castanet: unchanged: Queue (keeps packets)\n\
                castanet: unchanged: Counter, Discard, Idle (takes packets in batches)\n";
    assert!(result.err.starts_with(said), "{}", result.err);
    assert!(!place.text("same").contains("fuse!("), "{}", place.text("same"));
}

#[test]
fn sources_must_be_those_of_the_program() {
    let place = Place::new("sources", "1.95.0", "");
    let err = place.complaint(3, &["five.click", "--source", "/no/such"]);
    assert_eq!(err, "castanet: /no/such: there is no such folder\n");
    let mut command = place.command(&["five.click"]);
    let err = run(command.env("CASTANET_SOURCE", place.path("bin")), b"").err;
    assert!(err.ends_with("bin: these are no sources of Castanet\n"), "{err}");
    let exported = place.build(&["--export-sources", "src"]);
    assert_eq!(exported.status, Some(0), "{}", exported.err);
    assert!(exported.err.starts_with("castanet: src: "), "{}", exported.err);
    let built = place.build(&["five.click", "--source", "src"]);
    assert_eq!(built.status, Some(0), "{}", built.err);
    // Crates come from that folder, too.
    let calls = place.text("bin/cargo.calls");
    assert!(calls.contains("--offline --config source.crates-io.replace-with="), "{calls}");
    std::fs::write(place.path("src/crates/built/src/more.rs"), "").unwrap();
    let err = place.complaint(3, &["five.click", "--source", "src", "-o", "other"]);
    assert!(err.contains("are not those of this program"), "{err}");
}

#[test]
fn outputs_that_cannot_be_are_refused_before_anything_is_built() {
    let place = Place::new("refused", "1.95.0", "");
    std::fs::create_dir(place.path("dir")).unwrap();
    let refused = |words: &[&str], status, what: &str| {
        let err = place.complaint(status, words);
        assert!(err.contains(what), "{err}");
    };
    refused(&["five.click", "-o", "dir"], 1, "dir: is a directory");
    refused(&["five.click", "-o", "five.click"], 1, "five.click: is the configuration");
    refused(&["five.click", "-o", "no/such"], 1, "no/such: there is no folder no");
    // Not even root can make files there.
    refused(&["five.click", "-o", "/proc/self/five"], 1, "cannot write /proc/self/five: ");
    refused(&["five.click", "-o", env!("CARGO_BIN_EXE_castanet")], 1, "is this very program");
    refused(&["-e", TEXT], 2, "name the program to write with -o");
    refused(&[], 2, "no configuration");
    assert_eq!(place.calls(), 0);
}

#[test]
fn a_compiler_that_fails_leaves_nothing() {
    let place = Place::new("full", "1.95.0", "echo 'error: No space left on device' >&2; exit 101");
    let err = place.complaint(3, &["five.click"]);
    assert!(err.contains("error: No space left on device\n"), "{err}");
    assert!(err.contains("the program cannot be compiled: the disk is full"), "{err}");
    let place = Place::new("offline", "1.95.0", "echo 'error: failed to download x' >&2; exit 101");
    let err = place.complaint(3, &["five.click"]);
    assert!(err.contains("--export-sources DIR"), "{err}");
    assert!(programs(&place).is_empty());
}

fn programs(place: &Place) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(place.path("cache/castanet/build/programs"));
    folder.unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_configuration_that_changes_meanwhile_is_built_as_it_was_read() {
    let place = Place::new("changes", "1.95.0", "echo 'Idle -> Discard' > \"$0\"/../../five.click");
    let path = place.path("five.click");
    let script = place.path("bin/cargo");
    let text = std::fs::read_to_string(&script).unwrap();
    let text = text.replace("\"$0\"/../../five.click", &path.display().to_string());
    std::fs::write(&script, text).unwrap();
    let result = place.build(&["five.click"]);
    assert_eq!(result.status, Some(0), "{}", result.err);
    assert_eq!(place.text("five.click"), "Idle -> Discard\n");
    assert!(place.text("five").contains("InfiniteSource(LIMIT 5"), "{}", place.text("five"));
}

#[test]
fn an_interrupt_ends_the_compiler_and_leaves_nothing() {
    let place = Place::new("interrupt", "1.95.0", "echo $$ > \"$0.pid\"; sleep 600; exit 1");
    let before = place.files();
    let child = place.start(&["five.click"]);
    let pid = place.path("bin/cargo.pid");
    let read = || std::fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse().ok());
    wait_until("cargo starts", || read().is_some());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let (status, err) = output(child);
    assert_eq!(status, Some(130), "{err}");
    assert!(err.ends_with("castanet: interrupted; nothing was written\n"), "{err}");
    let is_gone = |pid: i32| !Path::new(&format!("/proc/{pid}")).exists();
    wait_until("cargo has ended", || read().is_some_and(is_gone));
    assert_eq!(place.files(), before);
    let folder = std::fs::read_dir(place.path("cache/castanet/build")).unwrap();
    let names: Vec<_> = folder.map(|it| it.unwrap().file_name()).collect();
    assert!(!names.iter().any(|it| it.to_string_lossy().ends_with(".rs")), "{names:?}");
    // The cache is as it was: the next build compiles, and the one after it does not.
    assert!(programs(&place).is_empty());
    let script = place.path("bin/cargo");
    let text = std::fs::read_to_string(&script).unwrap().replace("sleep 600; exit 1", "");
    std::fs::write(&script, text).unwrap();
    for output in ["five", "again"] {
        let result = place.build(&["five.click", "-o", output]);
        assert_eq!((result.status, place.calls()), (Some(0), 2), "{}", result.err);
    }
}

#[test]
fn of_two_builds_one_waits() {
    let more = "touch \"$0.$$\"; while [ ! -e \"$0.go\" ]; do sleep 0.02; done";
    let place = Place::new("two", "1.95.0", more);
    let one = place.start(&["five.click"]);
    wait_until("the first compiles", || place.calls() == 1);
    let mut two = place.start(&["-e", TEXT, "-o", "two"]);
    let (sender, lines) = channel();
    let told = BufReader::new(two.stderr.take().unwrap());
    std::thread::spawn(move || {
        told.lines().map_while(Result::ok).try_for_each(|it| sender.send(it))
    });
    let waits = "castanet: another build is running; this one waits for it";
    loop {
        let line = lines.recv_timeout(Duration::from_secs(60));
        if line.expect("the second build says that it waits") == waits {
            break;
        }
    }
    assert_eq!(place.calls(), 1);
    std::fs::write(place.path("bin/cargo.go"), "").unwrap();
    assert_eq!(output(one).0, Some(0));
    let status = two.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{:?}", lines.iter().collect::<Vec<_>>());
    assert!(place.text("two").contains("(\"config\", "), "{}", place.text("two"));
    assert!(place.text("five").contains("(\"five.click\", "), "{}", place.text("five"));
}

#[test]
fn a_build_that_waited_for_the_same_program_takes_it() {
    let more = "while [ ! -e \"$0.go\" ]; do sleep 0.02; done";
    let place = Place::new("same", "1.95.0", more);
    let one = place.start(&["five.click"]);
    wait_until("the first compiles", || place.calls() == 1);
    let two = place.start(&["five.click", "-o", "two"]);
    // A signal ends a build that waits, and nothing else. SIGTERM, since shells start programs in the
    // background with an ignored SIGINT, which this test would inherit.
    let three = place.start(&["five.click", "-o", "three"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(Pid::from_raw(three.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_ne!(output(three).0, Some(0));
    std::fs::write(place.path("bin/cargo.go"), "").unwrap();
    assert_eq!((output(one).0, output(two).0, place.calls()), (Some(0), Some(0), 1));
    assert_eq!(place.text("two"), place.text("five"));
    assert!(!place.path("three").exists());
}
