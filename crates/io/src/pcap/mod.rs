//! Opens capture files (pcap, pcapng, and these compressed); the name `-` is standard input.

use crate::decompression;
use crate::error::IoError;
use castanet_element::output::OutputWriter;
use castanet_wire::pcap::{Error, Reader, Writer};
use std::fs::File;
use std::io::{self, Read};

/// Reader of a capture file.
pub type DumpReader = Reader<Box<dyn Read + Send>>;

/// Writer of a capture file, through a buffer.
pub type DumpWriter = Writer<OutputWriter>;

/// Opens a pcap or pcapng file, which may be compressed; `-` for standard input.
pub fn open(name: &str) -> Result<DumpReader, IoError> {
    let failed = |error| IoError::File { path: name.into(), error };
    let source: Box<dyn Read + Send> = match name {
        "-" => Box::new(io::stdin()),
        _ => Box::new(File::open(name).map_err(failed)?),
    };
    let source = decompression::open(source).map_err(failed)?;
    Reader::new(source).map_err(|error| match error {
        Error::Io(error) => failed(error),
        other => failed(io::Error::new(io::ErrorKind::InvalidData, other)),
    })
}

/// Returns the size of a file in bytes; `None` for standard input, for anything but a regular file, and
/// for a compressed one.
pub fn size(name: &str) -> Option<u64> {
    let meta = std::fs::metadata(name).ok().filter(|_| name != "-")?;
    (meta.is_file() && !decompression::is_compressed(name)).then_some(meta.len())
}
