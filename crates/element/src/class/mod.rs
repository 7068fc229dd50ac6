//! Element classes as values: what the manual, the parser and a worker need.

use crate::handler::{HandlerDoc, HandlerMetric, Metric, ReadRequest, Value};
use crate::spec::Spec;

mod fates;
mod options;
pub mod ports;
mod program;
mod unknown;

pub use program::Program;
pub use unknown::UNKNOWN;

use crate::args::{ArgSpec, Args, Names};
use crate::device::Device;
use crate::element::{
    Build, ByteAccess, Control, Describe, Facts, Info, Local, PerBatch, PerPacket, Source, Store,
};
use crate::error::ArgError;
use crate::fate::{Fate, FateSpec};
use crate::node::RoleNode;
use crate::node::fused::Fusion;
use crate::node::{
    AnyConfig, DuplexNode, Instance, PerBatchNode, PerPacketNode, SourceNode, StoreNode,
    find_handler, numbered_text,
};
use crate::on::View;
use crate::resource::FindResources;
use crate::setup::Setup;
use crate::time::Time;
use castanet_lang::{Diagnostics, FlatGraph, SourceMap, Tree, parse};
use program::TypedProgram;
use std::ops::Deref;
use std::sync::Arc;

/// One element, once per worker.
pub type Nodes = Vec<RoleNode>;

/// How an element takes part in the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Packets pass through it (or end in it).
    Through,
    /// It is asked for packets.
    Source,
    /// Both: packets end in it and it is asked for others.
    Duplex,
    /// Packets rest in it.
    Store,
    /// It declares facts.
    Info,
    /// It is a program on the control thread.
    Control,
}

/// From a configuration, a handler's name and what is asked to the answer.
pub type ReadConfig = fn(&AnyConfig, &str, &ReadRequest) -> Option<Value>;
/// From a configuration, a handler's name and what is written to it to another configuration.
pub type WriteConfig = fn(&AnyConfig, &str, &str, &Names) -> Option<Result<AnyConfig, ArgError>>;
type Declare = fn(&str, &Names, &mut Facts) -> Result<(), Vec<ArgError>>;
type MakeNodes = fn(&str, &Setup, usize) -> Result<Nodes, Vec<ArgError>>;
/// Says which device an element of these arguments stands for, and what it
/// wants of it; `None` if they are wrong. Opens nothing.
pub type FindDevice = fn(&str, &Names) -> Option<Device>;
/// Names the stores that an element of these arguments watches, none for those
/// next to it; `None` if the arguments are wrong.
pub type FindStores = fn(&str, &Names) -> Option<Vec<String>>;
/// Names the handlers that an element of these arguments writes in the middle of its packets'
/// way, each with the argument that messages are to name, if they are known before it runs; `None`
/// if it writes none.
pub type FindCalls = fn(&str, &Names) -> Option<Vec<(Option<&'static str>, String)>>;
type MakeProgram = fn(&str, &Setup) -> Result<Box<dyn Program>, Vec<ArgError>>;

/// How workers share an element's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateSharing {
    /// Each has its own.
    PerWorker,
    /// They have one, which each locks for a burst.
    Locked,
    /// They have one, which all read at a time.
    ReadShared,
}

/// How elements of a class decide as stages of a fused chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageKind {
    /// Packet by packet: `packet CLASS` in [`fuse!`](crate::fuse).
    Packet,
    /// Most packets one by one, the others in a batch: `batch CLASS`.
    Batch,
}

/// The Rust type of a class whose elements can be stages of a fused chain.
#[derive(Clone, Copy)]
pub struct StageType {
    /// How its elements decide.
    pub kind: StageKind,
    /// The path of the type, as source code of another crate names it.
    pub path: fn() -> &'static str,
}

/// One element class, type-erased: its description, which is also reached by `class.spec` and the like,
/// and the functions that make elements of it.
pub struct Class {
    /// Its declarations.
    pub description: Description,
    /// Functions from arguments to elements.
    pub factory: Factory,
}

impl Deref for Class {
    type Target = Description;
    fn deref(&self) -> &Description {
        &self.description
    }
}

