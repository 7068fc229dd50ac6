//! Runs a `PerPacket` element over batches: fates first, then one move.

use super::{Body, Node, handlers_of_body};
use crate::cx::Cx;
use crate::element::{Fate, Local, NOT_TAKEN, PerPacket};
use crate::on::View;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `PerPacket` element of one worker.
// Two cache lines: neighbours prefetch in pairs, and no two workers may share one.
#[repr(align(128))]
pub struct PerPacketNode<E: PerPacket> {
    body: Body<E, E::Local>,
}

impl<E: PerPacket> PerPacketNode<E> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<E::Local>>>) -> Self
    where
        E::Local: Local,
    {
        PerPacketNode { body: Body::new(config, local) }
    }
}

/// Fills `fates` for `batch`; answers the bits that are in all and in any.
#[inline]
fn decide<E: PerPacket>(
    config: &E,
    local: &mut E::Local,
    batch: &mut Batch,
    fates: &mut [u8],
) -> (u8, u8) {
    let (mut all, mut any) = (u8::MAX, 0);
    for (packet, slot) in batch.iter_mut().zip(fates) {
        let fate = match E::On::of(packet) {
            Some(view) => config.packet(local, view).index(),
            None => NOT_TAKEN,
        };
        *slot = fate;
        all &= fate;
        any |= fate;
    }
    (all, any)
}

impl<E: PerPacket> Node for PerPacketNode<E> {
    fn push(&mut self, _port: usize, mut batch: Batch, cx: &mut Cx) {
        let count = batch.len();
        if count == 0 {
            return;
        }
        let now = cx.core.now;
        cx.core.fates.resize(count.max(cx.core.fates.len()), 0);
        let fates = &mut cx.core.fates[..count];
        let config = &*self.body.config;
        let (all, any) = self.body.local.with(|local| {
            config.burst(local, now);
            decide(config, local, &mut batch, fates)
        });
        if all == any {
            // The whole burst goes one way: nothing moves.
            return cx.emit_batch_index(all, batch);
        }
        split(batch, cx);
    }
    handlers_of_body!();
}

/// Moves each packet where its fate says; the first output keeps the array.
fn split(mut batch: Batch, cx: &mut Cx) {
    let fates = std::mem::take(&mut cx.core.fates);
    let ways = &fates[..batch.len()];
    let keep = ways.iter().copied().find(|&f| !cx.core.is_drop(f)).unwrap_or(0);
    batch.partition(ways, keep, |fate, packet| cx.emit_index(fate, packet));
    if !batch.is_empty() {
        cx.emit_batch_index(keep, batch);
    }
    cx.core.fates = fates;
}
