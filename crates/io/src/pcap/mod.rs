//! Capture files, standard input and output among them (`-`).

use crate::error::IoError;
use castanet_engine::output::OutputWriter;
use castanet_wire::pcap::{Error, Reader, Writer};
use std::fs::File;
use std::io::{self, Read};

/// A capture file that is read.
pub type DumpReader = Reader<Box<dyn Read + Send>>;

/// A capture file that is written, through a buffer.
pub type DumpWriter = Writer<OutputWriter>;

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
