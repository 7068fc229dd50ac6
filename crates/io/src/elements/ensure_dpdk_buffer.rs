//! `EnsureDPDKBuffer`: packets in mbufs.

use super::dpdk::told;
use crate::dpdk::Buffers;
use castanet_element::prelude::*;

/// Copies each packet that is in no mbuf, or shares one, into an mbuf of its own.
///
/// A DPDK port, or a ring to another process, does so by itself; here it is
/// done where there is time, or on a worker that is to bear the cost. What is
/// known about a packet stays with it.
///
/// ```text
/// FromDevice(eth0) -> EnsureDPDKBuffer -> Queue -> Unqueue -> ToDPDKDevice(0);
/// ```
#[derive(Clone, Element)]
#[element(ports = "1/1")]
pub struct EnsureDPDKBuffer;

/// Where packets go.
#[derive(Fate)]
pub enum EnsureDPDKBufferExit {
    /// Packets in mbufs.
    Packet,
    /// Packets that found no mbuf, or none long enough.
    #[drop]
    NoMbuf,
}

/// The mbufs.
#[derive(Default, Local)]
#[local(methods)]
pub struct EnsureDPDKBufferState {
    buffers: Option<Buffers>,
    /// Packets that found no mbuf.
    dropped: u64,
}

#[handlers]
impl EnsureDPDKBufferState {
    /// Packets that found no mbuf, or none long enough.
    #[read]
    fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl PerBatch for EnsureDPDKBuffer {
    type On = on::Any;
    type Local = EnsureDPDKBufferState;
    type Fate = EnsureDPDKBufferExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, _: &EnsureDPDKBuffer) -> bool {
        true
    }

    fn init(&self, local: &mut EnsureDPDKBufferState, _: &mut Cx) -> Result<(), ArgError> {
        local.buffers = Some(Buffers::open().map_err(|error| told(&error))?);
        Ok(())
    }

    fn batch(&self, local: &mut EnsureDPDKBufferState, _: usize, mut batch: Batch, cx: &mut Cx) {
        let Some(buffers) = &local.buffers else {
            return cx.emit_batch(EnsureDPDKBufferExit::NoMbuf, batch);
        };
        if batch.iter_mut().all(|packet| buffers.ensure(packet)) {
            return cx.emit_batch(EnsureDPDKBufferExit::Packet, batch);
        }
        for mut packet in batch {
            if buffers.ensure(&mut packet) {
                cx.emit(EnsureDPDKBufferExit::Packet, packet);
            } else {
                local.dropped += 1;
                cx.emit(EnsureDPDKBufferExit::NoMbuf, packet);
            }
        }
    }
}
