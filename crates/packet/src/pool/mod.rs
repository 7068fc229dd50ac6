//! Pools of frames: mapped memory, a free list that threads share, and a cache per thread.
//!
//! Allocation and release move a frame between a packet and the calling
//! thread's cache, an array used as a stack. Half a cache at a time moves
//! between the cache and the pool's free list, under a lock. So a worker that
//! frees about as much as it allocates only uses its cache, and gets the
//! frames that it used last, which are still in the CPU's cache.

mod cache;
mod foreign;
pub(crate) mod heap;
mod memory;
mod state;

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::Batch;
use crate::frame::{DEFAULT_HEADROOM, FrameHeader, HEADER};
use crate::packet::Packet;
use crate::raw::RawPacket;
pub(crate) use cache::{cached_buffer, recycle, recycle_all, recycle_batch, take_run};
pub use foreign::FrameStore;
use state::PoolState;
pub(crate) use state::is_low;

/// Configuration of a pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Number of frames.
    pub frames: usize,
    /// Minimum room of a frame for contents, in bytes.
    pub data_capacity: usize,
    /// Number of free bytes before the contents of a new packet.
    pub headroom: usize,
    /// Whether to request huge pages, if the frames fill one. They are faster where some thousand frames
    /// are in use.
    pub huge_pages: bool,
    /// The preferred NUMA node: that of the device.
    pub numa_node: Option<u8>,
    /// Distance of frames in bytes, a multiple of 64, if a device requires a
    /// certain one; `None` for an odd number of cache lines, which spreads frames
    /// evenly over the CPU's cache.
    pub stride: Option<usize>,
    /// Number of free frames that are reserved for short-lived packets. While fewer are free, the
    /// pool is *low*: an element that stores packets should move them to another pool
    /// ([`Packet::move_to`]). Frames in the caches of threads do not count as free.
    pub reserve: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig {
            frames: 8192,
            data_capacity: 2048,
            headroom: DEFAULT_HEADROOM,
            huge_pages: false,
            numa_node: None,
            stride: None,
            reserve: 0,
        }
    }
}

impl PoolConfig {
    /// Number of bytes of all frames, with their headers.
    pub fn bytes(&self) -> io::Result<u64> {
        let stride = self.stride()? as u64;
        (self.frames as u64).checked_mul(stride).ok_or(io::ErrorKind::OutOfMemory.into())
    }

    /// The distance of frames.
    fn stride(&self) -> io::Result<usize> {
        let invalid = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let needed = HEADER.saturating_add(self.headroom).saturating_add(self.data_capacity);
        if needed >= usize::from(u16::MAX) - HEADER {
            return invalid("frames of a pool cannot be longer than 64 kB");
        }
        match self.stride {
            None => Ok((needed.div_ceil(HEADER) | 1) * HEADER),
            Some(stride) if stride % HEADER != 0 => invalid("the stride must be a multiple of 64"),
            Some(stride) if stride >= usize::from(u16::MAX) => invalid("the stride is too long"),
            Some(stride) if stride < needed => invalid("the stride is too short for the frames"),
            Some(stride) => Ok(stride),
        }
    }

    /// Maximum number of frames in a thread's cache: an eighth of the pool, so
    /// that several threads can share a small pool.
    fn cache_size(&self) -> usize {
        (self.frames / 8).clamp(1, cache::CACHE_SIZE)
    }
}

/// Counters of a pool at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Number of frames of the pool.
    pub frames: usize,
    /// Frames owned by packets. Exact unless threads are allocating at this moment.
    pub in_use: usize,
    /// Free frames in the caches of threads.
    pub cached: usize,
    /// High-water mark: frames used so far, the most that packets and caches needed at a time.
    pub high_water: usize,
    /// Allocations that failed because no frame was free.
    pub failures: u64,
    /// Packets that were too long for a frame and were allocated on the heap.
    pub oversized: u64,
}

