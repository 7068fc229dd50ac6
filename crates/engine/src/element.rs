//! The contract between an element and the engine.

use crate::args::{ArgError, Args, Names};
use crate::board::Others;
use crate::class::{Change, Read, Spec, Value, Write};
use crate::cx::Cx;
use crate::graph::devices::Share;
use crate::router::{Bell, Loads};
use crate::time::Time;
use castanet_packet::Batch;

/// The element's page in the manual; written by `#[derive(Element)]`.
pub trait Describe: Sized + 'static {
    /// Class name, prose, ports and source file.
    const SPEC: Spec;
    /// Configuration that can be read while running.
    const READS: &'static [&'static [Read<Self>]] = &[];
    /// Configuration that can be replaced while running: old in, new out.
    const WRITES: &'static [&'static [Write<Self>]] = &[];
}

/// How the arguments become an element. Elements that are nothing but their
/// arguments get this from the derive; others compile here, once.
pub trait Build: Sized {
    /// What stands between the parentheses.
    type Args: Args;
    /// Builds the element, on the control thread, before anything runs.
    fn build(args: Self::Args, setup: &Setup) -> Result<Self, ArgError>;
}

/// What an element may know about its place in the graph.
pub struct Setup<'a> {
    /// The element's name in the flat configuration.
    pub name: &'a str,
    /// How many inputs are connected.
    pub inputs: usize,
    /// How many outputs are connected.
    pub outputs: usize,
    /// By worker: whether its packets can reach the element.
    pub workers: &'a [bool],
    /// Whether no more than one worker can reach the element.
    pub alone: bool,
    /// For an element that stands for a device: what each worker has of it.
    pub shares: &'a [Share],
    /// For such an element: how many of the device's queues all elements
    /// together receive from and send to, from queue 0 on.
    pub used: (usize, usize),
    /// For an element that watches stores ([`crate::class::Class::with_watch`]):
    /// their names.
    pub stores: &'a [&'a str],
    /// Whether packets may leave the element with checksums that are left to who
    /// sends them: whoever comes behind it passes such packets on, or sends them.
    pub may_leave_sums: bool,
    /// Addresses by name, as `AddressInfo` and the machine declare them.
    pub names: &'a Names,
    /// Says what may be wrong with arguments that can be used.
    pub warn: &'a dyn Fn(String),
    /// When the router was built.
    pub started: Time,
    /// The other elements, for those that share state.
    pub(crate) others: Option<Others<'a>>,
}

/// An element that decides about one packet at a time.
///
/// `self` is shared by all workers and never changes; `local` belongs to the
/// calling worker alone (or is locked by the engine for the burst where
/// `SHARED` says so). The engine loops over batches, looks at the header once,
/// and sends each packet to the fate returned.
pub trait PerPacket: Describe + Build + Send + Sync {
    /// What a packet must be to come here; others are dropped and counted.
    type On: crate::on::View;
    /// What each worker keeps for itself; `()` for nothing.
    type Local: Local;
    /// Where packets may go; `()` for straight on.
    type Fate: Fate;
    /// Whether all workers share one `Local`, locked by the engine per burst:
    /// for state whose meaning is one sequence, such as a round robin.
    const SHARED: bool = false;
    /// Called before each burst, for what is the same for all its packets.
    #[inline]
    fn burst(&self, _local: &mut Self::Local, _now: Time) {}
    /// Called before each burst with its packets, all that `packet` is about to be
    /// asked of, in that order: for what is faster looked up for many at once. Where
    /// the engine runs neighbours in one pass, nobody calls it.
    #[inline]
    fn ahead<'p>(
        &self,
        _local: &mut Self::Local,
        _packets: impl Iterator<Item = <Self::On as crate::on::View>::Of<'p>>,
    ) {
    }
    /// Called after each burst, before its packets move on: says what `packet`
    /// left in `local` to be said (`cx.chatter`).
    #[inline]
    fn after(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Whether it can go on with what an element of its name kept under the
    /// arguments of `before`, where a configuration replaces another; else it
    /// begins anew. Of equal arguments nobody asks.
    fn continues(&self, _before: &Self) -> bool {
        true
    }
    /// Decides about one packet.
    fn packet(
        &self,
        local: &mut Self::Local,
        packet: <Self::On as crate::on::View>::Of<'_>,
    ) -> Self::Fate;
}

