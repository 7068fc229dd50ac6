//! Forwards packets from one interface to another by their descriptors alone.

use super::{AfXdp, tx_socket};
use castanet_packet::PacketTotals;

impl AfXdp {
    /// Forwards up to `max` packets that arrive here to `to`, which sends them, and says how
    /// many. The packets stay where they are: only descriptors move, and partial checksums are
    /// finished as in [`Device::receive`](crate::device::Device::receive).
    ///
    /// A packet that `to` cannot send like that, or not now, waits for `receive`. So a result of 0
    /// means either that there are no packets or that the next one is for `receive`. If the two
    /// devices were opened with different pools, every packet is for `receive`.
    pub fn forward(&mut self, to: &mut AfXdp, max: usize) -> PacketTotals {
        let Some(receiver) = &mut self.receiver else { return PacketTotals::default() };
        let Some(tx_socket) = tx_socket(&to.port, &to.options).filter(|_| !to.down) else {
            return PacketTotals::default();
        };
        let (totals, kicked) =
            receiver.forward(tx_socket, &to.tx_lengths(), max, self.finisher.link);
        if totals.packets > 0 {
            to.note_kick(kicked);
            let (received, sent) = (&mut self.finisher.stats, &mut to.finisher.stats);
            received.received += totals.packets;
            received.received_bytes += totals.bytes;
            sent.sent += totals.packets;
            sent.sent_bytes += totals.bytes;
        }
        totals
    }
}
