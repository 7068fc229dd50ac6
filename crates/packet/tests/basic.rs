//! Basic use of the public API.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, Packet, Pool, PoolConfig, anno};
use std::net::Ipv4Addr;

const IP: [u8; 28] =
    [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 1, 0, 0, 1, 2, 0, 0, 1, 0, 53, 0, 99, 0, 8, 0, 0];

fn small_pool(frames: usize) -> Pool {
    Pool::new(PoolConfig { frames, ..PoolConfig::default() }).unwrap()
}

#[test]
fn a_view_reads_and_writes_the_header() {
    let mut packet = Packet::from_bytes(&IP);
    assert!(packet.ipv4().is_none(), "no network header is known");
    packet.set_network_header(0, 20);
    let mut ip = packet.ipv4().unwrap();
    assert_eq!(ip.dst(), Ipv4Addr::new(2, 0, 0, 1));
    ip.set_ttl(9);
    assert_eq!(ip.payload().len(), 8);
    assert_eq!(packet.udp().unwrap().dst_port(), 99);
    assert!(packet.tcp().is_none());
    assert_eq!(packet.bytes()[8], 9);
}

#[test]
fn a_shared_packet_is_copied_before_it_is_written() {
    let pool = small_pool(8);
    let mut one = pool.copy_in(&IP).unwrap();
    one.set_network_header(0, 20);
    let mut two = one.share();
    assert_eq!(pool.in_use(), 1);
    two.ipv4().unwrap().set_ttl(1);
    assert_eq!(pool.in_use(), 2);
    assert_eq!((one.bytes()[8], two.bytes()[8]), (64, 1));
    one.set_anno_u32(anno::AGGREGATE, 7);
    assert_eq!((one.anno_u32(20), two.anno_u32(20)), (7, 0));
    drop((one, two));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn an_exhausted_pool_recovers() {
    let pool = small_pool(40);
    let mut batch = Batch::new();
    assert_eq!(pool.alloc_batch(64, &mut batch), 40);
    assert!(pool.alloc().is_none());
    assert_eq!(pool.stats().failures, 25);
    assert_eq!(pool.in_use(), 40);
    batch.clear();
    assert_eq!(pool.in_use(), 0);
    assert!(pool.alloc().is_some());
}

#[test]
fn cleared_annotations_are_as_if_set_to_zeros() {
    for cold in [false, true] {
        let packets = [(); 2].map(|()| {
            let mut packet = Packet::from_bytes(b"abc");
            packet.set_dst([1, 2, 3, 4].into());
            packet.set_paint(7);
            packet.set_fix_ip_src(true);
            if cold {
                packet.set_anno_u32(anno::AGGREGATE, 9);
            }
            packet
        });
        let [mut cleared, mut set] = packets;
        assert_ne!(cleared.annotations(), [0; anno::SIZE]);
        cleared.clear_annotations();
        set.set_annotations([0; anno::SIZE]);
        assert_eq!(cleared.annotations(), [0; anno::SIZE]);
        assert_eq!(cleared.annotations(), set.annotations());
    }
}
