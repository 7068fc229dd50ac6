//! Capture files: pcap and pcapng are read, pcap is written.
//!
//! The reader trusts nothing: a length that makes no sense is an error, never
//! an allocation, and a file that ends within a packet is told from one that
//! ends after it.
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
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{OwnedPacket, Packet, Reader};
pub use writer::{Precision, Writer, file_header, record_header};

use std::{fmt, io};

/// The longest packet that is believed: libpcap's limit.
pub const MAX_PACKET: usize = 262_144;

/// Microseconds, in the writer's byte order.
const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
/// Nanoseconds, in the writer's byte order.
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Microseconds, with longer record headers (A. Kuznetsov's variant).
const MAGIC_KUZNETSOV: u32 = 0xa1b2_cd34;

/// Why a capture cannot be read, or not read on.
#[derive(Debug)]
pub enum Error {
    /// Reading failed.
    Io(io::Error),
    /// The file begins like no capture.
    NotACapture([u8; 4]),
    /// The file is of a version that nobody knows.
    Version(u16, u16),
    /// The file ends within a header or a packet.
    Truncated {
        /// Where what is cut off begins.
        at: u64,
    },
    /// A packet is longer than any can be.
    TooLong {
        /// Where its header begins.
        at: u64,
        /// Its length.
        len: u32,
    },
    /// A block of a pcapng file contradicts itself.
    BadBlock {
        /// Where the block begins.
        at: u64,
        /// What is wrong.
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

/// In which order a file has the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Big,
    Little,
}

impl Order {
    /// The number at `at`; zero beyond the end, which callers rule out.
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let Some(&raw) = bytes.get(at..).and_then(|b| b.first_chunk()) else { return 0 };
        if self == Order::Big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) }
    }

    /// As [`u16`](Self::u16).
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let Some(&raw) = bytes.get(at..).and_then(|b| b.first_chunk()) else { return 0 };
        if self == Order::Big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
    }

    /// As [`u16`](Self::u16).
    fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let Some(&raw) = bytes.get(at..).and_then(|b| b.first_chunk()) else { return 0 };
        if self == Order::Big { i64::from_be_bytes(raw) } else { i64::from_le_bytes(raw) }
    }
}
