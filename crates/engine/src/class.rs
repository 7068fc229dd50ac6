//! Element classes as values: what the manual, the parser and a worker need.

mod deferred_work;
mod options;
mod program;
mod value;

pub use deferred_work::DeferredWork;
pub use program::Program;
pub use value::{Piece, Sums, Value};

use crate::args::{ArgError, ArgSpec, Args, Names};
use crate::element::{
    Control, DROP, Describe, Facts, Fate, FateKind, FateSpec, Info, Local, NOT_TAKEN, PerBatch,
    PerPacket, Setup, Source, Store,
};
use crate::graph::devices::Device;
use crate::node::fused::Fusion;
use crate::node::{
    DuplexNode, LOOPED, NO_FRAME, Node, PANICKED, PerBatchNode, PerPacketNode, Rewritten,
    SourceNode, StoreNode, THROWN, numbered, shared,
};
use crate::on::View;
use crate::time::Time;
use program::Running;
use std::sync::Arc;

/// The prose, name and ports of a class.
pub struct Spec {
    /// Class name, as configurations spell it.
    pub class: &'static str,
    /// The doc comment of the element's struct.
    pub doc: &'static str,
    /// Where the source is.
    pub file: &'static str,
    /// The room that the element declares: the protocol or the purpose by which the manual and the
    /// source files of the element library are grouped; `None` for elements of other crates.
    pub room: Option<&'static str>,
    /// Other names of the class that configurations may use.
    pub aliases: &'static [&'static str],
    /// Port counts and processing if not what the trait and the fates say:
    /// Click's port count (`1/1-2`) and processing code (`a/ah`).
    pub ports: Option<&'static str>,
    /// Processing code if not the trait's own.
    pub processing: Option<&'static str>,
    /// Click's flow code where input `n` has to do with output `n` only: `#/#`; or where what
    /// leaves is as good as new, and each port may push or pull by itself: `x/y`.
    pub flow: Option<&'static str>,
    /// What its outputs carry if not what came in: a view's name.
    pub gives: Option<&'static str>,
}

/// What a read handler may ask: the time and the parameter.
pub struct Ask<'a> {
    /// When it is asked.
    pub now: Time,
    /// Text after the handler's name, empty for most.
    pub param: &'a str,
    /// Where the piece begins that is asked for, as the piece before said; 0 for the first. See
    /// [`Piece`].
    pub from: u64,
}

/// A read handler of `T`.
pub struct Read<T> {
    /// Handler name.
    pub name: &'static str,
    /// The field's or method's doc comment.
    pub doc: &'static str,
    /// Gets the value.
    pub get: fn(&T, &Ask) -> Value,
}

/// A write handler of a configuration: from the old value to the new.
pub struct Write<T> {
    /// Handler name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Makes the new value.
    pub set: Setter<T>,
}

/// Makes a changed copy of a configuration from a handler's text.
pub type Setter<T> = fn(&T, &str, &Names) -> Result<T, ArgError>;

/// A write handler of worker state: changes it in place.
pub struct Change<T> {
    /// Handler name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Changes the state; returns the work that it leaves to the control thread.
    pub apply: fn(&mut T, &str) -> Result<DeferredWork, ArgError>,
}

/// A handler's name and documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandlerDoc {
    /// Its name.
    pub name: &'static str,
    /// What it reads or does.
    pub doc: &'static str,
}

/// One element, once per worker.
pub type Nodes = Vec<Box<dyn Node>>;

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
pub type Peek = fn(&Rewritten, &str, &Ask) -> Option<Value>;
/// From a configuration, a handler's name and what is written to it to another configuration.
pub type Rewrite = fn(&Rewritten, &str, &str, &Names) -> Option<Result<Rewritten, ArgError>>;
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

/// What several workers have of an element's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Each has its own.
    Own,
    /// They have one, which each locks for a burst.
    Locked,
    /// They have one, which all read at a time.
    Common,
}

