//! Has cargo compile a program.

use super::Compilation;
use super::cache::Cache;
use super::sources::SourceTree;
use super::toolchain::{Toolchain, unusable};
use crate::commands::CommandError;
use crate::exit;
use crate::load::io_error_text;
use crate::terminal::complain;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::{self, File, TryLockError};
use std::io::{IsTerminal, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The package that includes the generated source.
const PACKAGE: &str = "castanet-built";

/// Bytes that the linker keeps for the next build.
const LINKER_CACHE: &str = "prune_after=2160h:cache_size_bytes=2g";

/// Time between two looks at the compiler.
const PAUSE: Duration = Duration::from_millis(20);

/// A program to compile.
pub(super) struct Job<'a> {
    /// Its source.
    pub(super) program: &'a str,
    pub(super) sources: &'a SourceTree,
    pub(super) toolchain: &'a Toolchain,
    pub(super) compilation: &'a Compilation,
    /// The processor.
    pub(super) target_cpu: &'a str,
}

impl Job<'_> {
    /// Compiles the program and keeps it in the cache; returns its place there.
    pub(super) fn run(&self, cache: &Cache, key: &str) -> Result<PathBuf, CommandError> {
        let own = std::env::var_os("CARGO_TARGET_DIR").filter(|it| !it.is_empty());
        let target = own.map(PathBuf::from).or_else(|| self.sources.target());
        let target = target.unwrap_or_else(|| cache.folder("target"));
        let target = std::path::absolute(&target).unwrap_or(target);
        let interruption = Interruption::watch()?;
        // The program must be taken from there before the next build replaces it.
        let _turn = turn(&target, &interruption)?;
        if let Some(built) = cache.find(key) {
            return Ok(built);
        }
        let source = cache.folder(&format!("program-{}.rs", std::process::id()));
        let written = fs::write(&source, self.program);
        let compiled = written.map_err(|e| cannot_write(&source, &e)).and_then(|()| {
            compile(self.command(cache, &source, &target), self.compilation.quiet, &interruption)
        });
        _ = fs::remove_file(&source);
        compiled?;
        let Compilation { profile, .. } = self.compilation;
        let folder = if self.compilation.is_plain() { "debug" } else { profile };
        cache.keep(key, &target.join(folder).join(PACKAGE))
    }

    /// The call of cargo.
    fn command(&self, cache: &Cache, source: &Path, target: &Path) -> Command {
        let mut command = self.toolchain.cargo(self.sources.root());
        let Compilation { profile, quiet, .. } = self.compilation;
        let is_plain = self.compilation.is_plain();
        command.arg(if is_plain { "build" } else { "rustc" });
        command.args(["--package", PACKAGE, "--bin", PACKAGE, "--locked"]);
        if cfg!(feature = "wasm") {
            command.args(["--features", "wasm"]);
        }
        command.args(["--profile", profile]).arg("--target-dir").arg(target);
        if let Some(vendored) = self.sources.vendored() {
            command.arg("--offline");
            command.args(["--config", "source.crates-io.replace-with='vendored'", "--config"]);
            command.arg(format!("source.vendored.directory={:?}", vendored.display().to_string()));
        }
        if *quiet {
            command.arg("--quiet");
        }
        command.env("CASTANET_PROGRAM", source);
        if is_plain {
            return command;
        }
        // For this package alone: the chains are code of its own, and all other crates stay as they are.
        let target_cpu = format!("target-cpu={}", self.target_cpu);
        command.args(["--", "-C", "strip=debuginfo", "-C", &target_cpu]);
        if profile == "release" && self.toolchain.has_linker() {
            // Crates are compiled for optimization at the end, which takes a minute. This linker keeps
            // the results, so that the next build does it for the changed code alone.
            let folder = cache.folder("lto");
            command.args(["-C", "lto=off", "-C", "linker-plugin-lto"]);
            command.args(["-C", &format!("link-arg=-Wl,--thinlto-cache-dir={}", folder.display())]);
            command.args(["-C", &format!("link-arg=-Wl,--thinlto-cache-policy={LINKER_CACHE}")]);
        }
        command
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CommandError {
    format!("cannot write {}: {}", path.display(), io_error_text(error)).into()
}

/// Whether the user has interrupted this process. While this value exists, Ctrl-C does not end the process:
/// the value's owner does, when it finds that there was an interrupt.
pub(crate) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Listens from now on.
    pub(crate) fn watch() -> Result<Interruption, CommandError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, interrupted.clone())
                .map_err(|e| format!("cannot listen for signals: {e}"))?;
        }
        Ok(Interruption(interrupted))
    }

    /// Whether it came since.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The error of a build that is interrupted.
    fn error() -> CommandError {
        complain("castanet: interrupted; nothing was written");
        CommandError(exit::INTERRUPTED, None)
    }
}

