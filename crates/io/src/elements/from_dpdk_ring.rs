//! `FromDPDKRing`: receives packets from another process by a DPDK ring.

use super::device_slot::{DeviceSlot, Rx};
use super::poll_backoff::PollBackoff;
use super::ring_args::RingArgs;
use crate::device::Device;
use crate::dpdk::Ring;
use castanet_element::prelude::*;

/// Receives packets that another process has put into a DPDK ring.
///
/// The other end is a `ToDPDKRing` with the two names exchanged. The primary
/// process, which is started without `--proc-type=secondary`, makes the ring with
/// the name FROM_PROC_2_TO_PROC; secondary processes find it. FORCE_CREATE and
/// FORCE_LOOKUP override this. Two ends in one process need the same names.
/// Packets stay in their mbufs, without a copy, if the processes share them: both
/// are Castanet, with the same `DPDKInfo`. The element copies packets in other
/// mbufs. The processes must share huge pages and a `--file-prefix`. A primary
/// process lets others attach if its first configuration has a ring; its workers
/// then have no caches of mbufs.
///
/// When no packet has arrived for a millisecond the worker polls less and less
/// often, in the end once a millisecond.
///
/// ```text
/// FromDPDKRing(MEM_POOL 1, FROM_PROC nf1, TO_PROC nf2) -> Discard;
/// ```
/// ```text
/// castanet run --dpdk "--file-prefix nfs" -e "FromDevice(eth0) -> ToDPDKRing(1, nf1, nf2)"
/// castanet run --dpdk "--file-prefix nfs --proc-type=secondary" \
///     -e "FromDPDKRing(1, nf2, nf1) -> ToDevice(eth1)"
/// ```
#[derive(Clone, Element)]
#[element(ports = "0/0-1")]
pub struct FromDPDKRing {
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
    /// Number of packets to take at once; 0 for the engine's burst.
    #[arg(keyword, live, default = 0)]
    burst: u32,
    /// The arguments of the ring.
    #[arg(flatten)]
    ring: RingArgs,
}

/// The exit of received packets.
#[derive(Fate)]
pub enum FromDPDKRingExit {
    /// Packets.
    #[optional]
    Packet,
}

/// The open ring.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromDPDKRingState {
    #[flatten]
    ring: DeviceSlot<Ring, Rx>,
    backoff: PollBackoff,
}

#[handlers]
impl FromDPDKRingState {
    /// The same as `count`.
    #[read]
    fn pkt_count(&self) -> u64 {
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

impl Source for FromDPDKRing {
    type Local = FromDPDKRingState;
    type Fate = FromDPDKRingExit;

    fn can_take_state(&self, _: &FromDPDKRing) -> bool {
        false // A new element opens its ring anew.
    }

    fn init(&self, local: &mut FromDPDKRingState, _: &mut Cx) -> Result<(), ArgError> {
        local.ring.set(self.ring.open(&self.from_proc, &self.to_proc)?);
        Ok(())
    }

    fn produce(&self, local: &mut FromDPDKRingState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(ring) = local.ring.get_mut() else { return NextRun::Done };
        let n = if self.burst > 0 { self.burst as usize } else { n };
        let mut batch = Batch::new();
        if let Err(error) = ring.receive(cx.pool(), &mut batch, n) {
            cx.chatter(&format!("FromDPDKRing({}): {error}", self.from_proc));
            return NextRun::At(cx.now() + Duration::from_secs(1));
        }
        if batch.is_empty() {
            return local.backoff.next_run(cx.now(), false);
        }
        local.backoff.reset();
        cx.count_received(batch.len());
        cx.emit_batch(FromDPDKRingExit::Packet, batch);
        NextRun::Again
    }

    fn cleanup(&self, local: &mut FromDPDKRingState, _: &mut Cx) {
        local.ring.close();
    }
}
