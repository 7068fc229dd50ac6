//! The xtask commands that run other programs: checks, tests, the demo, package installation.

use std::path::Path;
use std::process::Command;

/// Runs all checks and tests that need no root.
pub(crate) fn check() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    // The tests that need root are in castanet-io, castanet-lab, castanet and xtask.
    let rooted = ["castanet-io", "castanet-lab", "castanet", "xtask"];
    let mut words = vec!["test", "--workspace", "--quiet"];
    rooted.iter().for_each(|name| words.extend(["--exclude", name]));
    cargo(&words)?;
    cargo(&["test", "--quiet", "--package", "castanet", "--lib", "--test", "cli"])?;
    let tests = ["classes", "house", "words", "site"].map(|name| ["--test", name]);
    let words = ["test", "--quiet", "--package", "xtask", "--lib", "--bins"];
    cargo(&[&words, tests.as_flattened()].concat())
}

/// Runs all tests; tests that need root fail without it, with a message.
pub(crate) fn test() -> Result<(), String> {
    packages()?;
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    // One failure must not hide those of the packages after it.
    cargo(&["test", "--workspace", "--no-fail-fast"])?;
    // WebAssembly is in no program by default, so its tests have a build of their own.
    let words = ["--package", "castanet", "--package", "castanet-wasm", "--features", WASM];
    let of = |command: &[&'static str]| [command, &words].concat();
    let lints =
        [of(&["clippy", "--quiet", "--all-targets"]), vec!["--", "-D", "warnings"]].concat();
    cargo(&lints)?;
    // Other features of shared crates are wanted, so that most crates are compiled once more: without optimization, which
    // takes most of that time.
    cargo(&[of(&["test", "--profile", "dev"]), vec!["--test", "wasm*"]].concat())
}

/// The features with WebAssembly.
const WASM: &str = "castanet/wasm,castanet-wasm/engine";

/// Builds Castanet and runs the demo.
pub(crate) fn demo() -> Result<(), String> {
    // If packages cannot be installed, the demo replays a pcap file instead and says so.
    if let Err(message) = packages() {
        eprintln!("{message}");
    }
    cargo(&["build", "--release", "--package", "castanet"])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let program = Path::new(&target).join("release/castanet");
    let program = program.canonicalize().map_err(|e| format!("{}: {e}", program.display()))?;
    let report = castanet_lab::demo(&program).map_err(|e| e.to_string())?;
    if report.all_passed() {
        Ok(())
    } else {
        Err("not everything went as it should; see above".into())
    }
}

/// Installs the missing packages of those listed in `.ci/packages`.
pub(crate) fn packages() -> Result<(), String> {
    run("sh", &[".ci/install-packages"])
}

/// Runs cargo and fails unless it succeeds.
pub(crate) fn cargo(words: &[&str]) -> Result<(), String> {
    run(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()), words)
}

/// Runs a program and fails unless it succeeds. Variables about this program's package do not reach it: cargo would run build
/// scripts that watch them, and compile what depends on them, once more than where it is called by hand.
pub(crate) fn run(program: &str, words: &[&str]) -> Result<(), String> {
    eprintln!("+ {program} {}", words.join(" "));
    let mut command = Command::new(program);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let is_of_package =
        |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    names.filter(is_of_package).for_each(|name| _ = command.env_remove(name));
    let status = command.args(words).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} {}: {status}", words.join(" "))),
        Err(e) => Err(format!("cannot run {program}: {e}")),
    }
}

/// Runs a program and returns its standard output and its standard error; fails unless it succeeds.
pub(crate) fn output(program: &str, words: &[&str]) -> Result<(String, String), String> {
    let failed = |why: &dyn std::fmt::Display| format!("{program} {}: {why}", words.join(" "));
    let done = Command::new(program).args(words).output().map_err(|e| failed(&e))?;
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    if !done.status.success() {
        return Err(failed(&errors));
    }
    Ok((String::from_utf8(done.stdout).map_err(|e| failed(&e))?, errors))
}
