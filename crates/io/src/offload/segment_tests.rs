//! Tests of segmentation: every segment must be a valid packet by itself.

use super::*;
use crate::offload::VlanTag;
use castanet_wire::{Ethernet, ether_type};
use std::net::{Ipv4Addr, Ipv6Addr};

const SRC4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SRC6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const DST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

fn ether(kind: u16) -> Vec<u8> {
    Ethernet::new([2, 0, 0, 0, 0, 2].into(), [2, 0, 0, 0, 0, 1].into(), kind).bytes().to_vec()
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn tcp_header(flags: u8) -> Vec<u8> {
    let mut tcp = Tcp([0; Tcp::LEN]);
    tcp.set_src_port(1234);
    tcp.set_dst_port(80);
    tcp.set_seq(u32::MAX - 1000);
    tcp.set_header_len(32);
    tcp.set_flags(flags);
    let mut bytes = tcp.bytes().to_vec();
    bytes.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    bytes
}

fn ipv4(protocol: u8, transport: &[u8], identification: u16) -> Vec<u8> {
    let mut ip = Ipv4Header::new(protocol, SRC4, DST4, (20 + transport.len()) as u16);
    ip.set_id(identification);
    [&ip.bytes()[..], transport].concat()
}

fn ipv6(next: u8, transport: &[u8]) -> Vec<u8> {
    let ip = Ipv6Header::new(next, SRC6, DST6, transport.len() as u16);
    [&ip.bytes()[..], transport].concat()
}

fn vnet(gso_type: u8, gso_size: u16, csum_start: usize) -> VnetHeader {
    let csum_start = csum_start as u16;
    VnetHeader { flags: 1, gso_type, gso_size, csum_start, csum_offset: 16, hdr_len: 0 }
}

fn cut(frame: &[u8], header: &VnetHeader, link: LinkType) -> Vec<Vec<u8>> {
    let mut segments = Segments::new(frame, header, link).unwrap();
    let mut all = Vec::new();
    while let Some((headers, payload)) = segments.next() {
        all.push([headers, payload].concat());
    }
    all
}

/// Checks length and checksum of an IPv4 packet; returns its header and its payload.
fn check_ipv4(bytes: &[u8]) -> (Ipv4Header, &[u8]) {
    let (ip, rest) = Ipv4Header::from_prefix(bytes).unwrap();
    assert_eq!(usize::from(ip.total_len()), bytes.len());
    let (options, rest) = ip.split_options(rest).unwrap();
    assert!(ip.checksum_ok(options));
    (*ip, rest)
}

#[test]
fn tcp_over_ipv4_is_cut_into_packets_that_stand_for_themselves() {
    let data = payload(3500);
    let all = tcp::flag::ACK | tcp::flag::PSH | tcp::flag::FIN | tcp::flag::CWR;
    let frame =
        [ether(ether_type::IPV4), ipv4(6, &[tcp_header(all), data.clone()].concat(), 65535)]
            .concat();
    let segments = cut(&frame, &vnet(VnetHeader::GSO_TCPV4, 1448, 34), LinkType::Ethernet);
    assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514, 670]);
    let (mut seq, mut together) = (u32::MAX - 1000, Vec::new());
    for (i, segment) in segments.iter().enumerate() {
        assert_eq!(segment[..14], frame[..14]);
        let (ip, rest) = check_ipv4(&segment[14..]);
        assert_eq!(ip.id(), 65535u16.wrapping_add(i as u16));
        let (tcp, rest) = Tcp::from_prefix(rest).unwrap();
        assert!(tcp.checksum_ok(ip.pseudo(20 + rest.len()), rest));
        assert_eq!(tcp.seq(), seq);
        let (options, data) = tcp.split_options(rest).unwrap();
        assert_eq!(options, [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(tcp.has(tcp::flag::CWR), i == 0);
        assert_eq!(tcp.has(tcp::flag::FIN | tcp::flag::PSH), i == 2);
        assert!(tcp.is_ack());
        seq = seq.wrapping_add(data.len() as u32);
        together.extend_from_slice(data);
    }
    assert_eq!(together, data);
}

#[test]
fn tcp_over_ipv6_with_extensions_and_two_tags() {
    let data = payload(4001);
    let mut tagged = ether(ether_type::QINQ);
    tagged.extend([0x00, 0x64, 0x81, 0x00, 0x00, 0x05, 0x86, 0xdd]);
    let hop_by_hop = [6, 0, 1, 4, 0, 0, 0, 0];
    let transport = [&hop_by_hop[..], &tcp_header(tcp::flag::ACK), &data].concat();
    let frame = [tagged, ipv6(0, &transport)].concat();
    let start = 22 + 40 + 8;
    let segments = cut(&frame, &vnet(VnetHeader::GSO_TCPV6, 1000, start), LinkType::Ethernet);
    assert_eq!(segments.len(), 5);
    let mut together = Vec::new();
    for segment in &segments {
        assert_eq!(segment[..22], frame[..22]);
        let (ip, rest) = Ipv6Header::from_prefix(&segment[22..]).unwrap();
        assert_eq!(usize::from(ip.payload_len()), rest.len());
        assert_eq!(rest[..8], hop_by_hop);
        let (tcp, rest) = Tcp::from_prefix(&rest[8..]).unwrap();
        assert!(tcp.checksum_ok(ip.pseudo(6, 20 + rest.len()), rest));
        together.extend_from_slice(&rest[12..]);
    }
    assert_eq!(together, data);
}

#[test]
fn udp_datagrams_get_their_lengths_and_checksums() {
    let data = payload(2500);
    let mut udp = Udp([0; Udp::LEN]);
    udp.set_src_port(5000);
    udp.set_dst_port(443);
    let packet = ipv4(17, &[&udp.bytes()[..], &data].concat(), 7);
    let segments = cut(&packet, &vnet(VnetHeader::GSO_UDP_L4, 1200, 20), LinkType::Ip);
    let mut together = Vec::new();
    for (segment, len) in segments.iter().zip([1200, 1200, 100]) {
        let (ip, rest) = check_ipv4(segment);
        let (udp, data) = Udp::from_prefix(rest).unwrap();
        assert_eq!((usize::from(udp.length()), data.len()), (8 + len, len));
        assert_ne!(udp.checksum(), 0);
        assert!(udp.checksum_ok(ip.pseudo(rest.len()), data));
        together.extend_from_slice(data);
    }
    assert_eq!(together, data);
}

#[test]
fn a_super_frame_without_payload_is_one_segment() {
    let packet = ipv4(6, &tcp_header(tcp::flag::ACK), 1);
    let segments = cut(&packet, &vnet(VnetHeader::GSO_TCPV4, 100, 20), LinkType::Ip);
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].len(), packet.len());
}

