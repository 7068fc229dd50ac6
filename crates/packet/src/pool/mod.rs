//! Pools of frames: mapped memory, a free list that threads share, and a cache for each thread.
//!
//! A frame that is given out or taken back moves between a packet and the
//! calling thread's cache, a plain array used as a stack; half a cache at a
//! time moves between that and the pool's list, under a lock. So a worker
//! that frees about as much as it takes never leaves its cache, and gets the
//! frames that it used last, still warm.

mod cache;
mod foreign;
pub(crate) mod heap;
mod memory;
mod shared;

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::Batch;
use crate::frame::{DEFAULT_HEADROOM, FrameHeader, HEADER};
use crate::packet::Packet;
use crate::raw::RawPacket;
pub(crate) use cache::{recycle, recycle_all, recycle_batch, used_buffer};
pub use foreign::FrameStore;
use shared::Shared;
pub(crate) use shared::is_low;

/// What a pool is to be like.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// How many frames.
    pub frames: usize,
    /// How many bytes of contents a frame holds at least.
    pub data_capacity: usize,
    /// Bytes free before the contents of a new packet.
    pub headroom: usize,
    /// Whether to ask for huge pages. They pay beyond some 32 000 frames.
    pub huge_pages: bool,
    /// The NUMA node to prefer, that of the device.
    pub numa_node: Option<u8>,
    /// Distance of frames in bytes, a multiple of 64, where a device asks
    /// for one; `None` for an odd number of cache lines, which spreads frames
    /// evenly over the CPU's cache.
    pub stride: Option<usize>,
    /// How many free frames are meant for those who need one for a moment. While fewer are free,
    /// the pool is *low*: whoever keeps packets is to move them elsewhere ([`Packet::move_to`]).
    /// Frames that threads keep for themselves do not count as free.
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
    /// How many bytes the frames take, with their headers.
    pub fn bytes(&self) -> io::Result<u64> {
        let stride = self.stride()? as u64;
        (self.frames as u64).checked_mul(stride).ok_or(io::ErrorKind::OutOfMemory.into())
    }

    /// The distance of frames.
    fn stride(&self) -> io::Result<usize> {
        let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let needed = HEADER.saturating_add(self.headroom).saturating_add(self.data_capacity);
        if needed >= usize::from(u16::MAX) - HEADER {
            return wrong("frames of a pool cannot be longer than 64 kB");
        }
        match self.stride {
            None => Ok((needed.div_ceil(HEADER) | 1) * HEADER),
            Some(stride) if stride % HEADER != 0 => wrong("the stride must be a multiple of 64"),
            Some(stride) if stride >= usize::from(u16::MAX) => wrong("the stride is too long"),
            Some(stride) if stride < needed => wrong("the stride is too short for the frames"),
            Some(stride) => Ok(stride),
        }
    }

    /// How many frames a thread may keep: an eighth of them, so that several
    /// threads can share a small pool.
    fn cache_size(&self) -> usize {
        (self.frames / 8).clamp(1, cache::CACHE_SIZE)
    }
}

/// What there is to know about a pool at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// All frames.
    pub frames: usize,
    /// Frames that packets have. Exact unless threads are just allocating.
    pub in_use: usize,
    /// Free frames that threads keep.
    pub cached: usize,
    /// Frames ever used, the most that were needed at a time.
    pub made: usize,
    /// How often there was no frame for a packet.
    pub failures: u64,
    /// How often contents did not fit in a frame and went to the heap.
    pub oversized: u64,
}

/// A pool of frames. Clones are handles of the same pool.
///
/// When the last handle is dropped the memory stays until all packets have
/// gone too. Threads keep free frames (at most an eighth of the pool, and at
/// most 512) until they end or call [`Pool::flush_thread`].
#[derive(Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

/// Closes the pool when the last [`Pool`] is dropped.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
        cache::forget(self.shared.id);
    }
}

impl Pool {
    /// Maps memory for a pool.
    ///
    /// Memory is touched when frames are first used, never before.
    pub fn new(config: PoolConfig) -> io::Result<Pool> {
        Ok(Pool { handle: Arc::new(Handle { shared: Shared::new(&config)? }) })
    }

