//! Runs a `PerBatch` element.

use super::{
    AnyConfig, Instance, Node, NodeAnswer, PushRole, ThroughRole, handlers_of_body, keep_view,
    life_of_body,
};
use crate::cx::Cx;
use crate::declaration::ElementDeclarations;
use crate::element::{BurstEffect, PerBatch};
use crate::error::ArgError;
use crate::exec::Next;
use crate::handler::{ReadRequest, Value};
use crate::on::View;
use crate::time::Time;
use castanet_packet::{Batch, BurstBytes, BurstSummary, PacketTotals};

/// A `PerBatch` element of one worker.
#[repr(align(128))]
pub struct PerBatchNode<E: PerBatch> {
    pub(super) body: Instance<E, E::Local>,
}

impl<E: PerBatch> PerBatchNode<E> {
    pub(crate) fn new(mut body: Instance<E, E::Local>) -> Self {
        body.lend(E::apply_config);
        PerBatchNode { body }
    }
}

impl<E: PerBatch> PushRole for PerBatchNode<E> {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> Next {
        if E::On::NAME != "any" {
            keep_view::<E::On>(batch, cx);
        }
        if !batch.is_empty() {
            let batch = std::mem::take(batch);
            self.body.lend(|config, local| config.batch(local, port, batch, cx));
        }
        Next::None
    }
}

impl<E: PerBatch> ThroughRole for PerBatchNode<E> {
    fn pull_input(&self, output: usize) -> Option<usize> {
        self.body.config.pull_input(output)
    }
    fn emit_decided(&mut self, n: usize, cx: &mut Cx) {
        self.body.lend(|config, local| config.emit_decided(local, n, cx));
    }
    fn is_pulling(&self) -> bool {
        self.body.peek(E::is_pulling)
    }
    fn packets_a_turn(&self) -> usize {
        self.body.config.packets_a_turn()
    }
    fn native(&self) -> Option<String> {
        self.body.config.native()
    }
    fn counts_only(&self) -> bool {
        self.body.config.counts_only()
    }
    fn passes_burst(&self, burst: &BurstSummary) -> bool {
        self.body.config.burst_effect(burst) == BurstEffect::Passes
    }
    fn byte_length(&mut self, now: Time) -> Option<usize> {
        self.body.lend(|config, local| config.byte_length(local, now))
    }
    fn handle_bytes(&mut self, bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        self.body.lend(|config, local| config.handle_bytes(local, bytes, fates))
    }
    fn write_bytes(&mut self, bytes: &mut BurstBytes) {
        self.body.lend(|config, local| config.write_bytes(local, bytes));
    }
    fn count(&mut self, totals: PacketTotals, cx: &mut Cx) {
        self.body.lend(|config, local| config.count(local, totals, cx));
    }
}

impl<E: PerBatch> Node for PerBatchNode<E> {
    life_of_body!();
    fn run_timer(&mut self, cx: &mut Cx) {
        self.body.lend(|config, local| config.run_timer(local, cx));
    }
    fn after_take_state(&mut self, cx: &mut Cx) {
        self.body.lend(|config, local| config.after_take_state(local, cx));
    }
    handlers_of_body!(|config, local| config.held(local), E::can_take_state, E::apply_config);

    fn declarations(&self) -> ElementDeclarations {
        self.body.config.declarations()
    }
    fn read_declared(&mut self, name: &str, request: &ReadRequest) -> Option<NodeAnswer> {
        let value: Option<Value> =
            self.body.lend(|config, local| config.read_declared(local, name, request));
        value.map(|value| self.body.answer(value))
    }
    fn write_declared(&mut self, name: &str, text: &str) -> Option<Result<(), ArgError>> {
        self.body.lend(|config, local| config.write_declared(local, name, text))
    }

    fn merged_config(&self, before: &AnyConfig) -> Option<AnyConfig> {
        let prepared = self.body.config.merged_config(before.downcast_ref::<E>()?)?;
        Some(std::sync::Arc::new(prepared))
    }
}
