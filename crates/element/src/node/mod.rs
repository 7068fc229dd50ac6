//! Elements as one worker runs them, whatever trait they implement.

pub mod fused;
mod per_batch;
mod per_packet;
mod role;
mod source;
mod store;

pub use per_batch::PerBatchNode;
pub use per_packet::PerPacketNode;
pub use role::{DuplexRole, RoleMut, RoleNode, SourceRole, StoreRole, ThroughRole};
pub use source::{DuplexNode, SourceNode};
pub use store::StoreNode;

use crate::cx::Cx;
use crate::element::{Describe, Local};
use crate::error::ArgError;
use crate::fate::NOT_TAKEN;
use crate::handler::{DeferredWork, ReadRequest, Value};
use castanet_packet::Batch;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The configuration of an element, type-erased.
pub type AnyConfig = Arc<dyn Any + Send + Sync>;

/// An element as one worker runs it: its life cycle, its handlers and its state, whatever its role.
pub trait Node: Any + Send {
    /// As [`PerBatch::init`](crate::element::PerBatch::init).
    fn init(&mut self, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// As [`PerBatch::start`](crate::element::PerBatch::start).
    fn start(&mut self, _cx: &mut Cx) -> Result<(), ArgError> {
        Ok(())
    }
    /// Its timer is due.
    fn run_timer(&mut self, _cx: &mut Cx) {}
    /// As [`PerBatch::offer_claims`](crate::element::PerBatch::offer_claims).
    fn offer_claims(&mut self, _offered: bool) {}
    /// As [`PerBatch::cleanup`](crate::element::PerBatch::cleanup).
    fn cleanup(&mut self, _cx: &mut Cx) {}
    /// Packets that it keeps.
    fn held(&self) -> usize {
        0
    }
    /// Answers a read handler; `None` if there is no such handler.
    fn read(&self, name: &str, request: &ReadRequest) -> Option<NodeAnswer>;
    /// Changes its worker's state by a write handler; returns the work that is left to the control thread,
    /// and how many kept packets were discarded. `None` if there is no such handler.
    fn change(&mut self, name: &str, text: &str) -> Option<(Result<DeferredWork, ArgError>, u64)>;
    /// Takes a changed configuration over; returns how many kept packets were discarded.
    fn install(&mut self, config: AnyConfig) -> u64;
    /// Whether all workers share one state.
    fn is_shared(&self) -> bool;
    /// Its configuration.
    fn config(&self) -> AnyConfig;
    /// Whether it can take over the state of a node with the configuration `before`; never of another
    /// class.
    fn can_take_state(&self, before: &AnyConfig) -> bool;
    /// The configuration under which it goes on for a node with the configuration `before`, which still
    /// runs meanwhile, where that is not its own.
    fn merged_config(&self, _before: &AnyConfig) -> Option<AnyConfig> {
        None
    }
    /// Takes over the state of the node that it replaces, and the configuration if a handler has changed
    /// it; returns how many kept packets were discarded.
    fn inherit(&mut self, before: &mut dyn Node, changed: Option<AnyConfig>) -> u64;
    /// Called after it has taken over the state of a node with another configuration.
    fn after_take_state(&mut self, _cx: &mut Cx) {}
}

/// The answer of a node to a read handler.
pub enum NodeAnswer {
    /// The configuration, of which the control thread reads the handler.
    Config(AnyConfig),
    /// The value for all workers.
    Common(Value),
    /// The value of the node's own worker.
    Own(Value),
}

/// Configuration and state of one node.
pub struct Instance<E, L> {
    config: Arc<E>,
    local: LocalState<L>,
}

/// State of an element on one worker.
pub enum LocalState<L> {
    /// The worker's own.
    Own(L),
    /// One for all workers.
    Shared(Arc<Mutex<L>>),
}

impl<L: Default> LocalState<L> {
    /// Lends the state for one call. A panic in an element poisons no state:
    /// what it left behind is used as it is.
    #[inline]
    fn with<R>(&mut self, f: impl FnOnce(&mut L) -> R) -> R {
        match self {
            LocalState::Own(local) => f(local),
            LocalState::Shared(local) => f(&mut lock(local)),
        }
    }

    fn peek<R>(&self, f: impl FnOnce(&L) -> R) -> R {
        match self {
            LocalState::Own(local) => f(local),
            LocalState::Shared(local) => f(&lock(local)),
        }
    }
}

fn lock<L>(local: &Mutex<L>) -> MutexGuard<'_, L> {
    local.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one state of all workers, if the class shares it.
pub fn shared<L: Default>(shared: bool) -> Option<Arc<Mutex<L>>> {
    shared.then(Default::default)
}

impl<E, L: Local> Instance<E, L> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<L>>>) -> Self {
        let local = match local {
            Some(local) => LocalState::Shared(local.clone()),
            None => LocalState::Own(L::default()),
        };
        Instance { config, local }
    }
}

