//! The runtime directory, in which the control sockets of instances lie.

use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The ending of a socket's file name.
const ENDING: &str = "sock";

/// Whether an instance can have this name.
pub(crate) fn is_name(text: &str) -> bool {
    let rest = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    text.len() <= 64
        && text.bytes().all(rest)
        && text.bytes().next().is_some_and(|c| c.is_ascii_alphanumeric())
}

/// The directory that the service manager, or the user, gives this process.
fn given() -> Option<PathBuf> {
    let given = std::env::var("RUNTIME_DIRECTORY").unwrap_or_default();
    given.split(':').next().filter(|path| path.starts_with('/')).map(PathBuf::from)
}

/// A directory of control sockets.
pub(crate) struct RuntimeDirectory(PathBuf);

impl RuntimeDirectory {
    /// That of this process: the one that its service manager gave it (`$RUNTIME_DIRECTORY`), else
    /// `/run/castanet` for root, `$XDG_RUNTIME_DIR/castanet` for others, or a directory below that of
    /// temporary files.
    pub(crate) fn own() -> RuntimeDirectory {
        let user = nix::unistd::geteuid();
        RuntimeDirectory(match (given(), std::env::var_os("XDG_RUNTIME_DIR")) {
            (Some(given), _) => given,
            (None, _) if user.is_root() => PathBuf::from("/run/castanet"),
            (None, Some(folder)) if !folder.is_empty() => PathBuf::from(folder).join("castanet"),
            (None, _) => std::env::temp_dir().join(format!("castanet-{user}")),
        })
    }

    /// The directories in which a client looks: the one that it is given, else its own, and that of
    /// root.
    pub(crate) fn all() -> Vec<RuntimeDirectory> {
        let own = RuntimeDirectory::own();
        let root = RuntimeDirectory(PathBuf::from("/run/castanet"));
        if own.0 == root.0 || given().is_some() { vec![own] } else { vec![own, root] }
    }

    /// Makes the directory.
    ///
    /// # Errors
    /// The system's message, or the directory belongs to somebody else, who could replace its sockets.
    pub(crate) fn make(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| {
            format!("{}: {}", self.0.display(), crate::load::io_error_text(&error))
        };
        match std::fs::DirBuilder::new().mode(0o755).create(&self.0) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let it = std::fs::symlink_metadata(&self.0).map_err(failed)?;
        let owners = [0, nix::unistd::geteuid().as_raw()];
        if !it.is_dir() || !owners.contains(&it.uid()) {
            return Err(format!("{}: it is not a directory of this user", self.0.display()));
        }
        Ok(())
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The socket of an instance of this name.
    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.{ENDING}"))
    }

    /// The names of sockets that lie here, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let name = |path: &Path| {
            let is_socket = path.extension().is_some_and(|ending| ending == ENDING);
            is_socket.then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten()
        };
        // Other files are no business of ours, whatever their names.
        let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_socket()));
        let mut names: Vec<String> = sockets.filter_map(|entry| name(&entry.path())).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_file_names() {
        for name in ["router", "a-b_c.d", "9"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".hidden", "-x", "a/b", "../a", "a b", "\u{e9}", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
