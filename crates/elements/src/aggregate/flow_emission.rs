//! How `AggregateIPFlows` numbers and emits packets, and reports flows that have ended.

use super::aggregate_ip_flows::{AggregateIPFlows, AggregateIPFlowsExit};
use super::flow_queue::AggregateIPFlowsState;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

impl AggregateIPFlows {
    /// The time of a packet; ends flows whose timeout has passed by then, and reports them.
    #[inline]
    pub(super) fn begin_packet(
        &self,
        state: &mut AggregateIPFlowsState,
        packet: &Packet,
        cx: &mut Cx,
    ) -> u64 {
        let now = match packet.timestamp() {
            0 => cx.now().nanos(),
            time => time.unsigned_abs(),
        };
        if state.reap_if_due(now, self.reap) || state.has_many_ended() {
            self.report_ended(state, cx);
        }
        now
    }

    /// Numbers and emits the packets before the first one that takes part in the reassembly of a
    /// fragmented datagram; returns that one and those behind it.
    pub(super) fn number_whole(
        &self,
        state: &mut AggregateIPFlowsState,
        mut batch: Batch,
        cx: &mut Cx,
    ) -> Batch {
        let mut fates = std::mem::take(&mut state.fates);
        fates.clear();
        for packet in batch.iter_mut() {
            if !state.is_whole(packet) {
                break;
            }
            let now = self.begin_packet(state, packet, cx);
            let exit = match state.mark_whole(packet, now) {
                Some((number, paint)) => {
                    packet.set_anno_u32(anno::AGGREGATE, number);
                    packet.set_paint(paint);
                    AggregateIPFlowsExit::Flow
                }
                None => AggregateIPFlowsExit::None,
            };
            fates.push(exit.index());
        }
        let rest = batch.split_off(fates.len());
        cx.route(batch, &mut fates);
        state.fates = fates;
        rest
    }

    /// Emits a packet, with the number of its flow and its paint.
    pub(super) fn send(&self, mut packet: Packet, flow: Option<(u32, u8)>, cx: &mut Cx) {
        let Some((number, paint)) = flow else {
            return cx.emit(AggregateIPFlowsExit::None, packet);
        };
        packet.set_anno_u32(anno::AGGREGATE, number);
        packet.set_paint(paint);
        cx.emit(AggregateIPFlowsExit::Flow, packet);
    }

    /// Emits packets that have waited too long; schedules a wake-up for the next.
    pub(super) fn release(&self, state: &mut AggregateIPFlowsState, cx: &mut Cx) {
        while let Some((packet, flow)) = state.pop_expired(cx.now(), self.fragment_timeout) {
            self.send(packet, flow, cx);
        }
        if let Some(time) = state.next_deadline(self.fragment_timeout).filter(|_| !state.clearing) {
            cx.set_timer(time);
        }
    }

    /// Reports the flows that have ended, to the trace and to subscribers.
    pub(super) fn report_ended(&self, state: &mut AggregateIPFlowsState, cx: &mut Cx) {
        let ended = state.take_ended();
        state.trace.write(&ended, cx);
        let numbers: Vec<u32> = ended.iter().map(|flow| flow.number).collect();
        self.notifier.with(|notifier| notifier.notify(&numbers));
    }
}
