//! `ToDPDKRing`: sends packets to another process by a DPDK ring.

use super::device_slot::{DeviceSlot, Tx};
use super::ring_args::RingArgs;
use super::tx_queue::{Room, TxQueue};
use crate::dpdk::Ring;
use castanet_element::prelude::*;

/// Puts packets into a DPDK ring, from which another process takes them.
///
/// `FromDPDKRing` describes the ring's name and the process that makes it. The
/// element hands over packets in mbufs without a copy; it copies others, and those
/// that share their bytes, into an mbuf, or into several if they are longer. Packets
/// for which the ring has no room wait, up to IQUEUE of them.
///
/// ```text
/// FromDPDKDevice(0) -> ToDPDKRing(MEM_POOL 1, FROM_PROC nf1, TO_PROC nf2);
/// ```
#[derive(Clone, Element)]
#[element(ports = "1/0")]
pub struct ToDPDKRing {
    /// The pool of the mbufs, in FastClick; ignored here, all elements share one.
    #[arg(default = "0".to_owned())]
    #[expect(dead_code, reason = "for configurations that say so")]
    mem_pool: String,
    /// The name of this process in the ring's name.
    #[arg]
    from_proc: String,
    /// The name of the process at the other end.
    #[arg]
    to_proc: String,
    /// Number of packets of each worker that may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether the worker blocks until there is room, or until the ring has taken
    /// nothing for a tenth of a second, instead of dropping packets.
    #[arg(keyword, default = false)]
    blocking: bool,
    /// Number of packets to gather before sending, in FastClick; ignored here.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    burst: i32,
    /// Milliseconds to gather packets for, in FastClick; ignored here, bursts are sent at once.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    timeout: i32,
    /// The arguments of the ring.
    #[arg(flatten)]
    ring: RingArgs,
}

/// The reasons to drop packets.
#[derive(Fate)]
pub enum ToDPDKRingExit {
    /// Packets too long for any number of mbufs.
    #[drop]
    Refused,
    /// Packets for which the ring had no room, beyond the IQUEUE packets that may wait. Raise
    /// IQUEUE, or look at the rate at which packets leave.
    #[drop]
    Full,
}

/// The open ring, and the packets that wait for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDPDKRingState {
    #[flatten]
    ring: DeviceSlot<Ring, Tx>,
    #[flatten]
    waiting: TxQueue,
}

#[handlers]
impl ToDPDKRingState {
    /// The same as `count`.
    #[read]
    fn n_sent(&self) -> u64 {
        self.ring.count()
    }

    /// Packets that are in the ring.
    #[read]
    fn length(&self) -> usize {
        self.ring.get().map_or(0, Ring::waiting)
    }

    /// The ring's name, and whether packets are copied.
    #[read]
    fn how(&self) -> String {
        self.ring.describe()
    }
}

impl PerBatch for ToDPDKRing {
    type On = on::Any;
    type Local = ToDPDKRingState;
    type Fate = ToDPDKRingExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, _: &ToDPDKRing) -> bool {
        false // A new element opens its ring anew.
    }

    fn init(&self, local: &mut ToDPDKRingState, _: &mut Cx) -> Result<(), ArgError> {
        local.ring.set(self.ring.open(&self.from_proc, &self.to_proc)?);
        Ok(())
    }

    fn batch(&self, local: &mut ToDPDKRingState, _: usize, batch: Batch, cx: &mut Cx) {
        self.send(local, batch, cx);
    }

    fn run_timer(&self, local: &mut ToDPDKRingState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
    }

    fn cleanup(&self, local: &mut ToDPDKRingState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
        local.waiting.discard(ToDPDKRingExit::Full, cx);
        local.ring.close();
    }

    fn held(&self, local: &ToDPDKRingState) -> usize {
        local.waiting.len()
    }
}

impl ToDPDKRing {
    fn send(&self, local: &mut ToDPDKRingState, batch: Batch, cx: &mut Cx) {
        let Some(ring) = local.ring.get_mut() else {
            return local.waiting.drop_batch(batch, ToDPDKRingExit::Full, cx);
        };
        let room = Room { limit: self.iqueue as usize, blocking: self.blocking };
        let exits = (ToDPDKRingExit::Refused, ToDPDKRingExit::Full);
        let outcome = local.waiting.send(ring, batch, room, exits, cx);
        if let Some(error) = outcome.error {
            cx.chatter(&format!("ToDPDKRing({}): {error}", self.from_proc));
        }
    }
}
