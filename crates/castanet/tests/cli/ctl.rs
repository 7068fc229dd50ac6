//! Clients of running instances: `castanet ctl`, `castanet top` and `castanet drops`.

mod capture;
mod commands;
mod hostile;
mod instances;
mod observation;
mod permissions;
mod reload;
mod screen;
mod shell;
mod trace;

use crate::control::PATIENCE;
use crate::program::{RunResult, command, run};
use castanet_lab::{Command, Process};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The line by which an instance says that it runs.
pub(crate) const RUNNING: &str = "castanet: running";

/// A source of 1000 packets a second, a counter, and a queue that nobody empties.
pub(crate) const COUNTING: &str =
    "s :: RatedSource(LENGTH 60, RATE 1000) -> c :: Counter -> d :: Discard;
     Idle -> q :: Queue(7) -> Idle;\n";

/// A runtime directory and configuration files of one test, removed after it.
pub(crate) struct RuntimeFolder(pub(crate) PathBuf);

impl RuntimeFolder {
    pub(crate) fn new(name: &str) -> RuntimeFolder {
        // Short: the name of a socket has room for 107 bytes.
        let path = std::env::temp_dir().join(format!("castanet-ctl-{}-{name}", std::process::id()));
        _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("run")).unwrap();
        RuntimeFolder(path)
    }

    /// The path of the socket of an instance of this name.
    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.0.join(format!("run/{name}.sock"))
    }

    /// Writes a file, and gives its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `castanet` with these words, in this folder and with this runtime directory.
    fn command(&self, words: &[&str]) -> Command {
        let program = Command::on_host(env!("CARGO_BIN_EXE_castanet")).current_dir(&self.0);
        program.env("RUNTIME_DIRECTORY", self.0.join("run")).args(words).timeout(PATIENCE)
    }

    /// `castanet run` with these words, as soon as it runs.
    pub(crate) fn run(&self, words: &[&str]) -> Process {
        let mut process = self.command(&[&["run"], words].concat()).spawn().unwrap();
        process.wait_for(RUNNING, PATIENCE).unwrap();
        process
    }

    /// An instance that runs this configuration, from the file `NAME.click`.
    fn instance(&self, name: &str, text: &str) -> Process {
        let file = format!("{name}.click");
        self.write(&file, text);
        self.run(&[&file])
    }

    /// `castanet` with these words and this standard input, to its end.
    pub(crate) fn client(&self, words: &[&str], input: &str) -> RunResult {
        self.client_in(&self.0, words, input)
    }

    /// The same with another working directory.
    fn client_in(&self, directory: &Path, words: &[&str], input: &str) -> RunResult {
        let mut client = command();
        client.env("RUNTIME_DIRECTORY", self.0.join("run"));
        run(client.current_dir(directory).args(words), input.as_bytes())
    }

    /// `castanet ctl` with these words.
    fn ctl(&self, words: &[&str]) -> RunResult {
        self.client(&[&["ctl"], words].concat(), "")
    }

    /// Standard output of `castanet` with these words, which has to succeed.
    pub(crate) fn output(&self, words: &[&str]) -> String {
        let result = self.client(words, "");
        assert_eq!(result.status, Some(0), "{words:?}: {}{}", result.out, result.err);
        result.out
    }

    /// The same as JSON.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let text = self.output(words);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
    }

    /// The value of a handler of an instance, without the end of the line.
    pub(crate) fn read(&self, instance: &str, handler: &str) -> String {
        self.output(&["ctl", instance, "read", handler]).trim_end().to_owned()
    }

    /// The same as a number.
    pub(crate) fn number(&self, instance: &str, handler: &str) -> u64 {
        let text = self.read(instance, handler);
        text.parse().unwrap_or_else(|error| panic!("{handler}: {error}: {text}"))
    }
}

impl Drop for RuntimeFolder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Insists that a client failed with this status and with these words among its messages.
#[track_caller]
pub(crate) fn fails(result: &RunResult, status: i32, words: &[&str]) {
    assert_eq!(result.status, Some(status), "{}{}", result.out, result.err);
    for word in words {
        assert!(result.err.contains(word), "no {word:?} in {}", result.err);
    }
}

/// Insists that JSON has exactly these members.
#[track_caller]
fn has_members(value: &Value, names: &[&str]) {
    let mut expected = names.to_vec();
    expected.sort_unstable();
    let mut found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

/// Sends SIGHUP to a process.
pub(crate) fn hang_up(process: &Process) {
    let id = nix::unistd::Pid::from_raw(i32::try_from(process.id()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGHUP).unwrap();
}

/// Insists that a process ends with status 0, and gives what it printed.
#[track_caller]
pub(crate) fn ends_well(process: Process) -> String {
    let output = process.finish(PATIENCE).unwrap();
    assert!(output.success(), "{}: {}", output.status, output.printed());
    output.printed()
}
