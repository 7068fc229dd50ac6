//! Builds programs for tests, as the tests themselves were compiled: nothing but the program is
//! compiled anew. `CASTANET_BUILD_PROFILE=release` has them compiled as users have.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The folder of built programs. Tests in other processes find there what was built before.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("built");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// `castanet`, in that folder, with what a build needs.
pub(crate) fn castanet() -> Command {
    let castanet = Path::new(env!("CARGO_BIN_EXE_castanet"));
    let mut command = Command::new(castanet);
    command.current_dir(folder());
    command.env("XDG_CACHE_HOME", folder().join("cache")).env_remove("CASTANET_SOURCE");
    command.env("CARGO_TARGET_DIR", castanet.parent().unwrap().parent().unwrap());
    command
}

/// The profile with which programs are compiled.
pub(crate) fn profile() -> String {
    std::env::var("CASTANET_BUILD_PROFILE").unwrap_or("test".to_owned())
}

/// `castanet build`, in that folder.
pub(crate) fn command() -> Command {
    let mut build = castanet();
    build.args(["build", "--profile", &profile()]);
    build
}

/// The programs that this process has built, with their configurations.
static BUILT: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Builds the program of a configuration with these settings, once, or takes it from the cache.
pub(crate) fn build(name: &str, text: &str, settings: &[&str]) -> PathBuf {
    let program = folder().join(name);
    // A test whose program cannot be built fails by itself.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(of) = built.get(&program) {
        assert_eq!(of, text, "two programs are called {name}");
        return program;
    }
    let mut build = command();
    build.args(["-", "-o"]).arg(&program).args(settings);
    build.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = build.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    assert!(errors.contains(" elements to compile\n"), "{name}: {errors}");
    built.insert(program.clone(), text.to_owned());
    program
}