/// Declarations of a class: nothing in it depends on arguments.
pub struct Description {
    /// Name, prose, ports, room.
    pub spec: &'static Spec,
    /// Declared arguments.
    pub args: &'static [ArgSpec],
    /// The view of packets that its elements take.
    pub on: &'static str,
    /// The view of packets that its elements act on: where it differs from `on`, others pass.
    pub acts_on: &'static str,
    /// Role of its elements in the graph.
    pub role: Role,
    /// Declared exits.
    pub fates: &'static [FateSpec],
    /// Whether the number of outputs depends on the configuration.
    pub open_outputs: bool,
    /// Read handlers.
    pub reads: fn() -> Vec<HandlerDoc>,
    /// Read handlers that are metrics.
    pub metrics: fn() -> Vec<HandlerMetric>,
    /// Write handlers.
    pub writes: fn() -> Vec<HandlerDoc>,
    /// Read handlers that only the router's own programs may call.
    pub private: &'static [&'static str],
    /// Whether a write handler also asks the router to stop.
    pub stops: fn(&str) -> bool,
    /// Whether the element's timer runs after a write handler.
    pub runs_timer: fn(&str) -> bool,
    /// Write handlers that give an element a call to make on its packets' way.
    pub called_by: &'static [&'static str],
    /// Whether it is initialised and cleaned up on every worker that runs or reaches it.
    pub per_worker: bool,
    /// The output whose packets go on before those of all others.
    pub first_output: u8,
    /// Whether its elements may take any time for one packet or one handler.
    pub has_unbounded_time: bool,
    /// How workers share its state.
    pub sharing: StateSharing,
    /// For `Store`: whether sources that push into it wait while it is full.
    pub notifies: bool,
    /// Whether its elements, if they watch stores, also work where there is none.
    pub may_watch_none: bool,
    /// When Click gives its notifier of packets a number, if it has one.
    pub notifier: Option<NotifierOrder>,
    /// Whether its elements show the signal next to them ([`SIGNAL`]).
    pub shows_signal: bool,
    /// Treatment of packets whose checksums the sending device computes.
    pub checksums: Checksums,
    /// Classes of elements without outputs to which a source can hand packets that no element has to
    /// look at.
    pub bypass: &'static [&'static str],
    /// Whether its elements can be ones that only count packets, so that these can be handed past them.
    pub counts_only: bool,
    /// Whether bursts can pass its elements as they are.
    pub passes_bursts: bool,
    /// The access of its elements to the bytes of packets without descriptors.
    pub byte_access: ByteAccess,
    /// Whether its elements count the packets whose bytes they have handled.
    pub counts_handled: bool,
    /// Whether its sources lend elements the bytes of packets that they hand past them.
    pub lends_bytes: bool,
    /// Whether few of a router's packets leave its elements.
    pub emits_few: bool,
    /// The class of the element nearest to each of its elements that it works with, and where that is.
    pub partner: Option<Partner>,
    /// The class of elements of this name that have ports.
    pub ported: Option<&'static Class>,
    /// Its type, if its elements can be in a fused chain.
    pub stage: Option<StageType>,
}

/// Functions of a class from arguments to elements, and to facts that depend on arguments.
pub struct Factory {
    /// Builds one node per worker, all with one configuration.
    pub make: MakeNodes,
    /// For `Control`: builds the program.
    pub program: Option<MakeProgram>,
    /// For `Info`: gathers what the element declares.
    pub declare: Option<Declare>,
    /// Reads a handler of a configuration; `None` if there is none of that name.
    pub read_config: ReadConfig,
    /// Makes a changed configuration, by a write handler of configurations; `None` if there is
    /// none of that name.
    pub write_config: WriteConfig,
    /// The handlers that read a part of the configuration and write it.
    pub argument_handlers: fn() -> Vec<&'static str>,
    /// For devices: names the device and the queues that the element wants, without opening it.
    pub device: Option<FindDevice>,
    /// For elements that open something: names the resources that they need, without opening them.
    pub resources: Option<FindResources>,
    /// For elements that watch how full stores are: names the stores.
    pub watch: Option<FindStores>,
    /// For elements that write handlers on their packets' way: names the handlers.
    pub calls: Option<FindCalls>,
}

/// An element that another one works with, found by the paths of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Partner {
    /// The nearest one of this class from which packets come to input 0.
    Upstream(&'static str),
    /// The nearest one of this class to which packets of output 0 go.
    Downstream(&'static str),
}

/// When Click gives a notifier of packets its number. The first ones begin with 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NotifierOrder {
    /// When elements are configured.
    Configuration,
    /// When elements are initialised, after the configuration of all.
    Initialization,
}

