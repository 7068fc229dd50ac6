//! Blocks of pcapng files (draft-ietf-opsawg-pcapng).

use super::reader::{Input, PacketRecord};
use super::{ByteOrder, Error, MAX_PACKET};
use crate::timestamp::Timestamp;
use std::io::Read;

/// Block type of a section header; the same in either byte order.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Block type of an interface description.
pub(super) const INTERFACE: u32 = 1;
/// Block type of a packet, obsolete.
const PACKET: u32 = 2;
/// Block type of a packet without a timestamp.
const SIMPLE_PACKET: u32 = 3;
/// Block type of a packet.
pub(super) const ENHANCED_PACKET: u32 = 6;

/// Magic number of a section header, in the section's byte order.
pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Length of the fields of every block: type, length, and length again.
const OVERHEAD: u32 = 12;
/// Maximum length of a block that is read into memory: a packet and 1 MiB of options.
const MAX_BLOCK: u32 = MAX_PACKET as u32 + (1 << 20);
/// Maximum number of interfaces in one section.
const MAX_INTERFACES: usize = 1 << 16;

/// Interface option: resolution of timestamps.
pub(super) const IF_TSRESOL: u16 = 9;
/// Interface option: seconds to add to timestamps.
const IF_TSOFFSET: u16 = 14;

/// A section: its byte order and its interfaces.
#[derive(Debug)]
pub(super) struct Section {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

/// An interface description.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u32,
    /// Maximum number of bytes captured per packet; 0 means no limit.
    snap_len: u32,
    /// Number of timestamp units per second.
    units: u128,
    /// Seconds to add to timestamps.
    offset: i64,
}

/// A block whose body is in the input's buffer.
struct Block {
    /// Block type.
    kind: u32,
    /// Offset of the block in the file.
    at: u64,
}

impl Section {
    /// Opens a file, up to the first interface description. The caller has read
    /// the first four bytes, the type of a section header.
    pub(super) fn open<R: Read>(input: &mut Input<R>) -> Result<Self, Error> {
        let mut section = Section { order: ByteOrder::Little, interfaces: Vec::new() };
        section.read_header(input)?;
        while section.interfaces.is_empty() && !input.at_end()? {
            let block = section.read_block(input)?;
            match block.kind {
                INTERFACE => section.add_interface(&block, input)?,
                PACKET | ENHANCED_PACKET | SIMPLE_PACKET => {
                    return Err(unknown_interface(block.at));
                }
                _ => {}
            }
        }
        Ok(section)
    }

    /// Link type of the section's first interface.
    pub(super) fn link_type(&self) -> Option<u32> {
        self.interfaces.first().map(|interface| interface.link_type)
    }

