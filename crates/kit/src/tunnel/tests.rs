//! Plain packets of tunnels are found, and no others are taken for them.

use super::*;
use castanet_wire::MacAddr;
use proptest::prelude::*;

const HERE: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

fn tunnel() -> impl Strategy<Value = Tunnel> {
    let encapsulation = prop_oneof![
        Just((Encapsulation::Vxlan(4789), true)),
        Just((Encapsulation::Geneve(6081), true)),
        Just((Encapsulation::Gre, false)),
        Just((Encapsulation::Gre, true)),
    ];
    (encapsulation, 0_u32..4, any::<u32>()).prop_map(|((encapsulation, has_key), remote, key)| {
        let key = if encapsulation == Encapsulation::Gre { key } else { key >> 8 };
        let remote = Ipv4Addr::new(10, 9, 1, remote as u8);
        Tunnel { encapsulation, remote, key: has_key.then_some(key) }
    })
}

fn tunnels() -> impl Strategy<Value = Vec<Tunnel>> {
    prop::collection::hash_set(tunnel(), 1..40).prop_map(|set| set.into_iter().collect())
}

/// The packet of a tunnel with this frame in it, as it comes to this end.
fn packet(tunnel: &Tunnel, id: u16, frame: &[u8]) -> Vec<u8> {
    let there = Tunnel { remote: LOCAL, ..*tunnel };
    let header = OuterHeader::new(tunnel.remote, &there);
    let mut packet = frame.to_vec();
    let total_len = header.total_len(frame.len()).expect("a short frame");
    let room = &mut packet;
    header.push(
        move |len| {
            room.splice(0..0, vec![0xaa; len]);
            &mut room[..]
        },
        total_len,
        id,
        None,
    );
    let ethernet = Ethernet::new(HERE, MacAddr([2, 0, 0, 0, 0, 1]), ether_type::IPV4);
    [&ethernet.bytes()[..], &packet].concat()
}

fn table(tunnels: &[Tunnel]) -> TunnelTable {
    TunnelTable::new(HERE.octets(), LOCAL, tunnels).expect("no two alike")
}

/// The network and the frame of a tunnel's packet by the readers of each header.
fn read(packet: &[u8]) -> Option<(Encapsulation, Ipv4Addr, Option<u32>, &[u8])> {
    let (ip, rest) = Ipv4Header::from_prefix(&packet[Ethernet::LEN..])?;
    let source = ip.src();
    if ip.protocol() == ip_proto::GRE {
        let (header, length) = GreHeader::read(rest).ok()?;
        return Some((Encapsulation::Gre, source, header.key, &rest[length..]));
    }
    let (udp, rest) = Udp::from_prefix(rest)?;
    match udp.dst_port() {
        4789 => {
            let (header, frame) = Vxlan::from_prefix(rest)?;
            Some((Encapsulation::Vxlan(4789), source, Some(header.vni()?), frame))
        }
        port => {
            let inside = Geneve::payload(rest).ok()?;
            let frame = &rest[inside.offset..];
            Some((Encapsulation::Geneve(port), source, Some(inside.vni), frame))
        }
    }
}

