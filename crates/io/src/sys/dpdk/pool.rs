//! A mempool of mbufs as a pool of frames.

use super::eal::last_error;
use super::shim::{self, Mempool, PacketTemplate};
use castanet_packet::{DEFAULT_HEADROOM, FrameHeader, FrameStore, Packet, Pool, PoolConfig};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a cache line.
const LINE: u16 = 64;

/// A mempool whose mbufs are frames of a pool. It lasts until the process
/// ends, for drivers keep mbufs for as long as they please.
#[derive(Clone)]
pub(crate) struct Mbufs {
    pub(super) pool: Pool,
    mempool: MempoolPtr,
    /// The common fields of its packets.
    template: SharedTemplate,
    /// DPDK's name of the mempool.
    pub(crate) name: String,
}

/// One bit for each pool number: set if the pool's frames are mbufs. Such a pool is never dropped, so
/// its number is never reused.
static MBUF_POOL_BITS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// The bits of all pools, 64 to a word.
pub(super) fn mbuf_pool_bits() -> [u64; 4] {
    [0, 1, 2, 3].map(|word| MBUF_POOL_BITS[word].load(Ordering::Relaxed))
}

/// Whether the packet's frame is an mbuf without other owners.
#[inline]
pub(crate) fn is_own_mbuf(packet: &Packet) -> bool {
    let pool = usize::from(packet.pool_id());
    let bits = MBUF_POOL_BITS[pool / 64].load(Ordering::Relaxed);
    bits >> (pool % 64) & 1 != 0 && !packet.is_shared()
}

/// One of so many mbufs is reserved for ports, in addition to those in their rings.
const RESERVE: usize = 8;

/// A mempool that lasts until the process ends.
#[derive(Clone, Copy)]
pub(super) struct MempoolPtr(pub(super) NonNull<Mempool>);

// SAFETY: mempools may be used from any thread: each has its own cache, by its
// number, and those without a number have none.
unsafe impl Send for MempoolPtr {}
// SAFETY: as above.
unsafe impl Sync for MempoolPtr {}

/// The common fields of a mempool's packets, shared between threads.
#[derive(Clone, Copy)]
struct SharedTemplate(PacketTemplate);

// SAFETY: as for `MempoolPtr`; only the mempool's address is used.
unsafe impl Send for SharedTemplate {}
// SAFETY: as above.
unsafe impl Sync for SharedTemplate {}

impl Mbufs {
    /// `count` mbufs with room for `size` bytes each, the headroom included.
    pub(crate) fn new(
        name: &str,
        count: u32,
        cache: u32,
        size: u16,
        numa_node: i32,
    ) -> Result<Mbufs, String> {
        // DPDK adds three cache lines to an mbuf, and the frame's header takes one: an odd
        // number of lines in all spreads mbufs over the sets of the CPU's cache.
        let room = (size.div_ceil(LINE) | 1) * LINE;
        let text = CString::new(name).map_err(|_| "a zero byte in a name".to_owned())?;
        // SAFETY: the environment runs, since callers check `is_started` first; the
        // name is live.
        let made =
            unsafe { shim::castanet_dpdk_pool(text.as_ptr(), count, cache, room, numa_node) };
        let Some(mempool) = NonNull::new(made).map(MempoolPtr) else { return Err(last_error()) };
        let header = size_of::<FrameHeader>();
        let config = PoolConfig {
            frames: count as usize,
            data_capacity: usize::from(room).saturating_sub(DEFAULT_HEADROOM),
            headroom: DEFAULT_HEADROOM,
            stride: Some(header + usize::from(room)),
            reserve: count as usize / RESERVE,
            ..PoolConfig::default()
        };
        // SAFETY: `castanet_dpdk_pool` makes the header the private area of
        // each mbuf, at a multiple of 64, and puts `room` bytes right behind
        // it. The memory is mapped, and so initialised, for good: mempools are
        // never freed here. An mbuf that is not in the mempool belongs to the
        // caller that took it, or to the driver until it is received.
        let pool = unsafe { Pool::foreign(&config, Box::new(Store { mempool, count })) };
        let pool = pool.map_err(|error| error.to_string())?;
        let id = usize::from(pool.id());
        MBUF_POOL_BITS[id / 64].fetch_or(1 << (id % 64), Ordering::Relaxed);
        let marks = pool.marks();
        let template = PacketTemplate { pool: made, marks, room: u64::from(room) };
        Ok(Mbufs { pool, mempool, template: SharedTemplate(template), name: name.to_owned() })
    }

    /// The mempool.
    pub(super) fn mempool(&self) -> *mut Mempool {
        self.mempool.0.as_ptr()
    }

    /// The common fields of its packets.
    #[inline]
    pub(super) fn template(&self) -> &PacketTemplate {
        &self.template.0
    }

    /// The pool of frames that the mbufs are.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Sets the pool's low flag if few mbufs are left, so that elements that store packets copy them
    /// out of mbufs.
    pub(crate) fn update_low_flag(&self) {
        let reserve = self.pool.reserve() as u32;
        // SAFETY: the mempool is live.
        let is_ample = unsafe { shim::castanet_dpdk_pool_has(self.mempool.0.as_ptr(), reserve) };
        self.pool.set_low(!is_ample);
    }

    /// Number of free mbufs in the mempool.
    pub(crate) fn available(&self) -> usize {
        // SAFETY: the mempool is live.
        unsafe { shim::castanet_dpdk_pool_available(self.mempool.0.as_ptr()) as usize }
    }
}

/// The pool's store of free frames: the mempool.
struct Store {
    mempool: MempoolPtr,
    count: u32,
}

impl FrameStore for Store {
    fn take(&self, frames: &mut [Option<NonNull<FrameHeader>>]) -> usize {
        let n = frames.len() as u32;
        // SAFETY: the mempool is live, and there is room for `n` pointers; an
        // option of one is a pointer that may be null.
        unsafe {
            shim::castanet_dpdk_take(self.mempool.0.as_ptr(), frames.as_mut_ptr(), n) as usize
        }
    }

    unsafe fn put(&self, frames: &[NonNull<FrameHeader>]) {
        let n = frames.len() as u32;
        // SAFETY: the frames are of this mempool, and the caller gives them up. Each is one
        // unchained mbuf with one owner, as DPDK requires of free mbufs: only such mbufs
        // become packets, and no code here changes that.
        unsafe { shim::castanet_dpdk_put(self.mempool.0.as_ptr(), frames.as_ptr(), n) }
    }

    fn out(&self) -> usize {
        // SAFETY: the mempool is live.
        let available = unsafe { shim::castanet_dpdk_pool_available(self.mempool.0.as_ptr()) };
        self.count.saturating_sub(available) as usize
    }
}
