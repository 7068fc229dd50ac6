//! `ToDPDKRing`: packets for another process, into a ring of DPDK's.

use super::device_slot::DeviceSlot;
use super::ring_args::RingArgs;
use super::tx_queue::TxQueue;
use crate::dpdk::Ring;
use castanet_element::prelude::*;

/// Puts packets into a ring of DPDK's, which another process empties.
///
/// See `FromDPDKRing` for the ring's name and who makes it. Packets in mbufs
/// are handed over as they are; others, and those that share their bytes, are
/// copied into one, or several if they are longer. What the ring has no room for
/// waits, up to IQUEUE packets.
///
/// ```text
/// FromDPDKDevice(0) -> ToDPDKRing(MEM_POOL 1, FROM_PROC nf1, TO_PROC nf2);
/// ```
#[derive(Clone, Element)]
#[element(ports = "1/0")]
pub struct ToDPDKRing {
    /// Where mbufs come from, in FastClick; here all have the same.
    #[arg(default = "0".to_owned())]
    #[expect(dead_code, reason = "for configurations that say so")]
    mem_pool: String,
    /// What this process is called in the ring's name.
    #[arg]
    from_proc: String,
    /// What the process at the other end is called.
    #[arg]
    to_proc: String,
    /// How many packets may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether to wait for room, until none has gone for a tenth of a second,
    /// rather than to drop.
    #[arg(keyword, default = false)]
    blocking: bool,
    /// Packets to gather first, in FastClick; here a burst brings them.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    burst: i32,
    /// Milliseconds until fewer are sent, in FastClick; here nothing waits for more.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    timeout: i32,
    /// The ring.
    #[arg(flatten)]
    ring: RingArgs,
}

/// Why packets do not go.
#[derive(Fate)]
pub enum Unsent {
    /// Packets too long for any number of mbufs.
    #[drop]
    Refused,
    /// Packets that found no place to wait.
    #[drop]
    Full,
}

/// The ring's end, and what waits for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDPDKRingState {
    ring: DeviceSlot<Ring>,
    waiting: TxQueue,
    /// Packets that were dropped.
    dropped: u64,
}

#[handlers]
impl ToDPDKRingState {
    /// Packets put in.
    #[read]
    fn count(&self) -> u64 {
        self.ring.stats().sent
    }

    /// Bytes put in.
    #[read]
    fn byte_count(&self) -> u64 {
        self.ring.stats().sent_bytes
    }

    /// Packets dropped.
    #[read]
    fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The same as `count`.
    #[read]
    fn n_sent(&self) -> u64 {
        self.count()
    }

    /// The same as `dropped`.
    #[read]
    fn n_dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets that are in the ring.
    #[read]
    fn length(&self) -> usize {
        self.ring.get().map_or(0, Ring::waiting)
    }

    /// The ring's name, and how packets travel.
    #[read]
    fn how(&self) -> String {
        self.ring.describe()
    }
}

impl PerBatch for ToDPDKRing {
    type On = on::Any;
    type Local = ToDPDKRingState;
    type Fate = Unsent;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, _: &ToDPDKRing) -> bool {
        false // it opens what its arguments name
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
        let rest = local.waiting.take();
        self.give_up(local, rest, cx);
        local.ring.close();
    }

    fn held(&self, local: &ToDPDKRingState) -> usize {
        local.waiting.len()
    }
}

impl ToDPDKRing {
    fn send(&self, local: &mut ToDPDKRingState, mut batch: Batch, cx: &mut Cx) {
        let Some(ring) = local.ring.get_mut() else { return self.give_up(local, batch, cx) };
        let (limit, blocking) = (self.iqueue as usize, self.blocking);
        let outcome = local.waiting.send(ring, &mut batch, limit, blocking, cx);
        cx.count_consumed(outcome.sent);
        cx.count_dropped(Unsent::Refused, outcome.refused);
        local.dropped += outcome.refused as u64;
        self.give_up(local, batch, cx);
        if let Some(error) = outcome.error {
            cx.chatter(&format!("ToDPDKRing({}): {error}", self.from_proc));
        }
    }

    /// Drops packets that have no place to wait.
    fn give_up(&self, local: &mut ToDPDKRingState, left: Batch, cx: &mut Cx) {
        if !left.is_empty() {
            local.dropped += left.len() as u64;
            cx.emit_batch(Unsent::Full, left);
        }
    }
}
