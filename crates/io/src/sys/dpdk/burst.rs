//! Converts bursts of mbufs into batches of packets, and back.

use super::eal::enter_thread;
use super::pool::{Mbufs, mbuf_pool_bits};
use super::shim::{self, BURST, ForwardedBurst, Mbuf, PacketTemplate, RxBurst, TxBurst};
use super::types::{RxMetadata, RxResult, TxResult};
use castanet_packet::{Batch, Packet, Pool, RawPacket, anno};
use std::mem::MaybeUninit;

/// Receives up to `max` packets by `call`, which must fill packets and mbufs as
/// `castanet_dpdk_receive` does. Mbufs of `mbufs` become packets in place; chains and mbufs of other
/// mempools are copied into packets of `pool`.
///
/// # Safety
/// `call` must keep this contract, and give up the mbufs that it returns.
#[inline]
pub(super) unsafe fn receive(
    mbufs: &Mbufs,
    pool: &Pool,
    batch: &mut Batch,
    max: usize,
    metadata: RxMetadata,
    mut call: impl FnMut(*const PacketTemplate, *mut RawPacket, *mut *mut Mbuf, u32) -> RxBurst,
) -> RxResult {
    let mut rx_result = RxResult::default();
    enter_thread();
    while rx_result.taken() < max {
        let wanted = (max - rx_result.taken()).min(BURST);
        let mut burst = [const { MaybeUninit::<*mut Mbuf>::uninit() }; BURST];
        let first = burst.as_mut_ptr().cast();
        let (mut got, before) = (RxBurst::default(), batch.len());
        // SAFETY: there is room for `wanted` packets and mbufs. Those that
        // become packets are of this pool and have no other owner. `call` has
        // written as many mbufs as `got.all` says.
        let rest = unsafe {
            mbufs.pool().adopt_raw(batch, wanted, |packets| {
                got = call(mbufs.template(), packets, first, wanted as u32);
                got.placed as usize
            });
            let rest = (got.all - got.placed) as usize;
            std::slice::from_raw_parts(first.add(got.placed as usize), rest)
        };
        rx_result.packets += got.placed as usize;
        rx_result.bytes += got.bytes;
        if metadata != RxMetadata::default() {
            let fresh = &mut batch.as_mut_slice()[before..];
            fresh
                .iter_mut()
                .for_each(|packet| apply_metadata_in_place(packet, metadata, &mut rx_result));
        }
        if !rest.is_empty() {
            receive_slow_path(rest, mbufs, pool, batch, metadata, &mut rx_result);
        }
        if (got.all as usize) < wanted {
            break;
        }
    }
    rx_result
}

/// Sends packets from the front of `batch` by `call`, which must take them as
/// `castanet_dpdk_transmit` does. Packets that were sent are removed from the batch.
///
/// # Safety
/// `call` must keep this contract, and own the frames that it reports as sent.
#[inline]
pub(super) unsafe fn transmit(
    batch: &mut Batch,
    mut call: impl FnMut(*const RawPacket, u32, *const u64) -> TxBurst,
) -> TxResult {
    enter_thread();
    let mbuf_pools = mbuf_pool_bits();
    let mut tx_result = TxResult::default();
    while !tx_result.full && tx_result.packets < batch.len() {
        let packets = &batch.as_raw()[tx_result.packets..];
        let n = packets.len().min(BURST) as u32;
        let went = call(packets.as_ptr(), n, mbuf_pools.as_ptr());
        tx_result.packets += went.sent as usize;
        tx_result.bytes += went.bytes;
        tx_result.full = went.sent < went.ready;
        if (went.ready as usize) < BURST {
            break;
        }
    }
    // SAFETY: `call` owns these frames now; none is shared.
    unsafe { batch.release(tx_result.packets) };
    tx_result
}

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
) -> (TxResult, RxResult) {
    let (mut tx_result, mut rx_result) = (TxResult::default(), RxResult::default());
    enter_thread();
    let mut burst = [const { MaybeUninit::<*mut Mbuf>::uninit() }; BURST];
    let first: *mut *mut Mbuf = burst.as_mut_ptr().cast();
    while tx_result.packets < max {
        let wanted = (max - tx_result.packets).min(BURST);
        let ForwardedBurst { all, sent, bytes } = call(first, wanted as u32);
        tx_result.packets += sent as usize;
        tx_result.bytes += bytes;
        if all > sent {
            // SAFETY: `call` has written `all` mbufs, and has given up those behind `sent`.
            let rest = unsafe {
                std::slice::from_raw_parts(first.add(sent as usize), (all - sent) as usize)
            };
            receive_slow_path(rest, mbufs, pool, batch, RxMetadata::default(), &mut rx_result);
        }
        if (sent as usize) < wanted {
            break;
        }
    }
    (tx_result, rx_result)
}

