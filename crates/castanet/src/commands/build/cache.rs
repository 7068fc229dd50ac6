//! The cache of built programs: each is kept under the hash of all that it was built from.

use crate::commands::CommandError;
use crate::load::io_error_text;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes of programs that the cache keeps; those that were used last stay.
const MOST: u64 = 1 << 30;

/// A folder for programs, for compiled crates, and for the linker.
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/castanet/build`, or that in `~/.cache`.
    pub(super) fn open() -> Result<Cache, CommandError> {
        let variable = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let home = || variable("HOME").map(|home| home.join(".cache"));
        // The specification wants relative paths ignored.
        let base = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(home);
        let base = base.ok_or("no folder for the cache: set HOME or XDG_CACHE_HOME".to_owned())?;
        let cache = Cache { folder: base.join("castanet/build") };
        let programs = cache.folder("programs");
        let made =
            fs::create_dir_all(&programs).and_then(|()| fs::create_dir_all(cache.folder("lto")));
        made.map_err(|e| failed(&programs, &e))?;
        Ok(cache)
    }

    /// A folder in the cache.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The name of a program that is built from these parts, in this environment.
    pub(super) fn key(&self, parts: &[&str]) -> String {
        let mut hasher = DefaultHasher::new();
        parts.hash(&mut hasher);
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER"]
            .map(std::env::var_os)
            .hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// The program of that key, if it is there.
    pub(super) fn find(&self, key: &str) -> Option<PathBuf> {
        let path = self.folder("programs").join(key);
        let file = File::open(&path).ok()?;
        // For the order in which programs go; without it they go in the order in which they came.
        _ = file.set_modified(SystemTime::now());
        Some(path)
    }

    /// Keeps a program; those that were not used for the longest time make room for it.
    pub(super) fn keep(&self, key: &str, program: &Path) -> Result<PathBuf, CommandError> {
        let path = self.folder("programs").join(key);
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let copied = fs::copy(program, &part).and_then(|_| fs::rename(&part, &path));
        if let Err(e) = copied {
            _ = fs::remove_file(&part);
            return Err(failed(&path, &e));
        }
        self.make_room(&path);
        Ok(path)
    }

    fn make_room(&self, newest: &Path) {
        let mut programs: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(self.folder("programs")).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            programs.push((used, about.len(), entry.path()));
        }
        programs.sort();
        let mut bytes: u64 = programs.iter().map(|it| it.1).sum();
        for (_, len, path) in programs.iter().filter(|it| it.2 != newest) {
            if bytes <= MOST {
                return;
            }
            // A program that stays takes room and does no harm.
            if fs::remove_file(path).is_ok() {
                bytes -= len;
            }
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> CommandError {
    format!("cannot write {}: {}", path.display(), io_error_text(error)).into()
}