#[test]
fn headers_that_contradict_the_virtio_header_are_refused() {
    let frame = ipv4(6, &[tcp_header(0), payload(100)].concat(), 1);
    let refusal = |frame: &[u8], header| Segments::new(frame, &header, LinkType::Ip).err();
    for (header, reason) in [
        (vnet(VnetHeader::GSO_TCPV6, 50, 20), SegmentError::GsoType),
        (vnet(VnetHeader::GSO_UDP_L4, 50, 20), SegmentError::GsoType),
        (vnet(VnetHeader::GSO_TCPV4, 0, 20), SegmentError::GsoType),
        // A tunnel: the checksum to finish is not that of the outer packet.
        (vnet(VnetHeader::GSO_TCPV4, 50, 40), SegmentError::GsoType),
    ] {
        assert_eq!(refusal(&frame, header), Some(reason), "{header:?}");
    }
    let header = vnet(VnetHeader::GSO_TCPV4, 50, 20);
    for cut_off in [0, 1, 19, 20, 39, 51] {
        assert_eq!(refusal(&frame[..cut_off], header), Some(SegmentError::Headers), "{cut_off}");
    }
    assert_eq!(refusal(&ipv4(1, &payload(50), 1), header), Some(SegmentError::Headers));
    let mut jumbo = ipv6(6, &[tcp_header(0), payload(100)].concat());
    Ipv6Header::from_prefix_mut(&mut jumbo).unwrap().0.set_payload_len(0);
    let header = vnet(VnetHeader::GSO_TCPV6, 50, 40);
    assert_eq!(refusal(&jumbo, header), Some(SegmentError::Headers));
}

proptest::proptest! {
    /// No frame and no virtio header causes a panic, and no payload byte is lost or invented.
    #[test]
    fn arbitrary_frames_cause_no_panic(
        mut frame in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
        kind in 0u8..8, size in 0u16..200, start in 0u16..80, checksum: bool,
        shape in 0usize..4,
    ) {
        let start_of = [vec![], ipv4(6, &tcp_header(0), 0), ipv6(6, &tcp_header(0)), ipv6(0, &[])];
        for (to, from) in frame.iter_mut().zip(&start_of[shape]) {
            *to = *from;
        }
        let header = VnetHeader {
            flags: checksum.into(), gso_type: kind, gso_size: size, csum_start: start,
            csum_offset: 6, hdr_len: 0,
        };
        for link in [LinkType::Ip, LinkType::Ethernet] {
            let Ok(mut segments) = Segments::new(&frame, &header, link) else { continue };
            let mut together = Vec::new();
            while let Some((_, payload)) = segments.next() {
                together.extend_from_slice(payload);
            }
            assert!(frame.ends_with(&together));
        }
        crate::offload::finish_checksum(&mut frame, &header);
    }
}

#[test]
fn a_tag_fits_between_addresses_and_type() {
    let frame = ether(ether_type::IPV4);
    let tag = VlanTag { tpid: ether_type::VLAN, tci: 5 }.bytes();
    let tagged = [&frame[..VlanTag::OFFSET], &tag, &frame[VlanTag::OFFSET..]].concat();
    let (ethernet, rest) = Ethernet::from_prefix(&tagged).unwrap();
    assert_eq!(ethernet.ether_type(), ether_type::VLAN);
    let (vlan, _) = castanet_wire::Vlan::from_prefix(rest).unwrap();
    assert_eq!((vlan.id(), vlan.ether_type()), (5, ether_type::IPV4));
}
