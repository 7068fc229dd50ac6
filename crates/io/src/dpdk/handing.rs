//! Packets into mbufs of their own, and those over to whom they are for.

use super::claims;
use crate::device::DeviceStats;
use crate::error::IoError;
use crate::sys::dpdk::{self as sys, Handed, Mbufs};
use castanet_packet::{Batch, Packet};

/// Shortest packet that a port sends: an Ethernet header.
pub(super) const SHORTEST: u32 = 14;

/// Why a packet cannot be handed over.
enum Obstacle {
    None,
    /// It never can.
    Refused,
    /// There is no mbuf for it now.
    NoMbuf,
}

/// Hands packets from the front of `batch` over by `hand`, which takes mbufs
/// of their own that are not shorter than `shortest`; others are copied into
/// one, or refused. Answers how many went.
#[inline]
pub(super) fn transmit(
    batch: &mut Batch,
    mbufs: &Mbufs,
    shortest: usize,
    stats: &mut DeviceStats,
    mut hand: impl FnMut(&mut Batch) -> Handed,
) -> usize {
    let mut sent = 0;
    let mut obstacle = Obstacle::None;
    loop {
        let handed = hand(batch);
        sent += handed.packets;
        stats.sent_bytes += handed.bytes;
        if batch.is_empty() {
            break;
        }
        if handed.full || matches!(obstacle, Obstacle::NoMbuf) {
            stats.tx_full += 1;
            break;
        }
        if matches!(obstacle, Obstacle::Refused) {
            stats.tx_errors += 1;
            drop(batch.remove(0));
        }
        obstacle = copy_in(batch, mbufs, shortest);
    }
    stats.sent += sent as u64;
    sent
}

/// Copies packets from the front of `batch` into mbufs where they are in none
/// of their own; stops at the first for which that cannot be done.
#[cold]
fn copy_in(batch: &mut Batch, mbufs: &Mbufs, shortest: usize) -> Obstacle {
    let longest = mbufs.pool().data_capacity();
    for packet in batch.iter_mut() {
        let own = sys::is_own_mbuf(packet);
        if packet.len() < shortest || packet.len() > longest && !own {
            return Obstacle::Refused;
        }
        if !own {
            match mbufs.pool().copy_in(packet.bytes()) {
                Some(copy) => *packet = copy,
                None => return Obstacle::NoMbuf,
            }
        }
    }
    Obstacle::None
}

/// Mbufs for packets that are in none.
pub struct Buffers(Mbufs);

impl Buffers {
    /// The mbufs of the machine's first NUMA node.
    pub fn open() -> Result<Buffers, IoError> {
        claims::mbufs("have mbufs", 0).map(Buffers)
    }

    /// Sees to it that the packet is an mbuf in place that nobody else holds,
    /// with all that is known about it; `false` if there is none for it.
    pub fn ensure(&self, packet: &mut Packet) -> bool {
        if sys::is_own_mbuf(packet) {
            return true;
        }
        if packet.len() > self.0.pool().data_capacity() {
            return false;
        }
        let Some(mut copy) = self.0.pool().copy_in(packet.bytes()) else { return false };
        copy.annotate_like(packet);
        copy.headers_like(packet);
        *packet = copy;
        true
    }
}
