//! Frames: the memory of packets, each with one cold cache line as its header.
//!
//! A frame is a [`FrameHeader`] followed directly by `capacity` bytes. All of it
//! is initialised from the start (mapped or allocated zeroed), so reading any
//! byte of a frame is sound. Offsets within a frame count from the start of
//! its *header*: the first byte has offset [`HEADER`], and 0 can mean "not set".

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::anno;

/// Offset of a frame's first byte: the size of its header.
pub(crate) const HEADER: usize = size_of::<FrameHeader>();

/// Default headroom of a new packet in bytes, for headers that elements push.
pub const DEFAULT_HEADROOM: usize = 128;

/// The pool number of frames of the general allocator.
pub(crate) const HEAP: u8 = u8::MAX;

/// Longest frame in bytes: offsets and lengths fit in 32 bits.
pub(crate) const MAX_CAPACITY: usize = 1 << 31;

/// The rarely used fields of a packet: one cache line just before its bytes.
///
/// The reference count is valid only while a descriptor has the flag `SHARED`,
/// timestamp and annotations only while it has the flag `COLD`. Without these
/// flags the line is not touched at all.
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
    /// Initialises the memory at `frame` as a frame.
    ///
    /// # Safety
    /// `frame` must be aligned to 64 bytes and own `HEADER + capacity`
    /// initialised, writable bytes that nothing else uses.
    pub(crate) unsafe fn init(frame: NonNull<FrameHeader>, capacity: u32) {
        // SAFETY: the caller owns the memory.
        unsafe { (&raw mut (*frame.as_ptr()).capacity).write(capacity) }
    }

    /// Number of bytes behind the header.
    ///
    /// # Safety
    /// `frame` must be a live frame.
    pub(crate) unsafe fn capacity(frame: NonNull<FrameHeader>) -> usize {
        // SAFETY: the frame is live, and `init` is the only writer of this field,
        // before the first packet.
        unsafe { (&raw const (*frame.as_ptr()).capacity).read() as usize }
    }

    /// Sets the reference count of a frame that becomes shared: `n` owners beside the caller.
    ///
    /// # Safety
    /// The caller must be the only owner of `frame`.
    #[inline]
    pub(crate) unsafe fn begin_sharing(frame: NonNull<FrameHeader>, n: u16) {
        // SAFETY: the caller's ownership keeps the frame live. `Relaxed` is
        // enough: the synchronisation that passes another packet to another
        // thread orders this store.
        unsafe { (*refs(frame)).store(1 + u32::from(n), Ordering::Relaxed) }
    }

    /// Counts `n` more owners of a shared frame; returns `false`, and counts none, if there are
    /// too many.
    ///
    /// # Safety
    /// The caller must be one of the owners of the shared `frame`.
    #[inline]
    pub(crate) unsafe fn add_owners(frame: NonNull<FrameHeader>, n: u16) -> bool {
        // SAFETY: the caller's ownership keeps the frame live.
        let refs = unsafe { &*refs(frame) };
        // Only an owner can add others: the last one is alone until it does, and needs no atomic
        // addition. `Acquire`, as in `is_alone`.
        if refs.load(Ordering::Acquire) == 1 {
            refs.store(1 + u32::from(n), Ordering::Relaxed);
            return true;
        }
        if refs.fetch_add(n.into(), Ordering::Relaxed) < u32::MAX / 2 {
            return true;
        }
        refs.fetch_sub(n.into(), Ordering::Relaxed);
        false
    }

    /// Copies timestamp and annotations from another frame.
    ///
    /// # Safety
    /// The caller must be an owner of `from`, and the only one of `to`, which is another frame.
    #[inline]
    pub(crate) unsafe fn copy_annotations(from: NonNull<FrameHeader>, to: NonNull<FrameHeader>) {
        // SAFETY: both frames are live; no owner of a shared frame writes to these fields, and
        // the caller is the only owner of `to`.
        unsafe {
            (&raw mut (*to.as_ptr()).timestamp)
                .write((&raw const (*from.as_ptr()).timestamp).read());
            (&raw mut (*to.as_ptr()).annotations)
                .write((&raw const (*from.as_ptr()).annotations).read());
        }
    }

    /// Whether the caller is the last owner of a shared frame.
    ///
    /// # Safety
    /// The caller must be one of the owners of the shared `frame`.
    #[inline]
    pub(crate) unsafe fn is_alone(frame: NonNull<FrameHeader>) -> bool {
        // SAFETY: the caller's ownership keeps the frame live. `Acquire` pairs
        // with the `Release` in `remove_owner`: accesses by former owners
        // happened before.
        unsafe { (*refs(frame)).load(Ordering::Acquire) == 1 }
    }

    /// Removes one owner; returns `true` if it was the last and must recycle
    /// the frame.
    ///
    /// # Safety
    /// The caller must be an owner of the shared `frame`, and give its ownership
    /// up: afterwards it must not use the frame, except to recycle it.
    #[inline]
    pub(crate) unsafe fn remove_owner(frame: NonNull<FrameHeader>) -> bool {
        // SAFETY: the caller's ownership keeps the frame live until here.
        let refs = unsafe { &*refs(frame) };
        // Only an owner can add another one. So the last owner stays the last,
        // and need not subtract: a clone and both drops take 29 ns instead of 34.
        if refs.load(Ordering::Acquire) == 1 {
            return true;
        }
        if refs.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // A load instead of a fence: thread sanitizers do not support fences.
        refs.load(Ordering::Acquire) == 0
    }
}

/// The reference count of `frame`.
fn refs(frame: NonNull<FrameHeader>) -> *const AtomicU32 {
    // SAFETY: computes an address inside the header, without an access.
    unsafe { &raw const (*frame.as_ptr()).refs }
}

/// Address of `offset` in `frame`.
///
/// # Safety
/// `offset` must not lie beyond the end of the frame.
#[inline]
pub(crate) unsafe fn at(frame: NonNull<FrameHeader>, offset: usize) -> *mut u8 {
    // SAFETY: the caller guarantees that the address is inside the frame, or
    // one past its end.
    unsafe { frame.as_ptr().cast::<u8>().add(offset) }
}