/// Applies the port's metadata of a received packet: its RSS hash, and the checksum errors.
fn apply_metadata(packet: &mut Packet, flags: u64, metadata: RxMetadata, rx_result: &mut RxResult) {
    if metadata.hash {
        packet.set_anno_u32(anno::AGGREGATE, flags as u32);
    }
    rx_result.bad_ip += flags >> 32 & 1;
    rx_result.bad_transport += flags >> 33 & 1;
}

/// Applies the port's metadata of a packet that was just received in place.
fn apply_metadata_in_place(packet: &mut Packet, metadata: RxMetadata, rx_result: &mut RxResult) {
    // SAFETY: the frame lies in an mbuf that this packet owns; the mbuf's header is unchanged
    // since it was received.
    let flags =
        unsafe { shim::castanet_dpdk_rx_metadata(shim::castanet_dpdk_mbuf(packet.frame())) };
    apply_metadata(packet, flags, metadata, rx_result);
}

/// Slow path of reception: mbufs that cannot become packets in place are copied.
#[cold]
fn receive_slow_path(
    rest: &[*mut Mbuf],
    mbufs: &Mbufs,
    pool: &Pool,
    batch: &mut Batch,
    metadata: RxMetadata,
    rx_result: &mut RxResult,
) {
    for &mbuf in rest {
        // SAFETY: the driver has given up the mbuf; if it becomes a packet, it is
        // of this pool and has no other owner.
        let placed = unsafe {
            mbufs.pool().adopt_raw(batch, 1, |packet| {
                shim::castanet_dpdk_place(mbuf, mbufs.template(), packet, &raw mut rx_result.bytes)
                    .into()
            })
        };
        // SAFETY: the mbuf is still there: in place, or not yet copied.
        let flags = unsafe { shim::castanet_dpdk_rx_metadata(mbuf) };
        if placed != 1 && !copy_and_free(mbuf, pool, batch, rx_result) {
            continue;
        }
        rx_result.packets += 1;
        if metadata != RxMetadata::default()
            && let Some(packet) = batch.as_mut_slice().last_mut()
        {
            apply_metadata(packet, flags, metadata, rx_result);
        }
    }
}

/// Copies a packet that cannot stay in place, and frees its mbufs. `false` if it is malformed or no
/// frame is free; the loss is counted in `rx_result`.
fn copy_and_free(
    mbuf: *mut Mbuf,
    pool: &Pool,
    batch: &mut Batch,
    rx_result: &mut RxResult,
) -> bool {
    let packet = copy(mbuf, pool, rx_result);
    // SAFETY: the driver has given up the mbuf, and it is not used again.
    unsafe { shim::castanet_dpdk_discard(mbuf) };
    let got = packet.is_some();
    batch.extend(packet);
    got
}

/// Copies a packet that lies in several mbufs, or in mbufs of another mempool.
fn copy(mbuf: *mut Mbuf, pool: &Pool, rx_result: &mut RxResult) -> Option<Packet> {
    // SAFETY: the driver has given up the mbuf.
    let Ok(len) = u32::try_from(unsafe { shim::castanet_dpdk_length(mbuf) }) else {
        rx_result.malformed += 1;
        return None;
    };
    let Some(mut packet) = pool.alloc() else {
        rx_result.lost += 1;
        return None;
    };
    packet.put_back(len as usize);
    packet.set_mac_header(0);
    // SAFETY: as above, and there is room for `len` bytes.
    if !unsafe { shim::castanet_dpdk_copy_out(mbuf, packet.bytes_mut().as_mut_ptr(), len) } {
        rx_result.malformed += 1;
        return None;
    }
    rx_result.bytes += u64::from(len);
    Some(packet)
}

#[cfg(all(test, dpdk))]
mod tests {
    use super::*;
    use crate::sys::dpdk::types::TxLimits;

    /// Bytes of a buffer, and of the memory behind it.
    const ROOM: usize = 2000;
    const BEHIND: usize = 70_000;

