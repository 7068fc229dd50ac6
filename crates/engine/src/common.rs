//! State that workers have in common and mostly read.

use crossbeam_utils::sync::ShardedLock;
use std::fmt;
use std::sync::{Arc, PoisonError, TryLockError, TryLockResult};

/// One state that workers read at the same time, each in its own line of the cache, and one of
/// them at a time changes. To read costs a lock that nobody else wants, however many do; to change
/// it, one waits for the bursts of all others. A panic poisons nothing: what it left behind is
/// used as it is.
///
/// What packets change most often, such as the time a flow was seen last, are atomic numbers in
/// it; what they change seldom waits for the end of the burst.
#[derive(Default)]
pub struct Common<T>(Arc<ShardedLock<T>>);

impl<T> Common<T> {
    /// Whether this is that one.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Lends the state for one call, to any number at a time.
    #[inline]
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        let soon = had(self.0.try_read()).or_else(|| at_once(|| had(self.0.try_read())));
        f(&soon.unwrap_or_else(|| self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Lends the state for one call, to one alone; not where the same worker reads it.
    pub fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let soon = at_once(|| had(self.0.try_write()));
        f(&mut soon.unwrap_or_else(|| self.0.write().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// What was tried, if it could be had.
fn had<G>(tried: TryLockResult<G>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What others have for microseconds is to be had sooner than who sleeps is woken.
#[cold]
fn at_once<G>(mut attempt: impl FnMut() -> Option<G>) -> Option<G> {
    const ATTEMPTS: usize = 500;
    (0..ATTEMPTS).find_map(|_| {
        let had = attempt();
        if had.is_none() {
            std::hint::spin_loop();
        }
        had
    })
}

impl<T> Clone for Common<T> {
    fn clone(&self) -> Self {
        Common(self.0.clone())
    }
}

impl<T> fmt::Debug for Common<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Common")
    }
}
