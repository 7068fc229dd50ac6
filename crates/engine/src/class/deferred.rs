//! The part of a write handler that would take a worker too long.

use crate::args::ArgError;
use std::fmt;

/// What a write handler of worker state leaves to the control thread, such as to sort a copy of the
/// state and write it to a file, while the worker goes on with its packets. Most leave nothing.
/// Where several workers have states of their own, each one's part is run before the next worker is
/// asked; the first error ends the handler.
#[derive(Default)]
pub struct Deferred(Option<Box<Part>>);

type Part = dyn FnOnce() -> Result<(), ArgError> + Send;

impl Deferred {
    /// Leaves this.
    pub fn new(part: impl FnOnce() -> Result<(), ArgError> + Send + 'static) -> Deferred {
        Deferred(Some(Box::new(part)))
    }

    /// Does what was left; called on the control thread.
    pub(crate) fn run(self) -> Result<(), ArgError> {
        self.0.map_or(Ok(()), |part| part())
    }
}

impl From<()> for Deferred {
    fn from((): ()) -> Deferred {
        Deferred::default()
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deferred").field(&self.0.is_some()).finish()
    }
}
