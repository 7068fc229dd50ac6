//! Compressed input files, recognised by their first bytes.

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use std::io::{self, Cursor, Read};

/// The first bytes of a file of gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of a file of bzip2.
const BZIP2: &[u8] = b"BZh";

/// A source of bytes.
pub(crate) type Source = Box<dyn Read + Send>;

/// The bytes of `source`; where they are compressed by gzip or bzip2, the bytes that were compressed.
/// It takes the memory of one block, however much they become.
///
/// # Errors
/// The first bytes cannot be read.
pub(crate) fn open(mut source: Source) -> io::Result<Source> {
    let mut first = Vec::new();
    source.by_ref().take(BZIP2.len() as u64).read_to_end(&mut first)?;
    let is = |magic: &[u8]| first.starts_with(magic);
    let (is_gzip, is_bzip2) = (is(GZIP), is(BZIP2));
    let whole = Cursor::new(first).chain(source);
    Ok(match (is_gzip, is_bzip2) {
        (true, _) => Box::new(MultiGzDecoder::new(whole)),
        (_, true) => Box::new(MultiBzDecoder::new(whole)),
        _ => Box::new(whole),
    })
}

/// Whether a file is compressed so.
pub(crate) fn is_compressed(path: &str) -> bool {
    let mut first = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(3).read_to_end(&mut first));
    read.is_ok() && (first.starts_with(GZIP) || first.starts_with(BZIP2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hello` by gzip 1.12 and by bzip2 1.0.8.
    const GZIPPED: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10,
        0x36, 5, 0, 0, 0,
    ];

    fn text(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        open(Box::new(Cursor::new(bytes.to_vec())))?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn only_compressed_bytes_are_changed() {
        for plain in ["", "h", "BZ", "hello", "BZip2 is no magic"] {
            assert_eq!(text(plain.as_bytes()).unwrap(), plain);
        }
        assert_eq!(text(GZIPPED).unwrap(), "hello");
        // Files that were appended to each other are one.
        assert_eq!(text(&[GZIPPED, GZIPPED].concat()).unwrap(), "hellohello");
    }

    #[test]
    fn damaged_files_are_errors() {
        for len in 2..GZIPPED.len() {
            assert!(text(&GZIPPED[..len]).is_err(), "{len}");
        }
        assert!(text(b"BZh9 is not compressed").is_err());
    }
}
