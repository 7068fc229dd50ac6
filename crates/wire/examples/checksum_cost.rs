//! Measures the cost of checksums on this machine.

use castanet_wire::{Ipv4Header, checksum};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let packet = vec![0x5a_u8; 1501];
    for (name, bytes) in [("aligned", &packet[..1500]), ("odd address", &packet[1..])] {
        let nanos = cost(|| u32::from(checksum::of(black_box(bytes))));
        println!("1500 bytes, {name}: {nanos:.1} ns, {:.1} GB/s", 1500.0 / nanos);
    }
    let mut header = Ipv4Header::new(17, [10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 60);
    println!("header: {:.2} ns", cost(|| u32::from(black_box(&header).checksum_ok(&[]))));
    let nanos = cost(|| u32::from(black_box(&mut header).decrement_ttl().unwrap_or(0)));
    println!("one hop: {nanos:.2} ns");
}

/// Nanoseconds per call, the best of several rounds.
fn cost(mut call: impl FnMut() -> u32) -> f64 {
    const CALLS: u32 = 200_000;
    let round = |_| {
        let start = Instant::now();
        let mut sum = 0u32;
        for _ in 0..CALLS {
            sum = sum.wrapping_add(call());
        }
        black_box(sum);
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..9).map(round).fold(f64::INFINITY, f64::min)
}