/// A pool of frames. Clones are handles of the same pool.
///
/// When the last handle is dropped, the memory stays mapped until the last
/// packet has been dropped too. Each thread caches free frames (at most an eighth
/// of the pool, and at most 512) until it ends or calls [`Pool::flush_thread`].
#[derive(Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

/// Closes the pool when the last [`Pool`] is dropped.
struct Handle {
    state: Arc<PoolState>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.state.close();
        cache::release(self.state.id);
    }
}

impl Pool {
    /// Makes a pool and maps its memory. The memory of a frame is not touched
    /// before the frame is first used.
    pub fn new(config: PoolConfig) -> io::Result<Pool> {
        Ok(Pool { handle: Arc::new(Handle { state: PoolState::new(&config)? }) })
    }

    /// Makes a pool of frames in foreign memory, such as a driver's. It exists
    /// until the process ends. `config` gives the number of frames and the length
    /// of each, from its header to its end (`stride`).
    ///
    /// # Safety
    /// Each frame that `store` hands out must own `stride` initialised bytes,
    /// aligned to 64, that stay mapped until the process ends, and that nothing
    /// else uses before `store` gets them back.
    pub unsafe fn foreign(config: &PoolConfig, store: Box<dyn FrameStore>) -> io::Result<Pool> {
        let pool = Pool { handle: Arc::new(Handle { state: PoolState::foreign(config, store)? }) };
        // A driver does not tell when it has released its last frame.
        std::mem::forget(pool.clone());
        Ok(pool)
    }

    /// Allocates an empty packet. If all frames are in use, counts the failure and
    /// returns `None`.
    #[inline]
    pub fn alloc(&self) -> Option<Packet> {
        let state = self.state();
        match cache::take_one(state) {
            Some(frame) => Some(new_packet(state, frame)),
            None => {
                self.count_failures(1);
                None
            }
        }
    }

    /// Adds up to `n` empty packets to `batch` and returns their number.
    #[inline]
    pub fn alloc_batch(&self, n: usize, batch: &mut Batch) -> usize {
        // SAFETY: `cache::fill` writes as many slots, from the start on, as it returns.
        let got = unsafe { batch.extend_with(n, |slots| cache::fill(self.state(), slots)) };
        if got < n {
            self.count_failures(n - got);
        }
        got
    }

    /// Allocates a packet with a copy of `bytes`, on the heap if they are too long
    /// for a frame. Returns `None` if all frames are in use.
    #[inline(always)]
    pub fn copy_in(&self, bytes: &[u8]) -> Option<Packet> {
        if bytes.len() > self.state().capacity - self.state().headroom {
            self.state().oversized.fetch_add(1, Ordering::Relaxed);
            return Some(Packet::from_bytes(bytes));
        }
        let mut packet = self.alloc()?;
        packet.fill(packet.data.into(), bytes);
        Some(packet)
    }

    /// Adds up to `n` packets with a copy of `bytes` to `batch`, as [`Pool::copy_in`], and returns
    /// their number.
    #[inline]
    pub fn copy_in_batch(&self, bytes: &[u8], n: usize, batch: &mut Batch) -> usize {
        if bytes.len() > self.data_capacity() {
            batch.extend((0..n).map_while(|_| self.copy_in(bytes)));
            return n;
        }
        let (before, data) = (batch.len(), HEADER + self.headroom());
        let made = self.alloc_batch(n, batch);
        for packet in &mut batch.as_mut_slice()[before..] {
            // SAFETY: the packets are new: their frames are not shared, begin their contents at
            // `data`, and have room for as many bytes as was checked above.
            unsafe { packet.set_contents(data, bytes) };
        }
        made
    }

    /// Maximum length of contents for which a new packet has room.
    pub fn data_capacity(&self) -> usize {
        self.state().capacity - self.state().headroom
    }

    /// Number of free bytes before the contents of a new packet.
    pub fn headroom(&self) -> usize {
        self.state().headroom
    }

