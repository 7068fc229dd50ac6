//! The work of a write handler that would take a worker too long.

use crate::error::ArgError;
use std::fmt;

/// Work that a write handler of worker state leaves to the control thread, such as to sort a copy of
/// the state and write it to a file, while the worker goes on with its packets; none by default.
/// Where several workers have states of their own, the work of each is done before the next worker
/// is asked; the first error ends the handler.
#[derive(Default)]
pub struct DeferredWork(Option<Box<Work>>);

type Work = dyn FnOnce() -> Result<(), ArgError> + Send;

impl DeferredWork {
    /// Leaves `work` to the control thread.
    pub fn new(work: impl FnOnce() -> Result<(), ArgError> + Send + 'static) -> DeferredWork {
        DeferredWork(Some(Box::new(work)))
    }

    /// Does the work, if there is any; called on the control thread.
    pub fn run(self) -> Result<(), ArgError> {
        self.0.map_or(Ok(()), |work| work())
    }
}

impl From<()> for DeferredWork {
    fn from((): ()) -> DeferredWork {
        DeferredWork::default()
    }
}

impl fmt::Debug for DeferredWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeferredWork").field(&self.0.is_some()).finish()
    }
}
