//! IP summary dumps: one line of text per packet, with a selection of fields.
//!
//! ```text
//! !IPSummaryDump 1.3
//! !data timestamp ip_src sport ip_dst dport ip_proto ip_len
//! 1000000000.000000 10.0.0.1 53 10.0.0.2 99 U 60
//! ```
//!
//! Field names, their synonyms and all conventions are Click's: `-` for a field
//! that a packet does not have, `T`, `U` and `I` for the protocols, quotes
//! around payloads, and `!` or `#` at the start of lines that are not packets.

mod binary;
mod build;
mod field;
mod format;
mod parse;
mod quote;
#[cfg(test)]
mod tests;
mod value;
mod view;

pub use binary::{RECORD_HEAD, record_head, text_record};
pub use field::{Field, UnknownField, fields};
pub use format::{Writer, header};
pub use parse::{Defaults, DumpReader, Flow, ParsedPacket, parse_line};

use crate::timestamp::Timestamp;

/// The version of the format that is written.
pub const VERSION: (u16, u16) = (1, 3);

/// Metadata of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Time of the packet, or of the last of the packets that it represents.
    pub timestamp: Timestamp,
    /// Time of the first of these packets.
    pub first_timestamp: Timestamp,
    /// Number of further packets that it represents.
    pub extra_packets: u32,
    /// Number of bytes by which it was longer on the wire.
    pub extra_length: u32,
    /// Its paint: the link, or the direction, of its arrival.
    pub paint: u8,
    /// Number of its aggregate.
    pub aggregate: u32,
    /// Number of the worker that processes it.
    pub thread: u32,
}

/// A packet's bytes and header offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// All the bytes.
    pub data: &'a [u8],
    /// The link header, which may have been stripped, if known; else it is all before the network header.
    pub link: Option<&'a [u8]>,
    /// Offset of the network header, if known.
    pub network: Option<usize>,
}

impl<'a> Packet<'a> {
    /// Makes a packet that begins with its network header.
    pub fn from_network(data: &'a [u8]) -> Self {
        Packet { data, link: None, network: Some(0) }
    }
}
