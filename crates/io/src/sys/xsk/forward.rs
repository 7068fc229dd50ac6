//! Forwards descriptors from the RX ring of one socket to the TX ring of another.

use super::umem::Umem;
use super::{RxRings, TxRings};
use std::ops::RangeInclusive;

impl RxRings {
    /// Whether the RX ring is empty.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.descriptors.available() == 0
    }

    /// Hands packets to `to`, if it has the same pool, as long as they have lengths that `lengths` and
    /// lie in one frame, there is room for them, and they are no more than `max`. `inspect` has each of
    /// them before. Says how many packets and bytes went; [`RxRings::take`] gets those that come
    /// next.
    pub(crate) fn forward(
        &mut self,
        to: &mut TxRings,
        max: usize,
        lengths: &RangeInclusive<usize>,
        mut inspect: impl FnMut(&mut [u8]),
    ) -> (usize, u64) {
        let available = self.descriptors.available().min(max as u32);
        if !self.partial.is_empty() || !self.umem.shares_memory_with(&to.umem) {
            return (0, 0);
        }
        let count = available.min(to.room(available as usize) as u32);
        // Forwarding does not read the frames' headers, so only packets are prefetched.
        self.prefetch_packets(count, Umem::prefetch);
        let (mut forwarded, mut bytes) = (0, 0);
        while forwarded < count
            && let Some(entry) = self.descriptors.peek(forwarded)
        {
            let len = entry.len as usize;
            let whole = entry.options & libc::XDP_PKT_CONTD == 0;
            let (frame, start) = self.umem.locate(entry.addr);
            if !whole || !lengths.contains(&len) || !self.in_kernel.contains(frame) {
                break;
            }
            // SAFETY: the frame was lent, and the kernel has given it back with this packet.
            let Some(packet) = (unsafe { self.umem.bytes_mut(frame, start, len) }) else { break };
            inspect(packet);
            self.in_kernel.remove(frame);
            to.in_kernel.insert(frame);
            to.descriptors.push(libc::xdp_desc { options: 0, ..entry });
            (forwarded, bytes) = (forwarded + 1, bytes + len as u64);
        }
        if forwarded > 0 {
            self.descriptors.skip(forwarded);
            self.descriptors.release();
            to.descriptors.publish();
        }
        (forwarded as usize, bytes)
    }
}

impl TxRings {
    /// Reclaims frames whose packets were sent, and puts them into the fill ring of `rx`, if it has
    /// the same pool, until the kernel has `target` of its frames. Returns whether the driver of
    /// `rx` must be woken for them.
    pub(crate) fn reclaim_for(&mut self, rx: &mut RxRings, target: usize) -> bool {
        let same = self.umem.shares_memory_with(&rx.umem);
        let before = if same { rx.missing(target) } else { 0 };
        let mut missing = before;
        self.reclaim_with(|frame| {
            let wanted = missing > 0;
            if wanted {
                rx.push_fill(frame);
                missing -= 1;
            }
            wanted
        });
        missing < before && rx.publish_fill()
    }
}
