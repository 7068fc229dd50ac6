//! The state of a pool that all threads share: its memory, free list, number and counters.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::cache::FrameCache;
use super::foreign::{self, FrameStore};
use super::memory::Mapping;
use super::{PoolConfig, PoolStats};
use crate::frame::{FrameHeader, HEADER, HEAP};
use crate::raw::PacketTemplate;

/// Maximum number of pools at a time.
pub(super) const MAX_POOLS: usize = 254;

/// The pools by number, for frames that return to them. A slot owns a reference
/// count of its pool, until the pool is closed and its last frame has returned.
static POOLS: [AtomicPtr<PoolState>; MAX_POOLS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_POOLS];

/// Whether each pool number is in use. A number becomes free when no thread has
/// a cache of its pool any more.
static IDS_IN_USE: Mutex<[bool; MAX_POOLS]> = Mutex::new([false; MAX_POOLS]);

/// The pools with fewer free frames than their reserve, and the heap while its frames take more
/// than a mebibyte.
static LOW: LowPools =
    LowPools { count: AtomicUsize::new(0), pools: [const { AtomicU64::new(0) }; 4] };

/// The set of low pools ([`LOW`]). One cache line, which is written only when a pool becomes low
/// or ceases to be.
#[repr(align(64))]
struct LowPools {
    /// Number of pools that are low.
    count: AtomicUsize,
    /// One bit per pool number, and one for the heap: whether it is low.
    pools: [AtomicU64; 4],
}

impl LowPools {
    /// The word and the bit of pool number `id`.
    #[inline]
    fn word_and_bit(&self, id: u8) -> (&AtomicU64, u64) {
        (&self.pools[usize::from(id >> 6)], 1 << (id & 63))
    }

