//! Sources hand packets to another element that no element has to look at.

use super::PerBatchNode;
use crate::cx::Cx;
use crate::element::PerBatch;
use castanet_packet::PacketTotals;

impl Cx<'_> {
    /// Lends a source the element to which its packets go, so that it can hand over packets that
    /// no element has to look at. `pass` answers how many went from one to the other, which the elements
    /// between the two count, and has the `Cx` of the receiving element. `None` unless the graph allows it
    /// ([`Class::with_bypass`](crate::class::Class::with_bypass)), or while cycles are counted for each element.
    pub fn bypass<E: PerBatch>(
        &mut self,
        pass: impl FnOnce(&E, &mut E::Local, &mut Cx) -> PacketTotals,
    ) -> Option<PacketTotals> {
        if self.exec.cycles.is_some() {
            return None;
        }
        let peers = self.peers.as_deref_mut()?;
        let (to, node) = peers.bypass(self.me)?;
        let node = node.downcast_mut::<PerBatchNode<E>>()?;
        let totals = node.body.lend(|config, local| {
            pass(config, local, &mut Cx { exec: self.exec, me: to, peers: None })
        });
        if totals.packets > 0 {
            self.exec.counters[self.me].made += totals.packets;
            self.exec.counters[self.me].output += totals.packets;
            self.exec.counters[to].input += totals.packets;
            peers.count_past(self.exec, self.me, totals);
        }
        Some(totals)
    }
}
