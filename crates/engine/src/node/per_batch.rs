//! Runs a `PerBatch` element.

use super::{Body, NOTHING, Node, Rewritten, handlers_of_body, sieve};
use crate::args::ArgError;
use crate::cx::Cx;
use crate::element::PerBatch;
use crate::on::View;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `PerBatch` element of one worker.
#[repr(align(128))]
pub struct PerBatchNode<E: PerBatch> {
    pub(super) body: Body<E, E::Local>,
}

impl<E: PerBatch> PerBatchNode<E> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<E::Local>>>) -> Self {
        let mut body = Body::new(config, local);
        body.settle(E::settle);
        PerBatchNode { body }
    }

    /// Lends configuration and state for one call.
    #[inline]
    pub(crate) fn lend<R>(&mut self, with: impl FnOnce(&E, &mut E::Local) -> R) -> R {
        let config = &*self.body.config;
        self.body.local.with(|local| with(config, local))
    }
}

impl<E: PerBatch> Node for PerBatchNode<E> {
    fn begin(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.begin(local, cx))
    }
    fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.start(local, cx))
    }
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> u8 {
        if E::On::NAME != "any" {
            sieve::<E::On>(batch, cx);
        }
        if !batch.is_empty() {
            let config = &*self.body.config;
            let batch = std::mem::take(batch);
            self.body.local.with(|local| config.batch(local, port, batch, cx));
        }
        NOTHING
    }
    fn behind(&self, output: usize) -> Option<usize> {
        self.body.config.behind(output)
    }
    fn wake(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.wake(local, cx));
    }
    fn leave(&mut self, leaving: bool) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.leave(local, leaving));
    }
    fn end(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.end(local, cx));
    }
    fn pulls(&self) -> bool {
        self.body.local.peek(|local| self.body.config.pulls(local))
    }
    fn held(&self) -> usize {
        self.body.local.peek(|local| self.body.config.held(local))
    }
    fn resume(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.resume(local, cx));
    }
    handlers_of_body!(|config, local| config.held(local), E::continues, E::settle);

    fn prepare(&self, before: &Rewritten) -> Option<Rewritten> {
        let prepared = self.body.config.prepare(before.downcast_ref::<E>()?)?;
        Some(std::sync::Arc::new(prepared))
    }
}