    /// The pool's number, which its packets carry.
    pub fn id(&self) -> u8 {
        self.state().id
    }

    /// Address and length in bytes of the frames' memory, for devices that
    /// register it. The header of frame `i` starts at `i` times [`Pool::stride`];
    /// the frame's bytes follow it.
    ///
    /// # Panics
    /// If the frames are foreign: those need not be contiguous.
    pub fn memory(&self) -> (NonNull<u8>, usize) {
        match self.state().memory() {
            Some(memory) => memory,
            None => panic!("a pool of foreign frames has no memory of its own"),
        }
    }

    /// The distance of frames in bytes.
    pub fn stride(&self) -> usize {
        self.state().stride
    }

    /// Makes a packet of a frame that [`Packet::into_frame`] released, and that a
    /// device has filled: `len` bytes from `start` on, counted from the
    /// frame's first byte.
    ///
    /// # Panics
    /// If these bytes do not lie in the frame.
    ///
    /// # Safety
    /// `frame` must come from a packet of this pool, and have no other owner: no
    /// other code may use it or make a packet of it.
    #[inline]
    pub unsafe fn adopt(&self, frame: NonNull<FrameHeader>, start: usize, len: usize) -> Packet {
        let state = self.state();
        assert!(start <= state.capacity && len <= state.capacity - start, "beyond the frame");
        // SAFETY: the caller passes the ownership of a frame of this pool.
        let mut packet = unsafe { state.template.packet(frame) };
        // The range was just checked; offsets in a pool's frames fit 16 bits.
        packet.data = (HEADER + start) as u16;
        packet.len = len as u32;
        packet
    }

    /// As [`Pool::adopt`], for a packet that begins with its link-layer header.
    /// Adds it to the end of `batch`.
    ///
    /// # Panics
    /// If these bytes do not lie in the frame.
    ///
    /// # Safety
    /// As for [`Pool::adopt`].
    #[inline]
    pub unsafe fn adopt_into(
        &self,
        batch: &mut Batch,
        frame: NonNull<FrameHeader>,
        start: u32,
        len: u32,
    ) {
        let state = self.state();
        let capacity = state.capacity as u32; // less than 64 kB
        assert!(start <= capacity && len <= capacity - start, "beyond the frame");
        let raw = state.template.received(frame, (HEADER as u32 + start) as u16, len);
        // SAFETY: `fill` writes one packet and returns 1. The caller passes the
        // ownership of a frame of this pool; the assertion checked the range, and
        // offsets in a pool's frames fit 16 bits.
        unsafe {
            self.adopt_raw(batch, 1, |slot| {
                slot.write(raw);
                1
            });
        }
    }

    /// Adds up to `n` packets, which a device driver writes, to the end of
    /// `batch`. `fill` gets the address of the first slot, and returns the number
    /// of packets that it wrote.
    ///
    /// # Safety
    /// `fill` must write as many packets as it returns, in consecutive slots, and
    /// no more than `n`. Each must be in a frame as for [`Pool::adopt`], with its
    /// bytes and headers within the frame, and with the marks of
    /// [`Pool::marks`].
    #[inline]
    pub unsafe fn adopt_raw(
        &self,
        batch: &mut Batch,
        n: usize,
        fill: impl FnOnce(*mut RawPacket) -> usize,
    ) -> usize {
        // SAFETY: `Packet` and `RawPacket` have the same size, alignment and bytes
        // (see `raw`); the caller guarantees that `fill` wrote as many valid packets
        // as it returns.
        unsafe { batch.extend_with(n, |slots| fill(slots.as_mut_ptr().cast())) }
    }

    /// The value of [`RawPacket::marks`] for new packets of this pool.
    pub fn marks(&self) -> u64 {
        self.state().template.marks
    }

