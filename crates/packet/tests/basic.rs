//! Basic use of the public API.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, Packet, PacketType, PartialChecksums, Pool, PoolConfig, anno};
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

#[test]
fn a_packet_marked_as_received_keeps_its_bytes_time_device_and_tag_only() {
    for cold in [false, true] {
        let mut packet = Packet::from_bytes(&[0x45; 60]);
        assert!(packet.pull_front(4));
        packet.set_mac_header(-4);
        assert!(packet.mark_ipv4(2, 20, 40));
        packet.set_dst([1, 2, 3, 4].into());
        packet.set_paint(7);
        packet.set_fix_ip_src(true);
        packet.set_packet_type(PacketType::OtherHost);
        packet.set_trace_tag(5);
        packet.set_device(6);
        packet.set_partial_checksums(PartialChecksums { ip: true, transport: true });
        if cold {
            packet.set_timestamp(8);
            packet.set_anno_u32(anno::AGGREGATE, 9);
        }
        let bytes = packet.bytes().to_vec();
        packet.mark_received(PacketType::Multicast);
        assert_eq!(packet.bytes(), bytes);
        assert_eq!(packet.annotations(), [0; anno::SIZE]);
        let offsets = [packet.mac_offset(), packet.network_offset(), packet.transport_offset()];
        assert_eq!(offsets, [Some(0), None, None]);
        assert!(packet.ipv4().is_none());
        assert_eq!(packet.packet_type(), PacketType::Multicast);
        assert_eq!((packet.trace_tag(), packet.device()), (5, 6));
        let partial = packet.partial_checksums();
        assert!(partial.ip && partial.transport);
        assert_eq!(packet.timestamp(), if cold { 8 } else { 0 });
        packet.mark_received(PacketType::Host);
        assert_eq!(packet.packet_type(), PacketType::Host);
    }
}

#[test]
fn copies_of_heap_packets_lie_in_the_threads_pool() {
    let pool = small_pool(8);
    pool.use_for_copies();
    let write = |bytes: &[u8]| {
        let mut packet = Packet::from_bytes(bytes);
        packet.set_timestamp(5);
        let mut clone = packet.share();
        clone.bytes_mut()[0] = 1;
        assert_eq!((packet.bytes()[0], packet.is_on_heap()), (bytes[0], true));
        assert_eq!((clone.bytes()[0], clone.timestamp()), (1, 5));
        clone
    };
    let clones: Vec<_> = (0..8).map(|_| write(&[9; 60])).collect();
    assert!(clones.iter().all(|clone| clone.pool_id() == pool.id()));
    // No frame is free, or the packet is too long for one.
    assert!(write(&[9; 60]).is_on_heap());
    drop(clones);
    assert!(write(&[9; 9000]).is_on_heap());
    assert_eq!(write(&[9; 60]).pool_id(), pool.id());
    assert_eq!(pool.in_use(), 0);
    drop(pool);
    assert!(write(&[9; 60]).is_on_heap());
}

#[test]
fn a_shared_packet_whose_other_owners_are_gone_is_changed_in_place() {
    let pool = small_pool(1);
    let mut packet = pool.copy_in(&[1; 40]).unwrap();
    let frame = packet.frame();
    let changes: [fn(&mut Packet); 6] = [
        |packet| _ = packet.push_front(4),
        |packet| _ = packet.put_back(4),
        |packet| packet.shift_data(2),
        |packet| packet.replace_contents(&[2; 30]),
        |packet| packet.receive(&[2; 30]),
        |packet| packet.bytes_mut()[0] = 3,
    ];
    for change in changes {
        drop(packet.share());
        change(&mut packet);
        assert_eq!((packet.frame(), packet.is_shared()), (frame, false));
        let clone = packet.share();
        let before = clone.bytes().to_vec();
        change(&mut packet);
        assert_ne!(packet.frame(), frame);
        assert_eq!(clone.bytes(), before);
        packet = clone;
    }
}

#[test]
fn broadcasts_and_multicasts_are_to_a_group() {
    let mut packet = Packet::from_bytes(&[0; 14]);
    packet.set_trace_tag(Packet::MAX_TRACE_TAG);
    for (number, is_to_group) in [false, true, true, false, false, false].into_iter().enumerate() {
        packet.set_packet_type(PacketType::from_number(number as u8).unwrap());
        assert_eq!(packet.is_to_group(), is_to_group, "{number}");
    }
}

#[test]
fn a_packet_that_is_received_anew_is_as_one_from_the_pool() {
    let pool = small_pool(8);
    let mark = |packet: &mut Packet| {
        packet.set_mac_header(3);
        packet.set_network_header(5, 20);
        packet.set_transport_header(6);
        packet.set_paint(7);
        packet.set_device(8);
        packet.set_packet_type(PacketType::Outgoing);
        packet.set_timestamp(9);
        packet.set_anno_u32(anno::AGGREGATE, 10);
        packet.set_dst([1, 2, 3, 4].into());
        packet.set_fix_ip_src(true);
    };
    for (n, shares) in [(30, false), (30, true), (9000, false), (9000, true)] {
        let mut packet = pool.copy_in(&[1; 40]).unwrap();
        mark(&mut packet);
        let clone = shares.then(|| packet.share());
        packet.receive(&vec![2; n]);
        let mut new = pool.copy_in(&[3; 40]).unwrap();
        new.receive(&vec![2; n]);
        for packet in [&packet, &new] {
            assert_eq!(packet.bytes(), vec![2; n]);
            assert_eq!(packet.mac_offset(), Some(0));
            assert_eq!((packet.network_offset(), packet.transport_offset()), (None, None));
            assert_eq!((packet.paint(), packet.device(), packet.timestamp()), (0, 0, 0));
            assert_eq!(packet.packet_type(), PacketType::Host);
            assert_eq!(packet.anno_u32(anno::AGGREGATE), 0);
            assert_eq!((packet.dst(), packet.fix_ip_src()), (Ipv4Addr::UNSPECIFIED, false));
            assert!(!packet.is_shared());
        }
        assert!(clone.is_none_or(|clone| clone.bytes() == [1; 40] && clone.paint() == 7));
    }
}

#[test]
fn the_bytes_of_a_batch_are_those_of_its_packets() {
    let mut batch = Batch::new();
    for n in 0..40 {
        assert_eq!(batch.byte_count(), (0..n).sum());
        batch.push(Packet::from_bytes(&vec![0; n as usize]));
    }
}
