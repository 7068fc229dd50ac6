//! Runs a `PerPacket` element over batches: fates first, then one move.

use super::{Body, NOTHING, Node, handlers_of_body};
use crate::cx::Cx;
use crate::element::{Fate, Local, NOT_TAKEN, PerPacket};
use crate::on::View;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `PerPacket` element of one worker.
// Two cache lines: neighbours prefetch in pairs, and no two workers may share one.
#[repr(align(128))]
pub struct PerPacketNode<E: PerPacket> {
    pub(super) body: Body<E, E::Local>,
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
    config.ahead(local, batch.iter_mut().filter_map(E::On::of));
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
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx) -> u8 {
        let count = batch.len();
        if count == 0 {
            return NOTHING;
        }
        let now = cx.core.now;
        if cx.core.fates.len() < count {
            cx.core.fates.resize(count, 0);
        }
        let config = &*self.body.config;
        let (all, any) = self.body.local.with(|local| {
            config.burst(local, now);
            let decided = decide(config, local, batch, &mut cx.core.fates[..count]);
            config.after(local, cx);
            decided
        });
        if all != any || cx.core.is_drop(all) {
            return split(batch, cx);
        }
        // The whole burst goes one way: nothing moves.
        all
    }
    handlers_of_body!(|_, _| 0, E::continues);
}

/// Moves each packet where its fate says; those for the first output stay.
fn split(batch: &mut Batch, cx: &mut Cx) -> u8 {
    let fates = std::mem::take(&mut cx.core.fates);
    let keep = cx.divide(batch, &fates);
    cx.core.fates = fates;
    keep
}
