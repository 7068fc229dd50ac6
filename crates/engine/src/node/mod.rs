//! An element as one worker runs it, whatever trait it was written for.

pub mod fused;
mod per_batch;
mod per_packet;
mod source;
mod store;

pub use per_batch::PerBatchNode;
pub use per_packet::PerPacketNode;
pub use source::{DuplexNode, SourceNode};
pub use store::StoreNode;

use crate::args::ArgError;
use crate::class::{Ask, DeferredWork, Role, Value};
use crate::cx::Cx;
use crate::element::{Asked, Describe, Local, NOT_TAKEN};
use crate::worker::TaskRef;
use castanet_packet::Batch;
use fused::{Fused, Member};
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reason to drop of packets for which the pool had no frame.
pub const NO_FRAME: u8 = NOT_TAKEN + 1;
/// The reason to drop of packets that went round the graph without end.
pub const LOOPED: u8 = NOT_TAKEN + 2;
/// The reason to drop of packets in whose burst the element panicked.
pub const PANICKED: u8 = NOT_TAKEN + 3;
/// The reason to drop of kept packets that a handler threw away.
pub const THROWN: u8 = NOT_TAKEN + 4;

/// The answer of nodes that leave nothing in their batch.
pub(crate) const NOTHING: u8 = u8::MAX;

/// A changed configuration on its way to all workers.
pub type Rewritten = Arc<dyn Any + Send + Sync>;

/// An element as one worker runs it.
pub trait Node: Any + Send {
    /// Prepares the home worker's state: opens devices, sets timers.
    fn begin(&mut self, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Changes what is not its own: the router is sure to run.
    fn start(&mut self, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Takes a batch on input `port`. What is left in `batch` afterwards leaves
    /// by the output that it answers; everything else it emits.
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> u8;
    /// Emits up to `n` packets.
    fn ask(&mut self, _n: usize, _cx: &mut Cx) -> Asked {
        Asked::Done
    }
    /// Moves up to `n` kept packets into `into`.
    fn take(&mut self, _n: usize, _into: &mut Batch, _cx: &mut Cx) {}
    /// The input that is pulled when output `output` is; `None` for nothing.
    fn behind(&self, output: usize) -> Option<usize> {
        Some(output)
    }
    /// Whether it wants to be asked as a task at all.
    fn active(&self) -> bool {
        true
    }
    /// Whether it wants to pull its inputs as a task at all.
    fn pulls(&self) -> bool {
        true
    }
    /// The time asked for has come.
    fn wake(&mut self, _cx: &mut Cx) {}
    /// Another configuration may have what it has open, once it has ended; or not after all.
    fn leave(&mut self, _leaving: bool) {}
    /// The router stops.
    fn end(&mut self, _cx: &mut Cx) {}
    /// How many more packets it can keep.
    fn room(&self) -> usize {
        usize::MAX
    }
    /// How many packets it keeps.
    fn held(&self) -> usize {
        0
    }
    /// Answers a read handler; `None` if there is none of that name. Says too
    /// whether the answer is the same for all workers.
    fn read(&self, name: &str, ask: &Ask) -> Option<(Value, bool)>;
    /// Changes its worker's state, and says what is left to the control thread; `None` if there is
    /// no such handler. The number is how many kept packets that has cost.
    fn change(&mut self, name: &str, text: &str) -> Option<(Result<DeferredWork, ArgError>, u64)>;
    /// Takes a changed configuration over. The number is how many kept packets that
    /// has cost.
    fn install(&mut self, config: Rewritten) -> u64;
    /// Whether all workers share one state, so that one answers for all.
    fn shares(&self) -> bool;
    /// Its configuration, for [`Node::continues`] and to make a changed one of.
    fn config(&self) -> Rewritten;
    /// Whether it can go on with the state of a node that has the configuration
    /// `before`; never with another class's.
    fn continues(&self, before: &Rewritten) -> bool;
    /// The configuration under which it goes on for a node that has the configuration `before` and
    /// still runs meanwhile, where that is not its own.
    fn prepare(&self, _before: &Rewritten) -> Option<Rewritten> {
        None
    }
    /// Takes over the state of the node that it replaces, and the configuration if that has been
    /// changed. The number is how many kept packets that has cost.
    fn inherit(&mut self, before: &mut dyn Node, changed: Option<Rewritten>) -> u64;
    /// Its state comes from a node with another configuration.
    fn resume(&mut self, _cx: &mut Cx) {}
}

/// Where an output leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Index of the element.
    pub node: usize,
    /// Its port.
    pub port: usize,
}

/// One element's place among the others of a worker.
pub struct Slot {
    /// The element; away only while it pulls, where it has no node, and where
    /// a pass has it. To be had from [`at`] and [`at_mut`].
    pub(crate) node: Option<Box<dyn Node>>,
    /// The pass that begins with it.
    pub(crate) pass: Option<Box<Pass>>,
    /// The element with whose pass it runs, and its stage there.
    pub(crate) within: Option<(usize, u8)>,
    /// How it takes part.
    pub role: Role,
    /// Where each output pushes; `None` for pull outputs and open ones.
    pub outputs: Vec<Option<Target>>,
    /// The output whose packets go on first.
    pub first_output: u8,
    /// The element that it may hand packets to by [`crate::cx::Cx::straight`].
    pub straight: Option<usize>,
    /// Where each pull input pulls; `None` for push inputs.
    pub upstream: Vec<Option<Target>>,
    /// The tasks to wake when packets come to rest here.
    pub waiters: Vec<TaskRef>,
    /// The tasks that pull through here, to wake after a handler write.
    pub pullers: Vec<TaskRef>,
    /// The tasks to wake when packets are taken out of here.
    pub feeders: Vec<TaskRef>,
    /// For a task that pushes: the stores where all its packets come to rest.
    pub stores: Vec<usize>,
    /// The stores whose lengths it wants to know.
    pub watched: Vec<usize>,
    /// Whether packets come here, or its task sends them, one at a time.
    pub single: bool,
}

/// Elements that run as one pass.
pub(crate) struct Pass {
    pub(crate) fused: Box<dyn Fused>,
    /// In order.
    pub(crate) members: Vec<Member>,
}

/// The node of element `me`, wherever it is.
pub(crate) fn at(slots: &[Slot], me: usize) -> Option<&dyn Node> {
    match slots[me].within {
        None => slots[me].node.as_deref(),
        Some((head, place)) => slots[head].pass.as_ref()?.fused.peek(place),
    }
}

/// The node of element `me`, wherever it is, to run or to change.
#[inline]
pub(crate) fn at_mut(slots: &mut [Slot], me: usize) -> Option<&mut dyn Node> {
    match slots[me].within {
        None => slots[me].node.as_deref_mut(),
        Some((head, place)) => slots[head].pass.as_mut()?.fused.node(place),
    }
}

/// Configuration and state of one node.
pub(crate) struct Body<E, L> {
    config: Arc<E>,
    local: State<L>,
}

/// Worker state: the worker's own, or one for all workers.
pub(crate) enum State<L> {
    Own(L),
    Shared(Arc<Mutex<L>>),
}

impl<L: Default> State<L> {
    /// Lends the state for one call. A panic in an element poisons no state:
    /// what it left behind is used as it is.
    #[inline]
    fn with<R>(&mut self, f: impl FnOnce(&mut L) -> R) -> R {
        match self {
            State::Own(local) => f(local),
            State::Shared(local) => f(&mut lock(local)),
        }
    }

