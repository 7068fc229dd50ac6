//! Hands mbufs from one port to another without making packets of them.

use super::burst::receive_slow_path;
use super::eal::enter_thread;
use super::pool::Mbufs;
use super::shim::{self, BURST, FORWARDED, ForwardedBurst, Mbuf, ReceivedBurst, RxBurst};
use super::types::{ForwardResult, OtherPackets, RxMetadata, RxResult};
use castanet_element::bypass::BytesHandler;
use castanet_packet::{Batch, BurstBytes, Pool};
use std::mem::{self, MaybeUninit};
use std::ptr::NonNull;
use std::slice;

/// Packets' metadata that are needed: none.
const METADATA: RxMetadata = RxMetadata { hash: false, checks: false, timestamps: false };

/// Receives up to `max` packets and forwards them by `call`, which must do both as
/// `castanet_dpdk_forward` does, until a burst is not forwarded whole. Returns counts of packets
/// forwarded, and of those of the last burst that were added to `batch` instead.
///
/// # Safety
/// `call` must keep this contract, and give up the mbufs that it did not send.
#[inline]
pub(super) unsafe fn forward(
    (mbufs, pool): (&Mbufs, &Pool),
    batch: &mut Batch,
    max: usize,
    mut call: impl FnMut(*mut *mut Mbuf, u32) -> ForwardedBurst,
) -> ForwardResult {
    let mut result = ForwardResult::default();
    enter_thread();
    let mut burst = [const { MaybeUninit::<*mut Mbuf>::uninit() }; FORWARDED];
    let first: *mut *mut Mbuf = burst.as_mut_ptr().cast();
    while result.sent.packets < max {
        let wanted = (max - result.sent.packets).min(FORWARDED);
        let ForwardedBurst { all, sent, bytes } = call(first, wanted as u32);
        result.sent.packets += sent as usize;
        result.sent.bytes += bytes;
        if all > sent {
            // SAFETY: `call` has written `all` mbufs, and has given up those behind `sent`.
            let rest =
                unsafe { slice::from_raw_parts(first.add(sent as usize), (all - sent) as usize) };
            receive_slow_path(rest, mbufs, pool, batch, METADATA, &mut result.rest);
        }
        if (sent as usize) < wanted {
            break;
        }
    }
    result
}

/// Receives up to `max` packets by `receive`, which must do so as `castanet_dpdk_receive_alike` does, has `handler`
/// handle their bytes, and sends them by `send` as `castanet_dpdk_send` does, until a burst is not sent whole.
/// Packets that find no room are unsent, and all of a burst in which one is cut to less than `shortest` bytes.
///
/// # Safety
/// `receive` and `send` must keep these contracts; `receive` must give up the mbufs, to which nobody else writes.
pub(super) unsafe fn forward_handled(
    pools: (&Mbufs, &Pool),
    others: OtherPackets,
    (max, shortest): (usize, u32),
    handler: BytesHandler,
    mut receive: impl FnMut(*mut *mut Mbuf, *mut u32, u32) -> ReceivedBurst,
    mut send: impl FnMut(*mut *mut Mbuf, u32, bool) -> u32,
) -> ForwardResult {
    let mut result = ForwardResult::default();
    enter_thread();
    let mut burst = [const { MaybeUninit::<*mut Mbuf>::uninit() }; BURST];
    let (mut ends, mut words) = ([0; BURST], [0; BURST]);
    let first: *mut *mut Mbuf = burst.as_mut_ptr().cast();
    while result.sent.packets < max {
        let wanted = (max - result.sent.packets).min(BURST);
        let received = receive(first, ends.as_mut_ptr(), wanted as u32);
        if received.all == 0 {
            break;
        }
        let count = received.all as usize;
        // SAFETY: `receive` has written so many mbufs, and has given them up.
        let all = unsafe { slice::from_raw_parts_mut(first, count) };
        let mut handled = HandledBurst::default();
        if received.offset != 0 {
            let notes = (&mut ends[..count], &mut words[..count]);
            // SAFETY: the mbufs are alike, nobody else has them, and `receive` has written as many ends.
            handled = unsafe { handle(all, &received, notes, handler) };
        }
        let (going, refused) = all.split_at(handled.packets);
        let is_fit = !going.is_empty() && handled.shortest >= shortest as usize;
        let (count, has_flags) = (going.len() as u32, received.has_flags != 0);
        let sent = if is_fit { send(first, count, has_flags) as usize } else { 0 };
        let (before, rest) = (result.rest.bytes, &going[sent..]);
        make_packets(rest, pools, others.unsent, &mut result.rest);
        let unsent = result.rest.bytes - before;
        make_packets(refused, pools, others.refused, &mut result.rest);
        result.sent.packets += sent;
        result.sent.bytes += handled.bytes - unsent;
        result.cut += handled.cut;
        if sent < wanted {
            break;
        }
    }
    result
}

