//! Handlers: reads and writes of configuration and state.

mod deferred_work;
mod metric;
mod value;

pub use deferred_work::DeferredWork;
pub use metric::{HandlerMetric, Metric, MetricKind};
pub use value::{Sums, TextChunk, Value};

use crate::args::Names;
use crate::error::ArgError;
use crate::time::Time;

/// A request to a read handler.
pub struct ReadRequest<'a> {
    /// The time of the request.
    pub now: Time,
    /// Parameter: the text after the handler's name, mostly empty.
    pub param: &'a str,
    /// Start of the requested chunk of a long text, as the chunk before it has said; 0 for the first
    /// ([`TextChunk`]).
    pub from: u64,
}

/// A read handler of `T`.
pub struct ReadHandler<T> {
    /// Handler name.
    pub name: &'static str,
    /// The field's or method's doc comment.
    pub doc: &'static str,
    /// The metric that its value is, where one is declared (`#[metric(NAME)]`).
    pub metric: Option<&'static Metric>,
    /// Gets the value.
    pub get: fn(&T, &ReadRequest) -> Value,
}

impl<T> ReadHandler<T> {
    /// A handler that is no metric.
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        get: fn(&T, &ReadRequest) -> Value,
    ) -> ReadHandler<T> {
        ReadHandler { name, doc, metric: None, get }
    }
}

/// A write handler of a configuration: makes a changed one.
pub struct WriteHandler<T> {
    /// Handler name.
    pub name: &'static str,
    /// Its sentence in the manual.
    pub doc: &'static str,
    /// Makes the changed configuration.
    pub set: Setter<T>,
}

/// Makes a changed copy of a configuration from a handler's text.
pub type Setter<T> = fn(&T, &str, &Names) -> Result<T, ArgError>;

/// A write handler of worker state: changes it in place.
pub struct StateHandler<T> {
    /// Handler name.
    pub name: &'static str,
    /// Its sentence in the manual.
    pub doc: &'static str,
    /// Changes the state; returns the work that it leaves to the control thread.
    pub apply: fn(&mut T, &str) -> Result<DeferredWork, ArgError>,
}

/// A configuration or a state with a `P` in it: in a field marked `#[flatten]`, or as the whole.
pub trait HasPart<P>: 'static {
    /// Returns the part.
    fn part(&self) -> &P;
    /// Returns the part, to be changed.
    fn part_mut(&mut self) -> &mut P;
    /// Returns a copy with another part.
    fn with_part(&self, part: P) -> Self
    where
        Self: Clone,
    {
        let mut copy = self.clone();
        *copy.part_mut() = part;
        copy
    }
}

impl<P: 'static> HasPart<P> for P {
    fn part(&self) -> &P {
        self
    }
    fn part_mut(&mut self) -> &mut P {
        self
    }
    fn with_part(&self, part: P) -> P {
        part
    }
}

/// The handlers of an `impl` block, as those of a `T` that has the block's type as a part; written by
/// `#[handlers]`.
pub trait HandlerMethods<T: 'static> {
    /// Handlers that read.
    const READS: &'static [ReadHandler<T>];
    /// Handlers that make a changed configuration.
    const WRITES: &'static [WriteHandler<T>];
    /// Handlers that change state.
    const CHANGES: &'static [StateHandler<T>];
    /// Write handlers that also ask the router to stop.
    const STOPS: &'static [&'static str];
    /// Write handlers after which the element's timer runs.
    const WAKES: &'static [&'static str];
}

/// A handler's name and documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandlerDoc {
    /// Its name.
    pub name: &'static str,
    /// Its sentence in the manual.
    pub doc: &'static str,
}