    fn peek<R>(&self, f: impl FnOnce(&L) -> R) -> R {
        match self {
            State::Own(local) => f(local),
            State::Shared(local) => f(&lock(local)),
        }
    }
}

fn lock<L>(local: &Mutex<L>) -> MutexGuard<'_, L> {
    local.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one state of all workers, if the class shares it.
pub(crate) fn shared<L: Default>(shared: bool) -> Option<Arc<Mutex<L>>> {
    shared.then(Default::default)
}

impl<E, L: Local> Body<E, L> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<L>>>) -> Self {
        let local = match local {
            Some(local) => State::Shared(local.clone()),
            None => State::Own(L::default()),
        };
        Body { config, local }
    }
}

impl<E: Describe + Send + Sync, L: Local> Body<E, L> {
    fn read(&self, name: &str, ask: &Ask) -> Option<(Value, bool)> {
        self.read_named(name, ask).or_else(|| {
            let (name, number) = numbered(name)?;
            self.read_named(&name, &Ask { param: number, ..*ask })
        })
    }

    fn read_named(&self, name: &str, ask: &Ask) -> Option<(Value, bool)> {
        let config = E::READS.iter().copied().flatten().find(|h| h.name == name);
        config.map(|h| ((h.get)(&self.config, ask), true)).or_else(|| {
            let local = L::READS.iter().copied().flatten().find(|h| h.name == name)?;
            let value = self.local.peek(|state| (local.get)(state, ask));
            let is_common = matches!(value, Value::Common(_) | Value::Piece(_));
            Some((value, is_common || self.shares()))
        })
    }