/// The handler of elements that show the signal next to them.
pub const SIGNAL: HandlerDoc = HandlerDoc {
    name: "signal",
    doc: "The signal next to the element, as Click writes it: `empty.0/3:1*` depends on notifiers 0 and \
          1, of which 0 is on.",
};

/// Treatment of packets whose checksums the sending device computes ([`castanet_packet::PartialChecksums`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// They may look at checksums, or change, cut or keep what they are of: no
    /// such packet comes to them.
    Right,
    /// They neither look at an IP packet nor change or keep it.
    Pass,
    /// They send packets, and see to it that their checksums are right.
    Complete,
}

fn reads<E: Describe, L: Local>() -> Vec<HandlerDoc> {
    let doc = |name, doc| HandlerDoc { name, doc };
    let config = E::READS.iter().copied().flatten().map(|h| doc(h.name, h.doc));
    config.chain(L::READS.iter().copied().flatten().map(|h| doc(h.name, h.doc))).collect()
}

fn metrics<E: Describe, L: Local>() -> Vec<HandlerMetric> {
    let of = |handler, metric: Option<&'static Metric>| {
        metric.map(|metric| HandlerMetric { handler, metric })
    };
    let config = E::READS.iter().copied().flatten().filter_map(|h| of(h.name, h.metric));
    let state = L::READS.iter().copied().flatten().filter_map(|h| of(h.name, h.metric));
    config.chain(state).collect()
}

fn writes<E: Describe, L: Local>() -> Vec<HandlerDoc> {
    let doc = |name, doc| HandlerDoc { name, doc };
    let config = E::WRITES.iter().copied().flatten().map(|h| doc(h.name, h.doc));
    config.chain(L::WRITES.iter().copied().flatten().map(|h| doc(h.name, h.doc))).collect()
}

fn argument_handlers<E: Describe>() -> Vec<&'static str> {
    let reads = |name: &str| E::READS.iter().copied().flatten().any(|read| read.name == name);
    let writes = E::WRITES.iter().copied().flatten().map(|write| write.name);
    writes.filter(|name| reads(name)).collect()
}

fn build<E: Build>(text: &str, setup: &Setup) -> Result<E, Vec<ArgError>> {
    let args = <E::Args as Args>::parse(text, setup.names)?;
    E::build(args, setup).map_err(|e| vec![e])
}

fn read_config<E: Describe + Send + Sync + 'static>(
    config: &AnyConfig,
    name: &str,
    request: &ReadRequest,
) -> Option<Value> {
    let config = config.downcast_ref::<E>()?;
    let (handler, number) = find_handler(E::READS, |h| h.name, name)?;
    let param = number.unwrap_or(request.param);
    Some((handler.get)(config, &ReadRequest { param, ..*request }))
}

fn write_config<E: Build + Describe + Send + Sync>(
    config: &AnyConfig,
    name: &str,
    text: &str,
    names: &Names,
) -> Option<Result<AnyConfig, ArgError>> {
    let config = config.downcast_ref::<E>()?;
    let (handler, number) = find_handler(E::WRITES, |h| h.name, name)?;
    let new = (handler.set)(config, &numbered_text(number, text), names);
    Some(new.map(|new| Arc::new(new) as AnyConfig))
}

fn no_nodes(_: &str, _: &Setup, _: usize) -> Result<Nodes, Vec<ArgError>> {
    Ok(Vec::new())
}

const fn class<E: Build + Describe + Send + Sync, L: Local, F: Fate>(
    on: &'static str,
    role: Role,
    make: MakeNodes,
) -> Class {
    Class {
        description: Description {
            spec: const { &E::SPEC },
            args: <E::Args as Args>::ARGS,
            on,
            acts_on: on,
            role,
            fates: F::FATES,
            open_outputs: F::OPEN,
            reads: reads::<E, L>,
            metrics: metrics::<E, L>,
            writes: writes::<E, L>,
            private: &[],
            stops: |name| L::STOPS.iter().any(|names| names.contains(&name)),
            runs_timer: |name| L::WAKES.iter().any(|names| names.contains(&name)),
            called_by: &[],
            per_worker: false,
            first_output: 0,
            has_unbounded_time: false,
            sharing: StateSharing::PerWorker,
            notifies: false,
            may_watch_none: false,
            notifier: None,
            shows_signal: false,
            checksums: Checksums::Right,
            bypass: &[],
            counts_only: false,
            passes_bursts: false,
            byte_access: ByteAccess::None,
            counts_handled: false,
            lends_bytes: false,
            emits_few: false,
            partner: None,
            ported: None,
            stage: None,
        },
        factory: Factory {
            make,
            program: None,
            declare: None,
            read_config: read_config::<E>,
            write_config: write_config::<E>,
            argument_handlers: argument_handlers::<E>,
            device: None,
            resources: None,
            watch: None,
            calls: None,
        },
    }
}

