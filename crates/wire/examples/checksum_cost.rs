//! Measures the cost of checksums on this machine, beside additions with carry.
//!
//! `cargo run --release -p castanet-wire --example checksum_cost`. The reference works as Linux's
//! `csum_partial` does: words of 64 bits are added with carry, eight in a row.

use castanet_wire::{Ipv4Header, checksum};
use std::hint::black_box;
use std::time::Instant;

/// Lengths of the slices, in bytes.
const LENGTHS: [usize; 10] = [20, 30, 40, 64, 96, 128, 256, 512, 1500, 9000];

fn main() {
    let packet: Vec<u8> = (0..9001u32).map(|n| (n * 151) as u8).collect();
    println!("{:>6} {:>10} {:>10} {:>10}", "bytes", "ns", "odd start", "reference");
    for length in LENGTHS {
        let (even, odd) = (&packet[..length], &packet[1..=length]);
        assert_eq!(checksum::of(even), reference(even));
        let ours = [even, odd].map(|bytes| cost(|| u32::from(checksum::of(black_box(bytes)))));
        let theirs = cost(|| u32::from(reference(black_box(even))));
        println!("{length:>6} {:>10.2} {:>10.2} {theirs:>10.2}", ours[0], ours[1]);
    }
    let mut header = Ipv4Header::new(17, [10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 60);
    println!("header: {:.2} ns", cost(|| u32::from(black_box(&header).checksum_ok(&[]))));
    let nanos = cost(|| u32::from(black_box(&mut header).decrement_ttl().unwrap_or(0)));
    println!("one hop: {nanos:.2} ns");
}

/// Nanoseconds per call, the best of many short rounds: the machine may be shared.
fn cost(mut call: impl FnMut() -> u32) -> f64 {
    const CALLS: u32 = 5000;
    let round = |_| {
        let start = Instant::now();
        let mut sum = 0u32;
        for _ in 0..CALLS {
            sum = sum.wrapping_add(call());
        }
        black_box(sum);
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..300).map(round).fold(f64::INFINITY, f64::min)
}

/// The checksum by additions with carry.
fn reference(bytes: &[u8]) -> u16 {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let sum = blocks.iter().fold(0, |sum, block| add_with_carry(sum, block.as_chunks().0));
    let (words, rest) = rest.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = add_with_carry(add_with_carry(sum, words), &[last]);
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (0..3).fold(sum, |sum, _| (sum >> 16) + (sum & 0xffff));
    !u16::from_be(sum as u16)
}

/// Adds words to a sum with one chain of carries.
#[inline(always)]
fn add_with_carry(mut sum: u64, words: &[[u8; 8]]) -> u64 {
    let mut carry = false;
    for word in words {
        let (added, first) = sum.overflowing_add(u64::from_ne_bytes(*word));
        let (added, second) = added.overflowing_add(u64::from(carry));
        (sum, carry) = (added, first | second);
    }
    let (added, carry) = sum.overflowing_add(u64::from(carry));
    added + u64::from(carry)
}
