//! The commands that run others.

use std::path::Path;
use std::process::Command;

/// Everything that needs no root.
pub(crate) fn check() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    // Tests that need root live in castanet-io, castanet-lab and castanet.
    let rooted = ["castanet-io", "castanet-lab", "castanet"];
    let mut words = vec!["test", "--workspace", "--quiet"];
    rooted.iter().for_each(|name| words.extend(["--exclude", name]));
    cargo(&words)?;
    cargo(&["test", "--quiet", "--package", "castanet", "--bins", "--test", "cli"])
}

/// All tests; those that need root fail without it and say so.
pub(crate) fn test() -> Result<(), String> {
    packages()?;
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    cargo(&["test", "--workspace"])
}

/// Builds Castanet and runs its main job.
pub(crate) fn demo() -> Result<(), String> {
    // Where packages cannot be installed, the demo says what it does instead.
    if let Err(message) = packages() {
        eprintln!("{message}");
    }
    cargo(&["build", "--release", "--package", "castanet"])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let program = Path::new(&target).join("release/castanet");
    let program = program.canonicalize().map_err(|e| format!("{}: {e}", program.display()))?;
    let seen = castanet_lab::demo(&program).map_err(|e| e.to_string())?;
    if seen.all_well() { Ok(()) } else { Err("not everything went as it should; see above".into()) }
}

/// Installs what is missing of the packages listed in `.ci/packages`.
pub(crate) fn packages() -> Result<(), String> {
    run("sh", &[".ci/install-packages"])
}

fn cargo(words: &[&str]) -> Result<(), String> {
    run(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()), words)
}

pub(crate) fn run(program: &str, words: &[&str]) -> Result<(), String> {
    eprintln!("+ {program} {}", words.join(" "));
    let status = Command::new(program).args(words).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} {}: {status}", words.join(" "))),
        Err(e) => Err(format!("cannot run {program}: {e}")),
    }
}
