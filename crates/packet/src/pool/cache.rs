//! The caches of a thread: free frames of each pool, and buffers for batches.

use std::cell::{Cell, UnsafeCell};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::heap;
use super::state::PoolState;
use crate::frame::{FrameHeader, HEAP};
use crate::packet::{Packet, SHARED};

/// Maximum number of frames of one pool in a thread's cache.
pub(super) const CACHE_SIZE: usize = 512;

/// Maximum number of empty batch buffers that a thread caches.
const MAX_BUFFERS: usize = 64;

/// One thread's cache of free frames of one pool: a stack, with the last used frame on top.
///
/// Only that thread accesses `frames`, and only it changes `len`. Other threads
/// read `len` for statistics, and set `limit` to 0 when the pool is closed.
#[repr(align(64))]
pub(super) struct FrameCache {
    len: AtomicU32,
    limit: AtomicU32,
    pool: Arc<PoolState>,
    frames: [Cell<*mut FrameHeader>; CACHE_SIZE],
}

// SAFETY: other threads access only the atomics and `pool`, as the type's
// documentation says.
unsafe impl Sync for FrameCache {}
// SAFETY: another thread may drop a cache: that drops `pool`, an `Arc`, and
// `frames` has no destructor.
unsafe impl Send for FrameCache {}

impl FrameCache {
    /// Makes an empty cache.
    fn new(pool: Arc<PoolState>) -> Arc<FrameCache> {
        Arc::new(FrameCache {
            len: AtomicU32::new(0),
            limit: AtomicU32::new(pool.cache_size as u32),
            pool,
            frames: [const { Cell::new(ptr::null_mut()) }; CACHE_SIZE],
        })
    }

    /// Number of frames in the cache.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    /// Sets the number of frames. Only the cache's thread may call this.
    #[inline]
    fn set_len(&self, len: usize) {
        self.len.store(len as u32, Ordering::Relaxed);
    }

    /// Maximum number of frames.
    #[inline]
    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed) as usize
    }

    /// Makes the cache accept no more frames; for any thread.
    pub(super) fn close(&self) {
        self.limit.store(0, Ordering::Relaxed);
    }

    /// Takes about half a cache of frames, at least one, from the pool's free list.
    #[cold]
    fn refill(&self) {
        let mut len = self.len();
        let wanted = (self.pool.cache_size / 2).max(1).min(CACHE_SIZE - len);
        self.pool.take(wanted, |frame| {
            self.frames[len].set(frame.as_ptr());
            len += 1;
            self.set_len(len);
        });
    }

    /// Returns the oldest frames to the pool's free list, so that `keep` remain.
    fn flush(&self, keep: usize) {
        let len = self.len();
        let flushed = len.saturating_sub(keep);
        let frames = self.frames[..flushed].iter().filter_map(|slot| NonNull::new(slot.get()));
        // SAFETY: the cache owns its frames, and drops these from its stack. It
        // does so before `put`: in between they count as in use, not twice as free.
        unsafe {
            self.set_len(0);
            self.pool.put(frames);
        }
        for i in flushed..len {
            self.frames[i - flushed].set(self.frames[i].get());
        }
        self.set_len(len - flushed);
    }
}

/// The caches of one thread.
struct ThreadCache {
    /// The frame cache of each pool number: an `Arc<FrameCache>` or null. The slot
    /// of heap frames is always null; all slots are null once the thread is ending.
    caches: [Cell<*const FrameCache>; 256],
    /// Empty buffers for batches.
    buffers: UnsafeCell<ManuallyDrop<Vec<Vec<Packet>>>>,
    phase: Cell<Phase>,
    /// Number of the pool from which copies of heap packets are taken; [`HEAP`] if none.
    copy_pool: Cell<u8>,
}

/// Life cycle of a thread's caches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The thread has not cached anything yet.
    Unused,
    /// The thread caches frames and buffers, and will return them when it ends.
    Active,
    /// The thread is ending and has returned them; it must not cache anything.
    Closed,
}

