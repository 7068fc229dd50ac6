//! What each thread keeps for itself: free frames of each pool, and buffers for batches.

use std::cell::{Cell, UnsafeCell};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::heap;
use super::shared::Shared;
use crate::frame::{FrameHeader, HEAP};
use crate::packet::{Packet, SHARED};

/// Most frames of one pool that a thread keeps.
pub(super) const CACHE_SIZE: usize = 512;

/// Most empty batch buffers that a thread keeps.
const BUFFERS: usize = 64;

/// Free frames of one pool that one thread keeps, the last used on top.
///
/// Only that thread touches `frames`, and only it changes `len`; others read
/// `len` to count, and set `limit` to 0 when the pool's handle is gone.
#[repr(align(64))]
pub(super) struct Cache {
    len: AtomicU32,
    limit: AtomicU32,
    shared: Arc<Shared>,
    frames: [Cell<*mut FrameHeader>; CACHE_SIZE],
}

// SAFETY: see the type: other threads touch only the atomics and `shared`.
unsafe impl Sync for Cache {}
// SAFETY: dropping a cache elsewhere drops an `Arc`; frames have no destructor.
unsafe impl Send for Cache {}

impl Cache {
    /// An empty cache.
    fn new(shared: Arc<Shared>) -> Arc<Cache> {
        Arc::new(Cache {
            len: AtomicU32::new(0),
            limit: AtomicU32::new(shared.cache_size as u32),
            shared,
            frames: [const { Cell::new(ptr::null_mut()) }; CACHE_SIZE],
        })
    }

    /// How many frames there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    /// Changes how many frames there are; for the thread whose cache it is.
    #[inline]
    fn set_len(&self, len: usize) {
        self.len.store(len as u32, Ordering::Relaxed);
    }

    /// How many frames there may be.
    #[inline]
    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed) as usize
    }

    /// Keeps no more frames from now on.
    pub(super) fn close(&self) {
        self.limit.store(0, Ordering::Relaxed);
    }

    /// Gets about half a cache of frames, at least one, from the list.
    #[cold]
    fn refill(&self) {
        let mut len = self.len();
        let wanted = (self.shared.cache_size / 2).max(1).min(CACHE_SIZE - len);
        self.shared.take(wanted, |frame| {
            self.frames[len].set(frame.as_ptr());
            len += 1;
            self.set_len(len);
        });
    }

    /// Gives the oldest frames to the list, so that `keep` stay.
    fn flush(&self, keep: usize) {
        let len = self.len();
        let given = len.saturating_sub(keep);
        let frames = self.frames[..given].iter().filter_map(|slot| NonNull::new(slot.get()));
        // SAFETY: the cache owns its frames, and forgets these. It forgets
        // them first: between the two they count as in use, never twice as free.
        unsafe {
            self.set_len(0);
            self.shared.put(frames);
        }
        for i in given..len {
            self.frames[i - given].set(self.frames[i].get());
        }
        self.set_len(len - given);
    }
}

/// What one thread keeps.
struct Local {
    /// By pool; each an `Arc<Cache>` or null. The slot of heap frames stays
    /// null, as does everything once the thread is ending.
    caches: [Cell<*const Cache>; 256],
    /// Empty buffers for batches.
    buffers: UnsafeCell<ManuallyDrop<Vec<Vec<Packet>>>>,
    stage: Cell<Stage>,
}

/// How far a thread has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing kept yet.
    Fresh,
    /// Things are kept, and will be given back when the thread ends.
    Open,
    /// They have been given back; nothing must be kept any more.
    Closed,
}

/// Gives a thread's frames back when it ends. It is apart from [`Local`] so
/// that access to that one needs no check whether it is still alive.
struct AtExit;

thread_local! {
    static LOCAL: Local = const {
        Local {
            caches: [const { Cell::new(ptr::null()) }; 256],
            buffers: UnsafeCell::new(ManuallyDrop::new(Vec::new())),
            stage: Cell::new(Stage::Fresh),
        }
    };
    static AT_EXIT: AtExit = const { AtExit };
}

impl Drop for AtExit {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            local.stage.set(Stage::Closed);
            for id in 0..local.caches.len() {
                local.remove(id);
            }
            // SAFETY: nothing else borrows the buffers, and they are empty:
            // dropping them does not come back here.
            drop(unsafe { std::mem::take(&mut **local.buffers.get()) });
        });
    }
}

impl Local {
    /// Whether things may be kept; arranges for the thread's end.
    #[inline]
    fn is_open(&self) -> bool {
        if self.stage.get() == Stage::Fresh {
            let alive = AT_EXIT.try_with(|_| ()).is_ok();
            self.stage.set(if alive { Stage::Open } else { Stage::Closed });
        }
        self.stage.get() == Stage::Open
    }

