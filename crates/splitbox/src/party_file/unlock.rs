//! The keys of party files: from a key file, or from a passphrase by Argon2id.

use super::preamble::PASSPHRASE_SALT_BYTES;
use super::{FileProblem, PartyFileError};
use crate::secret::{KEY_BYTES, Key, fill_random};
use argon2::{Algorithm, Argon2, Params, Version};
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Maximum bytes of a key file or of a passphrase.
const MAX_SECRET_BYTES: usize = 4096;

/// The secret that opens and seals party files.
#[derive(Clone)]
pub enum Unlock {
    /// A file with a random key.
    KeyFile(PathBuf),
    /// A file whose first line is a passphrase.
    PassphraseFile(PathBuf),
    /// A passphrase.
    Passphrase(Zeroizing<String>),
}

impl Debug for Unlock {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Unlock::KeyFile(path) => f.debug_tuple("KeyFile").field(path).finish(),
            Unlock::PassphraseFile(path) => f.debug_tuple("PassphraseFile").field(path).finish(),
            Unlock::Passphrase(_) => f.write_str("Passphrase(..)"),
        }
    }
}

/// The cost of one guess of a passphrase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PassphraseCost {
    pub(super) lanes: u16,
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
}

impl PassphraseCost {
    /// No passphrase.
    pub(super) const NONE: PassphraseCost = PassphraseCost { lanes: 0, memory_kib: 0, passes: 0 };
    /// The second recommendation of RFC 9106, section 4: 64 MiB.
    pub(super) const RECOMMENDED: PassphraseCost =
        PassphraseCost { lanes: 4, memory_kib: 64 << 10, passes: 3 };
    /// The maximum that a file may ask for. A guess costs 256 MiB and some seconds.
    const MAX: PassphraseCost = PassphraseCost { lanes: 16, memory_kib: 256 << 10, passes: 16 };

    fn is_allowed(&self) -> bool {
        let PassphraseCost { lanes, memory_kib, passes } = *self;
        let max = PassphraseCost::MAX;
        lanes <= max.lanes && memory_kib <= max.memory_kib && passes <= max.passes
    }

    /// The key that belongs to a passphrase.
    fn key(&self, passphrase: &str, salt: &[u8]) -> Result<Key, FileProblem> {
        if !self.is_allowed() {
            return Err(FileProblem::Cost);
        }
        let lanes = self.lanes.into();
        let params = Params::new(self.memory_kib, self.passes, lanes, Some(KEY_BYTES));
        let params = params.map_err(|_| FileProblem::Cost)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let hashed = argon2.hash_password_into(passphrase.as_bytes(), salt, &mut *key);
        hashed.map_err(|_| FileProblem::Cost)?;
        Ok(Key::from_bytes(*key))
    }
}

/// The place that the key of a file comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeySource {
    KeyFile,
    Passphrase { cost: PassphraseCost, salt: [u8; PASSPHRASE_SALT_BYTES] },
}

/// A key from which those of files are derived, and its source.
pub(super) struct MasterKey {
    pub(super) key: Key,
    pub(super) source: KeySource,
}

impl Unlock {
    /// Whether this is a key file, as `source` may be.
    fn fits(&self, source: &KeySource) -> bool {
        matches!(self, Unlock::KeyFile(_)) == matches!(source, KeySource::KeyFile)
    }

    /// The master key for new files.
    pub(super) fn seal(&self, cost: PassphraseCost) -> Result<MasterKey, PartyFileError> {
        let mut source = KeySource::KeyFile;
        if !self.fits(&source) {
            let mut salt = [0; PASSPHRASE_SALT_BYTES];
            fill_random(&mut salt).map_err(|error| FileProblem::from(error).at(self.path()))?;
            source = KeySource::Passphrase { cost, salt };
        }
        Ok(MasterKey { key: self.key(&source)?, source })
    }

    /// The master key of a file whose key has this source; `file` is named if this is no such key.
    pub(super) fn open(&self, source: KeySource, file: &Path) -> Result<MasterKey, PartyFileError> {
        if self.fits(&source) {
            return match self.key(&source) {
                Ok(key) => Ok(MasterKey { key, source }),
                // The file asks for too much, whatever the passphrase.
                Err(PartyFileError { problem: FileProblem::Cost, .. }) => {
                    Err(FileProblem::Cost.at(file))
                }
                Err(error) => Err(error),
            };
        }
        Err(match source {
            KeySource::KeyFile => FileProblem::KeyFileNeeded.at(file),
            KeySource::Passphrase { .. } => FileProblem::PassphraseNeeded.at(file),
        })
    }

    /// The file of the secret; empty without one.
    fn path(&self) -> &Path {
        match self {
            Unlock::KeyFile(path) | Unlock::PassphraseFile(path) => path,
            Unlock::Passphrase(_) => Path::new(""),
        }
    }

    fn key(&self, source: &KeySource) -> Result<Key, PartyFileError> {
        let key = match self {
            Unlock::KeyFile(path) => read_secret(path).and_then(|bytes| key_from_hex(&bytes)),
            Unlock::PassphraseFile(path) => read_secret(path).and_then(|bytes| {
                let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let line = std::str::from_utf8(line).map_err(|_| FileProblem::Passphrase)?;
                passphrase_key(line, source)
            }),
            Unlock::Passphrase(passphrase) => passphrase_key(passphrase, source),
        };
        key.map_err(|problem| problem.at(self.path()))
    }
}

fn passphrase_key(passphrase: &str, source: &KeySource) -> Result<Key, FileProblem> {
    if passphrase.is_empty() || passphrase.len() > MAX_SECRET_BYTES {
        return Err(FileProblem::Passphrase);
    }
    match source {
        KeySource::Passphrase { cost, salt } => cost.key(passphrase, salt),
        KeySource::KeyFile => Err(FileProblem::KeyFileNeeded),
    }
}

/// The contents of a file that its owner alone may read.
fn read_secret(path: &Path) -> Result<Zeroizing<Vec<u8>>, FileProblem> {
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => FileProblem::NoKey,
        _ => FileProblem::Io(error),
    })?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(FileProblem::Mode(mode));
    }
    // Room for one byte too many, so that the bytes are never moved.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES + 1));
    file.take(MAX_SECRET_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn key_from_hex(text: &[u8]) -> Result<Key, FileProblem> {
    let digits = text.trim_ascii();
    if digits.len() != 2 * KEY_BYTES {
        return Err(FileProblem::Key);
    }
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        for &digit in pair {
            let value = char::from(digit).to_digit(16).ok_or(FileProblem::Key)?;
            *byte = *byte << 4 | value as u8;
        }
    }
    Ok(Key::from_bytes(*key))
}

/// Makes a key file that its owner alone may read.
///
/// # Errors
/// The file exists or cannot be written, or the system has no random numbers.
pub fn make_key_file(path: &Path) -> Result<(), PartyFileError> {
    let make = || -> Result<(), FileProblem> {
        let key = Key::random()?;
        let mut text = Zeroizing::new(Vec::with_capacity(2 * KEY_BYTES + 1));
        for byte in key.expose() {
            write!(text, "{byte:02x}")?;
        }
        text.push(b'\n');
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => FileProblem::Exists,
            _ => FileProblem::Io(error),
        })?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        Ok(written.inspect_err(|_| _ = std::fs::remove_file(path))?)
    };
    make().map_err(|problem| problem.at(path))
}