    /// An mbuf, laid out as in DPDK's ABI.
    #[repr(C, align(64))]
    struct Fake {
        buffer: *const u8,
        iova: u64,
        start: u16,
        owners: u16,
        parts: u16,
        port: u16,
        flags: u64,
        template: u32,
        packet: u32,
        len: u16,
        others: [u16; 6],
        room: u16,
        pool: usize,
        next: *const Fake,
        rest: [u64; 7],
    }

    /// An mbuf of `len` bytes, in a buffer of letters `a` with other bytes behind it.
    fn fake(len: u16, parts: u16) -> Box<Fake> {
        let mut memory = vec![b'a'; ROOM];
        memory.resize(ROOM + BEHIND, b'!');
        Box::new(Fake {
            buffer: memory.leak().as_ptr(),
            iova: 0,
            start: 0,
            owners: 1,
            parts,
            port: 0,
            flags: 0,
            template: 0,
            packet: len.into(),
            len,
            others: [0; 6],
            room: ROOM as u16,
            pool: 0,
            next: std::ptr::null(),
            rest: [0; 7],
        })
    }

    fn mbuf(fake: &Fake) -> *const Mbuf {
        std::ptr::from_ref(fake).cast()
    }

    #[test]
    fn lengths_that_change_between_two_reads_are_noticed() {
        let (mut one, mut two) = (fake(1000, 2), fake(2000, 1));
        one.next = &raw const *two;
        let mut to = vec![0; 3000];
        // SAFETY: both mbufs and their buffers are live; `to` has room for all bytes.
        let mut copy = |one: &Fake| unsafe {
            let len = shim::castanet_dpdk_length(mbuf(one));
            (len, shim::castanet_dpdk_copy_out(mbuf(one), to.as_mut_ptr(), 3000))
        };
        assert_eq!(copy(&one), (3000, true));
        // Lengths that a peer may write after the packet's length was computed.
        for (first, second) in [(0, 3000), (3000, 0), (65_000, 60), (1000, 1999), (1001, 2000)] {
            (one.len, two.len) = (first, second);
            assert!(!copy(&one).1, "{first} {second}");
        }
        (one.len, two.len, two.start) = (1000, 2000, 1);
        assert_eq!(copy(&one), (-1, false));
        (one.len, two.start, one.parts) = (1000, 0, 1);
        assert_eq!(copy(&one), (-1, false));
        one.parts = 3;
        assert_eq!(copy(&one).0, -1);
        assert!(!to.contains(&b'!'));
    }

    #[test]
    fn mbufs_of_circular_chains_are_counted_once() {
        let mut all: Vec<_> = (0..7).map(|_| fake(60, 7)).collect();
        let places: Vec<*const Fake> = all.iter().map(|it| &raw const **it).collect();
        for (mbuf, next) in all.iter_mut().zip(&places[1..]) {
            mbuf.next = *next;
        }
        let different = |all: &[Box<Fake>], most| {
            // SAFETY: all mbufs that the chain leads to are live.
            unsafe { shim::castanet_dpdk_distinct(mbuf(&all[0]), most) }
        };
        for most in 1..9 {
            assert_eq!(different(&all, most), most.min(7));
        }
        for &back in &places {
            all[6].next = back;
            for most in [1, 6, 7, 8, 65_535] {
                assert_eq!(different(&all, most), most.min(7));
            }
        }
        all[2].next = places[1];
        assert_eq!(different(&all, 65_535), 3);
        all[0].next = places[0];
        assert_eq!(different(&all, 65_535), 1);
    }

    #[test]
    fn both_lengths_of_forwarded_mbufs_are_checked() {
        let limits = TxLimits { shortest: 14, longest: 1514, tx_checksums: 0, reserved: 0 };
        let plain = |all: &[Box<Fake>]| {
            let mut mbufs: Vec<_> = all.iter().map(|it| mbuf(it).cast_mut()).collect();
            let mut bytes = 0;
            // SAFETY: all mbufs of the array are live.
            let n = unsafe {
                shim::castanet_dpdk_forwardable(
                    mbufs.as_mut_ptr(),
                    mbufs.len() as u64,
                    &limits,
                    &mut bytes,
                )
            };
            (n, bytes)
        };
        let mut all: Vec<_> = (0..5).map(|_| fake(100, 1)).collect();
        assert_eq!(plain(&all), (5, 500));
        all[3].len = 3000;
        assert_eq!(plain(&all), (3, 300));
        (all[3].len, all[4].packet) = (100, 99);
        assert_eq!(plain(&all), (4, 400));
        all[0].packet = 65_536 + 100;
        assert_eq!(plain(&all), (0, 0));
    }
}
