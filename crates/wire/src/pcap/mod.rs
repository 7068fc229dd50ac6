//! Capture files: readers and writers of pcap and pcapng.
//!
//! The reader does not trust the file: an invalid length is an error and never
//! causes a large allocation, and a file that ends within a packet is an error.
//!
//! ```
//! use castanet_wire::Timestamp;
//! use castanet_wire::pcap::{Precision, Reader, Writer, link_type};
//!
//! let mut writer = Writer::new(Vec::new(), link_type::ETHERNET, Precision::Micros, 65535)?;
//! writer.write(Timestamp::new(1, 5000), 3, &[1, 2, 3])?;
//! let file = writer.into_inner();
//!
//! let mut reader = Reader::new(&file[..])?;
//! let packet = reader.next_packet()?.expect("one packet");
//! assert_eq!((packet.data, packet.timestamp), (&[1, 2, 3][..], Timestamp::new(1, 5000)));
//! assert!(reader.next_packet()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod link_type;
mod ng;
mod ng_writer;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use ng_writer::{NgPacket, NgWriter};
pub use reader::{OwnedPacket, Packet, Reader};
pub use writer::{Precision, Writer, file_header, record_header};

use std::{fmt, io};

/// Maximum length of a packet in bytes: libpcap's limit.
pub const MAX_PACKET: usize = 262_144;

/// Magic number: microseconds, in the writer's byte order.
const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
/// Magic number: nanoseconds, in the writer's byte order.
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Magic number: microseconds, with longer record headers (A. Kuznetsov's variant).
const MAGIC_KUZNETSOV: u32 = 0xa1b2_cd34;

/// An error of a capture file, which ends the reading.
#[derive(Debug)]
pub enum Error {
    /// An error of the operating system.
    Io(io::Error),
    /// The file has the magic number of no known format.
    NotACapture([u8; 4]),
    /// The file has an unknown version, major and minor.
    Version(u16, u16),
    /// The file ends within a header or a packet.
    Truncated {
        /// Offset of the truncated header or packet in the file.
        at: u64,
    },
    /// A packet is longer than [`MAX_PACKET`].
    TooLong {
        /// Offset of its record header in the file.
        at: u64,
        /// Its length in bytes.
        len: u32,
    },
    /// A block of a pcapng file is inconsistent.
    BadBlock {
        /// Offset of the block in the file.
        at: u64,
        /// Description of the inconsistency.
        why: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(f),
            Error::NotACapture([a, b, c, d]) => {
                write!(f, "neither pcap nor pcapng: begins with {a:02x} {b:02x} {c:02x} {d:02x}")
            }
            Error::Version(major, minor) => write!(f, "unknown pcap version {major}.{minor}"),
            Error::Truncated { at } => write!(f, "file is cut off in what begins at byte {at}"),
            Error::TooLong { at, len } => {
                write!(f, "packet at byte {at} claims {len} bytes, more than {MAX_PACKET}")
            }
            Error::BadBlock { at, why } => write!(f, "bad pcapng block at byte {at}: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

/// Byte order of the numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Big,
    Little,
}

impl ByteOrder {
    /// Reads the number at offset `at`; 0 beyond the end, which callers exclude.
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let Some(&raw) = bytes.get(at..).and_then(|b| b.first_chunk()) else { return 0 };
        if self == ByteOrder::Big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) }
    }

    /// As [`u16`](Self::u16).
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let Some(&raw) = bytes.get(at..).and_then(|b| b.first_chunk()) else { return 0 };
        if self == ByteOrder::Big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
    }

    /// As [`u16`](Self::u16).
    fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let Some(&raw) = bytes.get(at..).and_then(|b| b.first_chunk()) else { return 0 };
        if self == ByteOrder::Big { i64::from_be_bytes(raw) } else { i64::from_le_bytes(raw) }
    }
}
