//! Compressed input files, recognised by their first bytes.

mod zstd;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use zstd::ZstdReader;

/// A compression format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

/// The first bytes of a file of each format; the last ones are those of a frame of zstd that has no
/// data, as parallel compressors write it first.
const MAGIC: [(Format, &[u8]); 5] = [
    (Format::Gzip, &[0x1f, 0x8b]),
    (Format::Bzip2, b"BZh"),
    (Format::Xz, &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    (Format::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
    (Format::Zstd, &[0x50, 0x2a, 0x4d, 0x18]),
];

/// The most memory that the decoder of xz takes, in KiB: twice as much as files of `xz -9` need.
const XZ_MEMORY: u32 = 128 << 10;

/// A source of bytes.
pub(crate) type Source = Box<dyn Read + Send>;

/// The meaning of the first bytes of a file.
enum FirstBytes {
    /// They are those of a format.
    Of(Format),
    /// They are none of a format's.
    Plain,
    /// They may be the beginning of a format's.
    TooFew,
}

impl FirstBytes {
    fn of(first: &[u8]) -> FirstBytes {
        match MAGIC.iter().find(|(_, magic)| first.starts_with(magic)) {
            Some((format, _)) => FirstBytes::Of(*format),
            None if MAGIC.iter().any(|(_, magic)| magic.starts_with(first)) => FirstBytes::TooFew,
            None => FirstBytes::Plain,
        }
    }
}

/// The format of a file, and those of its bytes that had to be read to find it.
fn format(source: &mut impl BufRead) -> io::Result<(Option<Format>, Vec<u8>)> {
    let mut read = Vec::new();
    // As a rule nothing has to be read: the buffer shows enough.
    let mut first = FirstBytes::of(source.fill_buf()?);
    while let FirstBytes::TooFew = first {
        if source.by_ref().take(1).read_to_end(&mut read)? == 0 {
            return Ok((None, read));
        }
        first = FirstBytes::of(&read);
    }
    let format = if let FirstBytes::Of(format) = first { Some(format) } else { None };
    Ok((format, read))
}

/// The bytes of `source`; where they are compressed by gzip, bzip2, xz or zstd, the bytes that were
/// compressed. It takes the memory of one block, however much they become.
///
/// # Errors
/// The first bytes cannot be read.
pub(crate) fn open(source: Source) -> io::Result<Source> {
    let mut source = BufReader::new(source);
    let (format, read) = format(&mut source)?;
    if format.is_none() && read.is_empty() {
        return Ok(Box::new(source));
    }
    let whole = Cursor::new(read).chain(source);
    Ok(match format {
        Some(Format::Gzip) => Box::new(MultiGzDecoder::new(whole)),
        Some(Format::Bzip2) => Box::new(MultiBzDecoder::new(whole)),
        Some(Format::Xz) => Box::new(XzReader::new_mem_limit(whole, true, XZ_MEMORY)),
        Some(Format::Zstd) => Box::new(ZstdReader::new(Box::new(whole))),
        None => Box::new(whole),
    })
}

/// Whether a file is compressed so.
pub(crate) fn is_compressed(path: &str) -> bool {
    let file = std::fs::File::open(path);
    file.and_then(|file| format(&mut BufReader::new(file)))
        .is_ok_and(|(format, _)| format.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hello` by gzip 1.12.
    const GZIPPED: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10,
        0x36, 5, 0, 0, 0,
    ];

    /// The same by xz 5.4 and by zstd 1.5.
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 4, 0xe6, 0xd6, 0xb4, 0x46, 2, 0, 0x21, 1, 0x16, 0, 0,
        0, 0x74, 0x2f, 0xe5, 0xa3, 1, 0, 4, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0, 0, 0, 0, 0xb1, 0x37,
        0xb9, 0xdb, 0xe5, 0xda, 0x1e, 0x9b, 0, 1, 0x1d, 5, 0xb8, 0x2d, 0x80, 0xaf, 0x1f, 0xb6,
        0xf3, 0x7d, 1, 0, 0, 0, 0, 4, 0x59, 0x5a,
    ];
    const ZSTD: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 4, 0x58, 0x29, 0, 0, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0xa3, 0x6d,
        0x9f, 0x88,
    ];
    /// A frame of zstd with three bytes that are no data.
    const SKIPPED: &[u8] = &[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];

    fn text(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        open(Box::new(Cursor::new(bytes.to_vec())))?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn only_compressed_bytes_are_changed() {
        for plain in ["", "h", "B", "BZ", "P*M", "hello", "BZip2 is no magic"] {
            assert_eq!(text(plain.as_bytes()).unwrap(), plain);
        }
        for compressed in [GZIPPED, XZ, ZSTD] {
            assert_eq!(text(compressed).unwrap(), "hello");
            // Files that were appended to each other are one.
            assert_eq!(text(&[compressed, compressed].concat()).unwrap(), "hellohello");
        }
        let parts = [SKIPPED, ZSTD, SKIPPED, SKIPPED, ZSTD, SKIPPED];
        assert_eq!(text(&parts.concat()).unwrap(), "hellohello");
        assert_eq!(text(SKIPPED).unwrap(), "");
    }

    #[test]
    fn damaged_files_are_errors() {
        for (compressed, magic) in [(GZIPPED, 2), (XZ, 6), (ZSTD, 4), (SKIPPED, 4)] {
            for len in magic..compressed.len() {
                assert!(text(&compressed[..len]).is_err(), "{len} of {compressed:?}");
            }
        }
        assert!(text(&[ZSTD, b"no zstd"].concat()).is_err());
        assert!(text(b"BZh9 is not compressed").is_err());
    }
}
