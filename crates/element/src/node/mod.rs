//! Elements as one worker runs them, whatever trait they implement.

mod bypass;
pub mod fused;
mod per_batch;
mod per_packet;
mod role;
mod source;
mod store;

pub use per_batch::PerBatchNode;
pub use per_packet::PerPacketNode;
pub use role::{DuplexRole, PushRole, RoleNode, SourceRole, StoreRole, ThroughRole};
pub use source::{DuplexNode, SourceNode};
pub use store::StoreNode;

use crate::cx::Cx;
use crate::declaration::ElementDeclarations;
use crate::element::{Describe, Local};
use crate::error::ArgError;
use crate::fate::NOT_TAKEN;
use crate::handler::{DeferredWork, ReadRequest, Value};
use crate::portable_state::{RecordReader, RecordWriter, StateField};
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
    /// As [`PerBatch::exchange_device`](crate::element::PerBatch::exchange_device).
    fn exchange_device(&mut self, _cx: &mut Cx) {}
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
    /// As [`PerBatch::declarations`](crate::element::PerBatch::declarations).
    fn declarations(&self) -> ElementDeclarations {
        ElementDeclarations::default()
    }
    /// As [`PerBatch::read_declared`](crate::element::PerBatch::read_declared).
    fn read_declared(&mut self, _name: &str, _request: &ReadRequest) -> Option<NodeAnswer> {
        None
    }
    /// As [`PerBatch::write_declared`](crate::element::PerBatch::write_declared).
    fn write_declared(&mut self, _name: &str, _text: &str) -> Option<Result<(), ArgError>> {
        None
    }
    /// Takes a changed configuration over; returns how many kept packets were discarded.
    fn install(&mut self, config: AnyConfig) -> u64;
    /// Whether all workers have one state, which is that of the home worker's node.
    fn is_shared(&self) -> bool;
    /// Whether packets may come to it on the home worker alone.
    fn is_at_home(&self) -> bool;
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
    /// The fields of its state that go to another instance, each with whether it is a table.
    fn portable_fields(&self) -> Vec<(&'static str, bool)>;
    /// Whether handlers read state that does not go to another instance.
    fn has_lasting_state(&self) -> bool;
    /// Writes some of the records of a field; as
    /// [`PortableState::export`](crate::portable_state::PortableState::export).
    fn export(&self, field: &str, from: u64, to: &mut RecordWriter) -> Option<u64>;
    /// Puts a record into a field, or removes that of its key.
    ///
    /// # Errors
    /// The state has no such field, or the record does not fit.
    fn import(
        &mut self,
        field: &str,
        record: &RecordReader,
        removes: bool,
        cx: &mut Cx,
    ) -> Result<(), ArgError>;
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
    /// One for all workers, which the home worker alone uses; nodes of other workers have an empty one.
    Home(L),
    /// One for all workers.
    Shared(Arc<Mutex<L>>),
}

impl<L: Default> LocalState<L> {
    /// Lends the state for one call. A panic in an element poisons no state:
    /// what it left behind is used as it is.
    #[inline]
    fn with<R>(&mut self, f: impl FnOnce(&mut L) -> R) -> R {
        match self {
            LocalState::Own(local) | LocalState::Home(local) => f(local),
            LocalState::Shared(local) => f(&mut lock(local)),
        }
    }

    fn peek<R>(&self, f: impl FnOnce(&L) -> R) -> R {
        match self {
            LocalState::Own(local) | LocalState::Home(local) => f(local),
            LocalState::Shared(local) => f(&lock(local)),
        }
    }
}

fn lock<L>(local: &Mutex<L>) -> MutexGuard<'_, L> {
    local.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<E, L: Local> Instance<E, L> {
    /// Configuration and state for each of so many workers. They have one state if `one_state`, which
    /// needs no lock where the home worker `alone` uses it.
    pub(crate) fn for_workers(
        config: E,
        workers: usize,
        one_state: bool,
        alone: bool,
    ) -> impl Iterator<Item = Self> {
        let config = Arc::new(config);
        let shared = (one_state && !alone).then(Arc::default);
        let local = move || match &shared {
            Some(shared) => LocalState::Shared(Arc::clone(shared)),
            None if one_state => LocalState::Home(L::default()),
            None => LocalState::Own(L::default()),
        };
        (0..workers).map(move |_| Instance { config: config.clone(), local: local() })
    }

    /// Lends configuration and state for one call.
    #[inline]
    fn lend<R>(&mut self, with: impl FnOnce(&E, &mut L) -> R) -> R {
        let config = &*self.config;
        self.local.with(|local| with(config, local))
    }

    /// Lends configuration and state to look at.
    fn peek<R>(&self, look: impl FnOnce(&E, &L) -> R) -> R {
        self.local.peek(|local| look(&self.config, local))
    }
}

impl<E: Describe + Send + Sync, L: Local> Instance<E, L> {
    fn read(&self, name: &str, request: &ReadRequest) -> Option<NodeAnswer> {
        if find_handler(E::READS, |h| h.name, name).is_some() {
            return Some(NodeAnswer::Config(self.config.clone()));
        }
        let (handler, number) = find_handler(L::READS, |h| h.name, name)?;
        let request = ReadRequest { param: number.unwrap_or(request.param), ..*request };
        let value = self.local.peek(|state| (handler.get)(state, &request));
        Some(self.answer(value))
    }

    /// The answer that has this value.
    fn answer(&self, value: Value) -> NodeAnswer {
        let is_common = matches!(value, Value::Shared(_) | Value::Chunk(_)) || self.is_shared();
        if is_common { NodeAnswer::Common(value) } else { NodeAnswer::Own(value) }
    }