    /// This thread's cache of a pool, if it has one.
    #[inline]
    fn cache(&self, id: u8) -> Option<&Cache> {
        // SAFETY: the slot owns a count of its cache. Only `remove` ends
        // that, which no caller lets happen while it holds this reference.
        unsafe { self.caches[usize::from(id)].get().as_ref() }
    }

    /// This thread's cache of `shared`, new if need be; `None` if the thread
    /// is ending.
    #[inline]
    fn cache_of(&self, shared: &Arc<Shared>) -> Option<&Cache> {
        self.cache(shared.id).or_else(|| self.add(shared))
    }

    /// Makes a cache of `shared`, and takes the opportunity to part with
    /// those whose pools are gone.
    #[cold]
    fn add(&self, shared: &Arc<Shared>) -> Option<&Cache> {
        if !self.is_open() {
            return None;
        }
        self.sweep();
        let cache = Cache::new(shared.clone());
        shared.register(&cache);
        self.caches[usize::from(shared.id)].set(Arc::into_raw(cache));
        self.cache(shared.id)
    }

    /// Empties and removes the cache in slot `id`, if any.
    fn remove(&self, id: usize) {
        let cache = self.caches[id].replace(ptr::null());
        if !cache.is_null() {
            // SAFETY: the slot owned a count, and no longer does.
            let cache = unsafe { Arc::from_raw(cache) };
            cache.flush(0);
        }
    }

    /// Removes the caches of pools whose handle is gone.
    fn sweep(&self) {
        for id in 0..self.caches.len() {
            if self.cache(id as u8).is_some_and(|cache| cache.shared.is_closed()) {
                self.remove(id);
            }
        }
    }

    /// Takes a frame back.
    ///
    /// # Safety
    /// `frame` must be a frame of `pool` that the caller owns and gives up.
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
        // SAFETY: as the caller says.
        unsafe { self.put_slow(frame, pool) }
    }

    /// Takes a frame back when there is no cache or it is full.
    ///
    /// # Safety
    /// As for [`Local::put`].
    #[cold]
    unsafe fn put_slow(&self, frame: NonNull<FrameHeader>, pool: u8) {
        if pool == HEAP {
            // SAFETY: heap frames have that number and no others.
            return unsafe { heap::put(frame) };
        }
        // SAFETY: the frame that is being given up is still in use.
        let shared = unsafe { Shared::by_id(pool) };
        if let Some(cache) = self.cache_of(&shared) {
            let limit = cache.limit();
            if limit > 0 {
                if cache.len() >= limit {
                    cache.flush(limit / 2);
                }
                // After the flush, or in a new cache, there is room.
                let len = cache.len();
                cache.frames[len].set(frame.as_ptr());
                cache.set_len(len + 1);
                return;
            }
            cache.flush(0);
        }
        // SAFETY: a frame of that pool, given up by the caller.
        unsafe { shared.put(std::iter::once(frame)) };
        if self.cache(pool).is_some() && shared.is_closed() {
            self.remove(usize::from(pool));
        }
    }
}

/// Takes a frame back.
///
/// # Safety
/// `frame` must be a frame of `pool`; the caller must be its last owner, and
/// not use it again.
#[inline]
pub(crate) unsafe fn recycle(frame: NonNull<FrameHeader>, pool: u8) {
    // SAFETY: as the caller says.
    LOCAL.with(|local| unsafe { local.put(frame, pool) });
}

/// Drops all packets, with one access to what the thread keeps.
#[inline(never)]
pub(crate) fn recycle_all(packets: &mut Vec<Packet>) {
    LOCAL.with(|local| local.put_all(packets));
}

/// Drops all packets, and keeps the buffer for another batch.
#[inline(never)]
pub(crate) fn recycle_batch(mut packets: Vec<Packet>) {
    LOCAL.with(|local| {
        if !packets.is_empty() {
            local.put_all(&mut packets);
        }
        local.keep(packets);
    });
}

/// An empty buffer that was used before, if there is one.
pub(crate) fn used_buffer() -> Option<Vec<Packet>> {
    // SAFETY: nothing else borrows the buffers meanwhile.
    LOCAL.with(|local| unsafe { (**local.buffers.get()).pop() })
}

impl Local {
    /// Drops all packets.
    #[inline]
    fn put_all(&self, packets: &mut Vec<Packet>) {
        let len = packets.len();
        let first = packets.as_ptr();
        let mut next = 0;
        // SAFETY: the packets are ours from here; each is given up once.
        unsafe {
            packets.set_len(0);
            while next < len {
                next += self.put_run(std::slice::from_raw_parts(first.add(next), len - next));
            }
        }
    }

    /// Keeps an empty buffer for another batch, if there is need.
    #[inline]
    fn keep(&self, buffer: Vec<Packet>) {
        if self.is_open() {
            // SAFETY: nothing else borrows the buffers meanwhile.
            let buffers = unsafe { &mut **self.buffers.get() };
            if buffers.len() < BUFFERS {
                buffers.push(buffer);
            }
        }
    }

