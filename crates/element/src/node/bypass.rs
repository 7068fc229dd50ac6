//! Sources hand packets without descriptors to another element.

use super::PerBatchNode;
use crate::bypass::{BypassTarget, BytesHandler};
use crate::cx::Cx;
use crate::element::PerBatch;
use castanet_packet::PacketTotals;

impl Cx<'_> {
    /// Lends a source the element to which its packets go, so that it can hand over packets that have no
    /// descriptors. `pass` has the `Cx` of the receiving element, and the elements between the two that handle bytes,
    /// if there are any: it must call these for each burst. It answers how many packets went from one to the other,
    /// which the elements between the two count, or `None` if the receiving element takes none now.
    ///
    /// The method answers the same; also `None` where an element between the two needs descriptors now, the graph does not
    /// allow it ([`Class::with_bypass`](crate::class::Class::with_bypass),
    /// [`Class::with_lent_bytes`](crate::class::Class::with_lent_bytes)), or while cycles are counted for each element.
    pub fn bypass<E: PerBatch>(
        &mut self,
        pass: impl FnOnce(&E, &mut E::Local, Option<BytesHandler>, &mut Cx) -> Option<PacketTotals>,
    ) -> Option<PacketTotals> {
        if self.exec.cycles.is_some() {
            return None;
        }
        let peers = self.peers.as_deref_mut()?;
        let (mut pass, mut passed) = (Some(pass), None);
        let exec = &mut *self.exec;
        peers.bypass(self.me, exec.now, &mut |target| {
            let BypassTarget { element: me, node, handler } = target;
            let (Some(node), Some(pass)) = (node.downcast_mut::<PerBatchNode<E>>(), pass.take())
            else {
                return false;
            };
            let mut cx = Cx { exec: &mut *exec, me, peers: None };
            let totals = node.body.lend(|config, local| pass(config, local, handler, &mut cx));
            passed = totals.map(|totals| (me, totals));
            passed.is_some()
        });
        let (to, totals) = passed?;
        if totals.packets > 0 {
            self.exec.counters[self.me].made += totals.packets;
            self.exec.counters[self.me].output += totals.packets;
            self.exec.counters[to].input += totals.packets;
            peers.count_past(self.exec, self.me, totals);
        }
        Some(totals)
    }
}