/// Its destructor returns a thread's frames when the thread ends. A separate
/// thread-local, so that [`ThreadCache`] has no destructor, and access to it
/// needs no check whether it has already been destroyed.
struct ExitGuard;

thread_local! {
    static LOCAL: ThreadCache = const {
        ThreadCache {
            caches: [const { Cell::new(ptr::null()) }; 256],
            buffers: UnsafeCell::new(ManuallyDrop::new(Vec::new())),
            phase: Cell::new(Phase::Unused),
            copy_pool: Cell::new(HEAP),
        }
    };
    static EXIT_GUARD: ExitGuard = const { ExitGuard };
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            local.phase.set(Phase::Closed);
            for id in 0..local.caches.len() {
                local.remove(id);
            }
            // SAFETY: nothing else borrows the buffers. They contain no packets, so
            // that dropping them does not access `LOCAL`.
            drop(unsafe { std::mem::take(&mut **local.buffers.get()) });
        });
    }
}

impl ThreadCache {
    /// Whether the thread may cache anything. The first call registers the exit guard.
    #[inline]
    fn is_active(&self) -> bool {
        if self.phase.get() == Phase::Unused {
            let alive = EXIT_GUARD.try_with(|_| ()).is_ok();
            self.phase.set(if alive { Phase::Active } else { Phase::Closed });
        }
        self.phase.get() == Phase::Active
    }

    /// This thread's cache of pool number `id`, if it has one.
    #[inline]
    fn cache(&self, id: u8) -> Option<&FrameCache> {
        // SAFETY: the slot is null or owns a reference count of its cache. Only
        // `remove` drops that count, and no caller of `cache` calls `remove` while
        // it uses this reference.
        unsafe { self.caches[usize::from(id)].get().as_ref() }
    }

    /// This thread's cache for copies of packets of pool number `pool`, or of the heap: of that pool, or the
    /// one for copies of heap packets.
    #[inline]
    fn cache_for_copies(&self, pool: u8) -> Option<&FrameCache> {
        self.cache(if pool == HEAP { self.copy_pool.get() } else { pool })
    }

    /// This thread's cache of `pool`, which is made if needed; `None` if the
    /// thread is ending.
    #[inline]
    fn cache_or_new(&self, pool: &Arc<PoolState>) -> Option<&FrameCache> {
        self.cache(pool.id).or_else(|| self.add(pool))
    }

    /// Makes a cache of `pool`, and removes the caches of closed pools.
    #[cold]
    fn add(&self, pool: &Arc<PoolState>) -> Option<&FrameCache> {
        if !self.is_active() {
            return None;
        }
        self.remove_closed();
        let cache = FrameCache::new(pool.clone());
        pool.register_cache(&cache);
        self.caches[usize::from(pool.id)].set(Arc::into_raw(cache));
        self.cache(pool.id)
    }

    /// Empties and removes the cache in slot `id`, if any.
    fn remove(&self, id: usize) {
        let cache = self.caches[id].replace(ptr::null());
        if usize::from(self.copy_pool.get()) == id {
            self.copy_pool.set(HEAP);
        }
        if !cache.is_null() {
            // SAFETY: `add` stored a reference count in the slot, which is null now,
            // so that the count is dropped once.
            let cache = unsafe { Arc::from_raw(cache) };
            cache.flush(0);
        }
    }

    /// Removes the caches of closed pools.
    fn remove_closed(&self) {
        for id in 0..self.caches.len() {
            if self.cache(id as u8).is_some_and(|cache| cache.pool.is_closed()) {
                self.remove(id);
            }
        }
    }

