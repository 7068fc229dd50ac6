//! Rings: mbufs on their way to another process, or to another element of this one.

use super::burst;
use super::eal::{expect_others, last_error};
use super::pool::Mbufs;
use super::shim::{self, RteRing};
use super::types::{CopyResult, RingConfig, RxMetadata, RxResult, TxCaps, TxLimits, TxResult};
use castanet_packet::{Batch, Pool};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The rings that were asked for, once each.
static RINGS: Mutex<Vec<Arc<Ring>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A ring of DPDK's. It lasts until the process ends, or longer, for other
/// processes may have it. A worker holds the lock of its end for a burst, as
/// the ring may have been made for one sender or one receiver.
pub(crate) struct Ring {
    name: String,
    ring: NonNull<RteRing>,
    rx: Mutex<()>,
    tx: Mutex<()>,
}

// SAFETY: DPDK's rings are made to be used by several threads and processes;
// each end only under its lock.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// The ring of this name, made as the plan says if there is none and it may be.
    pub(crate) fn open(name: &str, config: Option<&RingConfig>) -> Result<Arc<Ring>, String> {
        let mut rings = lock(&RINGS);
        if let Some(ring) = rings.iter().find(|ring| ring.name == name) {
            return Ok(ring.clone());
        }
        let text = CString::new(name).map_err(|_| "a zero byte in its name".to_owned())?;
        expect_others();
        let RingConfig { descriptors, numa_node, one_sender, one_receiver } =
            config.copied().unwrap_or_default();
        // SAFETY: the environment runs, as who asks has seen to; the name is live.
        let ring = unsafe {
            let name = text.as_ptr();
            shim::castanet_dpdk_ring(name, descriptors, numa_node, one_sender, one_receiver)
        };
        let Some(ring) = NonNull::new(ring) else {
            return Err(match config {
                Some(_) => last_error(),
                None => "no other process has made it".to_owned(),
            });
        };
        let (rx, tx) = (Mutex::new(()), Mutex::new(()));
        let ring = Arc::new(Ring { name: name.to_owned(), ring, rx, tx });
        rings.push(ring.clone());
        Ok(ring)
    }

    /// What DPDK calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many packets are in it.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: the ring is live.
        unsafe { shim::castanet_dpdk_ring_count(self.ring.as_ptr()) as usize }
    }

    /// Takes up to `max` packets out: see [`super::Port::receive`].
    pub(crate) fn receive(
        &self,
        mbufs: &Mbufs,
        pool: &Pool,
        batch: &mut Batch,
        max: usize,
    ) -> RxResult {
        let _alone = lock(&self.rx);
        // SAFETY: the ring is live and this end's lock is ours; there is room
        // for what comes out, and who put it in gave it up.
        unsafe {
            burst::receive(
                mbufs,
                pool,
                batch,
                max,
                RxMetadata::default(),
                |template, packets, first, n| {
                    shim::castanet_dpdk_dequeue(self.ring.as_ptr(), template, packets, first, n)
                },
            )
        }
    }

    /// What can be put in: anything.
    pub(crate) fn tx_caps(&self, mbufs: &Mbufs) -> TxCaps {
        TxCaps::of_ring(mbufs.pool().data_capacity() as u32)
    }

    /// Puts packets from the front of `batch` in: see [`super::Port::transmit`].
    pub(crate) fn transmit(&self, batch: &mut Batch) -> TxResult {
        let _alone = lock(&self.tx);
        // SAFETY: the ring is live and this end's lock is ours; the packets
        // are live, and who takes them out has those that went.
        unsafe {
            burst::transmit(batch, |packets, n, mbuf_pools| {
                let limits = &TxLimits::ANY;
                shim::castanet_dpdk_enqueue(self.ring.as_ptr(), packets, n, mbuf_pools, limits)
            })
        }
    }

    /// Puts a copy of these bytes in as one packet in several mbufs.
    pub(crate) fn transmit_long(&self, mbufs: &Mbufs, bytes: &[u8]) -> CopyResult {
        let _alone = lock(&self.tx);
        let (first, len) = (bytes.as_ptr(), bytes.len() as u32);
        // SAFETY: the ring is live and this end's lock is ours; the bytes are
        // only copied, and the mempool lasts.
        CopyResult::from_answer(unsafe {
            let mempool = mbufs.mempool();
            shim::castanet_dpdk_enqueue_long(self.ring.as_ptr(), mempool, first, len)
        })
    }
}
