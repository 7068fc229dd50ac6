//! Runs a `PerPacket` element over batches: fates first, then one move.

use super::{Instance, Node, PushRole, ThroughRole, handlers_of_body};
use crate::cx::Cx;
use crate::element::{BurstEffect, PerPacket};
use crate::exec::Next;
use crate::fate::{self, Fate, NOT_TAKEN};
use crate::on::View;
use crate::time::Time;
use castanet_packet::{Batch, BurstBytes, BurstSummary, Packet};

/// A `PerPacket` element of one worker.
// Two cache lines: neighbours prefetch in pairs, and no two workers may share one.
#[repr(align(128))]
pub struct PerPacketNode<E: PerPacket> {
    pub(super) body: Instance<E, E::Local>,
}

impl<E: PerPacket> PerPacketNode<E> {
    pub(crate) fn new(body: Instance<E, E::Local>) -> Self {
        PerPacketNode { body }
    }
}

/// Fills `fates` for a burst; answers the bits that are in all and in any.
#[inline]
fn decide<E: PerPacket>(
    config: &E,
    local: &mut E::Local,
    packets: &mut [Packet],
    fates: &mut [u8],
) -> (u8, u8) {
    if E::DECIDES_BURSTS && config.decide_burst(local, packets, fates) {
        return fate::bits(fates);
    }
    let (mut all, mut any) = (u8::MAX, 0);
    for (packet, slot) in packets.iter_mut().zip(fates) {
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

impl<E: PerPacket> PushRole for PerPacketNode<E> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx) -> Next {
        let count = batch.len();
        if count == 0 {
            return Next::None;
        }
        let now = cx.exec.now;
        if cx.exec.fates.len() < count {
            cx.exec.fates.resize(count, 0);
        }
        let (all, any) = self.body.lend(|config, local| {
            config.begin_burst(local, now);
            let decided = decide(config, local, batch.as_mut_slice(), &mut cx.exec.fates[..count]);
            config.end_burst(local, cx);
            decided
        });
        if all != any || cx.exec.is_drop(all) {
            return split(batch, cx);
        }
        // The whole burst goes one way: nothing moves.
        Next::Output(all)
    }
}

impl<E: PerPacket> ThroughRole for PerPacketNode<E> {
    fn byte_length(&mut self, _now: Time) -> Option<usize> {
        self.body.config.byte_length()
    }
    fn handle_bytes(&mut self, bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        self.body.lend(|config, local| config.handle_bytes(local, bytes, fates))
    }
    fn write_bytes(&mut self, bytes: &mut BurstBytes) {
        self.body.lend(|config, local| config.write_bytes(local, bytes));
    }
    fn passes_burst(&self, burst: &BurstSummary) -> bool {
        self.body.config.burst_effect(burst) == BurstEffect::Passes
    }
    fn count_handled(&mut self, packets: usize) {
        self.body.lend(|config, local| config.count_handled(local, packets));
    }
    fn native(&self) -> Option<String> {
        self.body.config.native()
    }
}

impl<E: PerPacket> Node for PerPacketNode<E> {
    handlers_of_body!(|_, _| 0, E::can_take_state);
}

/// Moves each packet where its fate says; those for the first output stay.
fn split(batch: &mut Batch, cx: &mut Cx) -> Next {
    let mut fates = std::mem::take(&mut cx.exec.fates);
    let keep = cx.divide(batch, &mut fates);
    cx.exec.fates = fates;
    Next::Output(keep)
}