    /// Sets whether pool number `id` is low.
    fn set(&self, id: u8, low: bool) {
        let (word, bit) = self.word_and_bit(id);
        if (word.load(Ordering::Relaxed) & bit != 0) == low {
            return;
        }
        // Of several threads that set the same bit, only the one that changed it counts.
        if low && word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        if !low && word.fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether any pool of the process is low.
#[inline]
pub(super) fn any_low() -> bool {
    LOW.count.load(Ordering::Relaxed) != 0
}

/// Whether the pool with this number, or the heap, is low.
#[inline]
pub(crate) fn is_low(id: u8) -> bool {
    let (word, bit) = LOW.word_and_bit(id);
    word.load(Ordering::Relaxed) & bit != 0
}

/// Sets whether the heap is low.
pub(super) fn set_heap_low(low: bool) {
    LOW.set(HEAP, low);
}

/// The state of a pool, which its handles, the caches of threads and [`POOLS`] share.
pub(crate) struct PoolState {
    pub(super) id: u8,
    pub(super) frames: usize,
    pub(super) stride: usize,
    pub(super) capacity: usize,
    pub(super) headroom: usize,
    pub(super) cache_size: usize,
    pub(super) template: PacketTemplate,
    pub(super) failures: AtomicU64,
    pub(super) oversized: AtomicU64,
    pub(super) reserve: usize,
    free: FreeFrames,
    caches: Mutex<Vec<Weak<FrameCache>>>,
    /// The store of a foreign pool, whose free list stays empty.
    store: Option<Box<dyn FrameStore>>,
}

/// The free frames and their number, which threads write when they take or return frames. On cache
/// lines of their own, because threads read the other fields of a pool for each burst.
#[repr(align(64))]
struct FreeFrames {
    /// Number of frames on the list and of frames never used, for readers without the lock.
    spare: AtomicUsize,
    list: Mutex<FreeList>,
}

/// The frames that no thread has.
struct FreeList {
    /// Frames that have been returned.
    returned: Vec<NonNull<FrameHeader>>,
    /// Number of frames that have been initialised so far, from the start of the
    /// memory. The memory of the others has not been touched.
    high_water: usize,
    /// Whether the pool's last handle has been dropped.
    closed: bool,
    /// `None` once the pool is closed and all frames have been returned.
    memory: Option<Mapping>,
}

// SAFETY: the list owns its frames, and their memory may be used from any
// thread.
unsafe impl Send for FreeList {}

/// Locks `mutex`, also if it is poisoned: the data that this module guards is consistent
/// whenever a panic can happen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PoolState {
    /// Maps memory for a new pool and registers it in [`POOLS`].
    pub(super) fn new(config: &PoolConfig) -> io::Result<Arc<PoolState>> {
        let stride = config.stride()?;
        let len = config.frames.checked_mul(stride).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Mapping::new(len, config.huge_pages, config.numa_node)?;
        PoolState::register_pool(config, stride, Some(memory), None)
    }

    /// Registers a new pool, whose frames `store` keeps, in [`POOLS`].
    pub(super) fn foreign(
        config: &PoolConfig,
        store: Box<dyn FrameStore>,
    ) -> io::Result<Arc<PoolState>> {
        PoolState::register_pool(config, config.stride()?, None, Some(store))
    }

    /// Gives a new pool a number and stores it in [`POOLS`].
    fn register_pool(
        config: &PoolConfig,
        stride: usize,
        memory: Option<Mapping>,
        store: Option<Box<dyn FrameStore>>,
    ) -> io::Result<Arc<PoolState>> {
        /// Initial capacity of the free list, which grows as frames are initialised.
        const MAX_INITIAL: usize = 1 << 16;
        let mut returned = Vec::new();
        if store.is_none() {
            returned
                .try_reserve_exact(config.frames.min(MAX_INITIAL))
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
        }
        let id = take_id()?;
        let state = Arc::new(PoolState {
            id,
            frames: config.frames,
            stride,
            capacity: stride - HEADER,
            headroom: config.headroom,
            cache_size: config.cache_size(),
            template: PacketTemplate::new(id, stride, HEADER + config.headroom),
            failures: AtomicU64::new(0),
            oversized: AtomicU64::new(0),
            reserve: config.reserve,
            free: FreeFrames {
                spare: AtomicUsize::new(config.frames),
                list: Mutex::new(FreeList { returned, high_water: 0, closed: false, memory }),
            },
            caches: Mutex::new(Vec::new()),
            store,
        });
        POOLS[usize::from(id)].store(Arc::into_raw(state.clone()).cast_mut(), Ordering::Release);
        Ok(state)
    }

    /// The pool with number `id`.
    ///
    /// # Safety
    /// A frame of that pool must be in use, and stay in use during this call.
    pub(super) unsafe fn by_id(id: u8) -> Arc<PoolState> {
        let state = POOLS[usize::from(id)].load(Ordering::Acquire).cast_const();
        // SAFETY: the slot owns a reference count until all frames have been
        // returned, and by the contract one is in use. So the pointer is valid,
        // and the count that is added here becomes the returned `Arc`'s.
        unsafe {
            Arc::increment_strong_count(state);
            Arc::from_raw(state)
        }
    }

    /// Offset of the first byte past a frame.
    pub(super) fn limit(&self) -> usize {
        HEADER + self.capacity
    }

    /// Takes up to `n` free frames, passes each to `give`, and returns their number.
    pub(super) fn take(&self, n: usize, mut give: impl FnMut(NonNull<FrameHeader>)) -> usize {
        if let Some(store) = &self.store {
            return foreign::take(&**store, n, give);
        }
        let mut list = lock(&self.free.list);
        let reused = n.min(list.returned.len());
        let keep = list.returned.len() - reused;
        list.returned.drain(keep..).for_each(&mut give);
        let fresh = (n - reused).min(self.frames - list.high_water);
        let Some(memory) = &list.memory else { return reused };
        let base = memory.base();
        for _ in 0..fresh {
            // SAFETY: the mapping has `frames` strides of `HEADER + capacity` zero
            // bytes, aligned to 64. `fresh` limits `high_water` to `frames`, and
            // this frame is above it, so that it has never been used.
            give(unsafe {
                let frame = base.add(list.high_water * self.stride).cast::<FrameHeader>();
                FrameHeader::init(frame, self.capacity as u32);
                frame
            });
            list.high_water += 1;
        }
        // So that `put` need not allocate.
        let room = list.high_water - list.returned.len();
        list.returned.reserve(room);
        self.update_spare(&list);
        reused + fresh
    }

    /// Updates the number of spare frames and the pool's low state from the free list.
    fn update_spare(&self, list: &FreeList) {
        let spare = self.frames - list.high_water + list.returned.len();
        self.free.spare.store(spare, Ordering::Relaxed);
        LOW.set(self.id, spare < self.reserve && !list.closed);
    }

    /// Number of frames that no packet and no thread has.
    #[inline]
    pub(super) fn spare(&self) -> usize {
        self.free.spare.load(Ordering::Relaxed)
    }

    /// Sets whether the pool is low, for a foreign pool, whose store counts its frames.
    pub(super) fn set_low(&self, low: bool) {
        LOW.set(self.id, low);
    }

    /// Puts frames back on the list.
    ///
    /// # Safety
    /// They must be frames of this pool, and owned by the caller.
    pub(super) unsafe fn put(&self, frames: impl Iterator<Item = NonNull<FrameHeader>>) {
        if let Some(store) = &self.store {
            // SAFETY: the caller guarantees it.
            return unsafe { foreign::put(&**store, frames) };
        }
        let mut list = lock(&self.free.list);
        list.returned.extend(frames);
        self.update_spare(&list);
        self.unmap_if_unused(list);
    }

    /// Closes the pool: its memory is unmapped when all frames have been returned.
    pub(super) fn close(&self) {
        let mut list = lock(&self.free.list);
        list.closed = true;
        self.update_spare(&list);
        for cache in lock(&self.caches).iter().filter_map(Weak::upgrade) {
            cache.close();
        }
        self.unmap_if_unused(list);
    }

    /// Whether the pool's last handle has been dropped.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.free.list).closed
    }