/// The nodes of an element, one for each worker. Workers have one state where `one_state` says so.
fn nodes<E: Build, L: Local>(
    text: &str,
    setup: &Setup,
    workers: usize,
    one_state: impl Fn(&E) -> bool,
    node: impl Fn(Instance<E, L>) -> RoleNode,
) -> Result<Nodes, Vec<ArgError>> {
    let config = build::<E>(text, setup)?;
    let one_state = one_state(&config);
    Ok(Instance::for_workers(config, workers, one_state, setup.single_worker).map(node).collect())
}

/// The class of an element that decides packet by packet.
pub const fn per_packet<E: PerPacket>() -> Class {
    class::<E, E::Local, E::Fate>(E::On::NAME, Role::Through, |text, setup, workers| {
        let node = |body| RoleNode::Through(Box::new(PerPacketNode::<E>::new(body)));
        nodes(text, setup, workers, |_| E::SHARED, node)
    })
    .locked_if(E::SHARED)
    .passing_bursts(E::CAN_PASS_BURST)
    .handling_bytes(E::BYTE_ACCESS, E::COUNTS_HANDLED)
    .in_chains::<E>(Some(StageKind::Packet))
}

/// The class of an element that owns whole batches.
pub const fn per_batch<E: PerBatch>() -> Class {
    class::<E, E::Local, E::Fate>(E::On::NAME, Role::Through, |text, setup, workers| {
        let node = |body| RoleNode::Through(Box::new(PerBatchNode::<E>::new(body)));
        nodes(text, setup, workers, E::is_shared, node)
    })
    .on_each(E::PER_WORKER)
    .locked_if(<E as PerBatch>::SHARED)
    .passing_bursts(E::CAN_PASS_BURST)
    .handling_bytes(E::BYTE_ACCESS, false)
    .counting_only(E::COUNTS_ONLY)
    .in_chains::<E>(if E::CAN_PASS { Some(StageKind::Batch) } else { None })
}

/// The class of an element that is asked for packets.
pub const fn source<E: Source>() -> Class {
    class::<E, E::Local, E::Fate>("any", Role::Source, |text, setup, workers| {
        let node = |body| RoleNode::Source(Box::new(SourceNode::<E>::new(body)));
        nodes(text, setup, workers, |_| !setup.single_worker && !E::PER_WORKER, node)
    })
    .on_each(E::PER_WORKER)
}

/// The class of an element that takes batches and is asked for packets too,
/// with one state for both sides (tunnels, taps, sockets). Where workers other
/// than the source's own may push into it, it must say `SHARED`.
pub const fn duplex<E>() -> Class
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local, Fate = <E as PerBatch>::Fate>,
{
    class::<E, <E as PerBatch>::Local, <E as PerBatch>::Fate>(
        <E as PerBatch>::On::NAME,
        Role::Duplex,
        |text, setup, workers| {
            let node = |body| RoleNode::Duplex(Box::new(DuplexNode::<E>::new(body)));
            nodes(text, setup, workers, |_| <E as PerBatch>::SHARED, node)
        },
    )
}

/// The class of an element whose program on the control thread decides about
/// packets: to the user it is that program's class, for elements with ports.
pub const fn per_batch_with_program<E: PerBatch, P: Control>() -> Class {
    let (through, program) = (per_batch::<E>(), control::<P>());
    let spec = const {
        &Spec {
            class: P::SPEC.class,
            doc: P::SPEC.doc,
            file: P::SPEC.file,
            room: P::SPEC.room,
            aliases: P::SPEC.aliases,
            ports: E::SPEC.ports,
            processing: E::SPEC.processing,
            flow: E::SPEC.flow,
            headers: E::SPEC.headers,
            gives: E::SPEC.gives,
        }
    };
    Class {
        description: Description {
            spec,
            args: program.description.args,
            reads: program.description.reads,
            metrics: program.description.metrics,
            writes: program.description.writes,
            private: program.description.private,
            ..through.description
        },
        factory: Factory { program: program.factory.program, ..through.factory },
    }
}