    /// A pool of frames that lie in somebody else's memory, such as a driver's.
    /// It lasts until the process ends. The configuration says how many frames
    /// there are and how long each is, from its header to its end (`stride`).
    ///
    /// # Safety
    /// Each frame that `store` gives out must own `stride` initialised bytes,
    /// aligned to 64, that stay mapped until the process ends, and that nobody
    /// else uses before `store` has them back.
    pub unsafe fn foreign(config: &PoolConfig, store: Box<dyn FrameStore>) -> io::Result<Pool> {
        let pool = Pool { handle: Arc::new(Handle { shared: Shared::foreign(config, store)? }) };
        // There is no telling when a driver has let go of its last frame.
        std::mem::forget(pool.clone());
        Ok(pool)
    }

    /// An empty packet; `None`, and counted, if all frames are in use.
    #[inline]
    pub fn alloc(&self) -> Option<Packet> {
        let shared = self.shared();
        match cache::take_one(shared) {
            Some(frame) => Some(new_packet(shared, frame)),
            None => {
                self.count_failures(1);
                None
            }
        }
    }

    /// Adds up to `n` empty packets to `batch`, and says how many.
    #[inline]
    pub fn alloc_batch(&self, n: usize, batch: &mut Batch) -> usize {
        // SAFETY: `fill` fills as many slots from the start on as it says.
        let got = unsafe { batch.extend_with(n, |slots| cache::fill(self.shared(), slots)) };
        if got < n {
            self.count_failures(n - got);
        }
        got
    }

    /// A packet with a copy of `bytes`; on the heap if they are too long for
    /// a frame.
    #[inline(always)]
    pub fn copy_in(&self, bytes: &[u8]) -> Option<Packet> {
        if bytes.len() > self.shared().capacity - self.shared().headroom {
            self.shared().oversized.fetch_add(1, Ordering::Relaxed);
            return Some(Packet::from_bytes(bytes));
        }
        let mut packet = self.alloc()?;
        packet.fill(packet.data.into(), bytes);
        Some(packet)
    }

    /// Most bytes of contents that a new packet has room for.
    pub fn data_capacity(&self) -> usize {
        self.shared().capacity - self.shared().headroom
    }

    /// Bytes free before the contents of a new packet.
    pub fn headroom(&self) -> usize {
        self.shared().headroom
    }

    /// The pool's number, as it stands in packets.
    pub fn id(&self) -> u8 {
        self.shared().id
    }

    /// Where the frames are and how many bytes that is, for devices that
    /// register it. Frame `i` starts with its header at `i` times
    /// [`Pool::stride`]; its bytes come after that.
    ///
    /// # Panics
    /// If the frames are foreign: those may lie anywhere.
    pub fn memory(&self) -> (NonNull<u8>, usize) {
        match self.shared().memory() {
            Some(memory) => memory,
            None => panic!("a pool of foreign frames has no memory of its own"),
        }
    }

    /// The distance of frames in bytes.
    pub fn stride(&self) -> usize {
        self.shared().stride
    }

    /// A packet of a frame that [`Packet::into_frame`] gave out, and that a
    /// device has filled: `len` bytes from `start` on, counted from the
    /// frame's first byte.
    ///
    /// # Panics
    /// If these bytes do not lie in the frame.
    ///
    /// # Safety
    /// `frame` must be from a packet of this pool, and nobody else may use it
    /// or turn it into a packet again.
    #[inline]
    pub unsafe fn adopt(&self, frame: NonNull<FrameHeader>, start: usize, len: usize) -> Packet {
        let shared = self.shared();
        assert!(start <= shared.capacity && len <= shared.capacity - start, "beyond the frame");
        // SAFETY: the caller gives us a frame of this pool.
        let mut packet = unsafe { shared.blank.packet(frame) };
        // The range was just checked; offsets in a pool's frames fit 16 bits.
        packet.data = (HEADER + start) as u16;
        packet.len = len as u32;
        packet
    }

