//! Runs the built program with a time limit.

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Output and exit status of a run.
pub(crate) struct RunResult {
    /// Its exit status; `None` if a signal ended it.
    pub(crate) status: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

/// Longer than any of these runs takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `castanet` with these words and this standard input.
pub(crate) fn castanet(words: &[&str], input: &[u8]) -> RunResult {
    run(command().args(words), input)
}

/// `castanet`, to be run in the root of the repository.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_castanet"));
    command.current_dir(root());
    command
}

/// Runs the program by the name `click`.
pub(crate) fn click(words: &[&str], input: &[u8]) -> RunResult {
    named("click", words, input)
}

/// Runs the program by another name.
pub(crate) fn named(name: &str, words: &[&str], input: &[u8]) -> RunResult {
    run(Command::new(link(name)).args(words).current_dir(root()), input)
}

/// Another name of the program.
pub(crate) fn link(name: &str) -> PathBuf {
    let link = folder("by-name").join(format!("{}/{name}", std::process::id()));
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    // Tests of one process share the link; the first makes it.
    _ = symlink(env!("CARGO_BIN_EXE_castanet"), &link);
    link
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder for what one test writes.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Waits until a condition is met; fails the test with `complaint` if it takes too long.
pub(crate) fn wait_until(complaint: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{complaint}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a line of sh(1) in a folder, with the programs of another one; standard output has both outputs.
pub(crate) fn run_shell(line: &str, folder: &Path, programs: &Path) -> RunResult {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(folder);
    run(shell.env("PATH", path).env("LC_ALL", "C"), b"")
}

/// Runs a command, fails the test if it takes too long or panics.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> RunResult {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("is piped");
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || _ = stdin.write_all(&input));
    let reader = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = reader(Box::new(child.stdout.take().expect("is piped")));
    let err = reader(Box::new(child.stderr.take().expect("is piped")));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("can be waited for") {
            break status;
        }
        if started.elapsed() > PATIENCE {
            _ = child.kill();
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    _ = feeder.join();
    let (out, err) = (out.join().expect("reads"), err.join().expect("reads"));
    assert!(!err.contains("panicked at"), "{command:?} panicked:\n{err}");
    RunResult { status: status.code(), out, err }
}
