//! From one interface to another where nobody wants to see packets.

use super::{AfXdp, outlet};

impl AfXdp {
    /// Hands up to `max` packets that arrive here to `to`, which sends them, and says how many.
    /// They stay where they are: only their descriptors travel, and unfinished checksums are
    /// finished as in [`Device::receive`](crate::device::Device::receive).
    ///
    /// What `to` cannot send like that, or not now, waits for `receive`; so none may mean either
    /// that there are no packets or that the next one is for `receive`. All are, where the two were
    /// opened with different pools.
    pub fn pass(&mut self, to: &mut AfXdp, max: usize) -> usize {
        let Some(reception) = &mut self.reception else { return 0 };
        let Some(outlet) = outlet(&to.port, &to.options).filter(|_| !to.down) else { return 0 };
        let (count, bytes, pushed) = reception.pass(outlet, &to.fit(), max, self.intake.link);
        if count > 0 {
            to.note_push(pushed);
            let (received, sent) = (&mut self.intake.stats, &mut to.intake.stats);
            received.received += count as u64;
            received.received_bytes += bytes;
            sent.sent += count as u64;
            sent.sent_bytes += bytes;
        }
        count
    }
}