    /// Fills the calling thread's cache so that it can allocate `n` packets, and returns the
    /// number of packets, at most `n`, that it can now allocate without failure. Fewer than `n` if
    /// fewer frames are free, or if the pool is small.
    #[inline]
    pub fn fill_cache(&self, n: usize) -> usize {
        cache::refill_to(self.state(), n)
    }

    /// Number of free frames that are in no thread's cache.
    #[inline]
    pub fn spare(&self) -> usize {
        self.state().spare()
    }

    /// Number of frames that should stay free ([`PoolConfig::reserve`]).
    pub fn reserve(&self) -> usize {
        self.state().reserve
    }

    /// Number of bytes of all heap frames of the process: those of packets that are longer than
    /// the frames of pools.
    pub fn heap_bytes() -> usize {
        heap::bytes()
    }

    /// Whether any pool of the process is low, or the heap ([`Pool::heap_bytes`]) has more than a
    /// mebibyte of packets. Cheap enough for a test once per burst; [`Packet::pool_is_low`] then
    /// tells it for the pool of one packet.
    #[inline]
    pub fn any_low() -> bool {
        state::any_low()
    }

    /// Sets whether the pool is low, for a foreign pool: only its store can count its free frames.
    pub fn set_low(&self, low: bool) {
        self.state().set_low(low);
    }

    /// Reads the pool's counters.
    pub fn stats(&self) -> PoolStats {
        self.state().stats()
    }

    /// Number of frames owned by packets.
    pub fn in_use(&self) -> usize {
        self.stats().in_use
    }

    /// Makes this the pool from which the calling thread takes frames for copies of packets that
    /// lie on the heap, as long as they fit and a frame is free: a thread uses the same few
    /// frames again and again, while the heap has to be asked for each.
    pub fn use_for_copies(&self) {
        cache::set_copy_pool(self.state());
    }

    /// Returns all free frames in the calling thread's cache to their pools; for
    /// threads that will be idle for long.
    pub fn flush_thread() {
        cache::flush_thread();
    }

    #[inline]
    fn state(&self) -> &Arc<PoolState> {
        &self.handle.state
    }

    #[cold]
    fn count_failures(&self, n: usize) {
        self.state().failures.fetch_add(n as u64, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("id", &self.id()).field("stats", &self.stats()).finish()
    }
}

/// Makes an empty packet in a frame that was just taken from the pool.
#[inline]
fn new_packet(state: &PoolState, frame: NonNull<FrameHeader>) -> Packet {
    // SAFETY: the callers took the frame from this pool and pass its ownership.
    // `PoolConfig::stride` checked that the headroom fits in a frame, and that
    // all offsets fit in 16 bits.
    unsafe { state.template.packet(frame) }
}

/// As [`Pool::alloc`]; `None` if the pool's frames end before offset `end`.
pub(crate) fn packet_in(pool: &Pool, end: usize) -> Option<Packet> {
    if end > pool.state().limit() {
        return None;
    }
    pool.alloc()
}

/// Allocates an empty packet in a frame that ends at offset `end` or later: a
/// frame of pool number `pool` if its frames are that long and one is free, else
/// one from the heap. For packets of the heap, `pool` is the one that the thread uses for
/// copies ([`Pool::use_for_copies`]). The caller must hold a packet of the pool.
#[inline]
pub(crate) fn packet_like(pool: u8, end: usize) -> Packet {
    cache::take_like(pool, end).unwrap_or_else(|| packet_like_slow(pool, end))
}

/// [`packet_like`] if no frame in the thread's cache will do.
#[cold]
fn packet_like_slow(pool: u8, end: usize) -> Packet {
    if pool != crate::frame::HEAP {
        // SAFETY: the caller holds a packet of that pool, so that one of its frames
        // is in use.
        let state = unsafe { PoolState::by_id(pool) };
        if end <= state.limit() {
            if let Some(frame) = cache::take_one(&state) {
                return new_packet(&state, frame);
            }
            state.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
    Packet::heap(end.saturating_sub(HEADER))
}
