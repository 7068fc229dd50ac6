//! Runs a `Source` element, and elements that are sink and source at once.

use super::{Body, NOTHING, Node, handlers_of_body, sieve};
use crate::args::ArgError;
use crate::cx::Cx;
use crate::element::{Asked, PerBatch, Source};
use crate::on::View;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `Source` element of one worker.
#[repr(align(128))]
pub struct SourceNode<E: Source> {
    body: Body<E, E::Local>,
}

impl<E: Source> SourceNode<E> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<E::Local>>>) -> Self {
        SourceNode { body: Body::new(config, local) }
    }
}

impl<E: Source> Node for SourceNode<E> {
    fn begin(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.begin(local, cx))
    }
    fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.start(local, cx))
    }
    /// Sources with inputs pull them; what is pushed at one all the same has
    /// no way on. The graph check refuses such configurations.
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx) -> u8 {
        cx.core.count_drops(cx.me, super::LOOPED, batch.len() as u64);
        batch.clear();
        NOTHING
    }
    fn ask(&mut self, n: usize, cx: &mut Cx) -> Asked {
        let config = &*self.body.config;
        self.body.local.with(|local| config.ask(local, n, cx))
    }
    fn active(&self) -> bool {
        self.body.local.peek(|local| self.body.config.active(local))
    }
    fn leave(&mut self, leaving: bool) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.leave(local, leaving));
    }
    fn end(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.end(local, cx));
    }
    fn held(&self) -> usize {
        self.body.local.peek(|local| self.body.config.held(local))
    }
    handlers_of_body!(|config, local| config.held(local), E::continues);
}

/// An element that is both `PerBatch` and `Source`, with one state.
#[repr(align(128))]
pub struct DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    body: Body<E, <E as PerBatch>::Local>,
}

impl<E> DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<<E as PerBatch>::Local>>>) -> Self {
        let mut body = Body::new(config, local);
        body.settle(E::settle);
        DuplexNode { body }
    }
}

impl<E> Node for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn begin(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::begin(config, local, cx)?;
            Source::begin(config, local, cx)
        })
    }
    fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::start(config, local, cx)?;
            Source::start(config, local, cx)
        })
    }
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> u8 {
        if <E::On as View>::NAME != "any" {
            sieve::<E::On>(batch, cx);
        }
        if !batch.is_empty() {
            let config = &*self.body.config;
            let batch = std::mem::take(batch);
            self.body.local.with(|local| config.batch(local, port, batch, cx));
        }
        NOTHING
    }
    fn ask(&mut self, n: usize, cx: &mut Cx) -> Asked {
        let config = &*self.body.config;
        self.body.local.with(|local| config.ask(local, n, cx))
    }
    fn active(&self) -> bool {
        self.body.local.peek(|local| self.body.config.active(local))
    }
    fn wake(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.wake(local, cx));
    }
    fn leave(&mut self, leaving: bool) {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::leave(config, local, leaving);
            Source::leave(config, local, leaving);
        });
    }
    fn end(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            PerBatch::end(config, local, cx);
            Source::end(config, local, cx);
        });
    }
    fn pulls(&self) -> bool {
        self.body.local.peek(|local| self.body.config.pulls(local))
    }
    fn held(&self) -> usize {
        self.body.local.peek(|local| PerBatch::held(&*self.body.config, local))
    }
    fn resume(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.resume(local, cx));
    }
    handlers_of_body!(
        |config, local| PerBatch::held(config, local),
        |now: &E, before: &E| {
            PerBatch::continues(now, before) && Source::continues(now, before)
        },
        E::settle
    );
}
