//! Bursts of mbufs as batches of packets, and back.

use super::eal::enter_thread;
use super::pool::{Mbufs, are_mbufs};
use super::shim::{self, BURST, Kind, Mbuf, Passed, Received, Sent};
use super::types::{Found, Handed, Wants};
use castanet_packet::{Batch, Packet, Pool, RawPacket, anno};
use std::mem::MaybeUninit;

/// Receives up to `max` packets from `call`, which is to fill packets and
/// mbufs as `castanet_dpdk_receive` does. Mbufs of `mbufs` become packets in
/// place; what comes in other ways is copied into packets of `pool`.
///
/// # Safety
/// `call` must do as said, and give up the mbufs.
#[inline]
pub(super) unsafe fn receive(
    mbufs: &Mbufs,
    pool: &Pool,
    batch: &mut Batch,
    max: usize,
    wants: Wants,
    mut call: impl FnMut(*const Kind, *mut RawPacket, *mut *mut Mbuf, u32) -> Received,
) -> Found {
    let mut found = Found::default();
    enter_thread();
    while found.taken() < max {
        let wanted = (max - found.taken()).min(BURST);
        let mut burst = [const { MaybeUninit::<*mut Mbuf>::uninit() }; BURST];
        let first = burst.as_mut_ptr().cast();
        let (mut got, before) = (Received::default(), batch.len());
        // SAFETY: there is room for `wanted` packets and mbufs. Those that
        // become packets are of this pool, and nobody else has them. As many
        // mbufs as it says are written.
        let rest = unsafe {
            mbufs.pool().adopt_raw(batch, wanted, |packets| {
                got = call(mbufs.kind(), packets, first, wanted as u32);
                got.placed as usize
            });
            let rest = (got.all - got.placed) as usize;
            std::slice::from_raw_parts(first.add(got.placed as usize), rest)
        };
        found.packets += got.placed as usize;
        found.bytes += got.bytes;
        if wants != Wants::default() {
            let fresh = &mut batch.as_mut_slice()[before..];
            fresh.iter_mut().for_each(|packet| remark_in_place(packet, wants, &mut found));
        }
        if !rest.is_empty() {
            receive_slowly(rest, mbufs, pool, batch, wants, &mut found);
        }
        if (got.all as usize) < wanted {
            break;
        }
    }
    found
}

/// Hands packets from the front of `batch` to `call`, which is to take them as
/// `castanet_dpdk_transmit` does. Those that went are gone from the batch.
///
/// # Safety
/// `call` must do as said, and be the owner of the frames that it says went.
#[inline]
pub(super) unsafe fn transmit(
    batch: &mut Batch,
    mut call: impl FnMut(*const RawPacket, u32, *const u64) -> Sent,
) -> Handed {
    enter_thread();
    let ours = are_mbufs();
    let mut handed = Handed::default();
    while !handed.full && handed.packets < batch.len() {
        let packets = &batch.as_raw()[handed.packets..];
        let n = packets.len().min(BURST) as u32;
        let went = call(packets.as_ptr(), n, ours.as_ptr());
        handed.packets += went.sent as usize;
        handed.bytes += went.bytes;
        handed.full = went.sent < went.ready;
        if (went.ready as usize) < BURST {
            break;
        }
    }
    // SAFETY: these have another owner; none is shared.
    unsafe { batch.release(handed.packets) };
    handed
}