impl<E: Describe + Send + Sync, L: Local> Instance<E, L> {
    fn read(&self, name: &str, request: &ReadRequest) -> Option<NodeAnswer> {
        self.read_named(name, request).or_else(|| {
            let (name, number) = numbered(name)?;
            self.read_named(&name, &ReadRequest { param: number, ..*request })
        })
    }

    fn read_named(&self, name: &str, request: &ReadRequest) -> Option<NodeAnswer> {
        if E::READS.iter().copied().flatten().any(|h| h.name == name) {
            return Some(NodeAnswer::Config(self.config.clone()));
        }
        let local = L::READS.iter().copied().flatten().find(|h| h.name == name)?;
        let value = self.local.peek(|state| (local.get)(state, request));
        let is_common = matches!(value, Value::Shared(_) | Value::Chunk(_)) || self.is_shared();
        Some(if is_common { NodeAnswer::Common(value) } else { NodeAnswer::Own(value) })
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

    fn install(&mut self, config: AnyConfig) {
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
    fn apply_config(&mut self, apply: impl FnOnce(&E, &mut L)) {
        let config = &*self.config;
        self.local.with(|local| apply(config, local));
    }

    fn is_shared(&self) -> bool {
        matches!(self.local, LocalState::Shared(_))
    }

    fn inherit(&mut self, before: &mut Self) {
        let state = before.local.with(std::mem::take);
        self.local.with(|local| *local = state);
    }
}

/// `pattern3` as the handler `pattern_` and its number: a read finds that in
/// its parameter, a write before its text.
pub fn numbered(name: &str) -> Option<(String, &str)> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &name[base.len()..];
    (!base.is_empty() && !number.is_empty()).then(|| (format!("{base}_"), number))
}

/// The half of `Node` that is the same for every kind: handlers, and replacing.
macro_rules! handlers_of_body {
    ($held:expr, $can_take_state:expr) => {
        crate::node::handlers_of_body!($held, $can_take_state, |_, _| ());
    };
    ($held:expr, $can_take_state:expr, $apply_config:expr) => {
        crate::node::handlers_of_body!($held, $can_take_state, $apply_config, |_, _| ());
    };
    ($held:expr, $can_take_state:expr, $apply_config:expr, $shrink:expr) => {
        fn read(
            &self,
            name: &str,
            request: &crate::handler::ReadRequest,
        ) -> Option<crate::node::NodeAnswer> {
            self.body.read(name, request)
        }
        fn change(
            &mut self,
            name: &str,
            text: &str,
        ) -> Option<(Result<crate::handler::DeferredWork, crate::error::ArgError>, u64)> {
            self.body.change(name, text, $held)
        }
        fn install(&mut self, config: crate::node::AnyConfig) -> u64 {
            self.body.install(config);
            self.body.apply_config($apply_config);
            self.body.shrink($held, $shrink)
        }
        fn is_shared(&self) -> bool {
            self.body.is_shared()
        }
        fn config(&self) -> crate::node::AnyConfig {
            self.body.config.clone()
        }
        fn can_take_state(&self, before: &crate::node::AnyConfig) -> bool {
            before
                .downcast_ref::<E>()
                .is_some_and(|before| $can_take_state(&*self.body.config, before))
        }
        fn inherit(
            &mut self,
            before: &mut dyn Node,
            changed: Option<crate::node::AnyConfig>,
        ) -> u64 {
            let before = (before as &mut dyn std::any::Any).downcast_mut::<Self>();
            let Some(before) = before else { return 0 };
            changed.into_iter().for_each(|config| self.body.install(config));
            self.body.inherit(&mut before.body);
            self.body.apply_config($apply_config);
            self.body.shrink($held, $shrink)
        }
    };
}
pub(crate) use handlers_of_body;

/// Takes out of `batch` what is not `V`, counting it.
#[inline]
pub fn keep_view<V: crate::on::View>(batch: &mut Batch, cx: &mut Cx) {
    if !batch.iter_mut().all(|packet| V::of(packet).is_some()) {
        drop_others::<V>(batch, cx);
    }
}

#[cold]
fn drop_others<V: crate::on::View>(batch: &mut Batch, cx: &mut Cx) {
    let fates = &mut cx.exec.fates;
    fates.clear();
    fates.extend(batch.iter_mut().map(|p| if V::of(p).is_some() { 0 } else { NOT_TAKEN }));
    let mut dropped = 0;
    batch.partition(fates, 0, |_, packet| {
        dropped += 1;
        drop(packet);
    });
    cx.exec.count_drops(cx.me, NOT_TAKEN, dropped);
}
