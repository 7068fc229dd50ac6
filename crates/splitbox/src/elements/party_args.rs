//! Arguments that name the file of a party.

use crate::party_file::Unlock;
use castanet_element::prelude::*;
use std::path::{Path, PathBuf};

/// The file of a party, and the key to it.
#[derive(Args, Clone)]
pub(super) struct PartyArgs {
    /// The file of the party, from `castanet splitbox setup`.
    #[arg]
    file: String,
    /// The file with the key of the party's file.
    #[arg(keyword)]
    key_file: Option<String>,
    /// The file with the passphrase of the party's file.
    #[arg(keyword)]
    passphrase_file: Option<String>,
}

impl PartyArgs {
    /// The party's file.
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.file)
    }

    /// The party's file, and the file of its key.
    pub(super) fn resources(&self) -> Vec<Resource> {
        let party = Resource::input(Some(&self.file), "reads the party from it");
        let keys = [&self.key_file, &self.passphrase_file];
        let keys = keys.map(|it| Resource::input(it.as_deref(), "reads the party's key from it"));
        party.into_iter().chain(keys.into_iter().flatten()).collect()
    }

    /// The key of the file.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub(super) fn unlock(&self) -> Result<Unlock, ArgError> {
        match (&self.key_file, &self.passphrase_file) {
            (Some(key), None) => Ok(Unlock::KeyFile(PathBuf::from(key))),
            (None, Some(phrase)) => Ok(Unlock::PassphraseFile(PathBuf::from(phrase))),
            (None, None) => Err(ArgError::new("the key of the file is missing")
                .help("KEY_FILE or PASSPHRASE_FILE names the file with it")),
            (Some(_), Some(_)) => {
                Err(ArgError::new("KEY_FILE and PASSPHRASE_FILE exclude each other"))
            }
        }
    }
}