/// Waits until no other build compiles into this folder.
fn turn(target: &Path, interruption: &Interruption) -> Result<File, CommandError> {
    let path = target.join(".castanet-build.lock");
    let opened = fs::create_dir_all(target).and_then(|()| File::create(&path));
    let file = opened.map_err(|e| cannot_write(&path, &e))?;
    let mut waits = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if interruption.came() => {
                return Err(Interruption::error());
            }
            Err(TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut waits, true) {
                    complain("castanet: another build is running; this one waits for it");
                }
                std::thread::sleep(PAUSE);
            }
            Err(TryLockError::Error(e)) => return Err(cannot_write(&path, &e)),
        }
    }
}

/// Runs the compiler to its end, or until the user interrupts it.
fn compile(
    mut command: Command,
    quiet: bool,
    interruption: &Interruption,
) -> Result<(), CommandError> {
    let is_shown = std::io::stderr().is_terminal() && !quiet;
    // In a group of its own: what cargo has started ends with it.
    command.process_group(0);
    command.stdout(Stdio::null());
    command.stderr(if is_shown { Stdio::inherit() } else { Stdio::piped() });
    let mut child = command.spawn().map_err(|e| {
        unusable(format!("cannot run {}: {}", command.get_program().display(), io_error_text(&e)))
    })?;
    let errors = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let status = wait(&mut child, interruption);
    let errors = errors.and_then(|reader| reader.join().ok()).unwrap_or_default();
    match status {
        None => Err(Interruption::error()),
        Some(Ok(status)) if status.success() => Ok(()),
        Some(Ok(_)) => {
            if !errors.is_empty() {
                complain(errors.trim_end());
            }
            Err(unusable(format!("the program cannot be compiled{}", advice(&errors))))
        }
        Some(Err(e)) => Err(unusable(format!("cannot wait for cargo: {}", io_error_text(&e)))),
    }
}

/// The status of the child; `None` if the user has interrupted it.
fn wait(child: &mut Child, interruption: &Interruption) -> Option<std::io::Result<ExitStatus>> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return (!interruption.came()).then_some(Ok(status));
            }
            Ok(None) => {}
            Err(e) => return Some(Err(e)),
        }
        if interruption.came() {
            // A process that has ended meanwhile needs no signal.
            _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
            _ = child.wait();
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Advice on a failure, as far as cargo's messages tell.
fn advice(errors: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| errors.contains(word));
    // A linker that writes by a mapping has no error for a full disk, and is killed.
    if says(&["No space left", "os error 28", "[Bus error]"]) {
        ": the disk is full; CARGO_TARGET_DIR and XDG_CACHE_HOME name folders elsewhere"
    } else if says(&["failed to download", "Could not resolve host", "failed to get `"]) {
        ": the crates that Castanet uses cannot be downloaded; `castanet build --export-sources DIR`, \
         called where they can, makes a folder for --source that has them"
    } else {
        "; see the messages above"
    }
}
