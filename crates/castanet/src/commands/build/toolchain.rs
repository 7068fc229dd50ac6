//! The Rust toolchain that compiles programs.

use crate::commands::{CommandError, CommandResult};
use crate::exit;
use crate::load::io_error_text;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest compiler that compiles Castanet.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// A place to get a toolchain.
const GET: &str = "install Rust from https://rustup.rs, or set CARGO to the path of cargo";

/// Cargo, and the compiler that it calls.
pub(super) struct Toolchain {
    cargo: PathBuf,
    /// The compiler that cargo calls.
    rustc: PathBuf,
    /// Text of `rustc -vV`.
    version: String,
    /// Whether the compiler comes with a linker that optimizes over crates and keeps what it has done.
    has_linker: bool,
}

impl Toolchain {
    /// The toolchain of this machine: the cargo that `CARGO` names, that of the search path, or that of
    /// rustup.
    pub(super) fn find() -> Result<Toolchain, CommandError> {
        let named = std::env::var_os("CARGO").filter(|it| !it.is_empty()).map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo/bin/cargo"));
        let places = match named {
            Some(named) => vec![named],
            None => [Some(PathBuf::from("cargo")), home].into_iter().flatten().collect(),
        };
        let found = places.iter().find(|cargo| answer(cargo, &["--version"]).is_ok());
        let Some(cargo) = found else {
            let names: Vec<_> = places.iter().map(|it| it.display().to_string()).collect();
            let tried = names.join(" nor ");
            return Err(unusable(format!("cannot run {tried}: {GET}")));
        };
        let rustc = std::env::var_os("RUSTC").map_or_else(|| beside(cargo), PathBuf::from);
        let version = answer(&rustc, &["-vV"])
            .map_err(|why| unusable(format!("cannot run {}: {why}; {GET}", rustc.display())))?;
        let release = version.lines().find_map(|line| line.strip_prefix("release: "));
        let release = release.unwrap_or_default();
        if numbers(release) < numbers(OLDEST) {
            return Err(unusable(format!(
                "{} is of version {release}, which is too old: Castanet needs {OLDEST} or newer \
                 (`rustup update stable`)",
                rustc.display()
            )));
        }
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let root = answer(&rustc, &["--print", "sysroot"]).unwrap_or_default();
        let linker = format!("lib/rustlib/{host}/bin/rust-lld");
        let has_linker =
            Path::new(root.trim()).join(linker).is_file() && host == "x86_64-unknown-linux-gnu";
        Ok(Toolchain { cargo: cargo.clone(), rustc, version, has_linker })
    }

    /// Instruction sets and the like that a processor has, as the compiler prints them.
    pub(super) fn features(&self, processor: &str) -> Result<String, CommandError> {
        let cannot = |why| unusable(format!("cannot run {}: {why}; {GET}", self.rustc.display()));
        let known = answer(&self.rustc, &["--print", "target-cpus"]).map_err(cannot)?;
        let mut names = known.lines().filter(|line| line.starts_with(' '));
        if !names.any(|line| line.split_whitespace().next() == Some(processor)) {
            return Err(CommandError::usage(format!(
                "`{processor}` is no processor that {0} knows; `{0} --print target-cpus` lists them",
                self.rustc.display()
            )));
        }
        let named = format!("target-cpu={processor}");
        let printed = answer(&self.rustc, &["-C", &named, "--print", "cfg"]).map_err(cannot)?;
        Ok(printed.lines().filter(|line| line.starts_with("target_feature")).collect())
    }

    /// The version of the compiler, as it prints it.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Whether the compiler's own linker can do the optimization over crates.
    pub(super) fn has_linker(&self) -> bool {
        self.has_linker
    }

    /// A command of cargo in a folder of sources. Where a cargo has started this program, its variables about a package do
    /// not reach the other one: build scripts that watch them would run again, and all that depends on them be compiled anew.
    pub(super) fn cargo(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.cargo);
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        names.filter(|name| is_of_package(name)).for_each(|name| _ = command.env_remove(name));
        command.current_dir(folder).stdin(Stdio::null());
        command
    }

    /// Puts the sources of all crates into `vendor` in a folder of sources.
    pub(super) fn vendor(&self, folder: &Path) -> CommandResult {
        let mut command = self.cargo(folder);
        command.args(["vendor", "--locked", "--quiet", "vendor"]).stdout(Stdio::null());
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(unusable(format!("cargo vendor: {status}"))),
            Err(e) => Err(unusable(format!("cargo vendor: {}", io_error_text(&e)))),
        }
    }
}

/// Whether a variable of the environment is about the package of a program that cargo runs.
fn is_of_package(name: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix))
}

/// An error about what a build needs.
pub(super) fn unusable(message: String) -> CommandError {
    CommandError(exit::UNBUILDABLE, Some(message))
}

/// The compiler beside a cargo, or that of the search path.
fn beside(cargo: &Path) -> PathBuf {
    let rustc = cargo.with_file_name("rustc");
    if rustc.is_file() { rustc } else { "rustc".into() }
}

/// Standard output of a program that succeeds; else why not.
fn answer(program: &Path, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|e| io_error_text(&e))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// The numbers of a version.
fn numbers(version: &str) -> Vec<u32> {
    let part = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
    version.split('.').take(3).map(|it| part(it).parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("1.95.0") > numbers("1.90"));
        assert!(numbers("1.100.0-nightly") > numbers("1.95.3"));
        assert!(numbers("1.89.1") < numbers("1.90"));
        assert!(numbers("") < numbers("1.90"));
    }
}
