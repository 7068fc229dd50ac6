//! Tests of low pools, and of packets that move from one pool to another.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, Packet, Pool, PoolConfig, anno};

fn pool(frames: usize, reserve: usize) -> Pool {
    Pool::new(PoolConfig { frames, reserve, ..PoolConfig::default() }).unwrap()
}

/// A packet of 40 bytes with a stripped Ethernet header, header offsets and annotations.
fn annotated(pool: &Pool) -> Packet {
    let mut packet = pool.copy_in(&[7; 54]).unwrap();
    packet.set_mac_header(0);
    packet.set_network_header(14, 20);
    assert!(packet.pull_front(14));
    packet.set_anno_u32(anno::AGGREGATE, 99);
    packet.set_timestamp(5);
    packet.set_paint(3);
    packet
}

fn check(packet: &Packet) {
    assert_eq!(packet.bytes(), [7; 40]);
    let headers = (packet.mac_offset(), packet.network_offset(), packet.transport_offset());
    assert_eq!(headers, (Some(-14), Some(0), Some(20)));
    let cold = (packet.anno_u32(anno::AGGREGATE), packet.timestamp(), packet.paint());
    assert_eq!(cold, (99, 5, 3));
}

#[test]
fn a_moved_packet_keeps_headers_and_annotations() {
    let (from, to) = (pool(64, 0), pool(2, 0));
    let mut packet = annotated(&from);
    assert!(packet.move_to(&to));
    check(&packet);
    assert_eq!(packet.pool_id(), to.id());
    assert_eq!((from.in_use(), to.in_use()), (0, 1));
    packet.push_front(14);
    assert_eq!(packet.bytes(), [7; 54], "stripped headers are copied");
}

#[test]
fn moving_a_shared_packet_keeps_the_other_owner() {
    let (from, to) = (pool(64, 0), pool(64, 0));
    let mut one = annotated(&from);
    let mut two = one.share();
    assert!(two.move_to(&to));
    two.bytes_mut()[0] = 1;
    check(&one);
    assert_eq!((from.in_use(), to.in_use()), (1, 1));
    drop(one);
    assert_eq!((from.in_use(), to.in_use()), (0, 1));
}

#[test]
fn a_packet_stays_if_the_target_pool_is_exhausted() {
    let (from, to) = (pool(64, 0), pool(1, 0));
    let _other = to.alloc().unwrap();
    let mut packet = annotated(&from);
    assert!(!packet.move_to(&to));
    check(&packet);
    assert_eq!(packet.pool_id(), from.id());
}

#[test]
fn a_packet_longer_than_the_pools_frames_moves_to_the_heap() {
    let from = Pool::new(PoolConfig { data_capacity: 9000, ..PoolConfig::default() }).unwrap();
    let to = pool(64, 0);
    let mut packet = from.copy_in(&[1; 8000]).unwrap();
    assert!(packet.move_to(&to));
    assert_eq!((packet.bytes(), packet.pool_id()), (&[1; 8000][..], u8::MAX));
    // A packet with more headroom than fits loses headroom.
    let mut packet = from.copy_in(&[2; 4000]).unwrap();
    assert!(packet.pull_front(2000));
    assert!(packet.move_to(&to));
    assert_eq!((packet.bytes(), packet.pool_id()), (&[2; 2000][..], to.id()));
    assert_eq!((from.in_use(), to.in_use()), (0, 1));
}

#[test]
fn a_pool_is_low_while_fewer_frames_are_free_than_its_reserve() {
    let (small, other) = (pool(64, 16), pool(64, 0));
    let (mut kept, mut batch) = (Batch::new(), Batch::new());
    assert_eq!(small.alloc_batch(40, &mut kept), 40);
    assert!(!kept[0].pool_is_low());
    assert_eq!(small.alloc_batch(16, &mut batch), 16);
    assert!(small.spare() < small.reserve() && kept[0].pool_is_low() && Pool::any_low());
    assert!(!other.alloc().unwrap().pool_is_low());
    drop(batch);
    Pool::flush_thread();
    assert!(!kept[0].pool_is_low(), "{} frames are free", small.spare());
    // A pool that reuses the number of a closed pool is not low.
    assert_eq!(small.alloc_batch(24, &mut kept), 24);
    drop((small, kept));
    Pool::flush_thread();
    let pools: Vec<Pool> = (0..100).map(|_| pool(8, 1)).collect();
    assert!(pools.iter().all(|pool| !pool.alloc().unwrap().pool_is_low()));
}

#[test]
fn the_heap_is_low_while_its_packets_take_more_than_a_mebibyte() {
    let pool = pool(64, 0);
    let long = || pool.copy_in(&[7; 60_000]).unwrap();
    let first = long();
    // Other tests of this process use little of the heap.
    assert!(first.is_on_heap() && !first.pool_is_low());
    assert!((60_000..70_000).contains(&first.heap_bytes_in(&pool)));
    let mut others: Vec<Packet> = (0..20).map(|_| long()).collect();
    assert!(first.pool_is_low() && Pool::any_low() && Pool::heap_bytes() > 21 * 60_000);
    assert!(!pool.alloc().unwrap().pool_is_low());
    // A packet that has become short leaves the heap; a long one stays there.
    assert!(others[0].pull_front(59_000) && others[0].heap_bytes_in(&pool) == 0);
    assert!(others[0].move_to(&pool) && !others[0].is_on_heap());
    let address = first.bytes().as_ptr();
    let mut first = first;
    assert!(first.move_to(&pool) && first.bytes().as_ptr() == address);
    drop(others);
    assert!(!first.pool_is_low() && Pool::heap_bytes() < 1 << 20);
}

#[test]
fn cached_frames_are_reserved_for_their_thread() {
    let pool = pool(1024, 0);
    assert_eq!(pool.fill_cache(50), 50);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut all = Batch::new();
            while pool.alloc_batch(64, &mut all) > 0 {}
            assert!(pool.alloc().is_none());
            assert_eq!(pool.fill_cache(50), 0);
            std::mem::forget(all);
        });
    });
    let mut batch = Batch::new();
    assert_eq!(pool.fill_cache(50), 50);
    assert_eq!(pool.alloc_batch(50, &mut batch), 50);
}

#[test]
fn retain_keeps_the_order() {
    let pool = pool(64, 0);
    let mut batch: Batch = (0..9).map(|i| pool.copy_in(&[i]).unwrap()).collect();
    batch.retain(|packet| packet.bytes()[0] % 3 > 0);
    let left: Vec<u8> = batch.iter().map(|packet| packet.bytes()[0]).collect();
    assert_eq!((left, pool.in_use()), (vec![1, 2, 4, 5, 7, 8], 6));
}
