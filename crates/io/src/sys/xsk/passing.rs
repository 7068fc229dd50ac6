//! From one interface to another by descriptors alone: no packet is made of what arrives.

use super::umem::Umem;
use super::{Receiving, Sending};
use std::ops::RangeInclusive;

impl Receiving {
    /// Whether no packets have come.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.packets.look() == 0
    }

    /// Hands packets to `to`, if it has the same pool, as long as they have lengths that `fit` and
    /// lie in one frame, there is room for them, and they are no more than `max`. `look` has each of
    /// them before. Says how many packets and bytes went; [`Receiving::take`] gets those that come
    /// next.
    pub(crate) fn pass(
        &mut self,
        to: &mut Sending,
        max: usize,
        fit: &RangeInclusive<usize>,
        mut look: impl FnMut(&mut [u8]),
    ) -> (usize, u64) {
        let there = self.packets.look().min(max as u32);
        if !self.beginning.is_empty() || !self.umem.is_same(&to.umem) {
            return (0, 0);
        }
        let count = there.min(to.room(there as usize) as u32);
        // Nobody looks at the frames' headers.
        self.fetch(count, Umem::prefetch);
        let (mut passed, mut bytes) = (0, 0);
        while passed < count
            && let Some(entry) = self.packets.ahead(passed)
        {
            let len = entry.len as usize;
            let whole = entry.options & libc::XDP_PKT_CONTD == 0;
            let (frame, start) = self.umem.locate(entry.addr);
            if !whole || !fit.contains(&len) || !self.lent.has(frame) {
                break;
            }
            // SAFETY: the frame was lent, and the kernel has given it back with this packet.
            let Some(packet) = (unsafe { self.umem.bytes_mut(frame, start, len) }) else { break };
            look(packet);
            self.lent.remove(frame);
            to.lent.insert(frame);
            to.packets.push(libc::xdp_desc { options: 0, ..entry });
            (passed, bytes) = (passed + 1, bytes + len as u64);
        }
        if passed > 0 {
            self.packets.skip(passed);
            self.packets.release();
            to.packets.publish();
        }
        (passed as usize, bytes)
    }
}

impl Sending {
    /// Takes frames back whose packets were sent, for `receiving`, if it has the same pool, to be
    /// filled until it has `target`. Says whether its driver must be woken for them.
    pub(crate) fn reclaim_for(&mut self, receiving: &mut Receiving, target: usize) -> bool {
        let same = self.umem.is_same(&receiving.umem);
        let before = if same { receiving.missing(target) } else { 0 };
        let mut missing = before;
        self.take_back_but(|frame| {
            let wanted = missing > 0;
            if wanted {
                receiving.lend(frame);
                missing -= 1;
            }
            wanted
        });
        missing < before && receiving.publish()
    }
}
