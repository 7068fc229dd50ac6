//! Reads capture files packet by packet, into one buffer.

use super::ng::Section;
use super::{ByteOrder, Error, MAGIC_KUZNETSOV, MAGIC_MICROS, MAGIC_NANOS, MAX_PACKET, ng};
use crate::timestamp::Timestamp;
use std::io::{BufRead, BufReader, Read};

/// A packet in the reader's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'r> {
    /// Time of capture.
    pub timestamp: Timestamp,
    /// Length on the wire in bytes.
    pub wire_len: u32,
    /// Type of its first header (see [`link_type`](super::link_type)).
    pub link_type: u32,
    /// Number of the file's interface that captured it.
    pub interface: u32,
    /// The captured bytes.
    pub data: &'r [u8],
}

/// A packet that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedPacket {
    /// Time of capture.
    pub timestamp: Timestamp,
    /// Length on the wire in bytes.
    pub wire_len: u32,
    /// Type of its first header (see [`link_type`](super::link_type)).
    pub link_type: u32,
    /// The captured bytes.
    pub data: Vec<u8>,
}

/// Reads a pcap or pcapng file.
///
/// After an error the reader is at its end, because it cannot locate the next packet.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    format: Format,
    done: bool,
}

#[derive(Debug)]
enum Format {
    Pcap(PcapHeader),
    Ng(Section),
}

/// The header of a pcap file.
#[derive(Clone, Copy, Debug)]
struct PcapHeader {
    order: ByteOrder,
    /// Nanoseconds per unit of the timestamps' fraction.
    unit: u64,
    link_type: u32,
    /// Length of the record header before each packet.
    record_len: usize,
    /// Whether the two lengths of a packet are exchanged, as in old versions.
    swapped: bool,
}

/// The file, the number of bytes read, and a buffer for a block.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: BufReader<R>,
    /// Offset in the file of the current header or packet.
    pub(super) at: u64,
    pub(super) block: Vec<u8>,
}

/// Size of the file buffer in bytes.
const BUFFER_SIZE: usize = 1 << 16;

impl<R: Read> Input<R> {
    /// Reads `len` bytes into `block`, replacing it from `keep` on.
    pub(super) fn fill(&mut self, keep: usize, len: usize) -> Result<(), Error> {
        self.block.truncate(keep);
        // Allocates for the bytes that the file has, not for the claimed length.
        let got = self.source.by_ref().take(len as u64).read_to_end(&mut self.block)?;
        if got < len {
            return Err(Error::Truncated { at: self.at });
        }
        Ok(())
    }

    /// Skips `len` bytes.
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
    /// Opens `source`: reads its header, and in a pcapng file all blocks up to the
    /// first interface description.
    pub fn new(source: R) -> Result<Self, Error> {
        let source = BufReader::with_capacity(BUFFER_SIZE, source);
        let mut input = Input { source, at: 0, block: Vec::new() };
        input.fill(0, 4)?;
        let mut magic = [0; 4];
        magic.copy_from_slice(&input.block);
        let format = if magic == ng::SECTION_HEADER.to_be_bytes() {
            Format::Ng(Section::open(&mut input)?)
        } else {
            Format::Pcap(PcapHeader::open(magic, &mut input)?)
        };
        Ok(Reader { input, format, done: false })
    }

    /// Link type of the first interface that has been read. `None` if a pcapng file has no
    /// interfaces.
    pub fn link_type(&self) -> Option<u32> {
        match &self.format {
            Format::Pcap(pcap) => Some(pcap.link_type),
            Format::Ng(section) => section.link_type(),
        }
    }

    /// Number of bytes of the file that have been read.
    pub fn offset(&self) -> u64 {
        self.input.at
    }

    /// Skips to the file offset `position`; returns `false` if it is before the current one. The
    /// caller must know that a packet's record begins there: the reader cannot check it.
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
        // Stays set if there is an error, or no packet.
        self.done = true;
        let record = match &mut self.format {
            Format::Pcap(pcap) => pcap.read(&mut self.input)?,
            Format::Ng(section) => section.read(&mut self.input)?,
        };
        let Some(record) = record else { return Ok(None) };
        self.done = false;
        Ok(Some(Packet {
            timestamp: record.timestamp,
            wire_len: record.wire_len,
            link_type: record.link_type,
            interface: record.interface,
            data: self.input.block.get(record.data).unwrap_or_default(),
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

/// A packet in the input's buffer, at the range `data`.
pub(super) struct PacketRecord {
    pub(super) timestamp: Timestamp,
    pub(super) wire_len: u32,
    pub(super) link_type: u32,
    pub(super) interface: u32,
    pub(super) data: std::ops::Range<usize>,
}

impl PcapHeader {
    /// Length of the file header.
    const LEN: usize = 24;
    /// Length of a record header: two words of timestamp, two lengths.
    const RECORD_LEN: usize = 16;

    /// Reads the rest of the file header, whose first four bytes are `magic`.
    fn open<R: Read>(magic: [u8; 4], input: &mut Input<R>) -> Result<Self, Error> {
        let candidates = [
            (ByteOrder::Big, u32::from_be_bytes(magic)),
            (ByteOrder::Little, u32::from_le_bytes(magic)),
        ];
        let format = candidates.into_iter().find_map(|(order, magic)| match magic {
            MAGIC_MICROS => Some((order, 1000, Self::RECORD_LEN)),
            MAGIC_NANOS => Some((order, 1, Self::RECORD_LEN)),
            MAGIC_KUZNETSOV => Some((order, 1000, Self::RECORD_LEN + 8)),
            _ => None,
        });
        let (order, unit, record_len) = format.ok_or(Error::NotACapture(magic))?;
        input.fill(4, Self::LEN - 4)?;
        let (major, minor) = (order.u16(&input.block, 4), order.u16(&input.block, 6));
        if major != 2 {
            return Err(Error::Version(major, minor));
        }
        // The upper bits describe frame check sequences.
        let link_type = order.u32(&input.block, 20) & 0xffff;
        input.at = Self::LEN as u64;
        Ok(PcapHeader { order, unit, link_type, record_len, swapped: minor < 3 })
    }

    /// Reads the next packet; `None` at the end of the file.
    fn read<R: Read>(&self, input: &mut Input<R>) -> Result<Option<PacketRecord>, Error> {
        if input.at_end()? {
            return Ok(None);
        }
        input.fill(0, self.record_len)?;
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
        input.at += (self.record_len + len) as u64;
        Ok(Some(PacketRecord {
            timestamp: Timestamp::new(secs.into(), u64::from(fraction) * self.unit),
            wire_len,
            link_type: self.link_type,
            interface: 0,
            data: 0..len,
        }))
    }
}
