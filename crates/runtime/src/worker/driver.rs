//! Events that workers, signals and programs send to the driver.

/// An event for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DriverEvent {
    /// An element asks the router to stop.
    StopRequested,
    /// Packets of a worker wait for a handler to be called.
    CallPending(usize),
    /// The waker of a program was called.
    ProgramNotified(ProgramId),
    /// The waker of services was called.
    ServicesNotified,
    /// The user asks the router to stop; no program is asked.
    Interrupted,
    /// A signal came for which a program waits.
    Signal(i32),
    /// Elements panicked: their names, each with how often.
    Panicked(Vec<(String, u64)>),
}

/// A control program, in whatever configuration it is by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramId {
    /// Number of the configuration in which it began.
    pub(crate) configuration: u64,
    /// Its element there.
    pub(crate) element: usize,
}
