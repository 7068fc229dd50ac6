//! Errors of party files and of the files of their keys.

use super::{PartyRole, VERSION};
use crate::secret::RandomError;
use castanet_lang::io_error_text;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

/// A file that cannot be read or written, or that is refused.
#[derive(Debug)]
pub struct PartyFileError {
    /// The file, or the file of its key.
    pub path: PathBuf,
    /// The reason.
    pub problem: FileProblem,
}

/// The reason why a file is refused.
#[derive(Debug)]
pub enum FileProblem {
    /// It cannot be read or written.
    Io(std::io::Error),
    /// It is not a party's file.
    Format,
    /// It has another version of the format.
    Version(u16),
    /// It ends early.
    Truncated,
    /// It goes on behind its end, or is larger than any party's file.
    Length,
    /// It is of another party.
    Party {
        /// The party that it is of.
        found: PartyRole,
        /// t of its setup.
        processors: u8,
        /// The party that is wanted.
        wanted: String,
    },
    /// It is of another setup than a file beside it.
    Setup {
        /// The setup that it is of.
        found: u32,
        /// The other file.
        other: PathBuf,
        /// The setup of the other file.
        wanted: u32,
    },
    /// Its key would cost more memory or time than is allowed.
    Cost,
    /// It is sealed with a passphrase, and there is none.
    PassphraseNeeded,
    /// It is sealed with a key file, and there is none.
    KeyFileNeeded,
    /// It was changed, or is sealed with another key.
    Seal,
    /// It is authentic and makes no sense.
    Content(String),
    /// It exists.
    Exists,
    /// It would replace something that is no file.
    NoFile,
    /// It has a key and others than its owner may read it.
    Mode(u32),
    /// It has no key.
    Key,
    /// There is no such file of a key.
    NoKey,
    /// It has no passphrase.
    Passphrase,
    /// The system has no random numbers.
    Random(RandomError),
}

impl FileProblem {
    /// The error of a file.
    pub(super) fn at(self, path: &Path) -> PartyFileError {
        PartyFileError { path: path.to_owned(), problem: self }
    }
}

impl From<std::io::Error> for FileProblem {
    fn from(error: std::io::Error) -> FileProblem {
        FileProblem::Io(error)
    }
}

impl From<RandomError> for FileProblem {
    fn from(error: RandomError) -> FileProblem {
        FileProblem::Random(error)
    }
}

impl Display for FileProblem {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            FileProblem::Io(error) => f.write_str(&io_error_text(error)),
            FileProblem::Format => f.write_str("this is no file of a SplitBox party"),
            FileProblem::Version(version) => {
                write!(f, "a party file of version {version}; this is version {VERSION}")
            }
            FileProblem::Truncated => f.write_str("the party file is truncated"),
            FileProblem::Length => f.write_str("the party file is longer than it says"),
            FileProblem::Party { found, processors, wanted } => {
                let found = found.of(*processors);
                write!(f, "this is the file of {found}, where that of {wanted} is needed")
            }
            FileProblem::Setup { found, other, wanted } => {
                let other = other.display();
                write!(f, "this is of setup {found:08x}, and {other} of setup {wanted:08x}")
            }
            FileProblem::Cost => f.write_str("its passphrase asks for too much memory or time"),
            FileProblem::PassphraseNeeded => {
                f.write_str("it is sealed with a passphrase, and there is none")
            }
            FileProblem::KeyFileNeeded => {
                f.write_str("it is sealed with a key file, and there is none")
            }
            FileProblem::Seal => {
                f.write_str("the key is wrong, or the party file has been changed")
            }
            FileProblem::Content(message) => write!(f, "its contents are wrong: {message}"),
            FileProblem::Exists => f.write_str("it exists, and is not overwritten"),
            FileProblem::NoFile => f.write_str("it exists and is no file, so it is not replaced"),
            FileProblem::Mode(mode) => {
                write!(f, "others may read this secret (mode {mode:04o}); its mode must be 0600")
            }
            FileProblem::Key => f.write_str("a key file has 64 hexadecimal digits"),
            FileProblem::NoKey => {
                f.write_str("there is no such key file; `castanet splitbox key FILE` makes one")
            }
            FileProblem::Passphrase => {
                f.write_str("the passphrase is empty, too long, or no text in UTF-8")
            }
            FileProblem::Random(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FileProblem {}

impl Display for PartyFileError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        // A passphrase from the terminal has no file.
        match self.path.as_os_str().is_empty() {
            true => write!(f, "{}", self.problem),
            false => write!(f, "{}: {}", self.path.display(), self.problem),
        }
    }
}

impl std::error::Error for PartyFileError {}
