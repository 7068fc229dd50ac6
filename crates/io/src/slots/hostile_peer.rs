//! A peer that writes anything to the shared memory at any time, for the property test and the fuzzer.

use super::layout::Geometry;
use super::link::{Link, receive_memory};
use super::ring::{Consumer, Producer, RingFault};
use crate::sys::shared_slots::SharedMemory;
use castanet_packet::{Batch, Packet, Pool, PoolConfig};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The rings are small, so that a script meets every word often.
const GEOMETRY: Geometry = Geometry { slots: 8, stride: 128 };

/// Runs both ends of a channel against a peer that follows a script, and checks that packets, errors
/// and faults stay within their bounds. A step has four bytes: what to do, where (two bytes), and a
/// value. The error is that of the kernel.
///
/// # Panics
/// If an end returns what it must not.
pub fn run_hostile_peer(script: &[u8]) -> io::Result<()> {
    let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() })?;
    let mut steps = script.chunks_exact(4).peekable();
    // A fault ends a connection; the peer comes back a few times.
    for _ in 0..8 {
        let (socket, peer) = UnixStream::pair()?;
        let link = Link::create(socket, GEOMETRY)?;
        let file = receive_memory(&peer)?;
        let memory = SharedMemory::map(file.as_fd(), GEOMETRY.bytes())?;
        let (Some(mut rx), Some(mut tx)) = (link.take_consumer(), link.take_producer()) else {
            return Ok(());
        };
        for step in steps.by_ref() {
            if run_step(step, &memory, &mut rx, &mut tx, &pool) == Err(RingFault) {
                break;
            }
        }
        if steps.peek().is_none() {
            break;
        }
    }
    Ok(())
}

fn run_step(
    step: &[u8],
    memory: &SharedMemory,
    rx: &mut Consumer,
    tx: &mut Producer,
    pool: &Pool,
) -> Result<(), RingFault> {
    let &[action, low, high, value] = step else { return Ok(()) };
    let place = usize::from(u16::from_le_bytes([low, high]));
    match action % 8 {
        // A word of a ring's head: tails and heads that are near the truth, and flags.
        0..=2 => {
            let ring = 4096 * (1 + place % 2);
            memory.write(ring + 128 * (place / 2 % 4), &u32::from(value).to_le_bytes());
        }
        // A word of a descriptor.
        3 => {
            let slot = 4096 * (1 + place % 2) + 512 + 128 * (place / 2 % 8);
            memory.write(slot + 4 * (place / 16 % 4), &u32::from(value).to_le_bytes());
        }
        // Any byte at all.
        4 => {
            memory.write(place % GEOMETRY.bytes(), &[value]);
        }
        5 => {
            let mut batch = Batch::new();
            let max = usize::from(value);
            let count = rx.receive(pool, &mut batch, max)?;
            let taken = count.received + count.no_frame + count.errors.total();
            assert!(taken <= max.min(GEOMETRY.slots as usize));
            assert_eq!(batch.len(), count.received);
            assert_eq!(batch.byte_count(), count.bytes);
            assert!(batch.iter().all(|it| !it.is_empty() && it.len() <= GEOMETRY.capacity()));
        }
        6 => {
            let packets: Vec<Packet> =
                (0..value % 16).map(|n| Packet::from_bytes(&vec![n; place % 160])).collect();
            let count = tx.send(&packets)?;
            assert!(count.sent <= GEOMETRY.slots as usize);
            assert!(count.sent + count.refused <= packets.len());
        }
        _ => {
            rx.may_sleep();
            assert!(tx.waiting()? <= GEOMETRY.slots);
        }
    }
    Ok(())
}
