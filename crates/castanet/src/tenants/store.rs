//! The folder in which configurations that were installed outlive the process.

use super::configurations::InstalledTexts;
use castanet_tenants::System;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A folder with a file `NAME.click` for each tenant whose configuration was installed; an empty one where it
/// was removed.
#[derive(Clone, Debug)]
pub(crate) struct TenantStore(PathBuf);

/// A text that is on the disk, but not yet by the name under which it is found.
pub(crate) struct StoredText {
    /// The temporary file; `None` if the text is to be forgotten.
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl TenantStore {
    /// The store in this folder.
    pub(crate) fn new(folder: PathBuf) -> TenantStore {
        TenantStore(folder)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// The texts of tenants of this system.
    ///
    /// # Errors
    /// A file that cannot be read, by its name and with the reason.
    pub(crate) fn read(&self, system: &System) -> Result<InstalledTexts, String> {
        let mut texts = InstalledTexts::new();
        for tenant in &system.tenants {
            let path = self.path(&tenant.name);
            match std::fs::read(&path) {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes);
                    texts.insert(tenant.name.clone(), text.into());
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&path, &error)),
            }
        }
        Ok(texts)
    }

    /// Writes the text of a tenant to the disk, or with `None` prepares to forget it. It is found only after
    /// [`StoredText::commit`].
    ///
    /// # Errors
    /// The folder is not there, the disk is full, and so on.
    pub(crate) fn stage(&self, tenant: &str, text: Option<&str>) -> Result<StoredText, String> {
        let path = self.path(tenant);
        let Some(text) = text else { return Ok(StoredText { temporary: None, path }) };
        let temporary = self.0.join(format!("{tenant}.click.new"));
        write_file(&temporary, text).map_err(|error| {
            _ = std::fs::remove_file(&temporary);
            failed(&temporary, &error)
        })?;
        Ok(StoredText { temporary: Some(temporary), path })
    }

    fn path(&self, tenant: &str) -> PathBuf {
        self.0.join(format!("{tenant}.click"))
    }
}

impl StoredText {
    /// Puts the text in place of the one before.
    ///
    /// # Errors
    /// The system's message, with the file's name.
    pub(crate) fn commit(mut self) -> Result<(), String> {
        let done = match &self.temporary {
            Some(temporary) => std::fs::rename(temporary, &self.path),
            None => match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                done => done,
            },
        };
        let done = done.and_then(|()| match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        });
        self.temporary = None;
        done.map_err(|error| failed(&self.path, &error))
    }
}

impl Drop for StoredText {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            _ = std::fs::remove_file(temporary);
        }
    }
}

/// Writes a file that only its user reads, as far as the disk.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{}: {}", path.display(), crate::load::io_error_text(error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test it is an assertion.
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_once_it_is_committed() {
        let folder = std::env::temp_dir().join(format!("castanet-store-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = TenantStore::new(folder.clone());
        let file = folder.join("red.click");
        drop(store.stage("red", Some("Idle;")).unwrap());
        assert!(std::fs::read_dir(&folder).unwrap().next().is_none());
        store.stage("red", Some("Idle;")).unwrap().commit().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "Idle;");
        store.stage("red", Some("")).unwrap().commit().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "");
        store.stage("red", None).unwrap().commit().unwrap();
        store.stage("red", None).unwrap().commit().unwrap();
        assert!(!file.exists());
        std::fs::remove_dir_all(&folder).unwrap();
        let error = store.stage("red", Some("")).err().unwrap();
        assert!(error.contains("red.click.new: No such file"), "{error}");
    }
}
