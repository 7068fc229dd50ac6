//! Foreign frames: the interface between a pool and a driver that owns the frames' memory.

use std::ptr::NonNull;

use crate::frame::FrameHeader;

/// Maximum number of frames per call of a store.
const BULK: usize = 64;

/// The free list of a pool whose memory belongs to other code, such as the mbufs
/// of a DPDK mempool. Threads cache frames, as of any pool, so that the pool
/// calls the store for many frames at a time, from any thread.
pub trait FrameStore: Send + Sync {
    /// Writes up to `frames.len()` free frames to the start of `frames`, and
    /// returns their number.
    fn take(&self, frames: &mut [Option<NonNull<FrameHeader>>]) -> usize;

    /// Returns frames to the store.
    ///
    /// # Safety
    /// They must be frames of this store. The caller must own them, and not use
    /// them again.
    unsafe fn put(&self, frames: &[NonNull<FrameHeader>]);

    /// Number of frames that are not in the store.
    fn out(&self) -> usize;
}

/// Takes up to `n` frames from `store`, passes each to `give`, and returns their number.
pub(super) fn take(
    store: &dyn FrameStore,
    n: usize,
    mut give: impl FnMut(NonNull<FrameHeader>),
) -> usize {
    let mut taken = 0;
    while taken < n {
        let mut frames = [None; BULK];
        let wanted = BULK.min(n - taken);
        let got = store.take(&mut frames[..wanted]);
        frames[..wanted].iter().take(got).flatten().for_each(|&frame| give(frame));
        taken += got;
        if got < wanted {
            break;
        }
    }
    taken
}

/// Returns frames to `store`.
///
/// # Safety
/// As for [`FrameStore::put`].
pub(super) unsafe fn put(
    store: &dyn FrameStore,
    frames: impl Iterator<Item = NonNull<FrameHeader>>,
) {
    let mut bulk = [NonNull::dangling(); BULK];
    let mut n = 0;
    for frame in frames {
        bulk[n] = frame;
        n += 1;
        if n == BULK {
            // SAFETY: the caller guarantees it for each frame, and `n = 0` keeps
            // these from being returned again.
            unsafe { store.put(&bulk) };
            n = 0;
        }
    }
    if n > 0 {
        // SAFETY: the caller guarantees it for each frame.
        unsafe { store.put(&bulk[..n]) };
    }
}
