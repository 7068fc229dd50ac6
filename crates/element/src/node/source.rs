//! Runs a `Source` element, and elements that are sink and source at once.

use super::{DuplexRole, Instance, Node, SourceRole, ThroughRole, handlers_of_body, keep_view};
use crate::cx::Cx;
use crate::element::{NextRun, PerBatch, Source};
use crate::error::ArgError;
use crate::exec::Next;
use crate::on::View;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `Source` element of one worker.
#[repr(align(128))]
pub struct SourceNode<E: Source> {
    body: Instance<E, E::Local>,
}

impl<E: Source> SourceNode<E> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<E::Local>>>) -> Self {
        SourceNode { body: Instance::new(config, local) }
    }
}

impl<E: Source> SourceRole for SourceNode<E> {
    fn produce(&mut self, n: usize, cx: &mut Cx) -> NextRun {
        let config = &*self.body.config;
        self.body.local.with(|local| config.produce(local, n, cx))
    }
    fn is_active(&self) -> bool {
        self.body.local.peek(|local| self.body.config.is_active(local))
    }
}

impl<E: Source> Node for SourceNode<E> {
    fn init(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.init(local, cx))
    }
    fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.start(local, cx))
    }
    fn offer_claims(&mut self, leaving: bool) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.offer_claims(local, leaving));
    }
    fn cleanup(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.cleanup(local, cx));
    }
    fn held(&self) -> usize {
        self.body.local.peek(|local| self.body.config.held(local))
    }
    handlers_of_body!(|config, local| config.held(local), E::can_take_state);
}

/// An element that is both `PerBatch` and `Source`, with one state.
#[repr(align(128))]
pub struct DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    body: Instance<E, <E as PerBatch>::Local>,
}

impl<E> DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<<E as PerBatch>::Local>>>) -> Self {
        let mut body = Instance::new(config, local);
        body.apply_config(E::apply_config);
        DuplexNode { body }
    }
}

impl<E> ThroughRole for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> Next {
        if <E::On as View>::NAME != "any" {
            keep_view::<E::On>(batch, cx);
        }
        if !batch.is_empty() {
            let config = &*self.body.config;
            let batch = std::mem::take(batch);
            self.body.local.with(|local| config.batch(local, port, batch, cx));
        }
        Next::None
    }
    fn is_pulling(&self) -> bool {
        self.body.local.peek(|local| self.body.config.is_pulling(local))
    }
}

impl<E> SourceRole for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn produce(&mut self, n: usize, cx: &mut Cx) -> NextRun {
        let config = &*self.body.config;
        self.body.local.with(|local| config.produce(local, n, cx))
    }
    fn is_active(&self) -> bool {
        self.body.local.peek(|local| self.body.config.is_active(local))
    }
}

impl<E> DuplexRole for DuplexNode<E> where E: PerBatch + Source<Local = <E as PerBatch>::Local> {}

impl<E> Node for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn init(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::init(config, local, cx)?;
            Source::init(config, local, cx)
        })
    }
    fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::start(config, local, cx)?;
            Source::start(config, local, cx)
        })
    }
    fn run_timer(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.run_timer(local, cx));
    }
    fn offer_claims(&mut self, leaving: bool) {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::offer_claims(config, local, leaving);
            Source::offer_claims(config, local, leaving);
        });
    }
    fn cleanup(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::cleanup(config, local, cx);
            Source::cleanup(config, local, cx);
        });
    }
    fn held(&self) -> usize {
        self.body.local.peek(|local| PerBatch::held(&*self.body.config, local))
    }
    fn after_take_state(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.after_take_state(local, cx));
    }
    handlers_of_body!(
        |config, local| PerBatch::held(config, local),
        |now: &E, before: &E| {
            PerBatch::can_take_state(now, before) && Source::can_take_state(now, before)
        },
        E::apply_config
    );
}
