//! Runs a `PerBatch` element.

use super::{AnyConfig, Instance, Node, ThroughRole, handlers_of_body, keep_view};
use crate::cx::Cx;
use crate::element::PerBatch;
use crate::error::ArgError;
use crate::exec::Next;
use crate::on::View;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `PerBatch` element of one worker.
#[repr(align(128))]
pub struct PerBatchNode<E: PerBatch> {
    pub(super) body: Instance<E, E::Local>,
}

impl<E: PerBatch> PerBatchNode<E> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<E::Local>>>) -> Self {
        let mut body = Instance::new(config, local);
        body.apply_config(E::apply_config);
        PerBatchNode { body }
    }

    /// Lends configuration and state for one call.
    #[inline]
    pub fn lend<R>(&mut self, with: impl FnOnce(&E, &mut E::Local) -> R) -> R {
        let config = &*self.body.config;
        self.body.local.with(|local| with(config, local))
    }
}

impl<E: PerBatch> ThroughRole for PerBatchNode<E> {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> Next {
        if E::On::NAME != "any" {
            keep_view::<E::On>(batch, cx);
        }
        if !batch.is_empty() {
            let config = &*self.body.config;
            let batch = std::mem::take(batch);
            self.body.local.with(|local| config.batch(local, port, batch, cx));
        }
        Next::None
    }
    fn pull_input(&self, output: usize) -> Option<usize> {
        self.body.config.pull_input(output)
    }
    fn is_pulling(&self) -> bool {
        self.body.local.peek(|local| self.body.config.is_pulling(local))
    }
}

impl<E: PerBatch> Node for PerBatchNode<E> {
    fn init(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.init(local, cx))
    }
    fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        let config = &*self.body.config;
        self.body.local.with(|local| config.start(local, cx))
    }
    fn run_timer(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.run_timer(local, cx));
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
    fn after_take_state(&mut self, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.after_take_state(local, cx));
    }
    handlers_of_body!(|config, local| config.held(local), E::can_take_state, E::apply_config);

    fn merged_config(&self, before: &AnyConfig) -> Option<AnyConfig> {
        let prepared = self.body.config.merged_config(before.downcast_ref::<E>()?)?;
        Some(std::sync::Arc::new(prepared))
    }
}

impl Cx<'_> {
    /// Lends a source the element to which its packets go next, so that it can hand over packets that
    /// no element has to look at. `pass` answers how many packets went from one to the other, and has
    /// the `Cx` of the receiving element. `None` unless the graph allows it
    /// ([`Class::with_bypass`](crate::class::Class::with_bypass)), or while cycles are counted for each element.
    pub fn bypass<E: PerBatch>(
        &mut self,
        pass: impl FnOnce(&E, &mut E::Local, &mut Cx) -> usize,
    ) -> Option<usize> {
        if self.exec.cycles.is_some() {
            return None;
        }
        let (to, node) = self.peers.as_deref_mut()?.bypass(self.me)?;
        let node = node.downcast_mut::<PerBatchNode<E>>()?;
        let count = node.lend(|config, local| {
            pass(config, local, &mut Cx { exec: self.exec, me: to, peers: None })
        });
        self.exec.counters[self.me].made += count as u64;
        self.exec.counters[self.me].output += count as u64;
        self.exec.counters[to].input += count as u64;
        Some(count)
    }
}
