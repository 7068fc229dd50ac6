//! Receiving by system calls: directly into a packet, or into a buffer if the frame is longer.

use crate::rx_finisher::{FrameMeta, RxFinisher};
use castanet_packet::{Batch, Packet, Pool};
use std::io;

/// The longest super-frame in bytes, headers included.
const MAX_SUPER_FRAME: usize = 66 << 10;

/// A buffer for frames that are longer than a packet of the pool.
pub(crate) struct RxBuffer {
    bytes: Box<[u8]>,
    /// A packet that is not yet filled.
    empty: Option<Packet>,
}

/// A received frame.
pub(crate) enum RxFrame<'s> {
    /// The frame lies in a packet.
    Packet(Packet),
    /// The frame lies in the buffer.
    Bytes(&'s [u8]),
}

impl RxBuffer {
    /// Creates a buffer for one frame of the greatest length.
    pub(crate) fn new() -> RxBuffer {
        RxBuffer { bytes: vec![0; 2 * MAX_SUPER_FRAME].into(), empty: None }
    }

    /// Lets `receive` fill a packet's bytes and, beyond them, the memory in its second argument;
    /// `receive` returns the frame's metadata and length.
    pub(crate) fn receive(
        &mut self,
        pool: &Pool,
        receive: impl FnOnce(&mut [u8], &mut [u8]) -> io::Result<(FrameMeta, usize)>,
    ) -> io::Result<(RxFrame<'_>, FrameMeta)> {
        let capacity = pool.data_capacity().min(MAX_SUPER_FRAME);
        let (front, rest) = self.bytes.split_at_mut(capacity);
        let empty = self.empty.take().or_else(|| {
            let mut packet = pool.alloc()?;
            packet.put_back(capacity);
            Some(packet)
        });
        let Some(mut packet) = empty else {
            // If the pool has no frame, the packet is received all the same, so that it is counted
            // as dropped and the kernel's queue moves on.
            let (meta, len) = receive(front, rest)?;
            let len = len.min(self.bytes.len());
            return Ok((RxFrame::Bytes(&self.bytes[..len]), meta));
        };
        let (meta, len) = match receive(packet.bytes_mut(), rest) {
            Ok(got) => got,
            Err(error) => {
                self.empty = Some(packet);
                return Err(error);
            }
        };
        if len <= capacity && meta.vnet.gso_type == 0 {
            packet.truncate(len);
            return Ok((RxFrame::Packet(packet), meta));
        }
        front.copy_from_slice(packet.bytes());
        self.empty = Some(packet);
        let len = len.min(self.bytes.len());
        Ok((RxFrame::Bytes(&self.bytes[..len]), meta))
    }
}

impl RxFrame<'_> {
    /// Makes packets of the frame. Adds up to `max` of them to `batch` and returns their number.
    pub(crate) fn finish(
        self,
        finisher: &mut RxFinisher,
        pool: &Pool,
        meta: &FrameMeta,
        batch: &mut Batch,
        max: usize,
    ) -> usize {
        match self {
            RxFrame::Packet(packet) => finisher.finish(packet, meta, batch),
            RxFrame::Bytes(bytes) => finisher.copy(pool, bytes, meta, batch, max),
        }
    }
}
