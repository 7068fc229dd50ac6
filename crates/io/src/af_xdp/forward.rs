//! Forwards packets from one interface to another by their descriptors alone.

use super::{AfXdp, tx_socket};

impl AfXdp {
    /// Forwards up to `max` packets that arrive here to `to`, which sends them, and returns their
    /// number. The packets stay where they are: only descriptors move, and partial checksums are
    /// finished as in [`Device::receive`](crate::device::Device::receive).
    ///
    /// A packet that `to` cannot send like that, or not now, waits for `receive`. So a result of 0
    /// means either that there are no packets or that the next one is for `receive`. If the two
    /// devices were opened with different pools, every packet is for `receive`.
    pub fn forward(&mut self, to: &mut AfXdp, max: usize) -> usize {
        let Some(receiver) = &mut self.receiver else { return 0 };
        let Some(tx_socket) = tx_socket(&to.port, &to.options).filter(|_| !to.down) else {
            return 0;
        };
        let (count, bytes, kicked) =
            receiver.forward(tx_socket, &to.tx_lengths(), max, self.finisher.link);
        if count > 0 {
            to.note_kick(kicked);
            let (received, sent) = (&mut self.finisher.stats, &mut to.finisher.stats);
            received.received += count as u64;
            received.received_bytes += bytes;
            sent.sent += count as u64;
            sent.sent_bytes += bytes;
        }
        count
    }
}
