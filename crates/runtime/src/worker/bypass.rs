//! Packets without descriptors that a source hands to another element, past those between.

use super::slot::{Slot, through_at_mut};
use crate::graph::bypass::{BypassPath, PassedElement};
use castanet_element::bypass::BypassTarget;
use castanet_element::cx::Cx;
use castanet_element::element::ByteAccess;
use castanet_element::exec::ExecState;
use castanet_element::fate::NOT_TAKEN;
use castanet_element::node::{RoleNode, ThroughRole};
use castanet_packet::{BurstBytes, MAX_BURST, PacketTotals};
use std::mem;

/// Lends the element to which source `me` may hand packets; `false` if an element between the two needs descriptors
/// now.
pub(super) fn lend(slots: &mut [Slot], me: usize, lend: &mut dyn FnMut(BypassTarget)) -> bool {
    // An element that panics takes the way with it: then packets are made.
    let Some(mut path) = slots[me].bypass.take() else { return false };
    let is_lent = lend_along(slots, &mut path, lend);
    slots[me].bypass = Some(path);
    is_lent
}

fn lend_along(
    slots: &mut [Slot],
    path: &mut BypassPath,
    lend: &mut dyn FnMut(BypassTarget),
) -> bool {
    let handles_bytes = path.handles_bytes();
    let (before, rest) = slots.split_at_mut(path.to);
    let Some((to, after)) = rest.split_first_mut() else { return false };
    let Some(RoleNode::Through(node)) = &mut to.node else { return false };
    let mut others = OtherSlots { before, after };
    if !path.past.iter().all(|it| others.can_pass(it)) {
        return false;
    }
    let past = &mut path.past;
    let mut handler = |bytes: &mut BurstBytes| others.handle(past, bytes);
    let handler = handles_bytes.then_some(&mut handler as _);
    lend(BypassTarget { element: path.to, node: &mut **node, handler });
    true
}

/// Has the elements past which packets of source `me` have gone count them.
pub(super) fn count(slots: &mut [Slot], exec: &mut ExecState, me: usize, totals: PacketTotals) {
    let Some(mut path) = slots[me].bypass.take() else { return };
    let handles_bytes = path.handles_bytes();
    for it in &mut path.past {
        let me = it.element;
        exec.counters[me].input += totals.packets;
        exec.counters[me].output += totals.packets;
        if it.access == ByteAccess::None
            && let Some(node) = through_at_mut(slots, me)
        {
            // An element before this one may have stripped or cut them.
            let bytes = if handles_bytes { mem::take(&mut it.bytes) } else { totals.bytes };
            let totals = PacketTotals { bytes, ..totals };
            node.count(totals, &mut Cx { exec: &mut *exec, me, peers: None });
        }
    }
    slots[me].bypass = Some(path);
}

/// All slots but one.
struct OtherSlots<'a> {
    before: &'a mut [Slot],
    after: &'a mut [Slot],
}

impl OtherSlots<'_> {
    fn slot(&mut self, me: usize) -> Option<&mut Slot> {
        match me.checked_sub(self.before.len()) {
            None => self.before.get_mut(me),
            Some(distance) => self.after.get_mut(distance.checked_sub(1)?),
        }
    }

    /// The node of element `me`, if packets pass through it.
    fn through_mut(&mut self, me: usize) -> Option<&mut dyn ThroughRole> {
        match self.slot(me)?.within {
            None => self.slot(me)?.node.as_mut()?.through_mut(),
            Some((head, place)) => Some(self.slot(head)?.chain.as_mut()?.fused.node(place)?),
        }
    }

    /// Whether packets may be handed past an element now.
    fn can_pass(&mut self, it: &PassedElement) -> bool {
        self.through_mut(it.element).is_some_and(|node| match it.access {
            ByteAccess::None => node.counts_only(),
            ByteAccess::Reads | ByteAccess::Writes => node.byte_length().is_some(),
        })
    }

    /// Has the elements handle the bytes of a burst; `false`, and none has written to them, if no packet of it goes
    /// on, or is to be handled like that.
    fn handle(&mut self, past: &mut [PassedElement], bytes: &mut BurstBytes) -> bool {
        let is_writer = |it: &PassedElement| it.access == ByteAccess::Writes;
        let mut fates = [0; MAX_BURST];
        let mut counted = 0;
        for it in past.iter_mut().filter(|it| !is_writer(it)) {
            it.pending = bytes.total();
            if it.access == ByteAccess::Reads && !self.decide(it, bytes, &mut fates) {
                return false;
            }
            // The bytes of packets that have left since are among those that were counted before.
            if bytes.packets() < counted {
                return false;
            }
            if it.access == ByteAccess::None {
                counted = bytes.packets();
            }
        }
        // Writers change no lengths, and none decides behind them.
        let goes_on = bytes.is_at_start()
            && past.iter().filter(|it| is_writer(it)).all(|it| self.has_bytes(it, bytes));
        for it in past.iter_mut().filter(|_| goes_on) {
            it.bytes += it.pending;
            self.conclude(it, bytes);
        }
        goes_on
    }

    /// Whether packets are long enough for an element to handle their bytes.
    fn has_bytes(&mut self, it: &PassedElement, bytes: &BurstBytes) -> bool {
        let length = self.through_mut(it.element).and_then(|node| node.byte_length());
        length.is_some_and(|length| bytes.length() >= length)
    }

    /// Has an element decide about packets, of which those leave the burst that take another way; `false` if none is
    /// left, or the element does not take one.
    fn decide(
        &mut self,
        it: &PassedElement,
        bytes: &mut BurstBytes,
        fates: &mut [u8; MAX_BURST],
    ) -> bool {
        let fates = &mut fates[..bytes.packets()];
        fates.fill(0);
        let Some(node) = self.through_mut(it.element) else { return false };
        if node.byte_length().is_none_or(|length| bytes.length() < length) {
            return false;
        }
        node.handle_bytes(bytes, fates);
        if it.leads_on(fates) {
            return true;
        }
        if it.keeps_order || fates.contains(&NOT_TAKEN) {
            return false;
        }
        bytes.retain(|number| it.outputs.contains(&fates[number]));
        bytes.packets() > 0
    }

    /// Has an element write to the bytes of packets, or count them, that go on.
    fn conclude(&mut self, it: &PassedElement, bytes: &mut BurstBytes) {
        let Some(node) = self.through_mut(it.element) else { return };
        if it.access == ByteAccess::Writes {
            node.handle_bytes(bytes, &mut []);
        }
        node.count_handled(bytes.packets());
    }
}
