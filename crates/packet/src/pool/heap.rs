//! Frames of the general allocator, and how many bytes they take.
//!
//! Packets that are longer than a pool's frames lie here. There is no end to them as there is to a
//! pool's, so their bytes are counted: beyond [`AMPLE`] the heap is *low* as a pool is.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::shared;
use crate::frame::{FrameHeader, HEADER, MAX_CAPACITY};

/// Bytes of heap frames up to which nobody who keeps packets has to look: 16 packets of 64 KByte.
const AMPLE: usize = 1 << 20;

/// Bytes of all heap frames of the process, with their headers. Written beside an allocation of
/// kilobytes, of which it is no part that could be measured.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// How many bytes all heap frames of the process take.
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

/// A frame from the general allocator, zeroed.
pub(crate) fn take(capacity: usize) -> NonNull<FrameHeader> {
    let layout = layout(capacity);
    // SAFETY: the layout is not empty, it holds at least the header.
    let memory = unsafe { alloc_zeroed(layout) };
    let Some(frame) = NonNull::new(memory.cast::<FrameHeader>()) else {
        handle_alloc_error(layout)
    };
    // SAFETY: fresh memory of that size and alignment; `layout` checked
    // that the capacity fits in 32 bits.
    unsafe { FrameHeader::init(frame, capacity as u32) };
    let before = BYTES.fetch_add(layout.size(), Ordering::Relaxed);
    shared::note_heap(before + layout.size() > AMPLE);
    frame
}

/// Gives a heap frame back.
///
/// # Safety
/// `frame` must come from [`take`], and its last owner must be giving it up.
pub(super) unsafe fn put(frame: NonNull<FrameHeader>) {
    // SAFETY: allocated by `take` with the layout of the same capacity.
    let size = unsafe {
        let layout = layout(FrameHeader::capacity(frame));
        dealloc(frame.as_ptr().cast(), layout);
        layout.size()
    };
    let before = BYTES.fetch_sub(size, Ordering::Relaxed);
    shared::note_heap(before - size > AMPLE);
}
