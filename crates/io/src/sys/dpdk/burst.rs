//! Converts bursts of mbufs into batches of packets, and back.

use super::eal::enter_thread;
use super::pool::{Mbufs, mbuf_pool_bits};
use super::shim::{self, BURST, Mbuf, PacketTemplate, RxBurst, TxBurst};
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

/// A port's data about a received packet beside its bytes.
struct MbufMetadata {
    /// As `castanet_dpdk_rx_metadata` returns them.
    flags: u64,
    /// The time of reception, in ticks of the port's clock.
    timestamp: Option<u64>,
}

impl MbufMetadata {
    /// # Safety
    /// The mbuf must be live.
    unsafe fn of(mbuf: *const Mbuf, metadata: RxMetadata) -> MbufMetadata {
        let mut ticks = 0;
        // SAFETY: the caller answers for the mbuf; `ticks` is live.
        unsafe {
            let has_timestamp =
                metadata.timestamps && shim::castanet_dpdk_rx_timestamp(mbuf, &raw mut ticks);
            let flags = shim::castanet_dpdk_rx_metadata(mbuf);
            MbufMetadata { flags, timestamp: has_timestamp.then_some(ticks) }
        }
    }
}

/// Applies the port's metadata of a received packet: its RSS hash, its timestamp in ticks, and the
/// checksum errors.
fn apply_metadata(
    packet: &mut Packet,
    MbufMetadata { flags, timestamp }: MbufMetadata,
    metadata: RxMetadata,
    rx_result: &mut RxResult,
) {
    if let Some(ticks) = timestamp {
        packet.set_timestamp(ticks as i64);
    }
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
    let found = unsafe { MbufMetadata::of(shim::castanet_dpdk_mbuf(packet.frame()), metadata) };
    apply_metadata(packet, found, metadata, rx_result);
}

