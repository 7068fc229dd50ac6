//! Files of parties: that which a setup gives to each party, sealed by a key file or a passphrase.
//!
//! A file begins with a clear part that says of which party and setup it is. AES-256-GCM seals the
//! contents, and authenticates the clear part with them. Each file has a key of its own, derived from
//! that of the key file or the passphrase (Argon2id) and a random salt, so no nonce comes twice.

mod body;
mod error;
mod list;
mod preamble;
mod sealed;
mod store;
mod unlock;

pub use error::{FileProblem, PartyFileError};
pub use unlock::{Unlock, make_key_file};

use crate::setup::{ClientParty, EntryParty, ProcessorParty, Setup, SetupInfo};
use body::{Body, ClientBody, EntryBody, ProcessorBody};
use sealed::{SealedFile, seal};
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use unlock::{MasterKey, PassphraseCost};

/// The version of the format.
pub const VERSION: u16 = 1;

/// A kind of party.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PartyRole {
    /// A.
    Entry,
    /// B(j), with its number from 0.
    Processor(u8),
    /// C.
    Client,
}

impl PartyRole {
    /// The role in a setup of so many processors, as text.
    pub fn of(self, processors: u8) -> String {
        match self {
            PartyRole::Processor(_) => format!("{self} of {processors}"),
            PartyRole::Entry | PartyRole::Client => self.to_string(),
        }
    }

    /// The name of the party's file.
    pub fn file_name(self) -> String {
        match self {
            PartyRole::Entry => "entry.splitbox".to_owned(),
            PartyRole::Processor(number) => format!("processor-{}.splitbox", u32::from(number) + 1),
            PartyRole::Client => "client.splitbox".to_owned(),
        }
    }
}

impl Display for PartyRole {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            PartyRole::Entry => f.write_str("the entry"),
            PartyRole::Processor(number) => write!(f, "processor {}", u32::from(*number) + 1),
            PartyRole::Client => f.write_str("the client"),
        }
    }
}

/// That which a file tells without its key. It is authentic once the file has been opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// The party that the file is for.
    pub role: PartyRole,
    /// t.
    pub processors: u8,
    /// The setup.
    pub setup: u32,
    /// Whether a passphrase seals it, and not a key file.
    pub has_passphrase: bool,
}

/// A party, as its file has it.
#[derive(Clone, Debug)]
pub enum Party {
    /// A.
    Entry(Box<EntryParty>),
    /// B(j).
    Processor(Box<ProcessorParty>),
    /// C.
    Client(Box<ClientParty>),
}

impl Party {
    /// The setup.
    pub fn info(&self) -> &SetupInfo {
        match self {
            Party::Entry(party) => &party.info,
            Party::Processor(party) => &party.info,
            Party::Client(party) => &party.info,
        }
    }
}

/// Reads the clear part of a file.
///
/// # Errors
/// The file cannot be read, or is no complete party file of this version.
pub fn inspect(path: &Path) -> Result<FileInfo, PartyFileError> {
    Ok(SealedFile::read(path)?.info())
}

/// Reads the file of any party.
///
/// # Errors
/// The file cannot be read, is no complete party file of this version, or was changed, or its key is
/// another one.
pub fn load(path: &Path, unlock: &Unlock) -> Result<Party, PartyFileError> {
    let file = SealedFile::read(path)?;
    Ok(match file.info().role {
        PartyRole::Entry => Party::Entry(file.open::<EntryBody>(unlock)?.into()),
        PartyRole::Processor(_) => Party::Processor(file.open::<ProcessorBody>(unlock)?.into()),
        PartyRole::Client => Party::Client(file.open::<ClientBody>(unlock)?.into()),
    })
}

/// Reads the file of the entry.
///
/// # Errors
/// Those of [`load`], or the file is of another party.
pub fn load_entry(path: &Path, unlock: &Unlock) -> Result<EntryParty, PartyFileError> {
    load_as::<EntryBody>(path, unlock, "the entry", |role| role == PartyRole::Entry)
}

/// Reads the file of a processor: of that with a number from 0, or of any.
///
/// # Errors
/// Those of [`load`], or the file is of another party.
pub fn load_processor(
    path: &Path,
    unlock: &Unlock,
    number: Option<u8>,
) -> Result<ProcessorParty, PartyFileError> {
    let wanted = match number {
        Some(number) => PartyRole::Processor(number).to_string(),
        None => "a processor".to_owned(),
    };
    load_as::<ProcessorBody>(path, unlock, &wanted, |role| match role {
        PartyRole::Processor(found) => number.is_none_or(|number| found == number),
        PartyRole::Entry | PartyRole::Client => false,
    })
}

/// Reads the file of the client.
///
/// # Errors
/// Those of [`load`], or the file is of another party.
pub fn load_client(path: &Path, unlock: &Unlock) -> Result<ClientParty, PartyFileError> {
    load_as::<ClientBody>(path, unlock, "the client", |role| role == PartyRole::Client)
}

/// Reads the file of a party that is wanted; of another one before a key costs time.
fn load_as<B: Body>(
    path: &Path,
    unlock: &Unlock,
    wanted: &str,
    is_wanted: impl Fn(PartyRole) -> bool,
) -> Result<B::Party, PartyFileError> {
    let file = SealedFile::read(path)?;
    let FileInfo { role: found, processors, .. } = file.info();
    if !is_wanted(found) {
        let wanted = wanted.to_owned();
        return Err(FileProblem::Party { found, processors, wanted }.at(path));
    }
    file.open::<B>(unlock)
}

/// Whether files are of one setup, and so have one t.
///
/// # Errors
/// The first file that is of another setup than the first of all.
pub fn check_setup(files: &[(&Path, FileInfo)]) -> Result<(), PartyFileError> {
    let Some((other, first)) = files.first() else { return Ok(()) };
    let own = |info: &FileInfo| (info.setup, info.processors);
    match files.iter().find(|(_, info)| own(info) != own(first)) {
        None => Ok(()),
        Some((path, info)) => Err(FileProblem::Setup {
            found: info.setup,
            other: other.to_path_buf(),
            wanted: first.setup,
        }
        .at(path)),
    }
}

/// Writes the files of all parties into a directory, or none; returns their paths. Their owner alone
/// may read them. Files that exist are replaced if `replaces`, and are an error otherwise.
///
/// # Errors
/// The key cannot be read, a file exists, or one cannot be written.
pub fn save(
    setup: &Setup,
    dir: &Path,
    unlock: &Unlock,
    replaces: bool,
) -> Result<Vec<PathBuf>, PartyFileError> {
    let master = unlock.seal(PassphraseCost::RECOMMENDED)?;
    let files = seal_all(setup, &master).map_err(|problem| problem.at(dir))?;
    store::write_all(dir, &files, replaces)
}

/// The names and the bytes of all files of a setup.
fn seal_all(setup: &Setup, master: &MasterKey) -> Result<Vec<(String, Vec<u8>)>, FileProblem> {
    let Setup { entry, processors, client } = setup;
    let mut files = Vec::with_capacity(processors.len() + 2);
    let mut add = |role: PartyRole, sealed: Vec<u8>| files.push((role.file_name(), sealed));
    let (role, info) = (PartyRole::Entry, &entry.info);
    add(role, seal(role, info, &EntryBody::new(entry), master)?);
    for party in processors {
        let role = PartyRole::Processor(party.number);
        add(role, seal(role, &party.info, &ProcessorBody::new(party), master)?);
    }
    let role = PartyRole::Client;
    add(role, seal(role, &client.info, &ClientBody::new(client), master)?);
    Ok(files)
}

#[cfg(test)]
mod tests;
