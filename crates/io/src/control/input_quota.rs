//! How many bytes of commands wait, of all clients of all control sockets of this process.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of all commands, those that are not all there yet included.
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Those of them whose commands wait for the control thread's answer.
static IN_PROGRESS: AtomicUsize = AtomicUsize::new(0);

/// The bytes of one client's input, or of one command; they count until this is dropped.
#[derive(Default)]
pub(crate) struct InputShare {
    bytes: usize,
    is_in_progress: bool,
}

impl InputShare {
    /// The bytes of a command that the control thread is to answer.
    pub(super) fn in_progress(bytes: usize) -> InputShare {
        let mut share = InputShare { bytes: 0, is_in_progress: true };
        share.set(bytes);
        share
    }

    /// Counts so many bytes from now on, in the place of those before.
    pub(super) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        // Wrapping, so that less is a sum too.
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

/// Whether there is room for more.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Quota {
    Available,
    /// There will be, once commands that wait for the control thread are answered.
    Pending,
    /// There is none before a client says the rest of a command, or goes.
    Exhausted,
}

/// Whether there is room for more where all commands together may have `most` bytes.
pub(super) fn quota(most: usize) -> Quota {
    let (bytes, in_progress) = (BYTES.load(Ordering::Relaxed), IN_PROGRESS.load(Ordering::Relaxed));
    match bytes {
        _ if bytes <= most => Quota::Available,
        _ if bytes.saturating_sub(in_progress) <= most => Quota::Pending,
        _ => Quota::Exhausted,
    }
}