    /// Unmaps the memory if the pool is closed and all frames have been returned.
    fn unmap_if_unused(&self, mut list: MutexGuard<'_, FreeList>) {
        if list.closed && list.returned.len() == list.high_water && list.memory.take().is_some() {
            list.returned = Vec::new();
            list.high_water = self.frames;
            drop(list);
            let slot = POOLS[usize::from(self.id)].swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: `register_pool` stored a reference count in the slot. Only the
            // one thread that takes the memory gets here, so that the count is
            // dropped once. The caller holds another count, so `self` stays valid.
            drop(unsafe { Arc::from_raw(slot.cast_const()) });
        }
    }

    /// Registers a thread's cache, for `stats` and `close`.
    pub(super) fn register_cache(&self, cache: &Arc<FrameCache>) {
        let list = lock(&self.free.list);
        let mut caches = lock(&self.caches);
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(Arc::downgrade(cache));
        if list.closed {
            cache.close();
        }
    }

    /// Address and length of the frames' memory; `None` for a foreign or unmapped pool.
    pub(super) fn memory(&self) -> Option<(NonNull<u8>, usize)> {
        lock(&self.free.list).memory.as_ref().map(|memory| (memory.base(), memory.len()))
    }

    /// Reads the pool's counters.
    pub(super) fn stats(&self) -> PoolStats {
        let list = lock(&self.free.list);
        let cached =
            lock(&self.caches).iter().filter_map(Weak::upgrade).map(|cache| cache.len()).sum();
        let (out, high_water) = match &self.store {
            Some(store) => (store.out(), self.frames),
            None => (list.high_water - list.returned.len(), list.high_water),
        };
        PoolStats {
            frames: self.frames,
            in_use: out.saturating_sub(cached),
            cached,
            high_water,
            failures: self.failures.load(Ordering::Relaxed),
            oversized: self.oversized.load(Ordering::Relaxed),
        }
    }
}

impl Drop for PoolState {
    fn drop(&mut self) {
        LOW.set(self.id, false);
        lock(&IDS_IN_USE)[usize::from(self.id)] = false;
    }
}

/// Allocates an unused pool number.
fn take_id() -> io::Result<u8> {
    let mut in_use = lock(&IDS_IN_USE);
    let Some(id) = in_use.iter().position(|in_use| !in_use) else {
        return Err(io::Error::other(format!("there are {MAX_POOLS} packet pools already")));
    };
    in_use[id] = true;
    Ok(id as u8)
}
