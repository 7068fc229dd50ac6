//! Tests of a pool's memory: frames are staggered, and the memory is unmapped with the last packet.
//! In a process of its own, so that no other code maps memory meanwhile.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, Pool, PoolConfig};

fn is_mapped(address: usize) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split(' ').next().unwrap();
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        (number(start)..number(end)).contains(&address)
    })
}

#[test]
fn memory_is_unmapped_with_the_last_packet() {
    let config = PoolConfig { frames: 4096, huge_pages: true, ..PoolConfig::default() };
    let pool = Pool::new(config.clone()).unwrap();
    assert_eq!(pool.stride() / 64 % 2, 1, "an odd number of cache lines");
    let (base, len) = pool.memory();
    let inside = base.as_ptr().addr() + len / 2;
    assert!(is_mapped(inside));
    let mut batch = Batch::new();
    pool.alloc_batch(100, &mut batch);
    for packet in &batch {
        let offset = packet.bytes().as_ptr().addr() - base.as_ptr().addr();
        assert_eq!(offset % pool.stride(), 64 + pool.headroom());
    }
    let last = batch.pop().unwrap();
    drop(pool);
    drop(batch);
    assert!(is_mapped(inside));
    drop(last);
    assert!(!is_mapped(inside));

    let pool = Pool::new(PoolConfig { stride: Some(4096), ..config }).unwrap();
    let packet = pool.copy_in(b"in and out").unwrap();
    let start = packet.headroom();
    let frame = packet.into_frame();
    assert_eq!((frame.as_ptr().addr() - pool.memory().0.as_ptr().addr()) % 4096, 0);
    assert_eq!(pool.in_use(), 1);
    // SAFETY: the frame comes from this pool and has no other owner.
    let packet = unsafe { pool.adopt(frame, start + 3, 3) };
    assert_eq!(packet.bytes(), b"and");
    drop(packet);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn invalid_configurations_are_rejected() {
    let rejected = |config: PoolConfig| assert!(Pool::new(config).is_err());
    rejected(PoolConfig { data_capacity: 70_000, ..PoolConfig::default() });
    rejected(PoolConfig { data_capacity: usize::MAX, ..PoolConfig::default() });
    rejected(PoolConfig { stride: Some(2048), ..PoolConfig::default() });
    rejected(PoolConfig { stride: Some(4000), ..PoolConfig::default() });
    rejected(PoolConfig { frames: usize::MAX / 64, ..PoolConfig::default() });
}
