//! Number of bytes of unanswered commands, of all clients of all control sockets of this process.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of all commands, incomplete ones included.
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// The part of [`BYTES`] whose commands wait for the control thread's answer.
static IN_PROGRESS: AtomicUsize = AtomicUsize::new(0);

/// The bytes of one client's input, or of one command; dropping this subtracts them.
#[derive(Default)]
pub(crate) struct InputShare {
    bytes: usize,
    is_in_progress: bool,
}

impl InputShare {
    /// Counts the bytes of a command that the control thread is to answer.
    pub(super) fn in_progress(bytes: usize) -> InputShare {
        let mut share = InputShare { bytes: 0, is_in_progress: true };
        share.set(bytes);
        share
    }

    /// Counts this number of bytes from now on, in place of the previous number.
    pub(super) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        // Wrapping, so that adding a negative difference subtracts it.
        let more = bytes.wrapping_sub(before);
        BYTES.fetch_add(more, Ordering::Relaxed);
        if self.is_in_progress {
            IN_PROGRESS.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Drop for InputShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Whether clients may send more bytes of commands.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Quota {
    Available,
    /// There will be room once the control thread has answered commands that wait for it.
    Pending,
    /// There is no room until a client completes its command or disconnects.
    Exhausted,
}

/// Returns whether there is room, if all commands together may have `most` bytes.
pub(super) fn quota(most: usize) -> Quota {
    let (bytes, in_progress) = (BYTES.load(Ordering::Relaxed), IN_PROGRESS.load(Ordering::Relaxed));
    match bytes {
        _ if bytes <= most => Quota::Available,
        _ if bytes.saturating_sub(in_progress) <= most => Quota::Pending,
        _ => Quota::Exhausted,
    }
}
