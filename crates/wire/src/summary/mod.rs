//! IP summary dumps: one line of text a packet, with the fields one asks for.
//!
//! ```text
//! !IPSummaryDump 1.3
//! !data timestamp ip_src sport ip_dst dport ip_proto ip_len
//! 1000000000.000000 10.0.0.1 53 10.0.0.2 99 U 60
//! ```
//!
//! Field names, their other names and all conventions are Click's: `-` for
//! what a packet does not have, `T`, `U` and `I` for the protocols, quotes
//! around payloads, lines that begin with `!` or `#` for everything that is
//! not a packet.

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
pub use parse::{Defaults, Dump, Flow, Parsed, parse_line};

use crate::timestamp::Timestamp;

/// The version of the format that is written.
pub const VERSION: (u16, u16) = (1, 3);

/// What is known of a packet beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// When the packet, or the last of its packets, was seen.
    pub timestamp: Timestamp,
    /// When the first of its packets was seen.
    pub first_timestamp: Timestamp,
    /// How many packets it stands for, beside itself.
    pub extra_packets: u32,
    /// How many bytes it was longer on the wire.
    pub extra_length: u32,
    /// Its paint: the link, or the direction, that it came from.
    pub paint: u8,
    /// The aggregate it belongs to.
    pub aggregate: u32,
    /// The worker that has it.
    pub thread: u32,
}

/// A packet's bytes, and where the headers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// All the bytes.
    pub data: &'a [u8],
    /// Where the link header begins, if that is known.
    pub link: Option<usize>,
    /// Where the network header begins, if that is known.
    pub network: Option<usize>,
}

impl<'a> Packet<'a> {
    /// A packet that begins with its network header.
    pub fn of_network(data: &'a [u8]) -> Self {
        Packet { data, link: None, network: Some(0) }
    }
}