    /// Reads the next packet; `None` at the end of the file.
    pub(super) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<PacketRecord>, Error> {
        while !input.at_end()? {
            let block = self.read_block(input)?;
            match block.kind {
                INTERFACE => self.add_interface(&block, input)?,
                ENHANCED_PACKET => {
                    let interface = self.order.u32(&input.block, 0);
                    return self.packet(interface, &block, input).map(Some);
                }
                PACKET => {
                    let interface = self.order.u16(&input.block, 0);
                    return self.packet(interface.into(), &block, input).map(Some);
                }
                SIMPLE_PACKET => return self.simple_packet(&block, input).map(Some),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Reads the next block; skips its body if its type is not needed.
    fn read_block<R: Read>(&mut self, input: &mut Input<R>) -> Result<Block, Error> {
        let at = input.at;
        input.fill(0, 4)?;
        let kind = self.order.u32(&input.block, 0);
        if kind == SECTION_HEADER {
            self.read_header(input)?;
            return Ok(Block { kind, at });
        }
        input.fill(0, 4)?;
        let len = self.order.u32(&input.block, 0);
        check_len(len, at)?;
        let body = len - OVERHEAD;
        if !matches!(kind, INTERFACE | PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
            input.skip(u64::from(body) + 4)?;
        } else if len > MAX_BLOCK {
            return Err(Error::TooLong { at, len });
        } else {
            input.fill(0, body as usize + 4)?;
            if self.order.u32(&input.block, body as usize) != len {
                return Err(Error::BadBlock { at, why: "its two lengths differ" });
            }
            input.block.truncate(body as usize);
        }
        input.at += u64::from(len);
        Ok(Block { kind, at })
    }

    /// Reads a section header, whose block type has been read.
    fn read_header<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), Error> {
        let at = input.at;
        input.fill(0, 8)?;
        self.order = [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| order.u32(&input.block, 4) == BYTE_ORDER_MAGIC)
            .ok_or(Error::BadBlock { at, why: "no byte order" })?;
        self.interfaces.clear();
        let len = self.order.u32(&input.block, 0);
        check_len(len, at)?;
        let rest = len.checked_sub(OVERHEAD).ok_or(Error::BadBlock { at, why: "too short" })?;
        input.skip(rest.into())?;
        input.at += u64::from(len);
        Ok(())
    }

    /// Parses an interface description and adds the interface.
    fn add_interface<R>(&mut self, block: &Block, input: &Input<R>) -> Result<(), Error> {
        let (body, order) = (&input.block[..], self.order);
        let Some(mut options) = body.get(8..) else {
            return Err(Error::BadBlock { at: block.at, why: "too short for an interface" });
        };
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Error::BadBlock { at: block.at, why: "too many interfaces" });
        }
        let mut interface = Interface {
            link_type: order.u16(body, 0).into(),
            snap_len: order.u32(body, 4),
            units: 1_000_000,
            offset: 0,
        };
        while options.len() >= 4 {
            let (kind, len) = (order.u16(options, 0), usize::from(order.u16(options, 2)));
            let Some(value) = options.get(4..4 + len) else { break };
            match (kind, len) {
                (0, _) => break,
                (IF_TSRESOL, 1) => interface.units = units(value[0]),
                (IF_TSOFFSET, 8) => interface.offset = order.i64(value, 0),
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Parses a packet block with a timestamp. Enhanced and obsolete blocks differ
    /// only in the interface number: 32 bits, or 16 bits and a drop count.
    fn packet<R>(
        &self,
        index: u32,
        block: &Block,
        input: &Input<R>,
    ) -> Result<PacketRecord, Error> {
        /// Length of interface, timestamp and two lengths.
        const HEAD: usize = 20;
        let body = &input.block[..];
        if body.len() < HEAD {
            return Err(Error::BadBlock { at: block.at, why: "too short for a packet" });
        }
        let interface = self.interfaces.get(index as usize);
        let interface = interface.ok_or_else(|| unknown_interface(block.at))?;
        let word = |at| self.order.u32(body, at);
        let (ticks, captured) = (u64::from(word(4)) << 32 | u64::from(word(8)), word(12));
        self.packet_record(
            index,
            interface.time(ticks),
            (captured, word(16)),
            HEAD,
            block,
            body.len(),
        )
    }

    /// Parses a packet block without a timestamp, of the first interface.
    fn simple_packet<R>(&self, block: &Block, input: &Input<R>) -> Result<PacketRecord, Error> {
        let body = &input.block[..];
        let interface = self.interfaces.first().ok_or_else(|| unknown_interface(block.at))?;
        if body.len() < 4 {
            return Err(Error::BadBlock { at: block.at, why: "too short for a packet" });
        }
        let wire_len = self.order.u32(body, 0);
        let snap_len = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let captured = wire_len.min(snap_len);
        self.packet_record(0, Timestamp::default(), (captured, wire_len), 4, block, body.len())
    }

    /// The record of a packet at offset `head` in a body of `body` bytes.
    fn packet_record(
        &self,
        index: u32,
        timestamp: Timestamp,
        (captured, wire_len): (u32, u32),
        head: usize,
        block: &Block,
        body: usize,
    ) -> Result<PacketRecord, Error> {
        let len = captured as usize;
        if len > MAX_PACKET {
            return Err(Error::TooLong { at: block.at, len: captured });
        }
        if head + len > body {
            return Err(Error::BadBlock { at: block.at, why: "packet longer than its block" });
        }
        let link_type = self.interfaces.get(index as usize).map_or(0, |i| i.link_type);
        Ok(PacketRecord {
            timestamp,
            wire_len,
            link_type,
            interface: index,
            data: head..head + len,
        })
    }
}

fn unknown_interface(at: u64) -> Error {
    Error::BadBlock { at, why: "packet of an interface that was not described" }
}

fn check_len(len: u32, at: u64) -> Result<(), Error> {
    if len < OVERHEAD || !len.is_multiple_of(4) {
        return Err(Error::BadBlock { at, why: "impossible length" });
    }
    Ok(())
}

/// Number of timestamp units per second: a power of ten, or of two if the top bit is set.
fn units(resolution: u8) -> u128 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    // On overflow the resolution is finer than any clock, and every time is the epoch.
    base.checked_pow(exponent).unwrap_or(u128::MAX)
}

impl Interface {
    /// Converts a timestamp of the file.
    fn time(&self, ticks: u64) -> Timestamp {
        let nanos = u128::from(ticks) * 1_000_000_000 / self.units;
        let shifted = i128::try_from(nanos).unwrap_or(i128::MAX);
        let shifted = shifted.saturating_add(i128::from(self.offset) * 1_000_000_000);
        Timestamp(i64::try_from(shifted.max(0)).unwrap_or(i64::MAX))
    }
}