/// The class of an element that keeps packets.
pub const fn store<E: Store>() -> Class {
    let mut class = class::<E, E::Local, E::Fate>("any", Role::Store, |text, setup, workers| {
        let node = |body| RoleNode::Store(Box::new(StoreNode::<E>::new(body)));
        nodes(text, setup, workers, |_| true, node)
    });
    class.description.notifies = E::NOTIFIES;
    class.description.notifier = Some(NotifierOrder::Configuration);
    class
}

/// The class of an element that only declares facts.
pub const fn info<E: Info>() -> Class {
    let mut class = class::<E, (), crate::fate::Never>("any", Role::Info, |text, setup, _| {
        build::<E>(text, setup).map(|_| Vec::new())
    });
    class.factory.declare = Some(|text, names, facts| {
        let setup = Setup {
            name: "",
            inputs: 0,
            outputs: 0,
            workers: &[],
            single_worker: true,
            queue_shares: &[],
            device_queues: (0, 0),
            stores: &[],
            partner: None,
            may_leave_checksums: false,
            alignment: None,
            as_click: false,
            names,
            warn: &|_| (),
            started: Time::default(),
            peers: None,
        };
        build::<E>(text, &setup)?.declare(facts).map_err(|e| vec![e])
    });
    class
}

/// The class of a control program.
pub const fn control<E: Control>() -> Class {
    let mut class = class::<E, E::Local, crate::fate::Never>("any", Role::Control, no_nodes);
    class.factory.program = Some(|text, setup| {
        let config = Arc::new(build::<E>(text, setup)?);
        Ok(Box::new(TypedProgram::<E> { config, local: E::Local::default() }))
    });
    class.description.private = E::PRIVATE;
    class
}

/// The classes a configuration may name.
#[derive(Clone, Default)]
pub struct Library {
    by_name: std::collections::BTreeMap<&'static str, &'static Class>,
    fusions: Vec<&'static Fusion>,
    absent: Vec<(&'static str, &'static str)>,
}

impl Library {
    /// A library of these classes.
    pub fn new(rooms: &[&'static [Class]]) -> Library {
        let mut library = Library::default();
        rooms.iter().copied().flatten().for_each(|class| library.add(class));
        library
    }
    /// Adds a class under its name and its aliases.
    pub fn add(&mut self, class: &'static Class) {
        self.by_name.insert(class.spec.class, class);
        for alias in class.spec.aliases {
            self.by_name.insert(alias, class);
        }
    }
    /// Names a class that other builds of the program have, and how to get it.
    pub fn add_absent(&mut self, name: &'static str, help: &'static str) {
        self.absent.push((name, help));
    }
    /// How to get a class that this build of the program does not have.
    pub fn help_for_absent(&self, name: &str) -> Option<&'static str> {
        self.absent.iter().find(|(absent, _)| *absent == name).map(|(_, help)| *help)
    }
    /// Whether this is the name of a class, if only of other builds of the program.
    pub fn names_class(&self, name: &str) -> bool {
        self.get(name).is_some() || self.help_for_absent(name).is_some()
    }
    /// Adds passes of several classes that run as one.
    pub fn fuse(&mut self, fusions: &'static [Fusion]) {
        self.fusions.extend(fusions);
    }
    /// The passes of several classes.
    pub fn fusions(&self) -> &[&'static Fusion] {
        &self.fusions
    }
    /// The class of that name.
    pub fn get(&self, name: &str) -> Option<&'static Class> {
        self.by_name.get(name).copied()
    }
    /// Parses a configuration of these classes and expands its compound elements; messages call its
    /// file `name`.
    pub fn flatten(&self, name: &str, text: &str) -> (FlatGraph, Diagnostics, SourceMap) {
        let mut sources = SourceMap::new();
        let file = sources.add(name, text);
        let (tree, mut found) = parse(&mut sources, file);
        let (flat, errors) = self.expand(&tree);
        found.append(errors);
        (flat, found, sources)
    }
    /// Expands the compound elements of a configuration of these classes.
    pub fn expand(&self, tree: &Tree) -> (FlatGraph, Diagnostics) {
        castanet_lang::expand(tree, &|class: &str| self.names_class(class), &[])
    }
    /// Every name, aliases included, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.by_name.keys().copied()
    }
    /// Every class once, sorted by name.
    pub fn classes(&self) -> impl Iterator<Item = &'static Class> + '_ {
        self.by_name.iter().filter(|(name, class)| **name == class.spec.class).map(|(_, c)| *c)
    }
}
