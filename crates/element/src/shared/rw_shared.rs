//! State of all workers that they mostly read.

use crossbeam_utils::sync::ShardedLock;
use std::fmt;
use std::sync::{Arc, PoisonError, TryLockError, TryLockResult};

/// One state that workers read at the same time and change one at a time. A reader takes a lock in a
/// cache line of its own, however many readers there are; a writer waits until all others have ended
/// their bursts. A panic does not poison the state: it is used as the panic has left it.
///
/// Values that change with most packets, such as the time at which a flow was seen last, are atomic
/// numbers in the state; rare changes are gathered and made at the end of a burst.
#[derive(Default)]
pub struct RwShared<T>(Arc<ShardedLock<T>>);

impl<T> RwShared<T> {
    /// Lends the state for one call, to any number of readers at a time.
    #[inline]
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        let soon = lock_of(self.0.try_read()).or_else(|| spin_for(|| lock_of(self.0.try_read())));
        f(&soon.unwrap_or_else(|| self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Lends the state for one call, to one writer alone. A worker must not call it within
    /// [`RwShared::read`] of the same state: it would wait for itself.
    pub fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let soon = spin_for(|| lock_of(self.0.try_write()));
        f(&mut soon.unwrap_or_else(|| self.0.write().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The guard of an attempt to lock, if it was not in vain.
fn lock_of<G>(tried: TryLockResult<G>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Repeats an attempt for some microseconds: most holders are done before a sleeping thread were awake.
#[cold]
fn spin_for<G>(mut attempt: impl FnMut() -> Option<G>) -> Option<G> {
    const ATTEMPTS: usize = 500;
    (0..ATTEMPTS).find_map(|_| {
        let had = attempt();
        if had.is_none() {
            std::hint::spin_loop();
        }
        had
    })
}

impl<T> Clone for RwShared<T> {
    fn clone(&self) -> Self {
        RwShared(self.0.clone())
    }
}

impl<T> fmt::Debug for RwShared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RwShared")
    }
}
