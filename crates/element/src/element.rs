//! The traits of elements.
//!
//! An element is its configuration, immutable and shared by all workers, and, per worker, its local
//! state, which that worker alone has by `&mut`.

use crate::account::{CpuAccount, MemoryLimits};
use crate::args::{Args, DeclaredNames};
use crate::control::{ControlContext, ControlWaker, ProgramReference, ProgramWait};
use crate::cx::Cx;
use crate::declaration::ElementDeclarations;
use crate::error::ArgError;
use crate::fate::Fate;
use crate::handler::{ReadHandler, ReadRequest, StateHandler, Value, WriteHandler};
use crate::on::View;
use crate::portable_state::StateField;
use crate::setup::Setup;
use crate::spec::Spec;
use crate::time::Time;
use castanet_packet::{Batch, BurstBytes, BurstSummary, Packet, PacketTotals, WordTest};

/// The element's page in the manual; written by `#[derive(Element)]`.
pub trait Describe: Sized + 'static {
    /// Class name, prose, ports, source file.
    const SPEC: Spec;
    /// Handlers that read the configuration.
    const READS: &'static [&'static [ReadHandler<Self>]] = &[];
    /// Handlers that make a changed configuration of the present one.
    const WRITES: &'static [&'static [WriteHandler<Self>]] = &[];
}

/// Makes an element of its arguments. The derive writes this for elements that are nothing but their
/// arguments; others compile their arguments here, once.
pub trait Build: Sized {
    /// The arguments.
    type Args: Args;
    /// Builds the element; called on the control thread before any packet flows.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    fn build(args: Self::Args, setup: &Setup) -> Result<Self, ArgError>;
}

/// Effect of an element on a burst of which a summary is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstEffect {
    /// All packets go on to output 0 as they are, and the element counts none of them itself.
    Passes,
    /// The summary stays true of the packets that go on to output 0.
    Keeps,
    /// The summary may no longer be true of them.
    Unknown,
}

/// The access of an element to the bytes of packets that have no descriptors ([`PerPacket::handle_bytes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteAccess {
    /// Nothing: it needs descriptors.
    None,
    /// It moves the start of all, or sets annotations; all leave by output 0.
    Moves,
    /// It reads their bytes, and decides by which output they leave, cuts them, or takes annotations from them.
    Reads,
    /// It writes to their bytes, and may move the start of all; all leave by output 0. It may refuse packets by their
    /// annotations, which those before it have set. The summary of their burst may no longer be true.
    Writes,
    /// It reads their bytes, decides by which output they leave, and writes to those that leave by output 0; the
    /// summary of their burst stays true.
    ReadsAndWrites,
}

impl ByteAccess {
    /// Whether it writes.
    pub const fn writes(self) -> bool {
        matches!(self, ByteAccess::Writes | ByteAccess::ReadsAndWrites)
    }

    /// Whether it decides by bytes.
    pub const fn reads(self) -> bool {
        matches!(self, ByteAccess::Reads | ByteAccess::ReadsAndWrites)
    }
}