    /// Drops packets from the start of `packets`, as many as have the same
    /// pool, are not shared and fit in the cache, or else the first; says how
    /// many.
    ///
    /// # Safety
    /// The caller must own `packets` and not use those that were dropped.
    #[inline]
    unsafe fn put_run(&self, packets: &[Packet]) -> usize {
        let Some(start) = packets.first() else { return 0 };
        let mut dropped = 0;
        if let Some(cache) = self.cache(start.pool) {
            let (len, limit) = (cache.len(), cache.limit().min(CACHE_SIZE));
            for (slot, packet) in cache.frames[len.min(limit)..limit].iter().zip(packets) {
                if !packet.is_alone_in(start.pool) {
                    break;
                }
                slot.set(packet.frame.as_ptr());
                dropped += 1;
            }
            cache.set_len(len + dropped);
        }
        if dropped == 0 {
            // SAFETY: we own the packet, and give that up.
            unsafe {
                if !start.has(SHARED) || FrameHeader::remove_owner(start.frame) {
                    self.put(start.frame, start.pool);
                }
            }
            dropped = 1;
        }
        dropped
    }
}

/// Fills `slots` with new packets from the start on, as far as there are
/// frames, and says how many.
#[inline(never)]
pub(super) fn fill(shared: &Arc<Shared>, slots: &mut [MaybeUninit<Packet>]) -> usize {
    LOCAL.with(|local| local.fill(shared, slots))
}

impl Local {
    /// See [`fill`].
    #[inline]
    fn fill(&self, shared: &Arc<Shared>, slots: &mut [MaybeUninit<Packet>]) -> usize {
        let blank = shared.blank;
        let mut filled = 0;
        if let Some(cache) = self.cache(shared.id) {
            let len = cache.len().min(CACHE_SIZE);
            filled = slots.len().min(len);
            // From the top: what was used last is still in the CPU's cache.
            let frames = cache.frames[len - filled..len].iter().rev();
            for (slot, frame) in slots.iter_mut().zip(frames) {
                // SAFETY: slots below `len` hold frames of this pool, which
                // the cache forgets below.
                slot.write(unsafe { blank.packet(NonNull::new_unchecked(frame.get())) });
            }
            cache.set_len(len - filled);
        }
        if filled < slots.len() {
            filled += fill_slow(shared, &mut slots[filled..]);
        }
        filled
    }
}

/// As [`fill`], when the cache has too few frames.
#[cold]
fn fill_slow(shared: &Arc<Shared>, slots: &mut [MaybeUninit<Packet>]) -> usize {
    let mut filled = 0;
    while let Some(slot) = slots.get_mut(filled)
        && let Some(frame) = take_one(shared)
    {
        // SAFETY: a frame of this pool that was just taken.
        slot.write(unsafe { shared.blank.packet(frame) });
        filled += 1;
    }
    filled
}

/// Takes one frame of `shared` for a new packet.
#[inline]
pub(super) fn take_one(shared: &Arc<Shared>) -> Option<NonNull<FrameHeader>> {
    LOCAL.with(|local| {
        if let Some(cache) = local.cache(shared.id)
            && let Some(top) = cache.len().checked_sub(1)
            && let Some(slot) = cache.frames.get(top)
        {
            cache.set_len(top);
            return NonNull::new(slot.get());
        }
        take_one_slow(shared)
    })
}

/// Takes one frame when the cache has none: gets it some, if there are any.
#[cold]
fn take_one_slow(shared: &Arc<Shared>) -> Option<NonNull<FrameHeader>> {
    LOCAL.with(|local| {
        let Some(cache) = local.cache_of(shared) else {
            let mut taken = None;
            shared.take(1, |frame| taken = Some(frame));
            return taken;
        };
        cache.refill();
        let top = cache.len().checked_sub(1)?;
        cache.set_len(top);
        NonNull::new(cache.frames[top].get())
    })
}

/// How many of `n` frames of `shared` the calling thread has for itself, once it has got some
/// more where it has too few.
pub(super) fn at_hand(shared: &Arc<Shared>, n: usize) -> usize {
    LOCAL.with(|local| {
        let Some(cache) = local.cache_of(shared) else { return 0 };
        if cache.len() < n && cache.len() <= shared.cache_size / 2 {
            cache.refill();
        }
        cache.len().min(n)
    })
}

/// Gives all free frames that this thread keeps back to their pools.
pub(super) fn flush_thread() {
    LOCAL.with(|local| {
        local.sweep();
        for id in 0..local.caches.len() {
            if let Some(cache) = local.cache(id as u8) {
                cache.flush(0);
            }
        }
    });
}

/// Gives what this thread keeps of pool `id` back.
pub(super) fn forget(id: u8) {
    LOCAL.with(|local| local.remove(usize::from(id)));
}