/// Slow path of reception: mbufs that cannot become packets in place are copied.
#[cold]
pub(super) fn receive_slow_path(
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
        let found = unsafe { MbufMetadata::of(mbuf, metadata) };
        if placed != 1 && !copy_and_free(mbuf, pool, batch, rx_result) {
            continue;
        }
        rx_result.packets += 1;
        if metadata != RxMetadata::default()
            && let Some(packet) = batch.as_mut_slice().last_mut()
        {
            apply_metadata(packet, found, metadata, rx_result);
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
    use castanet_packet::FrameHeader;
    use std::ptr::NonNull;

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

    /// Numbers that look random (xorshift64).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit
        }
    }

    /// Makes mbufs alike but for their lengths.
    fn make_alike(all: &mut [Box<Fake>], numbers: &mut Numbers) {
        for mbuf in all {
            let len = 60 + numbers.below(1000) as u16;
            (mbuf.start, mbuf.owners, mbuf.parts, mbuf.port, mbuf.pool) = (128, 1, 1, 3, 0);
            // A port's flags: there is a hash, and the checksum is right.
            (mbuf.flags, mbuf.packet, mbuf.len) = (0x82, len.into(), len);
        }
    }

    #[test]
    fn bursts_of_alike_mbufs_are_known_as_such() {
        let mut all: Vec<_> = (0..BURST).map(|_| fake(100, 1)).collect();
        let limits = TxLimits { shortest: 60, longest: 1514, tx_checksums: 0, reserved: 0 };
        let template = PacketTemplate { pool: std::ptr::null(), marks: 0, room: ROOM as u64 };
        let mut numbers = Numbers(4);
        for round in 0..2000 {
            make_alike(&mut all, &mut numbers);
            let count = 1 + numbers.below(BURST as u64) as usize;
            if numbers.below(2) == 0 {
                all.iter_mut().for_each(|it| it.flags = 0);
            }
            let odd = &mut all[numbers.below(count as u64) as usize];
            match numbers.below(16) {
                0 => odd.start = 130,
                1 => odd.owners = 2,
                2 => odd.parts = 2,
                3 => odd.port = 4,
                4 => odd.flags ^= 0x80,
                5 => odd.pool = 64,
                9 => odd.flags |= 1 << 62,
                10 => odd.flags |= 1 << 61,
                6 => odd.packet = 59,
                7 => odd.packet = 1515,
                8 => odd.packet |= 1 << 31,
                _ => {}
            }
            let shape =
                |it: &Fake| (it.start, it.owners, it.parts, it.port, it.flags >> 61, it.pool);
            let is_alike = all[..count]
                .iter()
                .all(|it| shape(it) == (128, 1, 1, 3, 0, 0) && (60..=1514).contains(&it.packet));
            // One packet alone may have any shape.
            let is_alone = count == 1 && (all[0].start, all[0].port) != (128, 3);
            let mut mbufs: Vec<_> = all[..count].iter().map(|it| mbuf(it).cast_mut()).collect();
            let mut ends = [0; BURST];
            // SAFETY: all mbufs are live, and there is room for as many ends.
            let burst = unsafe {
                let (first, ends) = (mbufs.as_mut_ptr(), ends.as_mut_ptr());
                let (by_vectors, all) = (shim::castanet_dpdk_has_alike(), count as u64);
                match by_vectors && numbers.below(2) == 0 {
                    true => shim::castanet_dpdk_look_alike(first, all, &template, &limits, ends),
                    false => shim::castanet_dpdk_look(first, all, &template, &limits, ends),
                }
            };
            assert_eq!(burst.all as usize, count);
            assert_eq!(burst.offset != 0, is_alike || is_alone, "{round}");
            if is_alike {
                let lengths = all[..count].iter().map(|it| u64::from(it.packet));
                assert_eq!(burst.offset as usize, size_of::<Fake>() + 64 + 128);
                assert_eq!(Some(u64::from(burst.shortest)), lengths.clone().min());
                assert_eq!(burst.bytes, lengths.clone().sum());
                let has_flags = all[..count].iter().any(|it| it.flags != 0);
                assert_eq!(burst.has_flags != 0, has_flags, "{round}");
                assert!(lengths.eq(ends[..count].iter().map(|end| u64::from(end - burst.offset))));
            }
        }
    }

    fn words(packet: &RawPacket) -> (usize, u64, u64, u64) {
        (packet.frame.as_ptr() as usize, packet.offsets, packet.span, packet.marks)
    }

    #[test]
    fn mbufs_become_the_same_packets_together_and_one_by_one() {
        // SAFETY: it only asks the processor.
        if !unsafe { shim::castanet_dpdk_has_alike() } {
            return;
        }
        let template =
            PacketTemplate { pool: std::ptr::null_mut(), marks: 0x1234 << 32, room: ROOM as u64 };
        let mut all: Vec<_> = (0..BURST).map(|_| fake(100, 1)).collect();
        let mut numbers = Numbers(1);
        for round in 0..4000 {
            make_alike(&mut all, &mut numbers);
            let count = 1 + numbers.below(BURST as u64) as usize;
            let odd = &mut all[numbers.below(count as u64) as usize];
            match numbers.below(20) {
                0 => odd.start = numbers.below(3000) as u16,
                1 => odd.owners = 2,
                2 => odd.parts = 2,
                3 => odd.port = 4,
                4 => odd.flags = 1 << 62,
                5 => odd.flags = 1 << 61,
                6 => odd.packet = ROOM as u32 - 128 + numbers.below(3) as u32,
                7 => odd.packet |= 1 << 31,
                8 => odd.pool = 64,
                9 => odd.flags = 0,
                _ => {}
            }
            let mbufs: Vec<_> = all[..count].iter().map(|it| mbuf(it).cast_mut()).collect();
            let mut packets = [const { MaybeUninit::<RawPacket>::uninit() }; BURST];
            let (first, mut bytes) = (packets.as_mut_ptr().cast(), 0);
            // SAFETY: all mbufs are live, and there is room for as many packets.
            let alike = unsafe {
                let (mbufs, all) = (mbufs.as_ptr(), count as u64);
                shim::castanet_dpdk_packets_alike(mbufs, all, &template, first, &mut bytes)
            };
            let (mut single, mut placed, mut total) = (MaybeUninit::uninit(), 0, 0);
            for (&mbuf, packet) in mbufs.iter().zip(&packets) {
                // SAFETY: the mbuf is live, and there is room for a packet, which was written if
                // it could be placed; the other one if the mbufs were alike.
                unsafe {
                    let to = single.as_mut_ptr();
                    if shim::castanet_dpdk_place(mbuf, &template, to, &mut total) {
                        placed += 1;
                        if alike {
                            let (one, other) = (single.assume_init_ref(), packet.assume_init_ref());
                            assert_eq!(words(one), words(other), "{round}");
                        }
                    }
                }
            }
            if alike {
                assert_eq!((placed, total), (count, bytes), "{round}");
            }
            let kind = |n: usize| (all[n].start, all[n].port);
            let same = (0..count).all(|n| kind(n) == kind(0));
            assert_eq!(alike, placed == count && same, "{round}");
        }
    }

    /// Packets that lie in these mbufs, of pool 5.
    fn packets_in(all: &mut [Box<Fake>], numbers: &mut Numbers) -> Vec<RawPacket> {
        let packets = all.iter_mut().map(|it| {
            // The frame's header is the private area behind the mbuf's header.
            let mbuf = NonNull::from(&mut **it).cast::<FrameHeader>();
            // SAFETY: the address is that of the mbuf's end.
            let frame = unsafe { mbuf.byte_add(size_of::<Fake>()) };
            let span = (1 + numbers.below(9)) << 32 | (60 + numbers.below(1000));
            let marks = 5 << 16 | numbers.below(99);
            RawPacket { frame, offsets: 64 + numbers.below(200), span, marks }
        });
        packets.collect()
    }

    /// How many packets became mbufs, their bytes, and the mbufs.
    fn collect(packets: &[RawPacket]) -> (usize, u64, [*mut Mbuf; BURST]) {
        // Pools 5 and 7 are mbufs.
        let pools = [1 << 5 | 1 << 7, 0, 0, 0];
        let limits = TxLimits { shortest: 14, longest: 1514, tx_checksums: 0, reserved: 0 };
        let (mut mbufs, mut prepares) = ([std::ptr::null_mut(); BURST], false);
        let (first, n, to) = (packets.as_ptr(), packets.len() as u32, mbufs.as_mut_ptr());
        // SAFETY: the packets lie behind live mbufs, and there is room for as many.
        let burst = unsafe {
            shim::castanet_dpdk_collect(first, n, pools.as_ptr(), &limits, to, &mut prepares)
        };
        assert!(!prepares);
        (burst.ready as usize, burst.bytes, mbufs)
    }

    #[test]
    fn packets_become_the_same_mbufs_together_and_one_by_one() {
        let mut all: Vec<_> = (0..BURST).map(|_| fake(100, 1)).collect();
        let mut numbers = Numbers(2);
        let state = |all: &[Box<Fake>]| -> Vec<_> {
            all.iter().map(|it| (it.start, it.flags, it.packet, it.len, it.port)).collect()
        };
        for round in 0..4000 {
            make_alike(&mut all, &mut numbers);
            let count = 1 + numbers.below(BURST as u64) as usize;
            let mut packets = packets_in(&mut all[..count], &mut numbers);
            let odd = &mut packets[numbers.below(count as u64) as usize];
            match numbers.below(16) {
                0 => odd.marks |= RawPacket::SHARED,
                1 => odd.marks = 6 << 16,
                2 => odd.marks = 7 << 16,
                3 => odd.span = 13,
                4 => odd.span = 1515,
                5 => odd.span = 1 << 31,
                6 => odd.marks |= 1 << 12,
                _ => {}
            }
            let before = state(&all);
            let (ready, bytes, mbufs) = collect(&packets);
            let after = state(&all);
            make_alike(&mut all, &mut Numbers(3));
            let (mut sum, mut n) = (0, 0);
            for packet in &packets {
                let (one, its_bytes, single) = collect(std::slice::from_ref(packet));
                if one == 0 {
                    break;
                }
                assert_eq!(single[0], mbufs[n], "{round}");
                (n, sum) = (n + 1, sum + its_bytes);
            }
            assert_eq!((ready, bytes), (n, sum), "{round}");
            assert_eq!(after[..n], state(&all)[..n], "{round}");
            // An mbuf behind the first that cannot be sent is as it was.
            let behind = (n + 1).min(count);
            assert_eq!(after[behind..], before[behind..], "{round}");
        }
    }
}
