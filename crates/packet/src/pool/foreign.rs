//! Frames that lie in somebody else's memory: where a pool gets them and gives them back.

use std::ptr::NonNull;

use crate::frame::FrameHeader;

/// Frames that move in one call.
const BULK: usize = 64;

/// Keeps the free frames of a pool whose memory is not ours, such as the
/// mbufs of a DPDK mempool. Threads keep some for themselves, as of any pool,
/// so that the store is asked for many at a time.
pub trait FrameStore: Send + Sync {
    /// Writes up to as many free frames as there is room for to the start of
    /// `frames`, and says how many.
    fn take(&self, frames: &mut [Option<NonNull<FrameHeader>>]) -> usize;

    /// Takes frames back.
    ///
    /// # Safety
    /// They must be frames of this store, owned by the caller, who does not
    /// use them again.
    unsafe fn put(&self, frames: &[NonNull<FrameHeader>]);

    /// How many frames are not in the store.
    fn out(&self) -> usize;
}

/// Gives up to `n` frames of `store` to `give`, and says how many.
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

/// Gives frames back to `store`.
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
            // SAFETY: as the caller says; `bulk` forgets them.
            unsafe { store.put(&bulk) };
            n = 0;
        }
    }
    if n > 0 {
        // SAFETY: as above.
        unsafe { store.put(&bulk[..n]) };
    }
}
