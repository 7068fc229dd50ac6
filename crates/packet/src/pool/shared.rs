//! What all threads know about a pool: its memory, the list of free frames, its number.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::cache::Cache;
use super::foreign::{self, FrameStore};
use super::memory::Mapping;
use super::{PoolConfig, PoolStats};
use crate::frame::{FrameHeader, HEADER, HEAP};
use crate::raw::Blank;

/// How many pools there can be at a time.
pub(super) const MAX_POOLS: usize = 254;

/// The pools by number, for packets that come back. A slot owns a count of
/// its pool from the pool's start until the last frame is back.
static POOLS: [AtomicPtr<Shared>; MAX_POOLS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_POOLS];

/// Which numbers are taken. A number is free again when no thread has a
/// cache of the pool that had it.
static TAKEN: Mutex<[bool; MAX_POOLS]> = Mutex::new([false; MAX_POOLS]);

/// The pools with fewer free frames than their reserve, and the heap while its frames take much.
static LOW: LowPools =
    LowPools { count: AtomicUsize::new(0), pools: [const { AtomicU64::new(0) }; 4] };

/// See [`LOW`]. One cache line, that is written only when a pool becomes low or ample.
#[repr(align(64))]
struct LowPools {
    /// How many pools are low.
    count: AtomicUsize,
    /// By number, that of the heap too, a bit: whether it is low.
    pools: [AtomicU64; 4],
}

impl LowPools {
    #[inline]
    fn place(&self, id: u8) -> (&AtomicU64, u64) {
        (&self.pools[usize::from(id >> 6)], 1 << (id & 63))
    }

    fn set(&self, id: u8, low: bool) {
        let (word, bit) = self.place(id);
        if (word.load(Ordering::Relaxed) & bit != 0) == low {
            return;
        }
        // Only the thread that changes the bit counts.
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
    let (word, bit) = LOW.place(id);
    word.load(Ordering::Relaxed) & bit != 0
}

/// Says whether frames of the heap take much.
pub(super) fn note_heap(low: bool) {
    LOW.set(HEAP, low);
}

/// A pool, as threads share it.
pub(crate) struct Shared {
    pub(super) id: u8,
    pub(super) frames: usize,
    pub(super) stride: usize,
    pub(super) capacity: usize,
    pub(super) headroom: usize,
    pub(super) cache_size: usize,
    pub(super) blank: Blank,
    pub(super) failures: AtomicU64,
    pub(super) oversized: AtomicU64,
    pub(super) reserve: usize,
    free: Free,
    caches: Mutex<Vec<Weak<Cache>>>,
    /// Where foreign frames are kept; the list is then empty for ever.
    store: Option<Box<dyn FrameStore>>,
}

/// The free frames and their number, which threads write when they take or return frames; on cache
/// lines of their own, for threads read the other fields of a pool for each burst.
#[repr(align(64))]
struct Free {
    /// Frames on the list and frames never used; what the list says, without its lock.
    spare: AtomicUsize,
    list: Mutex<List>,
}

/// Frames that no thread has.
struct List {
    /// Frames that came back.
    free: Vec<NonNull<FrameHeader>>,
    /// How many frames have been made of the memory so far. A pool that
    /// never needs its last frames never touches their memory.
    made: usize,
    /// The handle is gone: no frames are given out to new packets.
    closed: bool,
    /// `None` once the pool is closed and all frames are back.
    memory: Option<Mapping>,
}

// SAFETY: the frames in the list are owned by the list, and memory may be
// used from any thread.
unsafe impl Send for List {}

/// Locks; data guarded here is consistent whenever a panic could happen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Maps memory and enters a new pool in the list of pools.
    pub(super) fn new(config: &PoolConfig) -> io::Result<Arc<Shared>> {
        let stride = config.stride()?;
        let len = config.frames.checked_mul(stride).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Mapping::new(len, config.huge_pages, config.numa_node)?;
        Shared::enter(config, stride, Some(memory), None)
    }

    /// Enters a new pool of frames that `store` keeps in the list of pools.
    pub(super) fn foreign(
        config: &PoolConfig,
        store: Box<dyn FrameStore>,
    ) -> io::Result<Arc<Shared>> {
        Shared::enter(config, config.stride()?, None, Some(store))
    }

    fn enter(
        config: &PoolConfig,
        stride: usize,
        memory: Option<Mapping>,
        store: Option<Box<dyn FrameStore>>,
    ) -> io::Result<Arc<Shared>> {
        /// The list has room for so many frames from the start, and grows as frames are made.
        const LIST: usize = 1 << 16;
        let mut free = Vec::new();
        if store.is_none() {
            free.try_reserve_exact(config.frames.min(LIST))
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
        }
        let id = take_id()?;
        let shared = Arc::new(Shared {
            id,
            frames: config.frames,
            stride,
            capacity: stride - HEADER,
            headroom: config.headroom,
            cache_size: config.cache_size(),
            blank: Blank::new(id, stride, HEADER + config.headroom),
            failures: AtomicU64::new(0),
            oversized: AtomicU64::new(0),
            reserve: config.reserve,
            free: Free {
                spare: AtomicUsize::new(config.frames),
                list: Mutex::new(List { free, made: 0, closed: false, memory }),
            },
            caches: Mutex::new(Vec::new()),
            store,
        });
        POOLS[usize::from(id)].store(Arc::into_raw(shared.clone()).cast_mut(), Ordering::Release);
        Ok(shared)
    }

