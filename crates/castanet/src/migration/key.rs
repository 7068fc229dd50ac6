//! The key that instances have in common between which tenants move.

use crate::load::io_error_text;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::ZeroizeOnDrop;

/// Bytes of a key.
const LENGTH: usize = 32;
/// Bits of the mode by which others than the user may read a file.
const OTHERS: u32 = 0o077;

/// A secret of 32 bytes; its file has them as 64 hexadecimal digits.
#[derive(Clone, ZeroizeOnDrop)]
pub(crate) struct MigrationKey([u8; LENGTH]);

impl MigrationKey {
    /// Reads a key.
    ///
    /// # Errors
    /// The file cannot be read, is open to others, or contains no key.
    pub(crate) fn read(path: &Path) -> Result<MigrationKey, String> {
        let place = path.display();
        let failed = |error: std::io::Error| format!("{place}: {}", io_error_text(&error));
        let mode = std::fs::metadata(path).map_err(failed)?.mode();
        if mode & OTHERS != 0 {
            return Err(format!(
                "{place}: others may read the key; `chmod 600` keeps it to its user"
            ));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let wrong = || format!("{place}: a key is {} hexadecimal digits", 2 * LENGTH);
        let digits = text.trim().as_bytes();
        if digits.len() != 2 * LENGTH {
            return Err(wrong());
        }
        let mut key = [0; LENGTH];
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|it| !it.contains(['+', '-']));
            *byte = pair.and_then(|it| u8::from_str_radix(it, 16).ok()).ok_or_else(wrong)?;
        }
        Ok(MigrationKey(key))
    }

    /// Writes a random key to a new file, which its user alone can read.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub(crate) fn make(path: &Path) -> Result<(), String> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
        let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push('\n');
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("{}: {}", path.display(), io_error_text(&error)))
    }

    pub(super) fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}