    fn change(
        &mut self,
        name: &str,
        text: &str,
        held: impl Fn(&E, &L) -> usize,
    ) -> Option<(Result<DeferredWork, ArgError>, u64)> {
        let find = |name: &str| L::WRITES.iter().copied().flatten().find(|h| h.name == name);
        let (change, text) = match (find(name), numbered(name)) {
            (Some(change), _) => (change, Cow::Borrowed(text)),
            (None, Some((name, number))) => (find(&name)?, format!("{number} {text}").into()),
            _ => return None,
        };
        let config = &*self.config;
        Some(self.local.with(|state| {
            let before = held(config, state);
            let done = (change.apply)(state, &text);
            (done, before.saturating_sub(held(config, state)) as u64)
        }))
    }

    fn install(&mut self, config: Rewritten) {
        if let Ok(config) = config.downcast::<E>() {
            self.config = config;
        }
    }

    /// Lets go of packets for which the configuration has no room; how many.
    fn shrink(&mut self, held: impl Fn(&E, &L) -> usize, shrink: impl FnOnce(&E, &mut L)) -> u64 {
        let config = &*self.config;
        self.local.with(|local| {
            let before = held(config, local);
            shrink(config, local);
            before.saturating_sub(held(config, local)) as u64
        })
    }

    /// Lets state follow the configuration.
    fn settle(&mut self, settle: impl FnOnce(&E, &mut L)) {
        let config = &*self.config;
        self.local.with(|local| settle(config, local));
    }

    fn shares(&self) -> bool {
        matches!(self.local, State::Shared(_))
    }

    fn inherit(&mut self, before: &mut Self) {
        let state = before.local.with(std::mem::take);
        self.local.with(|local| *local = state);
    }
}

/// `pattern3` as the handler `pattern_` and its number: a read finds that in
/// its parameter, a write before its text.
pub(crate) fn numbered(name: &str) -> Option<(String, &str)> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &name[base.len()..];
    (!base.is_empty() && !number.is_empty()).then(|| (format!("{base}_"), number))
}

/// The half of `Node` that is the same for every kind: handlers, and replacing.
macro_rules! handlers_of_body {
    ($held:expr, $continues:expr) => {
        crate::node::handlers_of_body!($held, $continues, |_, _| ());
    };
    ($held:expr, $continues:expr, $settle:expr) => {
        crate::node::handlers_of_body!($held, $continues, $settle, |_, _| ());
    };
    ($held:expr, $continues:expr, $settle:expr, $shrink:expr) => {
        fn read(&self, name: &str, ask: &crate::class::Ask) -> Option<(crate::class::Value, bool)> {
            self.body.read(name, ask)
        }
        fn change(
            &mut self,
            name: &str,
            text: &str,
        ) -> Option<(Result<crate::class::DeferredWork, crate::args::ArgError>, u64)> {
            self.body.change(name, text, $held)
        }
        fn install(&mut self, config: crate::node::Rewritten) -> u64 {
            self.body.install(config);
            self.body.settle($settle);
            self.body.shrink($held, $shrink)
        }
        fn shares(&self) -> bool {
            self.body.shares()
        }
        fn config(&self) -> crate::node::Rewritten {
            self.body.config.clone()
        }
        fn continues(&self, before: &crate::node::Rewritten) -> bool {
            before.downcast_ref::<E>().is_some_and(|before| $continues(&*self.body.config, before))
        }
        fn inherit(
            &mut self,
            before: &mut dyn Node,
            changed: Option<crate::node::Rewritten>,
        ) -> u64 {
            let before = (before as &mut dyn std::any::Any).downcast_mut::<Self>();
            let Some(before) = before else { return 0 };
            changed.into_iter().for_each(|config| self.body.install(config));
            self.body.inherit(&mut before.body);
            self.body.settle($settle);
            self.body.shrink($held, $shrink)
        }
    };
}
pub(crate) use handlers_of_body;

/// Takes out of `batch` what is not `V`, counting it.
#[inline]
pub(crate) fn sieve<V: crate::on::View>(batch: &mut Batch, cx: &mut Cx) {
    if !batch.iter_mut().all(|packet| V::of(packet).is_some()) {
        sift::<V>(batch, cx);
    }
}

#[cold]
fn sift<V: crate::on::View>(batch: &mut Batch, cx: &mut Cx) {
    let fates = &mut cx.core.fates;
    fates.clear();
    fates.extend(batch.iter_mut().map(|p| if V::of(p).is_some() { 0 } else { NOT_TAKEN }));
    let mut dropped = 0;
    batch.partition(fates, 0, |_, packet| {
        dropped += 1;
        drop(packet);
    });
    cx.core.count_drops(cx.me, NOT_TAKEN, dropped);
}
