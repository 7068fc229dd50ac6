//! Packets without descriptors that a source hands to another element, past those between.

use super::slot::{Slot, through_at_mut};
use super::ways::Strays;
use crate::graph::bypass::{BypassPath, Passage, PassedElement};
use castanet_element::bypass::BypassTarget;
use castanet_element::cx::Cx;
use castanet_element::element::ByteAccess;
use castanet_element::exec::ExecState;
use castanet_element::fate::{self, NOT_TAKEN};
use castanet_element::node::{RoleNode, ThroughRole};
use castanet_element::time::Time;
use castanet_packet::{BurstBytes, BurstSummary, MAX_BURST, PacketTotals};
use std::mem;

/// Lends the element to which source `me` may hand packets; `false` if it takes none, or an element between the two needs
/// descriptors `now`.
pub(super) fn lend(
    slots: &mut [Slot],
    me: usize,
    now: Time,
    lend: &mut dyn FnMut(BypassTarget) -> bool,
) -> bool {
    // An element that panics takes the ways with it: then packets are made.
    let Some(mut ways) = slots[me].bypass.take() else { return false };
    let is_lent = lend_along(slots, ways.begin(), now, lend);
    ways.end(is_lent);
    slots[me].bypass = Some(ways);
    is_lent
}

fn lend_along(
    slots: &mut [Slot],
    (path, strays): (&mut BypassPath, &mut Strays),
    now: Time,
    lend: &mut dyn FnMut(BypassTarget) -> bool,
) -> bool {
    let handles_bytes = path.handles_bytes();
    let (before, rest) = slots.split_at_mut(path.to);
    let Some((to, after)) = rest.split_first_mut() else { return false };
    let Some(RoleNode::Through(node)) = &mut to.node else { return false };
    let mut others = OtherSlots { before, after };
    let past = &mut path.past;
    if !past.iter_mut().all(|it| others.begin(it, now)) {
        return false;
    }
    let mut handler = |bytes: &mut BurstBytes| others.handle(past, bytes, strays);
    let handler = handles_bytes.then_some(&mut handler as _);
    lend(BypassTarget { element: path.to, node: &mut **node, handler })
}

/// Has the elements past which packets of source `me` have gone count them.
pub(super) fn count(slots: &mut [Slot], exec: &mut ExecState, me: usize, totals: PacketTotals) {
    let Some(mut ways) = slots[me].bypass.take() else { return };
    let path = ways.current();
    let handles_bytes = path.handles_bytes();
    for it in &mut path.past {
        let me = it.element;
        exec.counters[me].input += totals.packets;
        exec.counters[me].output += totals.packets;
        if it.passage == Passage::Counted
            && let Some(node) = through_at_mut(slots, me)
        {
            // An element before this one may have stripped or cut them.
            let bytes = if handles_bytes { mem::take(&mut it.bytes) } else { totals.bytes };
            let totals = PacketTotals { bytes, ..totals };
            node.count(totals, &mut Cx { exec: &mut *exec, me, peers: None });
        }
    }
    slots[me].bypass = Some(ways);
}

/// The fates of the packets of a burst.
struct Fates {
    /// By number.
    each: [u8; MAX_BURST],
    /// The bits that are set in any.
    bits: u8,
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

    /// Begins a loan for an element; `false` if packets may not be handed past it now.
    fn begin(&mut self, it: &mut PassedElement, now: Time) -> bool {
        // Arguments may be others than in the last loan.
        it.passed = None;
        let Some(node) = self.through_mut(it.element) else { return false };
        match it.passage {
            Passage::Counted => node.counts_only(),
            Passage::AsBursts => true,
            Passage::Handled(_) => match node.byte_length(now) {
                Some(length) => {
                    it.length = length;
                    true
                }
                None => false,
            },
        }
    }

    /// Has the elements handle the bytes of a burst; `false`, and none has written to them, if no packet of it goes
    /// on, or is to be handled like that.
    fn handle(
        &mut self,
        past: &mut [PassedElement],
        bytes: &mut BurstBytes,
        strays: &mut Strays,
    ) -> bool {
        let mut fates = Fates { each: [0; MAX_BURST], bits: 0 };
        let (mut counted, mut summary) = (0, None);
        strays.count(bytes.packets());
        for (place, it) in past.iter_mut().enumerate() {
            it.pending = bytes.total();
            let goes_on = match it.passage {
                Passage::Counted => true,
                Passage::AsBursts => {
                    self.passes(it, summary.get_or_insert_with(|| bytes.summary()))
                }
                Passage::Handled(_) => self.decide(it, bytes, &mut fates, (strays, place)),
            };
            // The bytes of packets that have left since are among those that were counted before.
            if !goes_on || bytes.packets() < counted {
                return false;
            }
            match it.passage {
                Passage::Counted => counted = bytes.packets(),
                Passage::AsBursts => {}
                Passage::Handled(ByteAccess::ReadsAndWrites) => {}
                Passage::Handled(_) => summary = None,
            }
            it.position = bytes.position();
        }
        let (end, goes_on) = (bytes.position(), bytes.is_at_start());
        for it in past.iter_mut().filter(|_| goes_on) {
            self.conclude(it, bytes);
        }
        bytes.seek(end);
        goes_on
    }

    /// Whether a burst of which this is true passes an element.
    fn passes(&mut self, it: &mut PassedElement, summary: &BurstSummary) -> bool {
        // Bursts are mostly alike.
        let passes = it.passed.as_ref() == Some(summary)
            || self.through_mut(it.element).is_some_and(|node| node.passes_burst(summary));
        if passes {
            it.passed = Some(*summary);
        }
        passes
    }

    /// Has an element decide about packets, of which those leave the burst that take another way; `false` if none is
    /// left, or the element does not take one.
    fn decide(
        &mut self,
        it: &PassedElement,
        bytes: &mut BurstBytes,
        fates: &mut Fates,
        (strays, place): (&mut Strays, usize),
    ) -> bool {
        if fates.bits != 0 {
            fates.each.fill(0);
        }
        let Some(node) = self.through_mut(it.element) else { return false };
        if bytes.length() < it.length {
            return false;
        }
        let each = &mut fates.each[..bytes.packets()];
        fates.bits = node.handle_bytes(bytes, each);
        debug_assert_eq!(fates.bits, fate::bits(&each[..bytes.packets()]).1);
        if it.leads_on(fates.bits, each) {
            return true;
        }
        if each.contains(&NOT_TAKEN) {
            return false;
        }
        strays.add(place, it, each);
        if it.keeps_order {
            return false;
        }
        bytes.retain(|number| it.outputs.contains(&each[number]));
        bytes.packets() > 0
    }

    /// Has an element write to the bytes of packets, or count them, that go on.
    fn conclude(&mut self, it: &mut PassedElement, bytes: &mut BurstBytes) {
        it.bytes += it.pending;
        if !it.passage.writes() && !it.counts_handled {
            return;
        }
        let Some(node) = self.through_mut(it.element) else { return };
        if it.passage.writes() {
            bytes.seek(it.position);
            node.write_bytes(bytes);
        }
        node.count_handled(bytes.packets());
    }
}