/// An element that owns whole batches: for those that make, multiply or keep
/// packets, that need the clock or a timer, or that have several inputs.
pub trait PerBatch: Describe + Build + Send + Sync {
    /// What a packet must be to come here; others are dropped and counted.
    type On: crate::on::View;
    /// What each worker keeps for itself; `()` for nothing.
    type Local: Local;
    /// Where packets may go; `()` for straight on.
    type Fate: Fate;
    /// Whether all workers share one `Local`, locked by the engine per burst.
    const SHARED: bool = false;
    /// Whether each worker whose packets can reach it has a queue of a device,
    /// which it opens itself: then `begin` and `end` are called on all of them.
    const EACH: bool = false;
    /// Called once on the home worker's state before anything runs: opens
    /// files and devices as far as nobody notices, sets the first timer. What it
    /// opened closes with the state where the configuration is refused.
    fn begin(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Called where [`begin`](PerBatch::begin) was, once all elements of the configuration have begun
    /// and those of one that it replaces have ended: changes what is others' too, or outside of
    /// the router (shared tables, files that are emptied, queues that are taken). Until then
    /// another configuration may still run in its place. An error is one of the
    /// configuration; where that replaces another it comes too late, and is written.
    fn start(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Decides about a batch that came in on input `port`: gives packets to
    /// `cx.emit` (an output or a reason to drop) or `cx.consume`, or keeps
    /// them in `local`.
    fn batch(&self, local: &mut Self::Local, port: usize, batch: Batch, cx: &mut Cx);
    /// Whether this packet, of input 0, may go on to output 0 by itself, with
    /// nothing else to be done than what was done here: then neighbours that
    /// the engine runs in one pass ([`crate::node::fused`]) need no batch made
    /// for it. Whatever is to be counted for such a packet is counted here.
    #[inline]
    fn passes(
        &self,
        _local: &mut Self::Local,
        _packet: <Self::On as crate::on::View>::Of<'_>,
    ) -> bool {
        false
    }
    /// Called when the time asked for with `cx.wake_at` has come.
    fn wake(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Called of what is open where another configuration is about to replace this one, and
    /// nobody there goes on for this element: whether what it has may be promised to another,
    /// which starts when this one has ended.
    fn leave(&self, _local: &mut Self::Local, _leaving: bool) {}
    /// Called once when the router stops: writes out what is buffered.
    fn end(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// How many packets are kept, for the accounting of packets.
    fn held(&self, _local: &Self::Local) -> usize {
        0
    }
    /// Whether it can go on with what an element of its name kept under the
    /// arguments of `before`, where a configuration replaces another; else it
    /// begins anew. Who opens something says when that is the same. Of equal arguments and ports nobody asks.
    fn continues(&self, _before: &Self) -> bool {
        true
    }
    /// Called on the home worker's state that it continues under other
    /// arguments, when it replaces the element that kept it.
    fn resume(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Lets state follow the configuration: called where state is made, after each
    /// handler write that changed the configuration, and where it goes on with what
    /// another element kept. What it does a second time changes nothing.
    fn settle(&self, _local: &mut Self::Local) {}
    /// The element as it goes on for `before`, where one configuration replaces another and it is
    /// not simply itself; called while packets still flow through `before`, for workers stand
    /// still until state follows ([`settle`](PerBatch::settle)).
    fn prepare(&self, _before: &Self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
    /// The input that is pulled when output `output` is; `None` for nothing.
    fn behind(&self, output: usize) -> Option<usize> {
        Some(output)
    }
    /// Whether this one shares its `Local`, where that depends on arguments.
    fn shares(&self) -> bool {
        Self::SHARED
    }
    /// Whether it pulls at all, where nobody pulls it, until a handler write
    /// says so.
    fn pulls(&self, _local: &Self::Local) -> bool {
        true
    }
}

/// An element that is asked for packets: as a task where its output pushes,
/// by its neighbour where its output is pulled. It may pull its own inputs
/// (`cx.pull`), so that unqueuers, shapers and schedulers are sources too.
pub trait Source: Describe + Build + Send + Sync {
    /// State of the one worker that runs the source.
    type Local: Local;
    /// Where packets may go; `()` for straight on.
    type Fate: Fate;
    /// Whether it may run on several workers, each with a state of its own and
    /// queues of a device: then `begin` and `end` are called on all of them.
    /// Any other source runs on one.
    const EACH: bool = false;
    /// Called once before anything runs: opens files and devices as far as nobody
    /// notices.
    fn begin(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Called where [`begin`](Source::begin) was, once all elements of the configuration have begun
    /// and those of one that it replaces have ended: changes what is others' too, or outside of
    /// the router (shared tables, files that are emptied, queues that are taken). Until then
    /// another configuration may still run in its place. An error is one of the
    /// configuration; where that replaces another it comes too late, and is written.
    fn start(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Emits up to `n` packets and says when to be asked again.
    fn ask(&self, local: &mut Self::Local, n: usize, cx: &mut Cx) -> Asked;
    /// Whether to be asked at all until a handler write says so.
    fn active(&self, _local: &Self::Local) -> bool {
        true
    }
    /// Called of what is open where another configuration is about to replace this one, and
    /// nobody there goes on for this element: whether what it has may be promised to another,
    /// which starts when this one has ended.
    fn leave(&self, _local: &mut Self::Local, _leaving: bool) {}
    /// Called once when the router stops.
    fn end(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Whether it can go on with what an element of its name kept under the
    /// arguments of `before`, where a configuration replaces another; else it
    /// begins anew. Of equal arguments nobody asks.
    fn continues(&self, _before: &Self) -> bool {
        true
    }
    /// How many packets are kept, for the accounting of packets.
    fn held(&self, _local: &Self::Local) -> usize {
        0
    }
}

/// When a source wants to be asked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// As soon as its turn comes: there may be more at once.
    Again,
    /// Not before this time.
    At(Time),
    /// When the file descriptor becomes readable: the same one each time, for
    /// the number of one that was closed may be another's.
    Readable(i32),
    /// When what it pulls from has packets again (or `cx.retry_at` said when),
    /// or when the stores that it pushes into have room again.
    Empty,
    /// Never again, unless a handler write revives it.
    Done,
}

/// An element that keeps packets between a pushing and a pulling side, or,
/// where its output pushes, until its home worker empties it.
/// One state serves all workers; the engine locks it for each burst.
pub trait Store: Describe + Build + Send + Sync {
    /// What is kept.
    type Local: Local;
    /// Where packets may go: output 0 is pulled, further ones push; and
    /// reasons to drop, for what finds no room.
    type Fate: Fate;
    /// Whether sources that push into it wait while it is full; else they go on,
    /// and what finds no room leaves or is dropped.
    const NOTIFIES: bool = false;
    /// Takes a batch in.
    fn put(&self, local: &mut Self::Local, batch: Batch, cx: &mut Cx);
    /// Takes a batch in that came in on input `port`, for those whose inputs differ.
    fn put_at(&self, local: &mut Self::Local, _port: usize, batch: Batch, cx: &mut Cx) {
        self.put(local, batch, cx);
    }
    /// Moves up to `n` packets into `into`.
    fn take(&self, local: &mut Self::Local, n: usize, into: &mut Batch, cx: &mut Cx);
    /// How many packets are kept, for the accounting of packets.
    fn held(&self, local: &Self::Local) -> usize;
    /// Whether it can go on with what an element of its name kept under the
    /// arguments of `before`, where a configuration replaces another; else it
    /// begins anew. Of equal arguments nobody asks.
    fn continues(&self, _before: &Self) -> bool {
        true
    }
    /// How many more packets find room, for sources that wait for it.
    fn room(&self, _local: &Self::Local) -> usize {
        usize::MAX
    }
    /// Drops the packets for which a handler write to the configuration has left no
    /// room; called after each. The engine counts them.
    fn shrink(&self, _local: &mut Self::Local) {}
    /// Whether to be emptied, where the output pushes, until a handler write
    /// says so.
    fn active(&self, _local: &Self::Local) -> bool {
        true
    }
}

/// An element that only declares something about the graph: addresses, where
/// tasks run. It has no ports and no state at run time.
pub trait Info: Describe + Build + Send + Sync {
    /// Tells the engine what it declares.
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError>;
}

/// What `Info` elements declare, gathered before any other element is built.
#[derive(Default)]
pub struct Facts {
    /// Name, then what it stands for, as `AddressInfo` writes it.
    pub addresses: Vec<(String, String)>,
    /// Element name (or compound prefix), then its worker.
    pub homes: Vec<(String, usize)>,
    /// Element name (or compound prefix), then how many turns its tasks get,
    /// where others get one.
    pub tickets: Vec<(String, f64)>,
    /// What random numbers follow from.
    pub seed: Option<u64>,
    /// Whether tasks may move between workers.
    pub balanced: bool,
    /// What is to be said about the configuration.
    pub said: Vec<Said>,
}

/// Something to be said about a configuration, beside errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Worth knowing.
    Message(String),
    /// Perhaps wrong.
    Warning(String),
}

/// A program that runs on the control thread: scripts and driver managers.
/// It reaches elements only through handlers.
pub trait Control: Describe + Build + Send + Sync {
    /// Where the program stands.
    type Local: Local;
    /// Read handlers that only the router's own programs may call.
    const PRIVATE: &'static [&'static str] = &[];
    /// Opens what it needs, before anything runs; `bell` wakes it from other
    /// threads.
    fn begin(&self, _local: &mut Self::Local, _bell: Bell) -> Result<(), ArgError> {
        Ok(())
    }
    /// Runs until it has to wait.
    fn step(&self, local: &mut Self::Local, desk: &mut dyn Desk) -> Step;
    /// Answers a read handler or obeys a write handler that needs the desk;
    /// `None` leaves it to those that are declared.
    fn call(
        &self,
        _local: &mut Self::Local,
        _handler: &str,
        _text: &str,
        _write: bool,
        _desk: &mut dyn Desk,
    ) -> Option<Result<String, ArgError>> {
        None
    }
    /// Whether it decides what a stop request means (a driver manager).
    fn drives(&self) -> bool {
        false
    }
    /// Whether it goes on where the program of its name stands that has the
    /// arguments of `before`, where a configuration replaces another; else it
    /// begins anew, as scripts do in Click.
    fn continues(&self, _before: &Self) -> bool {
        false
    }
    /// Signals to the process that its handler `run` waits for, each once until
    /// it says [`Desk::on_signal`] again.
    fn signals(&self) -> &[i32] {
        &[]
    }
    /// Read handlers that this one has beside those that are declared.
    fn more_handlers(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether it answers to a name that is not declared.
    fn answers(&self, name: &str, write: bool) -> bool {
        !write && self.more_handlers().iter().any(|it| it == name)
    }
}

/// What a control program waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A time.
    At(Time),
    /// A stop request, to be had from [`Desk::take_stop`].
    Stopped,
    /// A time or a stop request, whichever comes first.
    AtOrStopped(Time),
    /// A handler write, or its bell.
    Prodded,
    /// Nothing: it has ended.
    Ended,
}

/// What a control program can reach.
pub trait Desk {
    /// The time.
    fn now(&self) -> Time;
    /// Reads `element.handler`, or a global handler.
    fn read(&mut self, handler: &str) -> Result<String, ArgError>;
    /// Writes `element.handler`, or a global handler.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), ArgError>;
    /// Whether such a handler is there to be read (or written).
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
    /// Takes one stop request, if there is one.
    fn take_stop(&mut self) -> bool;
    /// Whether another configuration is about to replace this one: what is still
    /// to be done had better be done there.
    fn is_replaced(&self) -> bool;
    /// The name of the program's own element, for relative names.
    fn name(&self) -> &str;
    /// Its name with its class, as messages show it.
    fn label(&self) -> String;
    /// The whole name of a handler that the program names relative to itself.
    fn full_name(&self, handler: &str) -> String;
    /// An error in the words that the user wants to hear.
    fn words(&self, error: &ArgError) -> String;
    /// Lets the program's handler `run` be called at the next such signal to
    /// the process.
    fn on_signal(&mut self, signal: i32);
    /// Sends a signal to a process; what went wrong in the system's words.
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String>;
    /// What workers have to do, as far as it may move and where.
    fn loads(&mut self) -> Loads;
    /// Moves the tasks of an element to another worker.
    fn move_tasks(&mut self, element: usize, worker: usize) -> Result<(), ArgError>;
}

/// State that one worker owns; written by `#[derive(Local)]`.
pub trait Local: Default + Send + 'static {
    /// Handlers that read it; the engine merges the workers' answers.
    const READS: &'static [&'static [Read<Self>]] = &[];
    /// Handlers that change it, on every worker between two batches.
    const WRITES: &'static [&'static [Change<Self>]] = &[];
    /// Those of them that ask the router to stop, too.
    const STOPS: &'static [&'static str] = &[];
    /// Those of them after which the element's `wake` is called, to emit packets.
    const WAKES: &'static [&'static str] = &[];
}

impl Local for () {}

/// The exits of an element; written by `#[derive(Fate)]` on an enum whose
/// variants are outputs and, marked `#[drop]`, reasons to drop.
pub trait Fate: Copy {
    /// All exits, in order.
    const FATES: &'static [FateSpec];
    /// Whether the number of outputs depends on the configuration.
    const OPEN: bool = false;
    /// Output number, or `DROP - n` for the `n`th reason to drop.
    fn index(self) -> u8;
}

/// The index of the first reason to drop.
pub const DROP: u8 = u8::MAX;
/// How many reasons to drop an element can have, the engine's own included.
pub const REASONS: usize = 16;
/// The index of packets that the element does not take (`type On`).
pub const NOT_TAKEN: u8 = DROP - (REASONS as u8 - 1);
/// One more than the highest output number.
pub const MAX_OUTPUTS: usize = NOT_TAKEN as usize;

/// One exit.
pub struct FateSpec {
    /// Name in lower case.
    pub name: &'static str,
    /// The variant's doc comment.
    pub doc: &'static str,
    /// What kind of exit.
    pub kind: FateKind,
}

/// What kind of exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FateKind {
    /// Must be connected.
    Output,
    /// May be left open; its packets are then dropped and counted.
    Optional,
    /// A reason to drop, counted by name.
    Drop,
}

