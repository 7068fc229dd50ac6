//! Receiving by system calls: straight into a frame, with room for what is longer.

use crate::intake::{Arrival, Intake};
use castanet_packet::{Batch, Packet, Pool};
use std::io;

/// The longest that a super-frame can be, headers included.
const LONGEST: usize = 66 << 10;

/// Memory for frames that are longer than a packet of the pool.
pub(crate) struct Scratch {
    bytes: Box<[u8]>,
    /// A packet that is not yet filled.
    empty: Option<Packet>,
}

/// A frame that was just received.
pub(crate) enum Received<'s> {
    /// In place, in a packet.
    Packet(Packet),
    /// In the scratch memory.
    Bytes(&'s [u8]),
}

impl Scratch {
    /// Room for one frame of the greatest length.
    pub(crate) fn new() -> Scratch {
        Scratch { bytes: vec![0; 2 * LONGEST].into(), empty: None }
    }

    /// Has `receive` fill a packet's bytes, and beyond that the memory given
    /// as its second argument; it answers the frame's arrival and length.
    pub(crate) fn receive(
        &mut self,
        pool: &Pool,
        receive: impl FnOnce(&mut [u8], &mut [u8]) -> io::Result<(Arrival, usize)>,
    ) -> io::Result<(Received<'_>, Arrival)> {
        let capacity = pool.data_capacity().min(LONGEST);
        let (front, rest) = self.bytes.split_at_mut(capacity);
        let empty = self.empty.take().or_else(|| {
            let mut packet = pool.alloc()?;
            packet.put_back(capacity);
            Some(packet)
        });
        let Some(mut packet) = empty else {
            // Without a frame the packet is taken in all the same, so that it
            // is counted as dropped, and those behind it move up.
            let (arrival, len) = receive(front, rest)?;
            let len = len.min(self.bytes.len());
            return Ok((Received::Bytes(&self.bytes[..len]), arrival));
        };
        let (arrival, len) = match receive(packet.bytes_mut(), rest) {
            Ok(got) => got,
            Err(error) => {
                self.empty = Some(packet);
                return Err(error);
            }
        };
        if len <= capacity && arrival.vnet.gso_type == 0 {
            packet.truncate(len);
            return Ok((Received::Packet(packet), arrival));
        }
        front.copy_from_slice(packet.bytes());
        self.empty = Some(packet);
        let len = len.min(self.bytes.len());
        Ok((Received::Bytes(&self.bytes[..len]), arrival))
    }
}

impl Received<'_> {
    /// Makes packets of the frame. Adds up to `max` of them to `batch` and
    /// says how many.
    pub(crate) fn admit(
        self,
        intake: &mut Intake,
        pool: &Pool,
        arrival: &Arrival,
        batch: &mut Batch,
        max: usize,
    ) -> usize {
        match self {
            Received::Packet(packet) => intake.keep(packet, arrival, batch),
            Received::Bytes(bytes) => intake.copy(pool, bytes, arrival, batch, max),
        }
    }
}