    fn change(
        &mut self,
        name: &str,
        text: &str,
        held: impl Fn(&E, &L) -> usize,
    ) -> Option<(Result<DeferredWork, ArgError>, u64)> {
        let (handler, number) = find_handler(L::WRITES, |h| h.name, name)?;
        let text = numbered_text(number, text);
        Some(self.lend(|config, state| {
            let before = held(config, state);
            let done = (handler.apply)(state, &text);
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
        self.lend(|config, local| {
            let before = held(config, local);
            shrink(config, local);
            before.saturating_sub(held(config, local)) as u64
        })
    }

    fn is_shared(&self) -> bool {
        !matches!(self.local, LocalState::Own(_))
    }

    fn has_lasting_state(&self) -> bool {
        !L::READS.iter().all(|reads| reads.is_empty()) && L::PORTABLE.is_empty()
    }

    fn portable_fields(&self) -> Vec<(&'static str, bool)> {
        L::PORTABLE.iter().map(|field| (field.name, field.is_table)).collect()
    }

    fn export(&self, field: &str, from: u64, to: &mut RecordWriter) -> Option<u64> {
        let field = portable::<L>(field)?;
        self.local.peek(|local| (field.export)(local, from, to))
    }

    fn import(
        &mut self,
        name: &str,
        record: &RecordReader,
        removes: bool,
        cx: &mut Cx,
    ) -> Result<(), ArgError> {
        let Some(field) = portable::<L>(name) else {
            return Err(ArgError::new(format!("this version knows no field `{name}`")));
        };
        self.local.with(|local| match removes {
            true => {
                (field.remove)(local, record);
                Ok(())
            }
            false => (field.import)(local, record, cx),
        })
    }

    fn inherit(&mut self, before: &mut Self) {
        let state = before.local.with(std::mem::take);
        self.local.with(|local| *local = state);
    }
}

fn portable<L: Local>(name: &str) -> Option<&'static StateField<L>> {
    L::PORTABLE.iter().find(|field| field.name == name)
}

/// `pattern3` as the handler `pattern_` and its number: a read finds that in
/// its parameter, a write before its text.
pub fn numbered(name: &str) -> Option<(String, &str)> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &name[base.len()..];
    (!base.is_empty() && !number.is_empty()).then(|| (format!("{base}_"), number))
}

/// The handler of that name; or the one for all numbers, with the number behind the name.
pub(crate) fn find_handler<'n, H>(
    all: &'static [&'static [H]],
    name_of: impl Fn(&H) -> &'static str,
    name: &'n str,
) -> Option<(&'static H, Option<&'n str>)> {
    let find = |name: &str| all.iter().copied().flatten().find(|handler| name_of(handler) == name);
    find(name).map(|handler| (handler, None)).or_else(|| {
        let (name, number) = numbered(name)?;
        Some((find(&name)?, Some(number)))
    })
}

/// The text that is written to a handler, behind its number if it has one.
pub(crate) fn numbered_text<'t>(number: Option<&str>, text: &'t str) -> Cow<'t, str> {
    number.map_or(Cow::Borrowed(text), |number| format!("{number} {text}").into())
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
            self.body.lend($apply_config);
            self.body.shrink($held, $shrink)
        }
        fn is_shared(&self) -> bool {
            self.body.is_shared()
        }
        fn is_at_home(&self) -> bool {
            matches!(self.body.local, crate::node::LocalState::Home(_))
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
            self.body.lend($apply_config);
            self.body.shrink($held, $shrink)
        }
        fn portable_fields(&self) -> Vec<(&'static str, bool)> {
            self.body.portable_fields()
        }
        fn has_lasting_state(&self) -> bool {
            self.body.has_lasting_state()
        }
        fn export(
            &self,
            field: &str,
            from: u64,
            to: &mut crate::portable_state::RecordWriter,
        ) -> Option<u64> {
            self.body.export(field, from, to)
        }
        fn import(
            &mut self,
            field: &str,
            record: &crate::portable_state::RecordReader,
            removes: bool,
            cx: &mut crate::cx::Cx,
        ) -> Result<(), crate::error::ArgError> {
            self.body.import(field, record, removes, cx)
        }
    };
}
pub(crate) use handlers_of_body;

/// The life of an element that is `PerBatch` or a `Source`.
macro_rules! life_of_body {
    () => {
        fn init(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
            self.body.lend(|config, local| config.init(local, cx))
        }
        fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
            self.body.lend(|config, local| config.start(local, cx))
        }
        fn offer_claims(&mut self, offered: bool) {
            self.body.lend(|config, local| config.offer_claims(local, offered));
        }
        fn exchange_device(&mut self, cx: &mut Cx) {
            self.body.lend(|config, local| config.exchange_device(local, cx));
        }
        fn cleanup(&mut self, cx: &mut Cx) {
            self.body.lend(|config, local| config.cleanup(local, cx));
        }
        fn held(&self) -> usize {
            self.body.peek(|config, local| config.held(local))
        }
    };
}
use life_of_body;

/// Takes out of `batch` what is not `V`, counting it.
#[inline]
pub fn keep_view<V: crate::on::View>(batch: &mut Batch, cx: &mut Cx) {
    if !batch.iter_mut().all(|packet| V::of(packet).is_some()) {
        drop_others::<V>(batch, cx);
    }
}

#[cold]
fn drop_others<V: crate::on::View>(batch: &mut Batch, cx: &mut Cx) {
    let mut fates = std::mem::take(&mut cx.exec.fates);
    fates.clear();
    fates.extend(batch.iter_mut().map(|p| if V::of(p).is_some() { 0 } else { NOT_TAKEN }));
    batch.divide(&fates, 0, cx);
    cx.exec.fates = fates;
}
