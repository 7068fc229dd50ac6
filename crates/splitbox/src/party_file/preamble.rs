//! The clear part at the start of a party file, which is authenticated with the rest.

use super::unlock::{KeySource, PassphraseCost};
use super::{FileProblem, PartyRole, VERSION};
use crate::setup::MAX_PROCESSORS;

/// The first bytes of a party file.
const MAGIC: [u8; 8] = *b"splitbox";
/// Bytes of the preamble.
pub(super) const PREAMBLE_BYTES: usize = 84;
/// Bytes of the salt of a passphrase.
pub(super) const PASSPHRASE_SALT_BYTES: usize = 16;
/// Bytes of the salt of a file's own key.
pub(super) const FILE_SALT_BYTES: usize = 32;

/// The clear part of a party file. Integers are big-endian.
///
/// | bytes | content |
/// |---|---|
/// | 0 to 7 | `splitbox` |
/// | 8, 9 | version |
/// | 10 | party: 0 entry, 1 processor, 2 client |
/// | 11 | number of the processor, from 0; 0 for others |
/// | 12 | t |
/// | 13 | key: 0 key file, 1 passphrase by Argon2id |
/// | 14, 15 | lanes of Argon2id |
/// | 16 to 19 | memory of Argon2id in KiB |
/// | 20 to 23 | passes of Argon2id |
/// | 24 to 27 | setup |
/// | 28 to 35 | bytes behind the preamble |
/// | 36 to 51 | salt of the passphrase |
/// | 52 to 83 | salt of the file's own key |
///
/// Fields of Argon2id and its salt are 0 for key files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Preamble {
    pub(super) role: PartyRole,
    pub(super) processors: u8,
    pub(super) setup: u32,
    pub(super) source: KeySource,
    pub(super) file_salt: [u8; FILE_SALT_BYTES],
    /// Bytes behind the preamble.
    pub(super) sealed_len: u64,
}

impl Preamble {
    pub(super) fn to_bytes(self) -> [u8; PREAMBLE_BYTES] {
        let (role, number) = match self.role {
            PartyRole::Entry => (0, 0),
            PartyRole::Processor(number) => (1, number),
            PartyRole::Client => (2, 0),
        };
        let (key, PassphraseCost { lanes, memory_kib, passes }, salt) = match self.source {
            KeySource::KeyFile => (0, PassphraseCost::NONE, [0; PASSPHRASE_SALT_BYTES]),
            KeySource::Passphrase { cost, salt } => (1, cost, salt),
        };
        let mut bytes = [0; PREAMBLE_BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes.iter_mut().skip(at).zip(part).for_each(|(to, from)| *to = *from);
            at += part.len();
        };
        put(&MAGIC);
        put(&VERSION.to_be_bytes());
        put(&[role, number, self.processors, key]);
        put(&lanes.to_be_bytes());
        put(&memory_kib.to_be_bytes());
        put(&passes.to_be_bytes());
        put(&self.setup.to_be_bytes());
        put(&self.sealed_len.to_be_bytes());
        put(&salt);
        put(&self.file_salt);
        bytes
    }

    /// The preamble of a file, and the bytes behind it.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Preamble, &[u8]), FileProblem> {
        if !bytes.starts_with(&MAGIC) {
            return Err(FileProblem::Format);
        }
        let mut parts = Parts(bytes.get(MAGIC.len()..).unwrap_or_default());
        let version = u16::from_be_bytes(parts.take()?);
        if version != VERSION {
            return Err(FileProblem::Version(version));
        }
        let [role, number, processors, key] = parts.take()?;
        let cost = PassphraseCost {
            lanes: u16::from_be_bytes(parts.take()?),
            memory_kib: u32::from_be_bytes(parts.take()?),
            passes: u32::from_be_bytes(parts.take()?),
        };
        let setup = u32::from_be_bytes(parts.take()?);
        let sealed_len = u64::from_be_bytes(parts.take()?);
        let salt = parts.take()?;
        let file_salt = parts.take()?;
        let role = match (role, number) {
            (0, 0) => PartyRole::Entry,
            (1, number) if number < processors => PartyRole::Processor(number),
            (2, 0) => PartyRole::Client,
            _ => return Err(FileProblem::Format),
        };
        let source = match key {
            0 if (cost, salt) == (PassphraseCost::NONE, [0; PASSPHRASE_SALT_BYTES]) => {
                KeySource::KeyFile
            }
            1 => KeySource::Passphrase { cost, salt },
            _ => return Err(FileProblem::Format),
        };
        if !(2..=MAX_PROCESSORS).contains(&usize::from(processors)) {
            return Err(FileProblem::Format);
        }
        let preamble = Preamble { role, processors, setup, source, file_salt, sealed_len };
        Ok((preamble, parts.0))
    }
}

/// The rest of some bytes, of which parts are taken one by one.
struct Parts<'b>(&'b [u8]);

impl Parts<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FileProblem> {
        let (part, rest) = self.0.split_first_chunk().ok_or(FileProblem::Truncated)?;
        self.0 = rest;
        Ok(*part)
    }
}
