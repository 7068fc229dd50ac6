//! Sealed files: a preamble, and contents that AES-256-GCM seals.

use super::body::Body;
use super::preamble::{FILE_SALT_BYTES, PREAMBLE_BYTES, Preamble};
use super::unlock::{KeySource, MasterKey, Unlock};
use super::{FileInfo, FileProblem, PartyFileError, PartyRole};
use crate::secret::{Key, fill_random};
use crate::setup::SetupInfo;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use postcard::ser_flavors::Size;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Maximum size of a file.
const MAX_FILE_BYTES: u64 = 1 << 30;

impl Preamble {
    /// The cipher of a file. Its key is used for nothing else.
    fn cipher(&self, master: &Key) -> Result<LessSafeKey, FileProblem> {
        let purpose = "castanet splitbox 1 key of a party file";
        let key = master.derive(purpose, &[&self.file_salt]);
        let key = UnboundKey::new(&AES_256_GCM, key.expose()).map_err(|_| FileProblem::Seal)?;
        Ok(LessSafeKey::new(key))
    }
}

/// The nonce: each key seals one file.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// The bytes of a party's file.
pub(super) fn seal(
    role: PartyRole,
    info: &SetupInfo,
    body: &impl Body,
    master: &MasterKey,
) -> Result<Vec<u8>, FileProblem> {
    let content = |error: postcard::Error| FileProblem::Content(error.to_string());
    let size = postcard::serialize_with_flavor(body, Size::default()).map_err(content)?;
    let len = size + AES_256_GCM.tag_len();
    if (PREAMBLE_BYTES + len) as u64 > MAX_FILE_BYTES {
        return Err(FileProblem::Content("the policy is too large for a file".to_owned()));
    }
    let mut preamble = Preamble {
        role,
        processors: info.options.processors as u8,
        setup: info.id,
        source: master.source,
        file_salt: [0; FILE_SALT_BYTES],
        sealed_len: len as u64,
    };
    fill_random(&mut preamble.file_salt)?;
    let clear = preamble.to_bytes();
    // The buffer has its size from the start, so that secrets are not left behind by a larger one.
    let mut sealed = Zeroizing::new(vec![0; size]);
    postcard::to_slice(body, &mut sealed).map_err(content)?;
    let cipher = preamble.cipher(&master.key)?;
    let tag = cipher.seal_in_place_separate_tag(nonce(), Aad::from(&clear), &mut sealed);
    let tag = tag.map_err(|_| FileProblem::Seal)?;
    Ok([&clear[..], &sealed, tag.as_ref()].concat())
}

/// A file whose clear part has been read.
pub(super) struct SealedFile {
    path: PathBuf,
    preamble: Preamble,
    bytes: Vec<u8>,
}

impl SealedFile {
    pub(super) fn read(path: &Path) -> Result<SealedFile, PartyFileError> {
        let bytes = read(path).map_err(|problem| problem.at(path))?;
        SealedFile::from_bytes(path, bytes)
    }

    /// The file with these bytes.
    pub(super) fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<SealedFile, PartyFileError> {
        let preamble = parse(&bytes).map_err(|problem| problem.at(path))?;
        Ok(SealedFile { path: path.to_owned(), preamble, bytes })
    }

    pub(super) fn info(&self) -> FileInfo {
        FileInfo {
            role: self.preamble.role,
            processors: self.preamble.processors,
            setup: self.preamble.setup,
            has_passphrase: matches!(self.preamble.source, KeySource::Passphrase { .. }),
        }
    }

    /// The party of the file.
    pub(super) fn open<B: Body>(&self, unlock: &Unlock) -> Result<B::Party, PartyFileError> {
        let master = unlock.open(self.preamble.source, &self.path)?;
        self.open_with::<B>(&master.key).map_err(|problem| problem.at(&self.path))
    }

    /// The party of the file, whose master key this is.
    pub(super) fn open_with<B: Body>(&self, master: &Key) -> Result<B::Party, FileProblem> {
        let (clear, sealed) =
            self.bytes.split_at_checked(PREAMBLE_BYTES).ok_or(FileProblem::Truncated)?;
        let mut sealed = Zeroizing::new(sealed.to_vec());
        let cipher = self.preamble.cipher(master)?;
        let body = cipher.open_in_place(nonce(), Aad::from(clear), &mut sealed);
        self.party::<B>(body.map_err(|_| FileProblem::Seal)?)
    }

    fn party<B: Body>(&self, body: &[u8]) -> Result<B::Party, FileProblem> {
        let parsed: Result<(B, &[u8]), postcard::Error> = postcard::take_from_bytes(body);
        let body = match parsed {
            Ok((body, [])) => body,
            Ok(_) => return Err(FileProblem::Content("there are bytes behind them".to_owned())),
            Err(error) => return Err(FileProblem::Content(error.to_string())),
        };
        let Preamble { role, processors, setup, .. } = self.preamble;
        let number = match role {
            PartyRole::Processor(number) => number,
            PartyRole::Entry | PartyRole::Client => 0,
        };
        body.party(setup, processors.into(), number).map_err(FileProblem::Content)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FileProblem> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(PREAMBLE_BYTES as u64).read_to_end(&mut bytes)?;
    // Other files are not read further.
    let (preamble, _) = Preamble::parse(&bytes)?;
    let len = preamble.sealed_len;
    if len > MAX_FILE_BYTES - PREAMBLE_BYTES as u64 {
        return Err(FileProblem::Length);
    }
    file.take(len + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The preamble of a file that has all its bytes.
fn parse(bytes: &[u8]) -> Result<Preamble, FileProblem> {
    let (preamble, sealed) = Preamble::parse(bytes)?;
    match (sealed.len() as u64).cmp(&preamble.sealed_len) {
        std::cmp::Ordering::Less => Err(FileProblem::Truncated),
        std::cmp::Ordering::Greater => Err(FileProblem::Length),
        std::cmp::Ordering::Equal => Ok(preamble),
    }
}
