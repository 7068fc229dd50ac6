//! The file of a built program: whole, or not there.

use super::default_name;
use crate::commands::CommandError;
use crate::load::{Origin, io_error_text};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The program to write.
pub(crate) struct Output {
    pub(super) path: PathBuf,
}

impl Output {
    /// The place for the program, if there can be one: it is found out before anything is built.
    pub(crate) fn find(named: Option<&Path>, origin: &Origin) -> Result<Output, CommandError> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => default_name(origin)?,
        };
        let refuse = |why: String| Err(CommandError::from(format!("{}: {why}", path.display())));
        if path.is_dir() {
            return refuse("is a directory, so no program can be written there".to_owned());
        }
        let same = |other: &Path| match (path.canonicalize(), other.canonicalize()) {
            (Ok(path), Ok(other)) => path == other,
            _ => false,
        };
        if std::env::current_exe().is_ok_and(|own| same(&own)) {
            return refuse("is this very program: write to another file".to_owned());
        }
        if matches!(origin, Origin::File(file) if same(file)) {
            return refuse("is the configuration: write to another file".to_owned());
        }
        let folder = folder(&path);
        if !folder.is_dir() {
            return refuse(format!("there is no folder {}", folder.display()));
        }
        let output = Output { path };
        let part = output.part();
        File::create(&part).map_err(|e| output.unwritable(&e))?;
        // It is empty; the next one of this name replaces it.
        _ = fs::remove_file(&part);
        Ok(output)
    }

    /// Copies the program there under another name, and renames it at the end.
    pub(super) fn write(&self, program: &Path) -> Result<(), CommandError> {
        let part = self.part();
        let written = fs::copy(program, &part).and_then(|_| fs::rename(&part, &self.path));
        written.map_err(|e| {
            _ = fs::remove_file(&part);
            self.unwritable(&e)
        })
    }

    /// The temporary name of the program, beside its place.
    fn part(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        folder(&self.path).join(format!(".{name}.{}.part", std::process::id()))
    }

    fn unwritable(&self, error: &std::io::Error) -> CommandError {
        format!("cannot write {}: {}", self.path.display(), io_error_text(error)).into()
    }
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
