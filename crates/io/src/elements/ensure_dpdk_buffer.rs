//! `EnsureDPDKBuffer`: moves packets into mbufs.

use super::dpdk::to_arg_error;
use crate::dpdk::Buffers;
use castanet_element::prelude::*;

/// Copies each packet that is in no mbuf, or shares one, into an mbuf of its own.
///
/// A DPDK port, or a ring to another process, makes the same copy if it must; this
/// element makes it earlier, on the worker that is to bear the cost. The packet
/// keeps its annotations.
///
/// ```text
/// FromDevice(eth0) -> EnsureDPDKBuffer -> Queue -> Unqueue -> ToDPDKDevice(0);
/// ```
#[derive(Clone, Element)]
#[element(args = EnsureDPDKBufferArgs, ports = "1/1")]
pub struct EnsureDPDKBuffer;

/// The arguments of `EnsureDPDKBuffer`.
#[derive(Args)]
pub struct EnsureDPDKBufferArgs {
    /// An argument of FastClick without effect: a packet in an mbuf of its own needs no copy.
    #[arg(default = false)]
    force_copy: bool,
    /// An argument of FastClick without effect: the copy has the packet's room before its data.
    #[arg(default = 0)]
    #[allow(dead_code)]
    extra_headroom: u32,
    /// An argument of FastClick without effect: packets in no mbuf are copied, not dropped.
    #[arg(keyword, default = false)]
    fail: bool,
}

impl Build for EnsureDPDKBuffer {
    type Args = EnsureDPDKBufferArgs;

    fn build(args: EnsureDPDKBufferArgs, _: &Setup) -> Result<Self, ArgError> {
        match args.force_copy && args.fail {
            true => Err(ArgError::new("you cannot have both FORCE_COPY and FAIL")
                .click("You cannot have both FORCE_COPY and FAIL at the same time")),
            false => Ok(EnsureDPDKBuffer),
        }
    }
}

/// The exit of packets, and the reason to drop them.
#[derive(Fate)]
pub enum EnsureDPDKBufferExit {
    /// Packets in mbufs.
    Packet,
    /// Packets for which there was no free mbuf, or none long enough. Start with more --frames.
    #[drop]
    NoMbuf,
}

/// The pool of mbufs.
#[derive(Default, Local)]
#[local(methods)]
pub struct EnsureDPDKBufferState {
    buffers: Option<Buffers>,
    /// Packets for which there was no mbuf.
    dropped: u64,
}

#[handlers]
impl EnsureDPDKBufferState {
    /// Packets for which there was no free mbuf, or none long enough. Start with more --frames.
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
        local.buffers = Some(Buffers::open().map_err(|error| to_arg_error(&error))?);
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
