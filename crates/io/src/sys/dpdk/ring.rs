//! DPDK rings: pass mbufs to another process, or to another element of this one.

use super::burst;
use super::eal::{expect_others, last_error};
use super::pool::Mbufs;
use super::shim::{self, RteRing};
use super::types::{CopyResult, RingConfig, RxMetadata, RxResult, TxCaps, TxLimits, TxResult};
use castanet_packet::{Batch, Pool};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The rings that were opened, each once.
static RINGS: Mutex<Vec<Arc<Ring>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A DPDK ring. It is never freed, since other processes may use it. A worker holds the lock of its
/// end for a burst, since the ring may have a single producer or a single consumer.
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
    /// The ring of this name; if there is none, a new one of the given configuration, if any.
    pub(crate) fn open(name: &str, config: Option<&RingConfig>) -> Result<Arc<Ring>, String> {
        let mut rings = lock(&RINGS);
        if let Some(ring) = rings.iter().find(|ring| ring.name == name) {
            return Ok(ring.clone());
        }
        let text = CString::new(name).map_err(|_| "a zero byte in its name".to_owned())?;
        expect_others();
        let RingConfig { descriptors, numa_node, one_sender, one_receiver } =
            config.copied().unwrap_or_default();
        // SAFETY: the environment runs, as the caller has checked; the name is live.
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

    /// DPDK's name of the ring.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Number of packets in the ring.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: the ring is live.
        unsafe { shim::castanet_dpdk_ring_count(self.ring.as_ptr()) as usize }
    }

    /// Dequeues up to `max` packets: see [`super::Port::receive`].
    pub(crate) fn receive(
        &self,
        mbufs: &Mbufs,
        pool: &Pool,
        batch: &mut Batch,
        max: usize,
    ) -> RxResult {
        let _alone = lock(&self.rx);
        // SAFETY: the ring is live and this end's lock is ours; there is room
        // for the mbufs that come out, and the producer has given them up.
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

    /// The limits of the ring: any packet up to the longest chain of mbufs.
    pub(crate) fn tx_caps(&self, mbufs: &Mbufs) -> TxCaps {
        TxCaps::of_ring(mbufs.pool().data_capacity() as u32)
    }

    /// Enqueues packets from the front of `batch`: see [`super::Port::transmit`].
    pub(crate) fn transmit(&self, batch: &mut Batch) -> TxResult {
        let _alone = lock(&self.tx);
        // SAFETY: the ring is live and this end's lock is ours; the packets
        // are live, and the consumer owns those that were enqueued.
        unsafe {
            burst::transmit(batch, |packets, n, mbuf_pools| {
                let limits = &TxLimits::ANY;
                shim::castanet_dpdk_enqueue(self.ring.as_ptr(), packets, n, mbuf_pools, limits)
            })
        }
    }

    /// Enqueues a copy of these bytes as one packet in several mbufs.
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
