//! Reads captures packet by packet, into one buffer.

use super::ng::Section;
use super::{Error, MAGIC_KUZNETSOV, MAGIC_MICROS, MAGIC_NANOS, MAX_PACKET, Order, ng};
use crate::timestamp::Timestamp;
use std::io::{BufRead, BufReader, Read};

/// A packet read, in the reader's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'r> {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// How long it was on the wire.
    pub wire_len: u32,
    /// What it begins with (see [`link_type`](super::link_type)).
    pub link_type: u32,
    /// On which of the file's interfaces it was captured.
    pub interface: u32,
    /// What was captured of it.
    pub data: &'r [u8],
}

/// A packet read, with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedPacket {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// How long it was on the wire.
    pub wire_len: u32,
    /// What it begins with (see [`link_type`](super::link_type)).
    pub link_type: u32,
    /// What was captured of it.
    pub data: Vec<u8>,
}

/// Reads a pcap or pcapng file.
///
/// After an error the reader is at its end: what follows cannot be told apart.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    format: Format,
    done: bool,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Ng(Section),
}

/// What a pcap file's header says.
#[derive(Clone, Copy, Debug)]
struct Pcap {
    order: Order,
    /// Nanoseconds in a unit of the timestamps' fraction.
    unit: u64,
    link_type: u32,
    /// Length of what stands before each packet.
    record: usize,
    /// Whether the two lengths of a packet are the wrong way round.
    swapped: bool,
}

/// The file, how much of it was read, and a buffer for a block.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: BufReader<R>,
    pub(super) at: u64,
    pub(super) block: Vec<u8>,
}

/// Bytes read from the file at once.
const CHUNK: usize = 1 << 16;

impl<R: Read> Input<R> {
    /// Reads `len` bytes into `block`, replacing it from `keep` on.
    pub(super) fn fill(&mut self, keep: usize, len: usize) -> Result<(), Error> {
        self.block.truncate(keep);
        // As much is allocated as there are bytes, whatever the file claims.
        let got = self.source.by_ref().take(len as u64).read_to_end(&mut self.block)?;
        if got < len {
            return Err(Error::Truncated { at: self.at });
        }
        Ok(())
    }

    /// Reads over `len` bytes.
    pub(super) fn skip(&mut self, len: u64) -> Result<(), Error> {
        let got = std::io::copy(&mut self.source.by_ref().take(len), &mut std::io::sink())?;
        if got < len { Err(Error::Truncated { at: self.at }) } else { Ok(()) }
    }

    /// Whether the file ends here.
    pub(super) fn at_end(&mut self) -> Result<bool, Error> {
        Ok(self.source.fill_buf()?.is_empty())
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read `source`: its header, and of a pcapng file all up to the
    /// first interface.
    pub fn new(source: R) -> Result<Self, Error> {
        let source = BufReader::with_capacity(CHUNK, source);
        let mut input = Input { source, at: 0, block: Vec::new() };
        input.fill(0, 4)?;
        let mut magic = [0; 4];
        magic.copy_from_slice(&input.block);
        let format = if magic == ng::SECTION_HEADER.to_be_bytes() {
            Format::Ng(Section::open(&mut input)?)
        } else {
            Format::Pcap(Pcap::open(magic, &mut input)?)
        };
        Ok(Reader { input, format, done: false })
    }

    /// What packets begin with, as far as the file has said so yet: that of
    /// the first interface. `None` if a pcapng file has none.
    pub fn link_type(&self) -> Option<u32> {
        match &self.format {
            Format::Pcap(pcap) => Some(pcap.link_type),
            Format::Ng(section) => section.link_type(),
        }
    }

    /// How many bytes of the file are read.
    pub fn offset(&self) -> u64 {
        self.input.at
    }

    /// Goes on at a position where a packet's record begins, as nobody can check; false if that
    /// is behind the present one.
    pub fn skip_to(&mut self, position: u64) -> Result<bool, Error> {
        let Some(more) = position.checked_sub(self.input.at) else { return Ok(false) };
        self.input.skip(more)?;
        self.input.at = position;
        Ok(true)
    }

    /// The next packet; `None` at the end of the file.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        if self.done {
            return Ok(None);
        }
        // Until the packet is there, an error or the end is what there is.
        self.done = true;
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.read(&mut self.input)?,
            Format::Ng(section) => section.read(&mut self.input)?,
        };
        let Some(found) = found else { return Ok(None) };
        self.done = false;
        Ok(Some(Packet {
            timestamp: found.timestamp,
            wire_len: found.wire_len,
            link_type: found.link_type,
            interface: found.interface,
            data: self.input.block.get(found.data).unwrap_or_default(),
        }))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<OwnedPacket, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let packet = self.next_packet().transpose()?;
        Some(packet.map(|packet| OwnedPacket {
            timestamp: packet.timestamp,
            wire_len: packet.wire_len,
            link_type: packet.link_type,
            data: packet.data.to_vec(),
        }))
    }
}

/// A packet in the buffer.
pub(super) struct Found {
    pub(super) timestamp: Timestamp,
    pub(super) wire_len: u32,
    pub(super) link_type: u32,
    pub(super) interface: u32,
    pub(super) data: std::ops::Range<usize>,
}

impl Pcap {
    /// Length of the file header.
    const HEADER: usize = 24;
    /// Length of what stands before a packet: two words of time, two lengths.
    const RECORD: usize = 16;

    fn open<R: Read>(magic: [u8; 4], input: &mut Input<R>) -> Result<Self, Error> {
        let known =
            [(Order::Big, u32::from_be_bytes(magic)), (Order::Little, u32::from_le_bytes(magic))];
        let found = known.into_iter().find_map(|(order, magic)| match magic {
            MAGIC_MICROS => Some((order, 1000, Self::RECORD)),
            MAGIC_NANOS => Some((order, 1, Self::RECORD)),
            MAGIC_KUZNETSOV => Some((order, 1000, Self::RECORD + 8)),
            _ => None,
        });
        let (order, unit, record) = found.ok_or(Error::NotACapture(magic))?;
        input.fill(4, Self::HEADER - 4)?;
        let (major, minor) = (order.u16(&input.block, 4), order.u16(&input.block, 6));
        if major != 2 {
            return Err(Error::Version(major, minor));
        }
        // The upper bits tell of frame check sequences.
        let link_type = order.u32(&input.block, 20) & 0xffff;
        input.at = Self::HEADER as u64;
        Ok(Pcap { order, unit, link_type, record, swapped: minor < 3 })
    }

    fn read<R: Read>(&self, input: &mut Input<R>) -> Result<Option<Found>, Error> {
        if input.at_end()? {
            return Ok(None);
        }
        input.fill(0, self.record)?;
        let word = |at| self.order.u32(&input.block, at);
        let (secs, fraction) = (word(0), word(4));
        let (mut captured, mut wire_len) = (word(8), word(12));
        if self.swapped {
            std::mem::swap(&mut captured, &mut wire_len);
        }
        let len = captured as usize;
        if len > MAX_PACKET {
            return Err(Error::TooLong { at: input.at, len: captured });
        }
        input.fill(0, len)?;
        input.at += (self.record + len) as u64;
        Ok(Some(Found {
            timestamp: Timestamp::new(secs.into(), u64::from(fraction) * self.unit),
            wire_len,
            link_type: self.link_type,
            interface: 0,
            data: 0..len,
        }))
    }
}