/// An element that decides about one packet at a time.
///
/// The runtime loops over batches, looks at the header once, calls [`PerPacket::packet`] for each packet
/// and moves the packets by the fates that it returns. `local` belongs to the calling worker alone, or
/// is locked for the burst where `SHARED` says so.
pub trait PerPacket: Describe + Build + Send + Sync {
    /// The view that packets must have; the runtime drops and counts others.
    type On: View;
    /// State of each worker; `()` for none.
    type Local: Local;
    /// The exits; `()` for one output.
    type Fate: Fate;
    /// Whether all workers have one `Local`, locked for each burst where several reach the element: for
    /// state that is one sequence, such as a round robin.
    const SHARED: bool = false;
    /// Whether a decision reads a table that may be larger than the processor's caches. A fused chain that
    /// ends in such an element has it decide in a loop of its own: the processor waits for the memory of
    /// several packets at once then, and for that of one or two beside the work of other elements.
    const IS_LOOKUP: bool = false;
    /// Whether [`burst_effect`](PerPacket::burst_effect) is [`BurstEffect::Passes`] for usual bursts: a fused
    /// chain then has code in which the element does not look at packets.
    const CAN_PASS_BURST: bool = false;
    /// Whether it may [decide about bursts](PerPacket::decide_burst).
    const DECIDES_BURSTS: bool = false;
    /// Whether there may be a [`sufficient_test`](PerPacket::sufficient_test).
    const HAS_SUFFICIENT_TESTS: bool = false;
    /// Called before each burst, for work that is the same for all its packets.
    #[inline]
    fn begin_burst(&self, _local: &mut Self::Local, _now: Time) {}
    /// Decides about all packets of a burst, where that is faster than [`packet`](PerPacket::packet) for each:
    /// `fates` gets the index of each packet's fate, which is [`NOT_TAKEN`](crate::fate::NOT_TAKEN) without the view.
    /// Returns `false`, and does nothing, if it is not. The runtime does not ask in fused chains.
    #[inline]
    fn decide_burst(
        &self,
        _local: &mut Self::Local,
        _packets: &mut [Packet],
        _fates: &mut [u8],
    ) -> bool {
        false
    }
    /// The access of [`handle_bytes`](PerPacket::handle_bytes).
    const BYTE_ACCESS: ByteAccess = ByteAccess::None;
    /// The number of bytes that each packet must have for [`handle_bytes`](PerPacket::handle_bytes); `None` while it
    /// cannot be called.
    fn byte_length(&self) -> Option<usize> {
        None
    }
    /// Does to packets without descriptors what [`packet`](PerPacket::packet) does, but for `local` and for what
    /// [`write_bytes`](PerPacket::write_bytes) does. `fates` has a zero for each packet, and gets the index of its fate,
    /// [`NOT_TAKEN`](crate::fate::NOT_TAKEN) where this is not known. Returns the bits that are set in any of them. A
    /// source calls it before it makes packets, or where it makes none ([`Cx::bypass`]); for packets that take another
    /// way than this source knows, and for all if one is not taken, `packet` is called then.
    #[inline]
    fn handle_bytes(
        &self,
        _local: &mut Self::Local,
        _bytes: &mut BurstBytes,
        _fates: &mut [u8],
    ) -> u8 {
        0
    }
    /// Writes to the bytes of packets that go on without descriptors, once all elements have decided about them. They
    /// start where they did after [`handle_bytes`](PerPacket::handle_bytes).
    #[inline]
    fn write_bytes(&self, _local: &mut Self::Local, _bytes: &mut BurstBytes) {}
    /// Whether [`count_handled`](PerPacket::count_handled) does something.
    const COUNTS_HANDLED: bool = false;
    /// Does to `local` what [`packet`](PerPacket::packet) does for packets that are not dropped, once so many
    /// whose bytes the element has handled go on without descriptors.
    #[inline]
    fn count_handled(&self, _local: &mut Self::Local, _packets: usize) {}
    /// Called after each burst, before its packets move on: writes the lines that `packet` has left in
    /// `local` ([`Cx::chatter`]).
    #[inline]
    fn end_burst(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Whether the element can take over the state of an element of its name with the configuration
    /// `before`, in a hot swap; else its state begins anew. The runtime does not ask where the arguments
    /// are equal.
    fn can_take_state(&self, _before: &Self) -> bool {
        true
    }
    /// The element's effect on a burst of which this is true.
    #[inline]
    fn burst_effect(&self, _burst: &BurstSummary) -> BurstEffect {
        BurstEffect::Unknown
    }
    /// A test of packets that all go to `output`, and about which [`packet`](PerPacket::packet) would do
    /// nothing else: a fused chain asks it first.
    #[inline]
    fn sufficient_test(&self, _output: u8) -> WordTest {
        WordTest::NONE
    }
    /// Decides about one packet.
    fn packet(&self, local: &mut Self::Local, packet: <Self::On as View>::Of<'_>) -> Self::Fate;
    /// The Rust expression for [`packet`](PerPacket::packet), of `element`, `local` and `packet`, in which
    /// arguments are constants and `Element` is the class; for chains that are compiled for them
    /// ([`crate::node::fused`]). `None` if constants would make it no faster.
    fn native(&self) -> Option<String> {
        None
    }
}

/// An element that owns whole batches: for elements that make, multiply or keep packets, that need the
/// clock or a timer, or that have several inputs.
pub trait PerBatch: Describe + Build + Send + Sync {
    /// The view that packets must have; the runtime drops and counts others.
    type On: View;
    /// State of each worker; `()` for none.
    type Local: Local;
    /// The exits; `()` for one output.
    type Fate: Fate;
    /// As [`PerPacket::SHARED`].
    const SHARED: bool = false;
    /// Whether each worker that reaches the element has a queue of a device, which the element opens
    /// itself: then `init` and `cleanup` are called on each of them, else on the home worker alone.
    const PER_WORKER: bool = false;
    /// Whether [`PerBatch::can_pass`] lets any packet pass, so that the class can be in a fused chain.
    const CAN_PASS: bool = false;
    /// As [`PerPacket::CAN_PASS_BURST`].
    const CAN_PASS_BURST: bool = false;
    /// Whether [`PerBatch::counts_only`] can be true.
    const COUNTS_ONLY: bool = false;
    /// Opens files and devices and sets the first timer, before any packet flows and without an effect
    /// that others notice: the configuration may still be refused, and another one still run. Files
    /// and devices that this method opens close when the state is dropped.
    ///
    /// # Errors
    /// A file or device that cannot be opened; the configuration is then refused.
    fn init(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Does what others notice: empties files, takes queues of devices, writes to shared tables. Called
    /// where `init` was, once all elements of the configuration are initialised and those of a
    /// configuration that it replaces have been cleaned up.
    ///
    /// # Errors
    /// The configuration is refused; in a hot swap, where that is too late, the error is printed.
    fn start(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Takes a batch that came in on input `port`: gives each packet to `cx.emit` (an output or a reason
    /// to drop) or `cx.consume`, or keeps it in `local`. Dropping the batch frees its packets.
    fn batch(&self, local: &mut Self::Local, port: usize, batch: Batch, cx: &mut Cx);
    /// Whether a packet of input 0 may go on to output 0 with nothing else to be done than was done here,
    /// counts included: then a fused chain ([`crate::node::fused`]) makes no batch for it.
    #[inline]
    fn can_pass(&self, _local: &mut Self::Local, _packet: <Self::On as View>::Of<'_>) -> bool {
        false
    }
    /// As [`PerPacket::burst_effect`], for [`can_pass`](PerBatch::can_pass).
    #[inline]
    fn burst_effect(&self, _burst: &BurstSummary) -> BurstEffect {
        BurstEffect::Unknown
    }
    /// As [`PerPacket::native`], for [`can_pass`](PerBatch::can_pass).
    fn native(&self) -> Option<String> {
        None
    }
    /// As [`PerPacket::BYTE_ACCESS`].
    const BYTE_ACCESS: ByteAccess = ByteAccess::None;
    /// As [`PerPacket::byte_length`]; `now` is the time of the loan.
    fn byte_length(&self, _local: &mut Self::Local, _now: Time) -> Option<usize> {
        None
    }
    /// As [`PerPacket::handle_bytes`], for packets of input 0. Where workers share `local`, it is locked for this call, and
    /// for that of [`write_bytes`](PerBatch::write_bytes), but not between the two: what is to be known then belongs to the
    /// packets ([`BurstBytes::keep_words`]).
    fn handle_bytes(
        &self,
        _local: &mut Self::Local,
        _bytes: &mut BurstBytes,
        _fates: &mut [u8],
    ) -> u8 {
        0
    }
    /// As [`PerPacket::write_bytes`].
    fn write_bytes(&self, _local: &mut Self::Local, _bytes: &mut BurstBytes) {}
    /// Whether the element does nothing to packets but to count them and their bytes, and emits them all by
    /// output 0: then a source may hand packets past it ([`Cx::bypass`]). Asked before each burst; always `false`
    /// unless [`COUNTS_ONLY`](PerBatch::COUNTS_ONLY).
    fn counts_only(&self) -> bool {
        Self::COUNTS_ONLY
    }
    /// Counts packets, at least one, that were handed past the element.
    fn count(&self, _local: &mut Self::Local, _totals: PacketTotals, _cx: &mut Cx) {}
    /// Called on the home worker when the time set by [`Cx::set_timer`] has come.
    fn run_timer(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Says whether elements of a pending configuration may claim the queues that this element has open,
    /// because it will be cleaned up before they start; called with `false` where that configuration is
    /// given up.
    fn offer_claims(&self, _local: &mut Self::Local, _offered: bool) {}
    /// Closes a device that is gone, or takes one that the control thread has opened in its place. Called
    /// on each worker with a queue of a device, between two bursts, when any device has gone or come back;
    /// then the element's task runs again.
    fn exchange_device(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Writes out buffers when the router stops or a configuration without this element replaces this
    /// one.
    fn cleanup(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Packets that the element keeps, for the accounting of packets.
    fn held(&self, _local: &Self::Local) -> usize {
        0
    }
    /// Whether the element can take over the state of an element of its name with the configuration
    /// `before`, in a hot swap; else its state begins anew. An element that opens something answers
    /// whether both mean the same file or device. The runtime does not ask where arguments and ports
    /// are equal.
    fn can_take_state(&self, _before: &Self) -> bool {
        true
    }
    /// Called on the home worker after the element has taken over the state of one with other arguments.
    fn after_take_state(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Has the state follow the configuration: called where state is made, after each handler write that
    /// changed the configuration, and after the state was taken over. A second call changes nothing.
    fn apply_config(&self, _local: &mut Self::Local) {}
    /// The configuration under which the element goes on for `before` in a hot swap, where that is not
    /// simply its own. Called while packets still flow through `before`: workers stand still only while
    /// the state follows ([`apply_config`](PerBatch::apply_config)).
    fn merged_config(&self, _before: &Self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
    /// The input to pull for output `output`; `None` where nothing is to be pulled.
    fn pull_input(&self, output: usize) -> Option<usize> {
        Some(output)
    }
    /// Emits up to `n` of the packets that its program has sent to the pulled output: they came back to the
    /// input behind its last one ([`Cx::call_for_output`]). Called before its inputs are pulled.
    fn emit_decided(&self, _local: &mut Self::Local, _n: usize, _cx: &mut Cx) {}
    /// Whether workers share one `Local`, where that depends on arguments.
    fn is_shared(&self) -> bool {
        Self::SHARED
    }
    /// The handlers and reasons to drop that the element has beside those of its class.
    fn declarations(&self) -> ElementDeclarations {
        ElementDeclarations::default()
    }
    /// Answers a read handler of its [`declarations`](PerBatch::declarations), on each worker.
    fn read_declared(
        &self,
        _local: &mut Self::Local,
        _name: &str,
        _request: &ReadRequest,
    ) -> Option<Value> {
        None
    }
    /// Obeys a write handler of its [`declarations`](PerBatch::declarations), on each worker.
    fn write_declared(
        &self,
        _local: &mut Self::Local,
        _name: &str,
        _text: &str,
    ) -> Option<Result<(), ArgError>> {
        None
    }
    /// Whether its task pulls its inputs, where no element downstream does; asked again after each
    /// handler write.
    fn is_pulling(&self, _local: &Self::Local) -> bool {
        true
    }
    /// As [`Source::packets_a_turn`], of the task that pulls.
    fn packets_a_turn(&self) -> usize {
        1
    }
}

/// An element that produces packets: as a task where its output pushes, else when it is pulled. It may
/// pull its own inputs ([`Cx::pull`]), so that unqueuers, shapers and schedulers are sources too.
pub trait Source: Describe + Build + Send + Sync {
    /// State of the worker that runs the source.
    type Local: Local;
    /// The exits; `()` for one output.
    type Fate: Fate;
    /// Whether it may run on several workers, each with its own state and its own queues of a device:
    /// then `init` and `cleanup` are called on each of them. Any other source runs on one worker.
    const PER_WORKER: bool = false;
    /// Opens files and devices without an effect that others notice, as [`PerBatch::init`].
    ///
    /// # Errors
    /// A file or device that cannot be opened; the configuration is then refused.
    fn init(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Does what others notice, as [`PerBatch::start`].
    ///
    /// # Errors
    /// As [`PerBatch::start`].
    fn start(&self, _local: &mut Self::Local, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// As [`PerBatch::apply_config`].
    fn apply_config(&self, _local: &mut Self::Local) {}
    /// Emits up to `n` packets; returns when to run again.
    fn produce(&self, local: &mut Self::Local, n: usize, cx: &mut Cx) -> NextRun;
    /// Whether its task runs at all; asked again after each handler write.
    fn is_active(&self, _local: &Self::Local) -> bool {
        true
    }
    /// Packets that a turn of its task handles where turns are Click's, of one packet unless an argument
    /// says otherwise.
    fn packets_a_turn(&self) -> usize {
        1
    }
    /// As [`PerBatch::offer_claims`].
    fn offer_claims(&self, _local: &mut Self::Local, _offered: bool) {}
    /// As [`PerBatch::exchange_device`].
    fn exchange_device(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// As [`PerBatch::cleanup`].
    fn cleanup(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// As [`PerBatch::can_take_state`].
    fn can_take_state(&self, _before: &Self) -> bool {
        true
    }
    /// Packets that the element keeps, for the accounting of packets.
    fn held(&self, _local: &Self::Local) -> usize {
        0
    }
    /// Drops the packets that a handler write to the configuration has made void, as [`Store::shrink`].
    fn shrink(&self, _local: &mut Self::Local) {}
}

/// When the task of a source runs again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextRun {
    /// At its next turn: there may be more packets at once.
    Again,
    /// In the same turn, once what it has emitted has gone all its way.
    SameTurn,
    /// As `Again`, for a task that has pulled packets, and does nothing if there are no more: it may rest until there
    /// are.
    More,
    /// Not before this time.
    At(Time),
    /// When this file descriptor becomes readable: the same descriptor at each run, for the number of a
    /// closed one may be reused.
    Readable(i32),
    /// When the stores that it pulls from have packets or those that it pushes into have room, or at the
    /// time of [`Cx::retry_at`].
    Empty,
    /// When a handler write has revived it.
    Done,
}

/// An element that keeps packets between a pushing and a pulling side, or, where its output pushes, until
/// its home worker empties it. All workers have one state, locked for each burst where several reach it.
pub trait Store: Describe + Build + Send + Sync {
    /// The packets, and counts of them.
    type Local: Local;
    /// The exits: output 0 is pulled, further outputs push; reasons to drop packets that find no room.
    type Fate: Fate;
    /// Whether sources that push into it wait while it is full; else they go on, and packets that find no
    /// room leave by another output or are dropped.
    const NOTIFIES: bool = false;
    /// Takes a batch in.
    fn enqueue(&self, local: &mut Self::Local, batch: Batch, cx: &mut Cx);
    /// Takes a batch in that came on input `port`, for elements whose inputs differ.
    fn enqueue_at(&self, local: &mut Self::Local, _port: usize, batch: Batch, cx: &mut Cx) {
        self.enqueue(local, batch, cx);
    }
    /// Moves up to `n` packets into `into`.
    fn dequeue(&self, local: &mut Self::Local, n: usize, into: &mut Batch, cx: &mut Cx);
    /// Packets that the element keeps.
    fn held(&self, local: &Self::Local) -> usize;
    /// As [`PerBatch::can_take_state`].
    fn can_take_state(&self, _before: &Self) -> bool {
        true
    }
    /// Packets that still find room, for sources that wait for it.
    fn room(&self, _local: &Self::Local) -> usize {
        usize::MAX
    }
    /// Drops the packets for which a handler write to the configuration has left no room; called after
    /// each such write. The runtime counts them.
    fn shrink(&self, _local: &mut Self::Local) {}
    /// Called on the home worker after a write handler that `wakes` it.
    fn run_timer(&self, _local: &mut Self::Local, _cx: &mut Cx) {}
    /// Whether its home worker empties it, where the output pushes; asked again after each handler write.
    fn is_active(&self, _local: &Self::Local) -> bool {
        true
    }
}

/// An element that only declares facts about the graph: addresses, where tasks run. It has no ports and
/// no state at run time.
pub trait Info: Describe + Build + Send + Sync {
    /// Adds its declarations.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError>;
}

/// Declarations of `Info` elements, gathered before any other element is built.
#[derive(Default)]
pub struct Facts {
    /// Names of addresses, ports, annotations and patterns.
    pub names: DeclaredNames,
    /// Names of the host's interfaces, which also are names of their addresses.
    pub interfaces: Vec<String>,
    /// By worker: the NUMA node of its core.
    pub nodes: Vec<usize>,
    /// Names of elements or compounds, each with the thread of its tasks: a worker, or one of `contexts`.
    pub homes: Vec<(String, usize)>,
    /// Names of elements or compounds, each with the share of turns of its tasks, where 1 is the default.
    pub tickets: Vec<(String, f64)>,
    /// Names of elements, each with modulus and remainder of the addresses of packets at its first input.
    pub alignments: Vec<(String, (u32, u32))>,
    /// Accounts of processor time.
    pub accounts: Vec<CpuAccount>,
    /// Limits of memory.
    pub limits: Vec<MemoryLimits>,
    /// Numbers of threads as in `StaticThreadSched`, each with the name of the account of its elements.
    pub contexts: Vec<(usize, String)>,
    /// Seed of random numbers.
    pub seed: Option<u32>,
    /// Whether tasks may move between workers.
    pub balanced: bool,
    /// Notices about the configuration.
    pub notices: Vec<ConfigNotice>,
}

/// A notice about a configuration that is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigNotice {
    /// A message.
    Message(String),
    /// A warning.
    Warning(String),
}

/// A program that runs on the control thread: scripts and driver managers. It reaches elements only
/// through handlers.
pub trait Control: Describe + Build + Send + Sync {
    /// State of the program.
    type Local: Local;
    /// Read handlers that only the router's own programs may call.
    const PRIVATE: &'static [&'static str] = &[];
    /// Opens what the program needs, before it runs; `waker` wakes it from other threads.
    ///
    /// # Errors
    /// A resource that cannot be opened; the configuration is then refused.
    fn init(&self, _local: &mut Self::Local, _waker: ControlWaker) -> Result<(), ArgError> {
        Ok(())
    }
    /// Runs until it has to wait.
    fn step(&self, local: &mut Self::Local, control: &mut dyn ControlContext) -> ProgramWait;
    /// Answers a read handler or obeys a write handler that needs the control context; `None` leaves it
    /// to the declared handlers.
    fn call(
        &self,
        _local: &mut Self::Local,
        _handler: &str,
        _text: &str,
        _write: bool,
        _control: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        None
    }
    /// Whether it decides what a stop request means (a driver manager).
    fn is_driver(&self) -> bool {
        false
    }
    /// Whether it goes on at the step of the program of its name with the configuration `before`, in a
    /// hot swap; else it begins anew, as scripts do in Click.
    fn can_take_state(&self, _before: &Self) -> bool {
        false
    }
    /// Signals to the process for which its handler `run` is called, each once until the program calls
    /// [`ControlContext::on_signal`] again.
    fn signals(&self) -> &[i32] {
        &[]
    }
    /// Read handlers beside the declared ones.
    fn more_handlers(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether it answers to a handler that is not declared.
    fn has_handler(&self, name: &str, write: bool) -> bool {
        !write && self.more_handlers().iter().any(|it| it == name)
    }
    /// The handlers and elements that its arguments name; names that it computes are not among them.
    fn references(&self) -> Vec<ProgramReference> {
        Vec::new()
    }
}

/// State that one worker owns; written by `#[derive(Local)]`.
pub trait Local: Default + Send + 'static {
    /// Handlers that read it; the runtime merges the values of all workers.
    const READS: &'static [&'static [ReadHandler<Self>]] = &[];
    /// Handlers that change it, on every worker between two bursts.
    const WRITES: &'static [&'static [StateHandler<Self>]] = &[];
    /// Write handlers that also ask the router to stop.
    const STOPS: &'static [&'static [&'static str]] = &[];
    /// Write handlers after which the element's timer runs, to emit packets.
    const WAKES: &'static [&'static [&'static str]] = &[];
    /// Fields that go to another instance with the element.
    const PORTABLE: &'static [StateField<Self>] = &[];
}

impl Local for () {}
