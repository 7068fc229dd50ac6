//! Capture files, standard input and output among them (`-`).

use crate::error::IoError;
use castanet_wire::pcap::{Error, Precision, Reader, Writer};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// A capture file that is read.
pub type DumpReader = Reader<Box<dyn Read + Send>>;

/// A capture file that is written, through a buffer.
pub type DumpWriter = Writer<BufWriter<Box<dyn Write + Send>>>;

/// Bytes gathered before they are written.
const BUFFER: usize = 64 << 10;

/// Opens a pcap or pcapng file, `-` for standard input.
pub fn open(name: &str) -> Result<DumpReader, IoError> {
    let failed = |error| IoError::File { path: name.into(), error };
    let source: Box<dyn Read + Send> = match name {
        "-" => Box::new(io::stdin()),
        _ => Box::new(File::open(name).map_err(failed)?),
    };
    Reader::new(source).map_err(|error| match error {
        Error::Io(error) => failed(error),
        other => failed(io::Error::new(io::ErrorKind::InvalidData, other)),
    })
}

/// How many bytes a file has; `None` for what has no end that is known.
pub fn size(name: &str) -> Option<u64> {
    let meta = std::fs::metadata(name).ok().filter(|_| name != "-")?;
    meta.is_file().then_some(meta.len())
}

/// Makes a pcap file, `-` for standard output. Packets begin with `link_type`,
/// and at most `snap_len` bytes of each are kept.
pub fn create(
    name: &str,
    link_type: u32,
    precision: Precision,
    snap_len: u32,
) -> Result<DumpWriter, IoError> {
    let failed = |error| IoError::File { path: Path::new(name).into(), error };
    let sink: Box<dyn Write + Send> = match name {
        "-" => Box::new(io::stdout()),
        _ => Box::new(File::create(name).map_err(failed)?),
    };
    Writer::new(BufWriter::with_capacity(BUFFER, sink), link_type, precision, snap_len)
        .map_err(failed)
}
