//! Blocks of pcapng files (draft-ietf-opsawg-pcapng).

use super::reader::{Found, Input};
use super::{Error, MAX_PACKET, Order};
use crate::timestamp::Timestamp;
use std::io::Read;

/// Begins a section; reads the same in either byte order.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// Obsolete form of a packet.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Tells the byte order of a section.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Type, length, and length again: what every block has.
const OVERHEAD: u32 = 12;
/// The longest block that is read whole: a packet and generous options.
const MAX_BLOCK: u32 = MAX_PACKET as u32 + (1 << 20);
/// As many interfaces as are believed in one section.
const MAX_INTERFACES: usize = 1 << 16;

/// Option of an interface: the unit of its timestamps.
const IF_TSRESOL: u16 = 9;
/// Option of an interface: seconds to add to its timestamps.
const IF_TSOFFSET: u16 = 14;

/// A section: its byte order and its interfaces.
#[derive(Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u32,
    /// Most bytes captured of a packet; 0 for no limit.
    snap_len: u32,
    /// Units of time in a second.
    units: u128,
    /// Seconds to add.
    offset: i64,
}

/// A block read: its type and, in the buffer, its body.
struct Block {
    kind: u32,
    at: u64,
}

impl Section {
    /// Opens a file whose first four bytes, a section's, are read.
    pub(super) fn open<R: Read>(input: &mut Input<R>) -> Result<Self, Error> {
        let mut section = Section { order: Order::Little, interfaces: Vec::new() };
        section.enter(input)?;
        while section.interfaces.is_empty() && !input.at_end()? {
            let block = section.block(input)?;
            match block.kind {
                INTERFACE => section.interface(&block, input)?,
                PACKET | ENHANCED_PACKET | SIMPLE_PACKET => return Err(no_interface(block.at)),
                _ => {}
            }
        }
        Ok(section)
    }

    pub(super) fn link_type(&self) -> Option<u32> {
        self.interfaces.first().map(|interface| interface.link_type)
    }

    /// Reads on to the next packet.
    pub(super) fn read<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Found>, Error> {
        while !input.at_end()? {
            let block = self.block(input)?;
            match block.kind {
                INTERFACE => self.interface(&block, input)?,
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

    /// Reads the next block: whole if it matters, over it otherwise.
    fn block<R: Read>(&mut self, input: &mut Input<R>) -> Result<Block, Error> {
        let at = input.at;
        input.fill(0, 4)?;
        let kind = self.order.u32(&input.block, 0);
        if kind == SECTION_HEADER {
            self.enter(input)?;
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

    /// Reads a section header, whose type has been read.
    fn enter<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), Error> {
        let at = input.at;
        input.fill(0, 8)?;
        self.order = [Order::Little, Order::Big]
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

    /// Understands the description of an interface.
    fn interface<R>(&mut self, block: &Block, input: &Input<R>) -> Result<(), Error> {
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

    /// Understands a packet with a time, in the present or the obsolete form:
    /// where the one has an interface of 32 bits, the other has 16 and a count
    /// of drops.
    fn packet<R>(&self, index: u32, block: &Block, input: &Input<R>) -> Result<Found, Error> {
        /// Interface, time and two lengths.
        const HEAD: usize = 20;
        let body = &input.block[..];
        if body.len() < HEAD {
            return Err(Error::BadBlock { at: block.at, why: "too short for a packet" });
        }
        let interface = self.interfaces.get(index as usize);
        let interface = interface.ok_or_else(|| no_interface(block.at))?;
        let word = |at| self.order.u32(body, at);
        let (ticks, captured) = (u64::from(word(4)) << 32 | u64::from(word(8)), word(12));
        self.found(index, interface.time(ticks), (captured, word(16)), HEAD, block, body.len())
    }

    /// Understands a packet without a time, of the first interface.
    fn simple_packet<R>(&self, block: &Block, input: &Input<R>) -> Result<Found, Error> {
        let body = &input.block[..];
        let interface = self.interfaces.first().ok_or_else(|| no_interface(block.at))?;
        if body.len() < 4 {
            return Err(Error::BadBlock { at: block.at, why: "too short for a packet" });
        }
        let wire_len = self.order.u32(body, 0);
        let snap_len = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let captured = wire_len.min(snap_len);
        self.found(0, Timestamp::default(), (captured, wire_len), 4, block, body.len())
    }

    /// A packet that begins at `head` in a body of `body` bytes.
    fn found(
        &self,
        index: u32,
        timestamp: Timestamp,
        (captured, wire_len): (u32, u32),
        head: usize,
        block: &Block,
        body: usize,
    ) -> Result<Found, Error> {
        let len = captured as usize;
        if len > MAX_PACKET {
            return Err(Error::TooLong { at: block.at, len: captured });
        }
        if head + len > body {
            return Err(Error::BadBlock { at: block.at, why: "packet longer than its block" });
        }
        let link_type = self.interfaces.get(index as usize).map_or(0, |i| i.link_type);
        Ok(Found { timestamp, wire_len, link_type, interface: index, data: head..head + len })
    }
}

fn no_interface(at: u64) -> Error {
    Error::BadBlock { at, why: "packet of an interface that was not described" }
}

fn check_len(len: u32, at: u64) -> Result<(), Error> {
    if len < OVERHEAD || !len.is_multiple_of(4) {
        return Err(Error::BadBlock { at, why: "impossible length" });
    }
    Ok(())
}

/// Units in a second: a power of ten, or of two if the top bit is set.
fn units(resolution: u8) -> u128 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    // Finer than any clock: every time is then the epoch.
    base.checked_pow(exponent).unwrap_or(u128::MAX)
}

impl Interface {
    fn time(&self, ticks: u64) -> Timestamp {
        let nanos = u128::from(ticks) * 1_000_000_000 / self.units;
        let shifted = i128::try_from(nanos).unwrap_or(i128::MAX);
        let shifted = shifted.saturating_add(i128::from(self.offset) * 1_000_000_000);
        Timestamp(i64::try_from(shifted.max(0)).unwrap_or(i64::MAX))
    }
}