    /// The pool with this number.
    ///
    /// # Safety
    /// A frame of that pool must be in use, and stay so meanwhile.
    pub(super) unsafe fn by_id(id: u8) -> Arc<Shared> {
        let shared = POOLS[usize::from(id)].load(Ordering::Acquire).cast_const();
        // SAFETY: the slot's own count lasts until all frames are back.
        unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        }
    }

    /// Offset of the first byte past a frame.
    pub(super) fn limit(&self) -> usize {
        HEADER + self.capacity
    }

    /// Takes up to `n` frames off the list.
    pub(super) fn take(&self, n: usize, mut give: impl FnMut(NonNull<FrameHeader>)) -> usize {
        if let Some(store) = &self.store {
            return foreign::take(&**store, n, give);
        }
        let mut list = lock(&self.free.list);
        let used = n.min(list.free.len());
        let keep = list.free.len() - used;
        list.free.drain(keep..).for_each(&mut give);
        let fresh = (n - used).min(self.frames - list.made);
        let Some(memory) = &list.memory else { return used };
        let base = memory.base();
        for _ in 0..fresh {
            // SAFETY: the mapping has `frames` strides of `HEADER + capacity`
            // zero bytes, aligned to 64, and this one is used for the first time.
            give(unsafe {
                let frame = base.add(list.made * self.stride).cast::<FrameHeader>();
                FrameHeader::init(frame, self.capacity as u32);
                frame
            });
            list.made += 1;
        }
        // So that frames can come back without an allocation.
        let room = list.made - list.free.len();
        list.free.reserve(room);
        self.note(&list);
        used + fresh
    }

    /// Tells those who ask without the list's lock how many frames it has.
    fn note(&self, list: &List) {
        let spare = self.frames - list.made + list.free.len();
        self.free.spare.store(spare, Ordering::Relaxed);
        LOW.set(self.id, spare < self.reserve && !list.closed);
    }

    /// How many frames no packet and no thread has.
    #[inline]
    pub(super) fn spare(&self) -> usize {
        self.free.spare.load(Ordering::Relaxed)
    }

    /// Says whether the pool is low, for a pool whose frames others count.
    pub(super) fn set_low(&self, low: bool) {
        LOW.set(self.id, low);
    }

    /// Puts frames back on the list.
    ///
    /// # Safety
    /// They must be frames of this pool, and owned by the caller.
    pub(super) unsafe fn put(&self, frames: impl Iterator<Item = NonNull<FrameHeader>>) {
        if let Some(store) = &self.store {
            // SAFETY: as the caller says.
            return unsafe { foreign::put(&**store, frames) };
        }
        let mut list = lock(&self.free.list);
        list.free.extend(frames);
        self.note(&list);
        self.end_if_done(list);
    }

    /// Gives no more frames out; memory goes when all frames are back.
    pub(super) fn close(&self) {
        let mut list = lock(&self.free.list);
        list.closed = true;
        self.note(&list);
        for cache in lock(&self.caches).iter().filter_map(Weak::upgrade) {
            cache.close();
        }
        self.end_if_done(list);
    }

    /// Whether the handle is gone.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.free.list).closed
    }

    /// Unmaps the memory if nothing can refer to it any more.
    fn end_if_done(&self, mut list: MutexGuard<'_, List>) {
        if list.closed && list.free.len() == list.made && list.memory.take().is_some() {
            list.free = Vec::new();
            list.made = self.frames;
            drop(list);
            let slot = POOLS[usize::from(self.id)].swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: `new` stored the slot's own count, and only the one who
            // takes the memory gets here. The caller has another count.
            drop(unsafe { Arc::from_raw(slot.cast_const()) });
        }
    }

    /// Enters a thread's cache, to be counted and closed with the others.
    pub(super) fn register(&self, cache: &Arc<Cache>) {
        let list = lock(&self.free.list);
        let mut caches = lock(&self.caches);
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(Arc::downgrade(cache));
        if list.closed {
            cache.close();
        }
    }

    /// Where the frames are, and how many bytes.
    pub(super) fn memory(&self) -> Option<(NonNull<u8>, usize)> {
        lock(&self.free.list).memory.as_ref().map(|memory| (memory.base(), memory.len()))
    }

    /// What there is to know about the pool now.
    pub(super) fn stats(&self) -> PoolStats {
        let list = lock(&self.free.list);
        let cached =
            lock(&self.caches).iter().filter_map(Weak::upgrade).map(|cache| cache.len()).sum();
        let (out, made) = match &self.store {
            Some(store) => (store.out(), self.frames),
            None => (list.made - list.free.len(), list.made),
        };
        PoolStats {
            frames: self.frames,
            in_use: out.saturating_sub(cached),
            cached,
            made,
            failures: self.failures.load(Ordering::Relaxed),
            oversized: self.oversized.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        LOW.set(self.id, false);
        lock(&TAKEN)[usize::from(self.id)] = false;
    }
}

/// A pool number that nobody has.
fn take_id() -> io::Result<u8> {
    let mut taken = lock(&TAKEN);
    let Some(id) = taken.iter().position(|taken| !taken) else {
        return Err(io::Error::other(format!("there are {MAX_POOLS} packet pools already")));
    };
    taken[id] = true;
    Ok(id as u8)
}