    /// As [`Pool::adopt`], for a packet that begins with its link-layer header
    /// and goes to the end of `batch`.
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
        let shared = self.shared();
        let capacity = shared.capacity as u32; // less than 64 kB
        assert!(start <= capacity && len <= capacity - start, "beyond the frame");
        let raw = shared.blank.received(frame, (HEADER as u32 + start) as u16, len);
        // SAFETY: one packet is written. The caller gives us a frame of this
        // pool; the range was just checked, and offsets in a pool's frames fit
        // 16 bits.
        unsafe {
            self.adopt_raw(batch, 1, |place| {
                place.write(raw);
                1
            });
        }
    }

    /// Lets a device write up to `n` packets at the end of `batch`, of frames
    /// as for [`Pool::adopt`]; `fill` is given the place of the first, and
    /// says how many it wrote.
    ///
    /// # Safety
    /// `fill` must write as many packets as it says, one behind the other, and
    /// no more than `n`. Each must be in a frame as for [`Pool::adopt`], its
    /// bytes and headers within the frame, with the marks of
    /// [`Pool::marks`].
    #[inline]
    pub unsafe fn adopt_raw(
        &self,
        batch: &mut Batch,
        n: usize,
        fill: impl FnOnce(*mut RawPacket) -> usize,
    ) -> usize {
        // SAFETY: a packet is laid out as its raw form; the rest is as the
        // caller says.
        unsafe { batch.extend_with(n, |slots| fill(slots.as_mut_ptr().cast())) }
    }

    /// What marks new packets of this pool, as [`RawPacket::marks`].
    pub fn marks(&self) -> u64 {
        self.shared().blank.marks
    }

    /// How many of `n` packets the calling thread can allocate without fail, for it has taken the
    /// frames out of the list; fewer than `n` if there are fewer, or if the pool is small.
    #[inline]
    pub fn at_hand(&self, n: usize) -> usize {
        cache::at_hand(self.shared(), n)
    }

    /// How many frames neither a packet nor a thread has.
    #[inline]
    pub fn spare(&self) -> usize {
        self.shared().spare()
    }

    /// How many frames are to stay free ([`PoolConfig::reserve`]).
    pub fn reserve(&self) -> usize {
        self.shared().reserve
    }

    /// How many bytes all packets of the process take that lie on the heap, for they are longer
    /// than frames of pools.
    pub fn heap_bytes() -> usize {
        heap::bytes()
    }

    /// Whether any pool of the process is low, or the heap ([`Pool::heap_bytes`]) has more than a
    /// mebibyte of packets: the test once a burst. Whether a packet's own is says
    /// [`Packet::is_scarce`].
    #[inline]
    pub fn any_low() -> bool {
        shared::any_low()
    }

    /// Says whether the pool is low, for a foreign pool: its store knows, the pool does not.
    pub fn set_low(&self, low: bool) {
        self.shared().set_low(low);
    }

    /// What there is to know about the pool now.
    pub fn stats(&self) -> PoolStats {
        self.shared().stats()
    }

    /// How many frames packets have.
    pub fn in_use(&self) -> usize {
        self.stats().in_use
    }

    /// Gives all free frames that the calling thread keeps back to their
    /// pools; for threads that will be idle for long.
    pub fn flush_thread() {
        cache::flush_thread();
    }

    #[inline]
    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    #[cold]
    fn count_failures(&self, n: usize) {
        self.shared().failures.fetch_add(n as u64, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("id", &self.id()).field("stats", &self.stats()).finish()
    }
}

/// An empty packet in a frame that was just taken.
#[inline]
fn new_packet(shared: &Shared, frame: NonNull<FrameHeader>) -> Packet {
    // SAFETY: `take` gave us the frame, and `PoolConfig::stride` saw to it
    // that the headroom fits and that all offsets fit in 16 bits.
    unsafe { shared.blank.packet(frame) }
}

/// As [`Pool::alloc`], if a frame of the pool reaches to offset `end`.
pub(crate) fn packet_in(pool: &Pool, end: usize) -> Option<Packet> {
    if end > pool.shared().limit() {
        return None;
    }
    pool.alloc()
}

/// An empty packet in a frame that ends at `end` or later: of this pool if
/// its frames are that long and one is left, else from the heap.
pub(crate) fn packet_like(pool: u8, end: usize) -> Packet {
    if pool != crate::frame::HEAP {
        // SAFETY: the caller holds a packet of that pool.
        let shared = unsafe { Shared::by_id(pool) };
        if end <= shared.limit() {
            if let Some(frame) = cache::take_one(&shared) {
                return new_packet(&shared, frame);
            }
            shared.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
    Packet::heap(end.saturating_sub(HEADER))
}
