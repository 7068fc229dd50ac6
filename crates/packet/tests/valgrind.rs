//! Runs the crate under valgrind, where Miri is not available:
//! `cargo test -p castanet-packet --test valgrind -- --ignored`.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, Packet, Pool, PoolConfig, anno};
use std::process::Command;
use std::thread;

/// Exercises heap frames, of which valgrind checks every byte, and pools.
fn exercise(pool: Option<&Pool>, seed: usize) {
    let new = |bytes: &[u8]| match pool {
        Some(pool) => pool.copy_in(bytes).unwrap(),
        None => Packet::from_bytes(bytes),
    };
    let mut batch: Batch = (0..50).map(|n| new(&vec![0x45; 20 + (n + seed) % 9])).collect();
    let mut clones: Batch = batch.iter_mut().map(Packet::share).collect();
    for (i, packet) in batch.iter_mut().enumerate() {
        packet.set_network_header(0, 20);
        packet.ipv4().unwrap().set_ttl(1);
        packet.push_front(7 * i).fill(1);
        packet.put_back(11 * i);
        packet.shift_data(3 - i as isize);
        packet.set_anno_u32(anno::AGGREGATE, 1);
        assert!(packet.pull_front(3 * i));
        assert_eq!(packet.network_bytes()[8], 1);
    }
    let mut others = batch.clones(3);
    let mut written = others.next().unwrap();
    drop(others);
    written.iter_mut().for_each(|packet| packet.bytes_mut().fill(2));
    drop(written);
    let twins: Batch = clones.iter().map(Packet::copy).collect();
    let worker = thread::spawn(move || clones.iter_mut().for_each(|p| p.bytes_mut().fill(9)));
    batch.partition(&[0; 50].map(|_: u8| 3), 0, |_, mut packet| packet.replace_contents(&[7; 900]));
    worker.join().unwrap();
    assert!(twins.iter().all(|packet| packet.bytes().iter().all(|&byte| byte == 0x45)));
    // A packet that is too long for 16-bit offsets.
    let mut long = new(&vec![5; 200_000]);
    assert!(long.pull_front(150_000));
    assert_eq!(long.bytes(), vec![5; 50_000]);
    long.put_back(30_000);
    long.push_front(100_000).fill(6);
    assert_eq!((long.bytes()[99_999], long.bytes()[100_000]), (6, 5));
    assert_eq!(long.len(), 180_000);
}

#[test]
fn everything_is_freed() {
    let pool = Pool::new(PoolConfig { frames: 120, ..PoolConfig::default() }).unwrap();
    for seed in 0..20 {
        exercise(None, seed);
        exercise(Some(&pool), seed);
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
#[ignore = "needs valgrind, and takes some seconds"]
fn valgrind_finds_nothing() {
    let status = Command::new("valgrind")
        .args([
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "everything_is_freed"])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}