/// Packets whose bytes were handled: the first of their burst.
#[derive(Clone, Copy, Default)]
struct HandledBurst {
    packets: usize,
    /// Length of the shortest.
    shortest: usize,
    /// Bytes of all, and how many were cut off.
    bytes: u64,
    cut: u64,
}

/// Has `handler` handle the bytes of a burst. The mbufs of packets that go on are the first then.
///
/// # Safety
/// The mbufs are alike as `castanet_dpdk_receive_alike` says, and nobody else has them; there are as many ends, and words.
unsafe fn handle(
    all: &mut [*mut Mbuf],
    received: &ReceivedBurst,
    (ends, words): (&mut [u32], &mut [u64]),
    handler: &mut (dyn FnMut(&mut BurstBytes) -> bool + '_),
) -> HandledBurst {
    let (first, count, offset) = (all.as_mut_ptr(), all.len(), received.offset);
    let owner = MbufOwner { first, count };
    // SAFETY: no mbuf is null or there twice; each has its bytes from `offset` on.
    let mut bytes = unsafe {
        let buffers = slice::from_raw_parts_mut(first.cast::<NonNull<u8>>(), count);
        let lengths = (received.shortest as usize, received.bytes);
        BurstBytes::new(buffers, offset as usize, (ends, words), lengths)
    };
    let is_handled = handler(&mut bytes);
    let (packets, is_cut) = (bytes.packets(), bytes.is_cut());
    let mut handled =
        HandledBurst { packets, shortest: bytes.length(), bytes: bytes.total(), cut: 0 };
    if is_handled && is_cut {
        // SAFETY: each end lies between the offset and the one that was written by `receive`.
        handled.cut =
            unsafe { shim::castanet_dpdk_cut(first, ends.as_ptr(), packets as u32, offset) };
    }
    mem::forget(owner);
    if is_handled { handled } else { HandledBurst::default() }
}

/// Adds packets in received mbufs to `batch`.
fn make_packets(
    all: &[*mut Mbuf],
    (mbufs, pool): (&Mbufs, &Pool),
    batch: &mut Batch,
    rx_result: &mut RxResult,
) {
    if all.is_empty() {
        return;
    }
    let mut got = RxBurst::default();
    // SAFETY: the driver has given up the mbufs. Those that become packets are of this pool and have no other
    // owner; there is room for as many.
    unsafe {
        mbufs.pool().adopt_raw(batch, all.len(), |packets| {
            let n = all.len() as u32;
            got = shim::castanet_dpdk_make(all.as_ptr(), n, mbufs.template(), packets);
            got.placed as usize
        });
    }
    rx_result.packets += got.placed as usize;
    rx_result.bytes += got.bytes;
    let rest = &all[got.placed as usize..];
    if !rest.is_empty() {
        receive_slow_path(rest, mbufs, pool, batch, METADATA, rx_result);
    }
}

/// Frees mbufs if an element panics that handles their bytes.
struct MbufOwner {
    first: *mut *mut Mbuf,
    count: usize,
}

impl Drop for MbufOwner {
    fn drop(&mut self) {
        for place in 0..self.count {
            // SAFETY: there are so many mbufs. The driver has given them up, and they are not used again.
            unsafe { shim::castanet_dpdk_discard(*self.first.add(place)) };
        }
    }
}
