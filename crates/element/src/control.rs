//! The interface of control programs to the router.

use crate::error::ArgError;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The event for which a control program waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramWait {
    /// A time.
    At(Time),
    /// A stop request, to be had from [`ControlContext::take_stop`].
    StopRequest,
    /// A time or a stop request, whichever comes first.
    AtOrStopRequest(Time),
    /// A handler write, or a call of its waker.
    Notified,
    /// None: the program has ended.
    Ended,
}

/// A name in the arguments of a control program, known before the program runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProgramReference {
    /// A read handler: `element.handler`, or a handler of the program's own element or of the router.
    Read(String),
    /// A write handler.
    Write(String),
    /// An element.
    Element(String),
}

/// The router, as a control program reaches it. Handlers are named relative to the program's element.
pub trait ControlContext {
    /// The time; simulated time moves on when a program looks at it.
    fn now(&self) -> Time;
    /// Thirty-one random bits.
    fn random(&mut self) -> u32;
    /// The time, without moving it.
    fn peek(&self) -> Time;
    /// Reads `element.handler`, or a global handler.
    fn read(&mut self, handler: &str) -> Result<String, ArgError>;
    /// Writes `element.handler`, or a global handler.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), ArgError>;
    /// Whether there is such a handler to read (or to write).
    fn exists(&mut self, handler: &str, write: bool) -> bool;
    /// Whether a read handler is only for the router's own programs.
    fn is_private(&mut self, handler: &str) -> bool;
    /// Writes to standard output.
    fn print(&mut self, text: &str);
    /// Writes to standard error.
    fn chatter(&mut self, text: &str);
    /// Stops the router with this exit status.
    fn stop(&mut self, status: i32);
    /// Asks the router to stop, as elements do; a driver manager may refuse.
    fn request_stop(&mut self);
    /// Whether the router was asked to stop.
    fn is_stopping(&self) -> bool;
    /// Takes one stop request, if there is one.
    fn take_stop(&mut self) -> bool;
    /// Whether another configuration is about to replace this one; the program had better leave the rest
    /// of its work to that.
    fn is_replaced(&self) -> bool;
    /// Returns the errors of elements that could not start in the last hot swap, a line each, and
    /// forgets them.
    fn take_start_errors(&mut self) -> String;
    /// The name of the program's own element, for relative names.
    fn name(&self) -> &str;
    /// Its name with its class, as messages show it.
    fn label(&self) -> String;
    /// The full name of a handler.
    fn full_name(&self, handler: &str) -> String;
    /// The message of an error, in Castanet's or Click's words as the user has chosen.
    fn words(&self, error: &ArgError) -> String;
    /// Has the program's handler `run` called at the next such signal to the process.
    fn on_signal(&mut self, signal: i32);
    /// Sends a signal to a process.
    ///
    /// # Errors
    /// The system's message.
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String>;
    /// Processor times of workers and of the tasks that may move.
    fn loads(&mut self) -> Loads;
    /// Moves the tasks of an element to another worker.
    fn move_tasks(&mut self, element: usize, worker: usize) -> Result<(), ArgError>;
}

/// Processor times since the router began.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Loads {
    /// By worker: the processor time of all tasks that cannot move.
    pub stays: Vec<Duration>,
    /// By worker: the processor time of runs of tasks in which packets moved. Polls that find none do
    /// not count.
    pub busy: Vec<Duration>,
    /// By worker: the processor time of its thread.
    pub spent: Vec<Duration>,
    /// The tasks that can move.
    pub tasks: Vec<TaskLoad>,
}

/// Processor time of the tasks of one element since the router began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskLoad {
    /// The element.
    pub element: usize,
    /// The worker that has them now.
    pub worker: usize,
    /// Their processor time on all workers.
    pub cost: Duration,
}

/// Called with each line that elements write, until it answers `false`; it must not block.
pub type ChatterSubscriber = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// A channel of lines, as Click has them: elements write to the default one unless an argument names
/// another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChatterChannel {
    /// Its name.
    pub name: String,
    /// Whether only subscribers receive its lines, and not standard error.
    pub quiet: bool,
}

/// The driver of a router as other threads reach it for one control program; implemented by the runtime.
pub trait DriverHandle: Send + Sync {
    /// Has the program run again.
    fn wake(&self);
    /// Calls `subscriber` with all lines that elements write to a channel from now on, on whichever
    /// thread writes them.
    fn subscribe(&self, channel: ChatterChannel, subscriber: ChatterSubscriber);
}

/// Wakes a control program from another thread, while the router runs.
#[derive(Clone)]
pub struct ControlWaker(Arc<dyn DriverHandle>);

impl ControlWaker {
    /// A waker by this driver.
    pub fn new(driver: impl DriverHandle + 'static) -> ControlWaker {
        ControlWaker(Arc::new(driver))
    }

    /// Wakes the program; without effect once the router has ended.
    pub fn wake(&self) {
        self.0.wake();
    }

    /// Calls `subscriber` with all lines that elements write to a channel from now on, on whichever
    /// thread writes them, until it answers `false`; it must not block.
    pub fn subscribe(
        &self,
        channel: ChatterChannel,
        subscriber: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) {
        self.0.subscribe(channel, Box::new(subscriber));
    }
}
