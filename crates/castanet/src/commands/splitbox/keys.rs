//! The key of party files: from a file, or from a passphrase on the terminal.

use crate::commands::CommandError;
use crate::load::io_error_text;
use castanet_splitbox::party_file::Unlock;
use clap::Args;
use std::io::IsTerminal;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The key of party files.
#[derive(Args)]
pub(super) struct KeyArguments {
    /// The key file that seals party files; `castanet splitbox key` makes one
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    key_file: Option<PathBuf>,
    /// A file whose first line is the passphrase that seals party files; without a file it is asked
    /// on the terminal
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl KeyArguments {
    /// The key that the command line names.
    pub(super) fn named(&self) -> Option<Unlock> {
        match (&self.key_file, &self.passphrase_file) {
            (Some(path), _) => Some(Unlock::KeyFile(path.clone())),
            (None, Some(path)) => Some(Unlock::PassphraseFile(path.clone())),
            (None, None) => None,
        }
    }

    /// The key for new files; a passphrase is asked twice.
    pub(super) fn for_new_files(&self) -> Result<Unlock, CommandError> {
        if let Some(unlock) = self.named() {
            return Ok(unlock);
        }
        let first = ask("Passphrase of the party files: ")?;
        if first.is_empty() {
            return Err("the passphrase is empty".to_owned().into());
        }
        match ask("The same passphrase again: ")? == first {
            true => Ok(Unlock::Passphrase(first)),
            false => Err("the passphrases differ".to_owned().into()),
        }
    }

    /// The key of a file that exists.
    pub(super) fn for_file(&self) -> Result<Unlock, CommandError> {
        match self.named() {
            Some(unlock) => Ok(unlock),
            None => ask("Passphrase of the party file: ").map(Unlock::Passphrase),
        }
    }
}

/// The new key of a party file.
#[derive(Args)]
pub(super) struct NewKeyArguments {
    /// The key file that is to seal the party file
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_file")]
    new_key_file: Option<PathBuf>,
    /// A file with the passphrase that is to seal it; without a file it is asked on the terminal
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
}

impl NewKeyArguments {
    /// The new key.
    pub(super) fn key(&self) -> Result<Unlock, CommandError> {
        let (key_file, passphrase_file) = (&self.new_key_file, &self.new_passphrase_file);
        if key_file.is_none() && passphrase_file.is_none() && !can_ask() {
            let message = "no new key: name one with --new-key-file or --new-passphrase-file";
            return Err(CommandError::usage(message.to_owned()));
        }
        let new =
            KeyArguments { key_file: key_file.clone(), passphrase_file: passphrase_file.clone() };
        new.for_new_files()
    }
}

/// Whether there is a user who can be asked.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks for a passphrase on the terminal, without echo.
fn ask(prompt: &str) -> Result<Zeroizing<String>, CommandError> {
    if !can_ask() {
        let message = "no key: name one with --key-file or --passphrase-file; \
                       `castanet splitbox key FILE` makes one";
        return Err(CommandError::usage(message.to_owned()));
    }
    let answer = rpassword::prompt_password(prompt).map(Zeroizing::new);
    Ok(answer.map_err(|error| format!("no passphrase: {}", io_error_text(&error)))?)
}
