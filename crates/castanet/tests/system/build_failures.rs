//! `castanet build` by the real compiler where there is no network, or a disk is full.

use std::path::Path;
use std::process::{Command, Output};

use castanet_lab::{Lab, require};

use crate::builds;

/// A configuration whose program is small.
const TEXT: &str = "InfiniteSource(LIMIT 5, STOP true) -> Paint(1) -> Strip(14) -> Discard";

/// Mounts a disk of one megabyte at a place that only this process sees, runs a command, and prints
/// which files are there then.
const ON_A_SMALL_DISK: &str = r#"
disk=$1; shift
mount -t tmpfs -o size=1m none "$disk" || exit 99
"$@"
status=$?
find "$disk" -type f
exit $status"#;

/// `castanet build` to this program, with other values of variables.
fn build(program: &Path, variables: &[(&str, &Path)]) -> Command {
    let mut build = builds::command();
    build.args(["-e", TEXT, "-o"]).arg(program).envs(variables.iter().copied());
    build
}

/// Runs a command by another one.
fn run(by: &[&str], command: &Command) -> Output {
    let mut outer = Command::new(by[0]);
    outer.args(&by[1..]).arg(command.get_program()).args(command.get_args());
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    outer.envs(set).env_remove("CASTANET_SOURCE");
    outer.output().unwrap()
}

/// Fails with this status and these words; returns standard output.
fn fails(output: &Output, status: i32, words: &[&str]) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    for words in words {
        assert!(error.contains(words), "no `{words}` in {error}");
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn without_a_registry_it_says_how_to_build_without_one() {
    require(&["ip"]).unwrap();
    let lab = Lab::new("offline").unwrap();
    let place = lab.namespace("place").unwrap();
    let program = lab.directory().join("program");
    let [home, target, cache] = ["home", "target", "cache"].map(|it| lab.directory().join(it));
    let retry = Path::new("0");
    let variables =
        [("CARGO_HOME", &*home), ("CARGO_TARGET_DIR", &target), ("XDG_CACHE_HOME", &cache)];
    let mut build = build(&program, &variables);
    build.env("CARGO_NET_RETRY", retry);
    let output = run(&["ip", "netns", "exec", place.name()], &build);
    let advice = "castanet: the program cannot be compiled: the crates that Castanet uses cannot be \
                  downloaded; `castanet build --export-sources DIR`";
    fails(&output, 3, &[advice]);
    assert!(!program.exists());
    assert_eq!(std::fs::read_dir(cache.join("castanet/build/programs")).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_named_and_keeps_no_part_of_a_program() {
    let lab = Lab::new("full").unwrap();
    let disk = lab.directory().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let place = disk.to_str().unwrap();
    let by = ["unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", place];
    let [program, cache] = ["program", "cache"].map(|it| lab.directory().join(it));
    let build = |program: &Path, variable, value| {
        run(&by, &build(program, &[("XDG_CACHE_HOME", &cache), (variable, value)]))
    };
    // The compiler's folder: what is left there are crates, not programs.
    let output = build(&program, "CARGO_TARGET_DIR", &disk);
    fails(
        &output,
        3,
        &["castanet: the program cannot be compiled: the disk is full; CARGO_TARGET"],
    );
    assert!(!program.exists());
    // The cache.
    let output = build(&program, "XDG_CACHE_HOME", &disk);
    let left = fails(&output, 1, &["castanet: cannot write ", "/programs/", ": No space left"]);
    assert!(!left.contains("/programs/") && !left.contains(".rs"), "{left}");
    assert!(!program.exists());
    // The place for the program.
    let output = build(&disk.join("program"), "LC_ALL", Path::new("C"));
    assert_eq!(fails(&output, 1, &["/disk/program: No space left"]), "");
    // The cache has whole programs only.
    let built = build(&program, "LC_ALL", Path::new("C"));
    assert!(String::from_utf8_lossy(&built.stderr).contains("was built before"), "{built:?}");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&program).args(["--quiet", "--handler", "list"]).output().unwrap();
    assert!(ran.status.success() && ran.stdout.starts_with(b"4\n"), "{ran:?}");
}