    /// Returns a frame to its pool, by way of the cache.
    ///
    /// # Safety
    /// `frame` must be a frame of `pool`. The caller must be its last owner, and
    /// not use it again.
    #[inline]
    unsafe fn put(&self, frame: NonNull<FrameHeader>, pool: u8) {
        if let Some(cache) = self.cache(pool) {
            let len = cache.len();
            if len < cache.limit()
                && let Some(slot) = cache.frames.get(len)
            {
                slot.set(frame.as_ptr());
                cache.set_len(len + 1);
                return;
            }
        }
        // SAFETY: the caller guarantees it.
        unsafe { self.put_slow(frame, pool) }
    }

    /// [`ThreadCache::put`] if the thread has no cache of the pool, or a full one.
    ///
    /// # Safety
    /// As for [`ThreadCache::put`].
    #[cold]
    unsafe fn put_slow(&self, frame: NonNull<FrameHeader>, pool: u8) {
        if pool == HEAP {
            // SAFETY: only frames of `heap::take` have this pool number.
            return unsafe { heap::put(frame) };
        }
        // SAFETY: `frame` is a frame of this pool that is still in use.
        let state = unsafe { PoolState::by_id(pool) };
        if let Some(cache) = self.cache_or_new(&state) {
            let limit = cache.limit();
            if limit > 0 {
                if cache.len() >= limit {
                    cache.flush(limit / 2);
                }
                // The cache has room: it was flushed, or is new.
                let len = cache.len();
                cache.frames[len].set(frame.as_ptr());
                cache.set_len(len + 1);
                return;
            }
            cache.flush(0);
        }
        // SAFETY: a frame of this pool, whose ownership the caller gives up.
        unsafe { state.put(std::iter::once(frame)) };
        if self.cache(pool).is_some() && state.is_closed() {
            self.remove(usize::from(pool));
        }
    }
}

/// Returns a frame to its pool.
///
/// # Safety
/// `frame` must be a frame of `pool`. The caller must be its last owner, and
/// not use it again.
#[inline]
pub(crate) unsafe fn recycle(frame: NonNull<FrameHeader>, pool: u8) {
    // SAFETY: the caller guarantees it.
    LOCAL.with(|local| unsafe { local.put(frame, pool) });
}

/// Drops all packets, with one access to the thread's caches.
#[inline(never)]
pub(crate) fn recycle_all(packets: &mut Vec<Packet>) {
    LOCAL.with(|local| local.put_all(packets));
}

/// Drops all packets, and caches the buffer for another batch.
#[inline(never)]
pub(crate) fn recycle_batch(mut packets: Vec<Packet>) {
    LOCAL.with(|local| {
        if !packets.is_empty() {
            local.put_all(&mut packets);
        }
        local.put_buffer(packets);
    });
}

/// Takes an empty buffer from the thread's cache, if there is one.
pub(crate) fn cached_buffer() -> Option<Vec<Packet>> {
    // SAFETY: only this thread accesses the buffers, and `pop` calls no code that
    // could borrow them again.
    LOCAL.with(|local| unsafe { (**local.buffers.get()).pop() })
}

impl ThreadCache {
    /// Drops all packets.
    #[inline]
    fn put_all(&self, packets: &mut Vec<Packet>) {
        let len = packets.len();
        let first = packets.as_ptr();
        let mut next = 0;
        // SAFETY: after `set_len(0)` this function owns the packets. `put_run` drops
        // the ones that it counts, and `next` skips those: each is dropped once.
        unsafe {
            packets.set_len(0);
            while next < len {
                next += self.put_run(std::slice::from_raw_parts(first.add(next), len - next));
            }
        }
    }

    /// Caches an empty buffer for another batch, or frees it if there are enough.
    #[inline]
    fn put_buffer(&self, buffer: Vec<Packet>) {
        if self.is_active() {
            // SAFETY: only this thread accesses the buffers, and `push` calls no code
            // that could borrow them again.
            let buffers = unsafe { &mut **self.buffers.get() };
            if buffers.len() < MAX_BUFFERS {
                buffers.push(buffer);
            }
        }
    }

