//! Measures the cost of the basic operations in nanoseconds per packet.
//!
//! `cargo run --release -p castanet-packet --example cost`; the best of many
//! short rounds, since the machine may be shared. The first line is a reference:
//! the cost of two dependent instructions on this machine at this moment.

use std::hint::black_box;
use std::time::Instant;

use castanet_packet::{BURST, Batch, Packet, Pool, PoolConfig};

const ROUNDS: usize = 400;
const BURSTS: usize = 200;

/// Runs `burst` many times and prints the best time per packet.
fn measure(name: &str, mut burst: impl FnMut()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..BURSTS).for_each(|_| burst());
            start.elapsed().as_nanos()
        })
        .min()
        .unwrap_or(0);
    println!("{name:<44} {:>6.2}", best as f64 / (BURSTS * BURST) as f64);
}

/// An IPv4 packet of 64 bytes with its header marked.
fn ipv4_packet(pool: &Pool) -> Option<Packet> {
    let mut bytes = [0; 64];
    bytes[0] = 0x45;
    bytes[3] = 64;
    let mut packet = pool.copy_in(&bytes)?;
    packet.set_network_header(0, 20);
    Some(packet)
}

fn main() -> std::io::Result<()> {
    let pool = Pool::new(PoolConfig::default())?;
    println!("{:<44} ns a packet, batches of {BURST}", "operation");

    measure("a dependent rotation and addition", || {
        let mut sum = black_box(1u64);
        for _ in 0..BURST {
            // Rotation and addition cannot be folded over the iterations.
            sum = sum.wrapping_add(sum.rotate_left(1));
        }
        black_box(sum);
    });
    measure("alloc_batch + drop", || {
        let mut batch = Batch::new();
        black_box(pool.alloc_batch(BURST, &mut batch));
        black_box(&mut batch);
    });
    measure("alloc + push, then drop the batch", || {
        let mut batch = Batch::new();
        for _ in 0..BURST {
            batch.extend(pool.alloc());
        }
        black_box(&mut batch);
    });
    measure("alloc + drop one by one", || {
        for _ in 0..BURST {
            black_box(pool.alloc());
        }
    });
    measure("copy_in of 64 bytes, then drop the batch", || {
        let bytes = black_box([7; 64]);
        let mut batch = Batch::new();
        for _ in 0..BURST {
            batch.extend(pool.copy_in(&bytes));
        }
        black_box(&mut batch);
    });

    let mut batch: Batch = (0..BURST).filter_map(|_| ipv4_packet(&pool)).collect();
    measure("ipv4() view, known to be IPv4", || {
        for packet in &mut batch {
            black_box(packet.ipv4().is_some());
        }
    });
    measure("ipv4() view, ttl read", || {
        for packet in &mut batch {
            black_box(packet.ipv4().map_or(0, |ip| ip.ttl()));
        }
    });
    measure("ipv4() view, ttl written", || {
        for packet in &mut batch {
            if let Some(mut ip) = packet.ipv4() {
                ip.set_ttl(64);
            }
        }
    });
    measure("pull_front(14) + push_front(14)", || {
        for packet in &mut batch {
            black_box(packet.pull_front(14));
            black_box(packet.push_front(14));
        }
    });
    measure("share + drop", || {
        for packet in &mut batch {
            black_box(packet.share());
        }
    });

    let keep_all = [0; BURST];
    let mut mixed = [0; BURST];
    mixed.iter_mut().step_by(3).for_each(|fate| *fate = 1);
    let mut other = Batch::new();
    measure("partition, all stay", || {
        batch.partition(black_box(&keep_all), 0, |_, packet| other.push(packet));
    });
    measure("partition, every third leaves (and returns)", || {
        batch.partition(black_box(&mixed), 0, |_, packet| other.push(packet));
        batch.append(black_box(&mut other));
    });
    measure("handing a batch over (move)", || {
        let moved = black_box(std::mem::take(&mut batch));
        batch = black_box(moved);
    });
    Ok(())
}
