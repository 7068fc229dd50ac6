//! Counts of tracked connections, beside the table that tracks them.

use castanet_wire::ipfix::Counts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counts of a connection since its last record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionCounts {
    /// Time of the first packet in nanoseconds.
    pub first: u64,
    /// Time of the last packet in nanoseconds.
    pub last: u64,
    /// Counts of the original and of the reply direction, without TCP flags.
    pub counts: [Counts; 2],
}

/// Counters of one connection; workers that share the table for reading count at the same time.
#[derive(Default)]
#[repr(align(64))]
struct Counters {
    /// 0 before the first packet.
    first: AtomicU64,
    last: AtomicU64,
    octets: [AtomicU64; 2],
    packets: [AtomicU64; 2],
}

/// Counters of one allocation.
const CHUNK: usize = 1024;

/// Counters of connections, by their numbers in their table.
#[derive(Default)]
pub struct ConnectionCounters {
    chunks: Vec<Box<[Counters]>>,
}

impl ConnectionCounters {
    /// Makes room for the connections of numbers below `extent`. Packets of others are not counted.
    pub fn reserve(&mut self, extent: usize) {
        while self.chunks.len() * CHUNK < extent {
            self.chunks.push((0..CHUNK).map(|_| Counters::default()).collect());
        }
    }

    #[inline]
    fn at(&self, number: usize) -> Option<&Counters> {
        self.chunks.get(number / CHUNK)?.get(number % CHUNK)
    }

    /// Counts a packet of a connection, of the original direction (0) or of the reply (1).
    #[inline]
    pub fn count(&self, number: usize, direction: usize, octets: u64, now: u64) {
        let Some(it) = self.at(number) else { return };
        if it.first.load(Relaxed) == 0 {
            it.first.store(now, Relaxed);
        }
        it.last.store(now, Relaxed);
        it.octets[direction].fetch_add(octets, Relaxed);
        it.packets[direction].fetch_add(1, Relaxed);
    }

    /// Time of the first packet since the last record; `None` without packets.
    #[inline]
    pub fn first(&self, number: usize) -> Option<u64> {
        self.at(number).map(|it| it.first.load(Relaxed)).filter(|first| *first != 0)
    }

    /// Takes the counts of a connection, which begin anew; `None` if there are no packets.
    pub fn take(&self, number: usize) -> Option<ConnectionCounts> {
        let it = self.at(number)?;
        let first = it.first.swap(0, Relaxed);
        let counts = [0, 1].map(|direction| Counts {
            octets: it.octets[direction].swap(0, Relaxed),
            packets: it.packets[direction].swap(0, Relaxed),
            tcp_flags: 0,
        });
        let last = it.last.load(Relaxed);
        // While another worker counts, a packet's time may be taken before its count.
        let first = if first == 0 { last } else { first };
        let has_packets = counts.iter().any(|it| it.packets > 0);
        has_packets.then_some(ConnectionCounts { first, last, counts })
    }
}