proptest! {
    #[test]
    fn frames_are_found_in_the_packets_that_are_written(
        all in tunnels(), id: u16, frame in prop::collection::vec(any::<u8>(), 14..200),
    ) {
        let table = table(&all);
        for (number, tunnel) in all.iter().enumerate() {
            let packet = packet(tunnel, id, &frame);
            let found = table.find(&packet).expect("a plain packet");
            prop_assert_eq!(usize::from(found.tunnel), number);
            prop_assert_eq!(&packet[found.offset..], &frame[..]);
            prop_assert_eq!(
                read(&packet),
                Some((tunnel.encapsulation, tunnel.remote, tunnel.key, &frame[..]))
            );
        }
    }

    /// A header with one other bit, and a right checksum, is that of a packet which the readers of headers
    /// understand as well, or it is not plain.
    #[test]
    fn no_other_packet_is_taken_for_a_tunnels(
        all in tunnels(), frame in prop::collection::vec(any::<u8>(), 14..80), which: usize,
    ) {
        let (table, tunnel) = (table(&all), &all[which % all.len()]);
        let plain = packet(tunnel, 7, &frame);
        let offset = plain.len() - frame.len();
        for bit in 0..offset * 8 {
            let mut packet = plain.clone();
            packet[bit / 8] ^= 1 << (7 - bit % 8);
            mend_checksum(&mut packet);
            let found = table.find(&packet);
            match bit / 8 {
                // The source, and the type of service, the identification and the time to live.
                6..12 | 15 | 18 | 19 | 22 | 24 | 25 => prop_assert!(found.is_some(), "bit {}", bit),
                // The flag DF.
                20 if bit % 8 == 1 => prop_assert!(found.is_some()),
                // Another tunnel may have the source or the key.
                26..30 | 34.. => {
                    let Some(found) = found else { continue };
                    let it = &all[usize::from(found.tunnel)];
                    let frame = &packet[found.offset..];
                    let wanted = Some((it.encapsulation, it.remote, it.key, frame));
                    prop_assert_eq!(read(&packet), wanted, "bit {}", bit);
                }
                _ => prop_assert_eq!(found, None, "bit {}", bit),
            }
        }
    }

    #[test]
    fn any_bytes_behind_the_addresses_are_read_as_by_the_readers(
        all in tunnels(), tail in prop::collection::vec(any::<u8>(), 18..100), which: usize,
        kept in 0_usize..17,
    ) {
        let tunnel = &all[which % all.len()];
        let plain = packet(tunnel, 0, &[0; 14]);
        let mut packet = [&plain[..TRANSPORT], &tail[..]].concat();
        // Some of the right bytes, as random ones are seldom right.
        packet[TRANSPORT..TRANSPORT + kept].copy_from_slice(&plain[TRANSPORT..TRANSPORT + kept]);
        let len = packet.len() - Ethernet::LEN;
        packet[16..18].copy_from_slice(&(len as u16).to_be_bytes());
        if tunnel.encapsulation != Encapsulation::Gre {
            packet[38..40].copy_from_slice(&((len - 20) as u16).to_be_bytes());
        }
        mend_checksum(&mut packet);
        let found = table(&all).find(&packet);
        if let Some(found) = found {
            let it = &all[usize::from(found.tunnel)];
            let frame = &packet[found.offset..];
            prop_assert_eq!(read(&packet), Some((it.encapsulation, it.remote, it.key, frame)));
        }
        // With all of the right bytes it is found, if a frame is in it.
        let behind = plain.len() - TRANSPORT - 14;
        prop_assert!(found.is_some() || kept < behind || tail.len() < behind + 14);
    }

    #[test]
    fn any_bytes_are_read_or_not(all in tunnels(), packet: Vec<u8>) {
        prop_assert_eq!(table(&all).find(&packet), None);
    }
}

/// Writes the checksum of the outer IPv4 header, unless that is what differs.
fn mend_checksum(packet: &mut [u8]) {
    if let Some((header, _)) = Ipv4Header::from_prefix_mut(&mut packet[Ethernet::LEN..]) {
        header.set_checksum(0);
        let sum = checksum::of(header.bytes());
        header.set_checksum(sum);
    }
}