/// Receives up to `max` packets and sends them on by `call`, which is to do both as
/// `castanet_dpdk_pass` does, for as long as whole bursts go. Answers which went, and which of
/// the last burst did not and were added to `batch`.
///
/// # Safety
/// `call` must do as said, and give up the mbufs that it leaves.
#[inline]
pub(super) unsafe fn pass(
    (mbufs, pool): (&Mbufs, &Pool),
    batch: &mut Batch,
    max: usize,
    mut call: impl FnMut(*mut *mut Mbuf, u32) -> Passed,
) -> (Handed, Found) {
    let (mut handed, mut found) = (Handed::default(), Found::default());
    enter_thread();
    let mut burst = [const { MaybeUninit::<*mut Mbuf>::uninit() }; BURST];
    let first: *mut *mut Mbuf = burst.as_mut_ptr().cast();
    while handed.packets < max {
        let wanted = (max - handed.packets).min(BURST);
        let Passed { all, sent, bytes } = call(first, wanted as u32);
        handed.packets += sent as usize;
        handed.bytes += bytes;
        if all > sent {
            // SAFETY: it says that it has written so many, and those behind `sent` are left.
            let rest = unsafe {
                std::slice::from_raw_parts(first.add(sent as usize), (all - sent) as usize)
            };
            receive_slowly(rest, mbufs, pool, batch, Wants::default(), &mut found);
        }
        if (sent as usize) < wanted {
            break;
        }
    }
    (handed, found)
}

/// Takes note of what the port said about a packet.
fn remark(packet: &mut Packet, remarks: u64, wants: Wants, found: &mut Found) {
    if wants.hash {
        packet.set_anno_u32(anno::AGGREGATE, remarks as u32);
    }
    found.bad_ip += remarks >> 32 & 1;
    found.bad_transport += remarks >> 33 & 1;
}

/// The same for one that was just received in place.
fn remark_in_place(packet: &mut Packet, wants: Wants, found: &mut Found) {
    // SAFETY: the frame is an mbuf's, and ours; nobody has written to the mbuf
    // itself since it was received.
    let remarks = unsafe { shim::castanet_dpdk_remarks(shim::castanet_dpdk_mbuf(packet.frame())) };
    remark(packet, remarks, wants, found);
}

/// Makes packets of mbufs some of which cannot travel in place: those are copied.
#[cold]
fn receive_slowly(
    rest: &[*mut Mbuf],
    mbufs: &Mbufs,
    pool: &Pool,
    batch: &mut Batch,
    wants: Wants,
    found: &mut Found,
) {
    for &mbuf in rest {
        // SAFETY: the driver gave us the mbuf; if it becomes a packet, it is
        // one of this pool and nobody else has it.
        let placed = unsafe {
            mbufs.pool().adopt_raw(batch, 1, |packet| {
                shim::castanet_dpdk_place(mbuf, mbufs.kind(), packet, &raw mut found.bytes).into()
            })
        };
        // SAFETY: the mbuf is still there: in place, or not yet copied.
        let remarks = unsafe { shim::castanet_dpdk_remarks(mbuf) };
        if placed != 1 && !copied(mbuf, pool, batch, found) {
            continue;
        }
        found.packets += 1;
        if wants != Wants::default()
            && let Some(packet) = batch.as_mut_slice().last_mut()
        {
            remark(packet, remarks, wants, found);
        }
    }
}

/// Copies what cannot travel in place; `false`, and counted, if it is no packet or there is no
/// frame for it.
fn copied(mbuf: *mut Mbuf, pool: &Pool, batch: &mut Batch, found: &mut Found) -> bool {
    // SAFETY: the driver gave us the mbuf.
    let said = unsafe { shim::castanet_dpdk_length(mbuf) };
    let Ok(len) = u32::try_from(said) else {
        found.malformed += 1;
        // An endless chain is left alone: freeing it would not end, or free an mbuf twice.
        if said != shim::ENDLESS {
            // SAFETY: the driver gave us the mbuf, and it is not used again.
            unsafe { shim::castanet_dpdk_copy_out(mbuf, std::ptr::null_mut(), 0) };
        }
        return false;
    };
    let mut packet = pool.alloc();
    let bytes = packet.as_mut().map(|packet| {
        found.bytes += u64::from(len);
        packet.put_back(len as usize);
        packet.set_mac_header(0);
        packet.bytes_mut()
    });
    found.lost += usize::from(bytes.is_none());
    let to = bytes.map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr);
    // SAFETY: the driver gave us the mbuf, and it is not used again; each of its parts lies in
    // its buffer, and there is room for `len` bytes, or none is wanted.
    unsafe { shim::castanet_dpdk_copy_out(mbuf, to, len) };
    let got = packet.is_some();
    batch.extend(packet);
    got
}
