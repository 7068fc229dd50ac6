//! Frames of the system's allocator, and the number of bytes that they take.
//!
//! Packets that are longer than a pool's frames lie here. Unlike a pool, the heap has no fixed
//! number of frames, so their bytes are counted: beyond [`LOW_THRESHOLD`] the heap is *low*. They pass from
//! one account to another, so none is charged for them.

use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::state;
use crate::frame::{FrameHeader, HEADER, MAX_CAPACITY};

/// Number of bytes of heap frames beyond which the heap is low: 16 packets of 64 KByte.
const LOW_THRESHOLD: usize = 1 << 20;

/// Number of bytes of all heap frames of the process, with their headers. The cost of this shared
/// counter is not measurable beside an allocation of kilobytes.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Number of bytes of all heap frames of the process.
pub(super) fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

/// The memory layout of a heap frame.
fn layout(capacity: usize) -> Layout {
    let size = HEADER.saturating_add(capacity);
    match Layout::from_size_align(size, align_of::<FrameHeader>()) {
        Ok(layout) if capacity <= MAX_CAPACITY => layout,
        _ => panic!("a packet of {capacity} bytes is longer than frames can be"),
    }
}

/// Allocates a zeroed frame of `capacity` bytes.
pub(crate) fn take(capacity: usize) -> NonNull<FrameHeader> {
    let layout = layout(capacity);
    // SAFETY: the layout is not empty: it has at least the header.
    let memory = unsafe { System.alloc_zeroed(layout) };
    let Some(frame) = NonNull::new(memory.cast::<FrameHeader>()) else {
        handle_alloc_error(layout)
    };
    // SAFETY: the memory is new, zeroed, and of that size and alignment;
    // `layout` checked that the capacity fits in 32 bits.
    unsafe { FrameHeader::init(frame, capacity as u32) };
    let before = BYTES.fetch_add(layout.size(), Ordering::Relaxed);
    state::set_heap_low(before + layout.size() > LOW_THRESHOLD);
    frame
}

/// Frees a heap frame.
///
/// # Safety
/// `frame` must come from [`take`]. The caller must be its last owner, and not
/// use it again.
pub(super) unsafe fn put(frame: NonNull<FrameHeader>) {
    // SAFETY: `take` allocated the frame with the layout of the same capacity.
    let size = unsafe {
        let layout = layout(FrameHeader::capacity(frame));
        System.dealloc(frame.as_ptr().cast(), layout);
        layout.size()
    };
    let before = BYTES.fetch_sub(size, Ordering::Relaxed);
    state::set_heap_low(before - size > LOW_THRESHOLD);
}