/// One element class, type-erased.
pub struct Class {
    /// Name, prose and ports.
    pub spec: &'static Spec,
    /// Declared arguments.
    pub args: &'static [ArgSpec],
    /// What packets it takes.
    pub on: &'static str,
    /// How it takes part.
    pub role: Role,
    /// Declared exits.
    pub fates: &'static [FateSpec],
    /// Whether the number of outputs depends on the configuration.
    pub open_outputs: bool,
    /// Read handlers.
    pub reads: fn() -> Vec<HandlerDoc>,
    /// Write handlers.
    pub writes: fn() -> Vec<HandlerDoc>,
    /// Whether a write handler also asks the router to stop.
    pub stops: fn(&str) -> bool,
    /// Reads a handler of a configuration; `None` if there is none of that name.
    pub peek: Peek,
    /// Makes a changed configuration, by a write handler of configurations; `None` if there is
    /// none of that name.
    pub rewrite: Rewrite,
    /// Whether `wake` is called after a write handler.
    pub wakes: fn(&str) -> bool,
    /// Builds one node per worker, sharing one configuration.
    pub make: MakeNodes,
    /// For `Info`: gathers what the element declares.
    pub declare: Option<Declare>,
    /// For `Control`: builds the program.
    pub program: Option<MakeProgram>,
    /// For devices: says, without opening anything, which it is on this
    /// machine, and what it wants of the workers.
    pub device: Option<FindDevice>,
    /// For those that watch how full stores are: says which ones the arguments
    /// name.
    pub watch: Option<FindStores>,
    /// For those that write handlers in the middle of their packets' way: says which.
    pub calls: Option<FindCalls>,
    /// The write handlers that give an element such a call.
    pub called_by: &'static [&'static str],
    /// Whether it begins and ends on every worker that runs or reaches it.
    pub each: bool,
    /// The output whose packets go on before those of output 0, if it is not that.
    pub first_output: u8,
    /// What several workers have of its state.
    pub state: State,
    /// For `Store`: whether sources that push into it wait while it is full.
    pub notifies: bool,
    /// What it does with checksums that are left to who sends a packet.
    pub checksums: Checksums,
    /// Classes of elements without outputs to which a source can hand packets that nobody has
    /// to look at.
    pub straight: &'static [&'static str],
    /// Read handlers that only the router's own programs may call.
    pub private: &'static [&'static str],
    /// Whether its elements keep state of each flow, so that they stand in the
    /// room of those that do.
    pub flows: bool,
    /// The class of elements of this name that have ports.
    pub ported: Option<&'static Class>,
}

/// What elements do with packets some checksums of which are left to who sends
/// them ([`castanet_packet::PartialChecksums`]).
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

fn writes<E: Describe, L: Local>() -> Vec<HandlerDoc> {
    let doc = |name, doc| HandlerDoc { name, doc };
    let config = E::WRITES.iter().copied().flatten().map(|h| doc(h.name, h.doc));
    config.chain(L::WRITES.iter().copied().flatten().map(|h| doc(h.name, h.doc))).collect()
}

fn build<E: crate::element::Build>(text: &str, setup: &Setup) -> Result<E, Vec<ArgError>> {
    let args = <E::Args as Args>::parse(text, setup.names)?;
    E::build(args, setup).map_err(|e| vec![e])
}

fn peek<E: Describe + Send + Sync + 'static>(
    config: &Rewritten,
    name: &str,
    ask: &Ask,
) -> Option<Value> {
    let config = config.downcast_ref::<E>()?;
    let find = |name: &str| E::READS.iter().copied().flatten().find(|h| h.name == name);
    match (find(name), numbered(name)) {
        (Some(read), _) => Some((read.get)(config, ask)),
        (None, Some((name, number))) => {
            Some((find(&name)?.get)(config, &Ask { param: number, ..*ask }))
        }
        _ => None,
    }
}

fn rewrite<E: crate::element::Build + Describe + Send + Sync>(
    config: &Rewritten,
    name: &str,
    text: &str,
    names: &Names,
) -> Option<Result<Rewritten, ArgError>> {
    let config = config.downcast_ref::<E>()?;
    let find = |name: &str| E::WRITES.iter().copied().flatten().find(|h| h.name == name);
    let new = match (find(name), numbered(name)) {
        (Some(write), _) => (write.set)(config, text, names),
        (None, Some((name, number))) => {
            (find(&name)?.set)(config, &format!("{number} {text}"), names)
        }
        _ => return None,
    };
    Some(new.map(|new| Arc::new(new) as Rewritten))
}

fn no_nodes(_: &str, _: &Setup, _: usize) -> Result<Nodes, Vec<ArgError>> {
    Ok(Vec::new())
}

const fn class<E: crate::element::Build + Describe + Send + Sync, L: Local, F: Fate>(
    on: &'static str,
    role: Role,
    make: MakeNodes,
) -> Class {
    Class {
        spec: const { &E::SPEC },
        args: <E::Args as Args>::ARGS,
        on,
        role,
        fates: F::FATES,
        open_outputs: F::OPEN,
        reads: reads::<E, L>,
        writes: writes::<E, L>,
        stops: |name| L::STOPS.contains(&name),
        wakes: |name| L::WAKES.contains(&name),
        peek: peek::<E>,
        rewrite: rewrite::<E>,
        make,
        declare: None,
        program: None,
        device: None,
        watch: None,
        calls: None,
        called_by: &[],
        each: false,
        first_output: 0,
        state: State::Own,
        notifies: false,
        checksums: Checksums::Right,
        straight: &[],
        private: &[],
        flows: false,
        ported: None,
    }
}

fn nodes<E, N: Node + 'static>(
    text: &str,
    setup: &Setup,
    workers: usize,
    mut node: impl FnMut(Arc<E>) -> N,
) -> Result<Nodes, Vec<ArgError>>
where
    E: crate::element::Build,
{
    let config = Arc::new(build::<E>(text, setup)?);
    Ok((0..workers).map(|_| Box::new(node(config.clone())) as Box<dyn Node>).collect())
}