    /// Drops packets from the start of `packets` and returns their number: all
    /// that have the same pool and fit in the cache, but at least the first.
    ///
    /// # Safety
    /// The caller must own `packets` and not use those that were dropped.
    #[inline]
    unsafe fn put_run(&self, packets: &[Packet]) -> usize {
        let Some(first) = packets.first() else { return 0 };
        let mut dropped = 0;
        if let Some(cache) = self.cache(first.pool) {
            let (len, limit) = (cache.len(), cache.limit().min(CACHE_SIZE));
            let free = &cache.frames[len.min(limit)..limit];
            let mut put = 0;
            for packet in packets {
                let Some(slot) = free.get(put) else { break };
                if !packet.is_exclusive_in(first.pool) {
                    if packet.pool != first.pool {
                        break;
                    }
                    // SAFETY: the caller owns the packet, which is shared, and does not use it
                    // again.
                    if !unsafe { FrameHeader::remove_owner(packet.frame) } {
                        dropped += 1;
                        continue;
                    }
                }
                slot.set(packet.frame.as_ptr());
                put += 1;
                dropped += 1;
            }
            cache.set_len(len + put);
        }
        if dropped == 0 {
            // SAFETY: the caller owns the packet and does not use it again. Its frame
            // is recycled if it has no other owner.
            unsafe {
                if !first.has(SHARED) || FrameHeader::remove_owner(first.frame) {
                    self.put(first.frame, first.pool);
                }
            }
            dropped = 1;
        }
        dropped
    }
}

/// Fills `slots` with new packets from the start on, until no frame is free, and
/// returns their number.
#[inline(never)]
pub(super) fn fill(pool: &Arc<PoolState>, slots: &mut [MaybeUninit<Packet>]) -> usize {
    LOCAL.with(|local| local.fill(pool, slots))
}

impl ThreadCache {
    /// See [`fill`].
    #[inline]
    fn fill(&self, pool: &Arc<PoolState>, slots: &mut [MaybeUninit<Packet>]) -> usize {
        let template = pool.template;
        let mut filled = 0;
        if let Some(cache) = self.cache(pool.id) {
            let len = cache.len().min(CACHE_SIZE);
            filled = slots.len().min(len);
            // From the top: the last used frame is still in the CPU's cache.
            let frames = cache.frames[len - filled..len].iter().rev();
            for (slot, frame) in slots.iter_mut().zip(frames) {
                // SAFETY: slots below `len` hold frames of this pool that the cache
                // owns; `set_len` below removes them from it.
                slot.write(unsafe { template.packet(NonNull::new_unchecked(frame.get())) });
            }
            cache.set_len(len - filled);
        }
        if filled < slots.len() {
            filled += fill_slow(pool, &mut slots[filled..]);
        }
        filled
    }
}

/// [`fill`] if the cache has too few frames.
#[cold]
fn fill_slow(pool: &Arc<PoolState>, slots: &mut [MaybeUninit<Packet>]) -> usize {
    let mut filled = 0;
    while let Some(slot) = slots.get_mut(filled)
        && let Some(frame) = take_one(pool)
    {
        // SAFETY: `take_one` passed the ownership of a frame of this pool.
        slot.write(unsafe { pool.template.packet(frame) });
        filled += 1;
    }
    filled
}

/// Takes one free frame of `pool`; the caller becomes its owner.
#[inline]
pub(super) fn take_one(pool: &Arc<PoolState>) -> Option<NonNull<FrameHeader>> {
    LOCAL.with(|local| {
        if let Some(cache) = local.cache(pool.id)
            && let Some(top) = cache.len().checked_sub(1)
            && let Some(slot) = cache.frames.get(top)
        {
            cache.set_len(top);
            return NonNull::new(slot.get());
        }
        take_one_slow(pool)
    })
}

