//! Frames: the memory that a packet's bytes lie in, with one cold cache line before them.
//!
//! A frame is a [`FrameHeader`] followed at once by `capacity` bytes. All of it
//! is initialised from the start (mapped or allocated zeroed), so reading any
//! byte of a frame is sound. Positions within a frame count from the start of
//! its *header*: the first byte has offset [`HEADER`], and 0 can mean "not set".

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::anno;

/// Offset of a frame's first byte: the size of its header.
pub(crate) const HEADER: usize = size_of::<FrameHeader>();

/// Bytes left free before the contents of a new frame, for headers to come.
pub const DEFAULT_HEADROOM: usize = 128;

/// The pool number of frames that the general allocator owns.
pub(crate) const HEAP: u8 = u8::MAX;

/// Longest frame: all offsets and lengths then fit comfortably in 32 bits.
pub(crate) const MAX_CAPACITY: usize = 1 << 31;

/// What is cold about a packet: one cache line just before its bytes.
///
/// The reference count means something only while a descriptor says that the
/// frame is shared, timestamp and annotations only while it says that they
/// are valid; otherwise this line is not touched at all.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct FrameHeader {
    refs: AtomicU32,
    capacity: u32,
    pub(crate) timestamp: i64,
    pub(crate) annotations: [u8; anno::SIZE],
}

const _: () = assert!(size_of::<FrameHeader>() == 64);

impl FrameHeader {
    /// Makes a frame of the memory at `frame`.
    ///
    /// # Safety
    /// `frame` must be aligned to 64 bytes and own `HEADER + capacity`
    /// initialised, writable bytes that nobody else uses.
    pub(crate) unsafe fn init(frame: NonNull<FrameHeader>, capacity: u32) {
        // SAFETY: the caller owns the memory.
        unsafe { (&raw mut (*frame.as_ptr()).capacity).write(capacity) }
    }

    /// How many bytes follow the header.
    ///
    /// # Safety
    /// `frame` must be a live frame.
    pub(crate) unsafe fn capacity(frame: NonNull<FrameHeader>) -> usize {
        // SAFETY: the capacity is written once, before the first packet.
        unsafe { (&raw const (*frame.as_ptr()).capacity).read() as usize }
    }

    /// Counts a second owner of a frame that had one.
    ///
    /// # Safety
    /// The caller must own `frame` alone.
    pub(crate) unsafe fn begin_sharing(frame: NonNull<FrameHeader>) {
        // SAFETY: the frame is live and ours; whatever hands the second
        // packet to another thread orders this store.
        unsafe { (*refs(frame)).store(2, Ordering::Relaxed) }
    }

    /// Counts one more owner of a shared frame; `false` if there are too many.
    ///
    /// # Safety
    /// The caller must be one of the owners of the shared `frame`.
    pub(crate) unsafe fn add_owner(frame: NonNull<FrameHeader>) -> bool {
        // SAFETY: the caller's ownership keeps the frame live.
        let refs = unsafe { &*refs(frame) };
        if refs.fetch_add(1, Ordering::Relaxed) < u32::MAX / 2 {
            return true;
        }
        refs.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Whether the caller is the only owner left of a shared frame.
    ///
    /// # Safety
    /// The caller must be one of the owners of the shared `frame`.
    pub(crate) unsafe fn is_alone(frame: NonNull<FrameHeader>) -> bool {
        // SAFETY: the caller's ownership keeps the frame live. Acquire pairs
        // with the release in `remove_owner`: what others did is done.
        unsafe { (*refs(frame)).load(Ordering::Acquire) == 1 }
    }

    /// Takes one owner off; `true` if it was the last and must recycle it.
    ///
    /// # Safety
    /// The caller must be an owner of the shared `frame`, and give that up.
    pub(crate) unsafe fn remove_owner(frame: NonNull<FrameHeader>) -> bool {
        // SAFETY: the caller's ownership keeps the frame live until here.
        let refs = unsafe { &*refs(frame) };
        // Only owners make more of them, so that who is the last stays it, and
        // need not subtract: a clone and both drops take 29 ns instead of 34.
        if refs.load(Ordering::Acquire) == 1 {
            return true;
        }
        if refs.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // Not a fence: thread sanitizers know loads, but not fences.
        refs.load(Ordering::Acquire) == 0
    }
}

/// The reference count of `frame`.
fn refs(frame: NonNull<FrameHeader>) -> *const AtomicU32 {
    // SAFETY: only the address is computed, inside the header.
    unsafe { &raw const (*frame.as_ptr()).refs }
}

/// Where `offset` lies in `frame`.
///
/// # Safety
/// `offset` must not lie beyond the end of the frame.
#[inline]
pub(crate) unsafe fn at(frame: NonNull<FrameHeader>, offset: usize) -> *mut u8 {
    // SAFETY: inside or one past the frame, as the caller says.
    unsafe { frame.as_ptr().cast::<u8>().add(offset) }
}