impl Fate for () {
    const FATES: &'static [FateSpec] =
        &[FateSpec { name: "out", doc: "Every packet.", kind: FateKind::Output }];
    #[inline]
    fn index(self) -> u8 {
        0
    }
}

/// An output by number, for elements whose outputs depend on configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port(u8);

impl Port {
    /// Drops the packet, because no rule sends it anywhere.
    pub const DROP: Port = Port(DROP);
    /// Output `n`; `None` past the last that can be counted.
    pub fn new(n: usize) -> Option<Port> {
        u8::try_from(n).ok().filter(|&n| n < NOT_TAKEN).map(Port)
    }
    /// Output `n`; [`Port::DROP`] past the last that can be counted.
    #[inline]
    pub fn nth(n: u8) -> Port {
        Port(if n < NOT_TAKEN { n } else { DROP })
    }
    /// Output `n`, or 255 to drop, where `n` was made by [`Port::new`] or checked
    /// against the connected outputs when the element was built: nothing is
    /// looked at again.
    #[inline(always)]
    pub fn known(n: u8) -> Port {
        debug_assert!(n < NOT_TAKEN || n == DROP, "{n} is no output");
        Port(n)
    }
    /// Its number; `None` for [`Port::DROP`].
    pub fn number(self) -> Option<usize> {
        (self != Port::DROP).then_some(usize::from(self.0))
    }
}

impl Fate for Port {
    const FATES: &'static [FateSpec] = &[FateSpec {
        name: "unmatched",
        doc: "Packets that no rule sends to an output.",
        kind: FateKind::Drop,
    }];
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

/// The fate of elements that keep every packet they are given (sinks).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Never {}

impl Fate for Never {
    const FATES: &'static [FateSpec] = &[];
    fn index(self) -> u8 {
        match self {}
    }
}

/// Answers of all workers to one read, as one.
pub fn merged(values: impl IntoIterator<Item = Value>) -> Option<Value> {
    values.into_iter().reduce(Value::merge)
}