/// The class of an element that decides packet by packet.
pub const fn per_packet<E: PerPacket>() -> Class {
    class::<E, E::Local, E::Fate>(E::On::NAME, Role::Through, |text, setup, workers| {
        let local = shared(E::SHARED);
        nodes(text, setup, workers, |config| PerPacketNode::<E>::new(config, &local))
    })
    .locked_if(E::SHARED)
}

/// The class of an element that owns whole batches.
pub const fn per_batch<E: PerBatch>() -> Class {
    class::<E, E::Local, E::Fate>(E::On::NAME, Role::Through, |text, setup, workers| {
        let mut local = None;
        nodes(text, setup, workers, |config: Arc<E>| {
            if config.shares() && local.is_none() {
                local = shared(true);
            }
            PerBatchNode::<E>::new(config, &local)
        })
    })
    .on_each(E::EACH)
    .locked_if(<E as PerBatch>::SHARED)
}

/// The class of an element that is asked for packets.
pub const fn source<E: Source>() -> Class {
    class::<E, E::Local, E::Fate>("any", Role::Source, |text, setup, workers| {
        let local = shared(!setup.alone && !E::EACH);
        nodes(text, setup, workers, |config| SourceNode::<E>::new(config, &local))
    })
    .on_each(E::EACH)
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
            let local = shared(<E as PerBatch>::SHARED);
            nodes(text, setup, workers, |config| DuplexNode::<E>::new(config, &local))
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
            gives: E::SPEC.gives,
        }
    };
    Class {
        spec,
        args: program.args,
        reads: program.reads,
        writes: program.writes,
        program: program.program,
        private: program.private,
        ..through
    }
}

/// The class of an element that keeps packets.
pub const fn store<E: Store>() -> Class {
    let mut class = class::<E, E::Local, E::Fate>("any", Role::Store, |text, setup, workers| {
        let local = shared(true);
        nodes(text, setup, workers, |config| StoreNode::<E>::new(config, &local))
    });
    class.notifies = E::NOTIFIES;
    class
}

/// The class of an element that only declares facts.
pub const fn info<E: Info>() -> Class {
    let mut class = class::<E, (), crate::element::Never>("any", Role::Info, |text, setup, _| {
        build::<E>(text, setup).map(|_| Vec::new())
    });
    class.declare = Some(|text, names, facts| {
        let setup = Setup {
            name: "",
            inputs: 0,
            outputs: 0,
            workers: &[],
            alone: true,
            shares: &[],
            used: (0, 0),
            stores: &[],
            may_leave_sums: false,
            names,
            warn: &|_| (),
            started: Time::default(),
            others: None,
        };
        build::<E>(text, &setup)?.declare(facts).map_err(|e| vec![e])
    });
    class
}

/// The class of a control program.
pub const fn control<E: Control>() -> Class {
    let mut class = class::<E, E::Local, crate::element::Never>("any", Role::Control, no_nodes);
    class.program = Some(|text, setup| {
        let config = Arc::new(build::<E>(text, setup)?);
        Ok(Box::new(Running::<E> { config, local: E::Local::default() }))
    });
    class.private = E::PRIVATE;
    class
}

impl Class {
    /// The names of all reasons to drop, with their place in the ledger.
    pub fn drop_reasons(&self) -> Vec<(u8, String, &'static str)> {
        let own = self.fates.iter().filter(|f| f.kind == FateKind::Drop).enumerate();
        let mut all: Vec<_> =
            own.map(|(n, f)| (DROP - n as u8, f.name.to_owned(), f.doc)).collect();
        if self.on != "any" {
            let doc = "Packets that are not what the element takes.";
            all.push((NOT_TAKEN, format!("not_{}", self.on), doc));
        }
        all.push((
            NO_FRAME,
            "no_frame".into(),
            "Packets for which there was no frame, or no memory to keep them.",
        ));
        all.push((LOOPED, "loop".into(), "Packets that went round the graph without end."));
        let keeps = self.role == Role::Store || self.role == Role::Source && !self.is_first();
        if keeps {
            all.push((THROWN, "reset".into(), "Packets that a handler threw away."));
        }
        all.push((PANICKED, "panic".into(), "Packets of bursts in which the element panicked."));
        all
    }

    /// Whether it has no inputs, so that packets begin with it.
    fn is_first(&self) -> bool {
        crate::graph::ports::counts(self).inputs.1 == 0
    }

    /// Declared outputs, those that must be connected first.
    pub fn outputs(&self) -> impl Iterator<Item = &'static FateSpec> {
        self.fates.iter().filter(|f| f.kind != FateKind::Drop)
    }
}

/// The classes a configuration may name.
#[derive(Clone, Default)]
pub struct Library {
    by_name: std::collections::BTreeMap<&'static str, &'static Class>,
    fusions: Vec<&'static Fusion>,
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
    /// Every name, aliases included, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.by_name.keys().copied()
    }
    /// Every class once, sorted by name.
    pub fn classes(&self) -> impl Iterator<Item = &'static Class> + '_ {
        self.by_name.iter().filter(|(name, class)| **name == class.spec.class).map(|(_, c)| *c)
    }
}