#[test]
fn what_is_not_plain_is_left_alone() {
    let tunnel = Tunnel {
        encapsulation: Encapsulation::Vxlan(4789),
        remote: Ipv4Addr::new(10, 9, 1, 1),
        key: Some(7),
    };
    let table = table(&[tunnel]);
    let plain = packet(&tunnel, 0, &[0; 60]);
    assert!(table.find(&plain).is_some());
    let with = |change: &dyn Fn(&mut Ipv4Header)| {
        let mut packet = plain.clone();
        let (header, _) = Ipv4Header::from_prefix_mut(&mut packet[Ethernet::LEN..]).unwrap();
        change(header);
        header.set_checksum(0);
        header.update_checksum(&[]);
        table.find(&packet)
    };
    assert!(with(&|_| {}).is_some());
    assert!(with(&|it| it.set_dont_fragment(true)).is_some());
    assert!(with(&|it| it.set_tos(0xb8)).is_some());
    assert!(with(&|it| it.set_ttl(1)).is_some());
    assert_eq!(with(&|it| it.0[6] |= 0x20), None, "more fragments");
    assert_eq!(with(&|it| it.0[7] = 1), None, "a later fragment");
    assert_eq!(with(&|it| it.0[0] = 0x46), None, "options");
    assert_eq!(with(&|it| it.set_total_len(100)), None, "padding");
    assert_eq!(with(&|it| it.set_dst(Ipv4Addr::new(10, 9, 0, 3))), None);
    assert_eq!(with(&|it| it.set_src(Ipv4Addr::new(10, 9, 1, 2))), None);
    let with_byte = |at: usize, byte: u8| {
        let mut packet = plain.clone();
        packet[at] = byte;
        table.find(&packet)
    };
    assert_eq!((with_byte(40, 1), with_byte(41, 1)), (None, None), "a wrong UDP checksum");
    let mut checked = plain.clone();
    let (ip, datagram) = Ipv4Header::from_prefix(&checked[Ethernet::LEN..]).unwrap();
    let sum = checksum::pseudo_v4(ip.src(), ip.dst(), ip_proto::UDP, datagram.len());
    let sum = sum.slice(datagram).checksum();
    checked[40..42].copy_from_slice(&sum.to_be_bytes());
    assert!(table.find(&checked).is_some(), "a right UDP checksum");
    *checked.last_mut().unwrap() ^= 1;
    assert_eq!(table.find(&checked), None, "another byte under a checksum");
    assert_eq!((with_byte(38, 1), with_byte(39, 9)), (None, None), "another UDP length");
    assert_eq!(with_byte(24, plain[24] ^ 1), None, "a wrong checksum");
    assert_eq!(table.find(&plain[..plain.len() - 1]), None, "cut short");
    assert_eq!(table.find(&[&plain[..], &[0]].concat()), None, "padding of the link");
}

#[test]
fn two_tunnels_must_differ() {
    let remote = Ipv4Addr::new(1, 0, 0, 1);
    let of = |encapsulation, key| Tunnel { encapsulation, remote, key };
    let error = |all: &[Tunnel]| TunnelTable::new(HERE.octets(), LOCAL, all).err();
    let gre = |key| of(Encapsulation::Gre, key);
    assert_eq!(error(&[gre(None), gre(Some(0)), gre(Some(1))]), None);
    assert_eq!(error(&[gre(None), gre(Some(0)), gre(None)]), Some(Duplicate(0, 2)));
    // Protocols may share a port.
    let both = [of(Encapsulation::Vxlan(9), Some(1)), of(Encapsulation::Geneve(9), Some(1))];
    let table = table(&both);
    for (number, tunnel) in both.iter().enumerate() {
        let found = table.find(&packet(tunnel, 0, &[0; 14])).map(|it| usize::from(it.tunnel));
        assert_eq!(found, Some(number));
    }
}

#[test]
fn flows_have_ports_of_their_own_and_keep_them() {
    let frame = |source: u8, port: u8, tag: bool| {
        let (kind, vlan) = match tag {
            true => (ether_type::VLAN, &[0, 9, 8, 0][..]),
            false => (ether_type::IPV4, &[][..]),
        };
        let ethernet = Ethernet::new(HERE, HERE, kind);
        let ip = Ipv4Header::new(ip_proto::UDP, [10, 0, 0, source].into(), LOCAL, 8);
        [&ethernet.bytes()[..], vlan, ip.bytes(), &[0, port, 0, 53, 0, 8, 0, 0]].concat()
    };
    let ports: std::collections::HashSet<u16> =
        (0..100).map(|n| source_port(&frame(n, 7, false))).collect();
    let by_port: std::collections::HashSet<u16> =
        (0..100).map(|n| source_port(&frame(7, n, false))).collect();
    assert!(ports.len() > 90 && by_port.len() > 90, "{} {}", ports.len(), by_port.len());
    assert!(ports.iter().all(|port| *port >= 49152));
    assert_eq!(source_port(&frame(1, 2, false)), source_port(&frame(1, 2, true)));
    assert_ne!(source_port(&frame(1, 2, false)), source_port(&frame(1, 3, false)));
    // Frames without addresses have the first port.
    for short in [&[][..], &[0; 14], &[0xff; 20]] {
        assert_eq!(source_port(short), 49152);
    }
}
