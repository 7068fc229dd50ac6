//! Writes several files, all or none.

use super::{FileProblem, PartyFileError};
use crate::secret::{RandomError, fill_random};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Files on their way into a directory. All that is not complete is taken back when this goes.
struct Transaction {
    is_done: bool,
    /// Files under temporary names.
    temporary: Vec<PathBuf>,
    /// Files that have their names.
    placed: Vec<PathBuf>,
    /// Files that were replaced: the temporary and the proper name.
    replaced: Vec<(PathBuf, PathBuf)>,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Errors have been reported where they began; nothing more can be done about others.
        self.temporary.iter().for_each(|path| _ = std::fs::remove_file(path));
        if self.is_done {
            self.replaced.iter().for_each(|(old, _)| _ = std::fs::remove_file(old));
        } else {
            self.placed.iter().for_each(|path| _ = std::fs::remove_file(path));
            self.replaced.iter().for_each(|(old, path)| _ = std::fs::rename(old, path));
        }
    }
}

/// Writes files into a directory, which their owner alone may read, and returns their paths. Files
/// that exist are replaced if `replaces`, and are an error otherwise.
pub(super) fn write_all(
    dir: &Path,
    files: &[(String, Vec<u8>)],
    replaces: bool,
) -> Result<Vec<PathBuf>, PartyFileError> {
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| dir.join(name)).collect();
    for path in &paths {
        match std::fs::symlink_metadata(path) {
            Ok(_) if !replaces => return Err(FileProblem::Exists.at(path)),
            Ok(found) if !found.is_file() => return Err(FileProblem::NoFile.at(path)),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(FileProblem::from(error).at(path)),
        }
    }
    let suffix = random_suffix().map_err(|error| FileProblem::from(error).at(dir))?;
    let mut all = Transaction {
        is_done: false,
        temporary: Vec::new(),
        placed: Vec::new(),
        replaced: Vec::new(),
    };
    for (name, bytes) in files {
        let path = dir.join(format!(".{name}.{suffix}.new"));
        let written = create(&path).and_then(|mut file| {
            all.temporary.push(path.clone());
            file.write_all(bytes)?;
            file.sync_all()
        });
        // The user knows the directory and not the temporary name.
        written.map_err(|error| FileProblem::from(error).at(dir))?;
    }
    for (path, (name, _)) in paths.iter().zip(files) {
        let old = dir.join(format!(".{name}.{suffix}.old"));
        all.place(name, &suffix, path, replaces.then_some(old))
            .map_err(|problem| problem.at(path))?;
    }
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| FileProblem::from(error).at(dir))?;
    all.is_done = true;
    Ok(paths)
}

impl Transaction {
    /// Gives a file its name. `old` is a name for the file that it replaces, if it may.
    fn place(
        &mut self,
        name: &str,
        suffix: &str,
        path: &Path,
        old: Option<PathBuf>,
    ) -> Result<(), FileProblem> {
        if let Some(old) = old {
            match std::fs::rename(path, &old) {
                Ok(()) => self.replaced.push((old, path.to_owned())),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let new = path.with_file_name(format!(".{name}.{suffix}.new"));
        // Unlike a new name, a link never replaces a file that has appeared meanwhile.
        std::fs::hard_link(&new, path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => FileProblem::Exists,
            _ => FileProblem::Io(error),
        })?;
        self.placed.push(path.to_owned());
        Ok(())
    }
}

/// A file that is new, and never had another mode.
fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn random_suffix() -> Result<String, RandomError> {
    let mut bytes = [0; 8];
    fill_random(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_placed_are_taken_back_and_replaced_ones_return() {
        let dir = std::env::temp_dir().join(format!("splitbox-store-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("can be made");
        let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
        std::fs::write(dir.join("old"), "before").expect("can be written");
        for is_done in [false, true] {
            let names = ["old", "new"];
            let mut all = Transaction {
                is_done,
                temporary: Vec::new(),
                placed: Vec::new(),
                replaced: Vec::new(),
            };
            for name in names {
                let path = dir.join(format!(".{name}.1.new"));
                std::fs::write(&path, "after").expect("can be written");
                all.temporary.push(path);
                let old = dir.join(format!(".{name}.1.old"));
                all.place(name, "1", &dir.join(name), Some(old)).expect("can be placed");
            }
            let missing = all.place("missing", "1", &dir.join("missing"), None);
            assert!(matches!(missing, Err(FileProblem::Io(_))));
            let exists = all.place("old", "1", &dir.join("new"), None);
            assert!(matches!(exists, Err(FileProblem::Exists)));
            assert_eq!(names.map(text), [Some("after".to_owned()), Some("after".to_owned())]);
            drop(all);
            let expected = match is_done {
                false => [Some("before".to_owned()), None],
                true => [Some("after".to_owned()), Some("after".to_owned())],
            };
            assert_eq!(names.map(text), expected);
            let count = std::fs::read_dir(&dir).expect("is there").count();
            assert_eq!(count, expected.iter().flatten().count(), "no temporary names");
        }
        std::fs::remove_dir_all(&dir).expect("can be removed");
    }
}
