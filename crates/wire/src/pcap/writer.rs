//! Writes pcap files, in host byte order as libpcap does.

use super::{MAGIC_MICROS, MAGIC_NANOS};
use crate::timestamp::Timestamp;
use std::io::{self, Write};

/// The unit of timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Microseconds, which every program can read.
    #[default]
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// Makes the header of a file.
pub fn file_header(link_type: u32, precision: Precision, snap_len: u32) -> [u8; 24] {
    let magic = match precision {
        Precision::Micros => MAGIC_MICROS,
        Precision::Nanos => MAGIC_NANOS,
    };
    let mut header = [0; 24];
    header[..4].copy_from_slice(&magic.to_ne_bytes());
    header[4..6].copy_from_slice(&2u16.to_ne_bytes());
    header[6..8].copy_from_slice(&4u16.to_ne_bytes());
    // Time zone and accuracy are zero, as all programs write them.
    header[16..20].copy_from_slice(&snap_len.to_ne_bytes());
    header[20..].copy_from_slice(&link_type.to_ne_bytes());
    header
}

/// Makes the record header of a packet of `wire_len` bytes, of which `captured` bytes follow.
pub fn record_header(
    timestamp: Timestamp,
    precision: Precision,
    captured: u32,
    wire_len: u32,
) -> [u8; 16] {
    // Times in the file are unsigned: earlier times become the epoch.
    let timestamp = timestamp.max(Timestamp::default());
    let fraction = match precision {
        Precision::Micros => timestamp.subsec_micros(),
        Precision::Nanos => timestamp.subsec_nanos(),
    };
    let secs = u32::try_from(timestamp.secs()).unwrap_or(u32::MAX);
    let mut header = [0; 16];
    let (words, _) = header.as_chunks_mut::<4>();
    for (word, value) in words.iter_mut().zip([secs, fraction, captured, wire_len]) {
        *word = value.to_ne_bytes();
    }
    header
}

/// A writer of a pcap file, without a buffer.
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
    precision: Precision,
    snap_len: usize,
}

impl<W: Write> Writer<W> {
    /// Writes the header of a file with packets of `link_type`, of which at most
    /// `snap_len` bytes each are written.
    pub fn new(
        mut sink: W,
        link_type: u32,
        precision: Precision,
        snap_len: u32,
    ) -> io::Result<Self> {
        sink.write_all(&file_header(link_type, precision, snap_len))?;
        Ok(Writer { sink, precision, snap_len: snap_len as usize })
    }

    /// Writes a packet that was `wire_len` bytes long on the wire.
    pub fn write(&mut self, timestamp: Timestamp, wire_len: u32, data: &[u8]) -> io::Result<()> {
        let data = data.get(..self.snap_len).unwrap_or(data);
        let captured = u32::try_from(data.len()).map_err(io::Error::other)?;
        let header = record_header(timestamp, self.precision, captured, wire_len.max(captured));
        self.sink.write_all(&header)?;
        self.sink.write_all(data)
    }

    /// Flushes the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.sink
    }
}