/// [`take_one`] if the cache is empty: refills it, if any frames are free.
#[cold]
fn take_one_slow(pool: &Arc<PoolState>) -> Option<NonNull<FrameHeader>> {
    LOCAL.with(|local| {
        let Some(cache) = local.cache_or_new(pool) else {
            let mut taken = None;
            pool.take(1, |frame| taken = Some(frame));
            return taken;
        };
        cache.refill();
        let top = cache.len().checked_sub(1)?;
        cache.set_len(top);
        NonNull::new(cache.frames[top].get())
    })
}

/// Refills the calling thread's cache of `pool` if it has fewer than `n` frames, and returns the
/// number of frames in it, at most `n`.
pub(super) fn refill_to(pool: &Arc<PoolState>, n: usize) -> usize {
    LOCAL.with(|local| {
        let Some(cache) = local.cache_or_new(pool) else { return 0 };
        if cache.len() < n && cache.len() <= pool.cache_size / 2 {
            cache.refill();
        }
        cache.len().min(n)
    })
}

/// Takes a frame that ends at offset `end` or later for a copy of a packet of pool number `pool`,
/// or of the heap: of that pool, or the one for copies of heap packets. `None` if its frames are
/// shorter, none is free, or the thread has no cache of it.
#[inline]
pub(super) fn take_like(pool: u8, end: usize) -> Option<Packet> {
    LOCAL.with(|local| {
        let cache = local.cache_for_copies(pool)?;
        if end > cache.pool.limit() {
            return None;
        }
        if cache.len() == 0 {
            cache.refill();
        }
        let top = cache.len().checked_sub(1)?;
        let frame = NonNull::new(cache.frames.get(top)?.get())?;
        cache.set_len(top);
        // SAFETY: slots below `len` hold frames of this pool that the cache owns; `set_len` has
        // removed this one from it.
        Some(unsafe { cache.pool.template.packet(frame) })
    })
}

/// [`take_like`] for packets from the start of `packets` on, with one access to the cache: gives each to
/// `copy` with its frame, until one has another pool, its frame is longer, or the cache is empty. Returns
/// the number of frames taken.
///
/// # Safety
/// `copy` must not allocate or drop packets, other than `fresh` when it panics: the frames of the cache
/// are those at the start.
#[inline]
pub(crate) unsafe fn take_run(packets: &[Packet], mut copy: impl FnMut(&Packet, Packet)) -> usize {
    LOCAL.with(|local| {
        let Some(first) = packets.first() else { return 0 };
        let Some(cache) = local.cache_for_copies(first.pool) else { return 0 };
        let (len, limit) = (cache.len(), cache.pool.limit());
        let free = cache.frames.get(..len).unwrap_or_default();
        let mut taken = 0;
        for (packet, slot) in packets.iter().zip(free.iter().rev()) {
            if packet.pool != first.pool || packet.limit() > limit {
                break;
            }
            let Some(frame) = NonNull::new(slot.get()) else { break };
            taken += 1;
            cache.set_len(len - taken);
            // SAFETY: slots below `len` hold frames of this pool that the cache owns, as `copy` does not
            // use it; `set_len` has removed this one from it.
            copy(packet, unsafe { cache.pool.template.packet(frame) });
        }
        taken
    })
}

/// Sets the pool from which this thread takes copies of heap packets.
pub(super) fn set_copy_pool(pool: &Arc<PoolState>) {
    LOCAL.with(|local| {
        let has_cache = local.cache_or_new(pool).is_some();
        local.copy_pool.set(if has_cache { pool.id } else { HEAP });
    });
}

/// Returns all free frames in this thread's caches to their pools.
pub(super) fn flush_thread() {
    LOCAL.with(|local| {
        local.remove_closed();
        for id in 0..local.caches.len() {
            if let Some(cache) = local.cache(id as u8) {
                cache.flush(0);
            }
        }
    });
}

/// Removes this thread's cache of pool number `id`, and returns its frames.
pub(super) fn release(id: u8) {
    LOCAL.with(|local| local.remove(usize::from(id)));
}
