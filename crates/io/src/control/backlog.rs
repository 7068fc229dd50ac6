//! How many bytes of commands wait, of all clients of all control sockets of this process.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of all commands, those that are not all there yet included.
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Those of them whose commands wait for the control thread's answer.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// The bytes of one client's input, or of one command; they count until this is dropped.
#[derive(Default)]
pub(crate) struct Share {
    bytes: usize,
    is_at_work: bool,
}

impl Share {
    /// The bytes of a command that the control thread is to answer.
    pub(super) fn at_work(bytes: usize) -> Share {
        let mut share = Share { bytes: 0, is_at_work: true };
        share.set(bytes);
        share
    }

    /// Counts so many bytes from now on, in the place of those before.
    pub(super) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        // Wrapping, so that less is a sum too.
        let more = bytes.wrapping_sub(before);
        BYTES.fetch_add(more, Ordering::Relaxed);
        if self.is_at_work {
            AT_WORK.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Whether there is room for more.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Room {
    Enough,
    /// There will be, once commands that wait for the control thread are answered.
    Later,
    /// There is none before a client says the rest of a command, or goes.
    None,
}

/// Whether there is room for more where all commands together may have `most` bytes.
pub(super) fn room(most: usize) -> Room {
    let (bytes, at_work) = (BYTES.load(Ordering::Relaxed), AT_WORK.load(Ordering::Relaxed));
    match bytes {
        _ if bytes <= most => Room::Enough,
        _ if bytes.saturating_sub(at_work) <= most => Room::Later,
        _ => Room::None,
    }
}
