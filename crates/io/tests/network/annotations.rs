//! Tests of packet sockets: annotations, filters, fanout, errors, and lookup of interfaces.

use crate::test_network;
use castanet_io::af_packet::{AfPacket, Fanout, FanoutGroup, FanoutMode, Method, Options};
use castanet_io::elements::address_of;
use castanet_io::interface::{self, Interface};
use castanet_io::{Device, IoError};
use castanet_lab::Namespace;
use castanet_packet::{Batch, Packet, PacketType, Pool, PoolConfig};
use std::time::{Duration, Instant, SystemTime};

fn pool() -> Pool {
    Pool::new(PoolConfig { frames: 1024, ..PoolConfig::default() }).unwrap()
}

fn open(namespace: &Namespace, name: &'static str, options: Options) -> AfPacket {
    namespace.enter(move || Ok(AfPacket::open(name, options).unwrap())).join().unwrap().unwrap()
}

/// Receives until there are `n` packets or two seconds have passed.
fn receive(device: &mut AfPacket, pool: &Pool, n: usize) -> Vec<Packet> {
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut all = Vec::new();
    let mut batch = Batch::new();
    while all.len() < n && Instant::now() < deadline {
        device.receive(pool, &mut batch, n - all.len()).unwrap();
        all.extend(batch.drain());
        std::thread::sleep(Duration::from_micros(200));
    }
    all
}

fn send(device: &mut AfPacket, frames: &[Vec<u8>]) -> usize {
    let mut batch = Batch::new();
    for frame in frames {
        batch.push(Packet::from_bytes(frame));
    }
    device.transmit(&mut batch).unwrap()
}

/// Makes an Ethernet frame of an experimental type (IEEE 802, 9.2.3), which no host answers.
fn frame(dst: [u8; 6], len: usize) -> Vec<u8> {
    let mut frame = [&dst[..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5]].concat();
    frame.extend((frame.len()..len).map(|i| i as u8));
    frame
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_nanos() as i64
}

const BROADCAST: [u8; 6] = [0xff; 6];
const GROUP: [u8; 6] = [1, 0, 0x5e, 1, 2, 3];
const STRANGER: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

const SENDER: Method = Method::SendOnly;

fn options(method: Method) -> Options {
    Options { method, promiscuous: true, device: 7, ..Options::default() }
}

#[test]
fn packets_say_when_where_and_for_whom_they_came() {
    for method in [Method::Ring, Method::Socket] {
        let net = test_network("types");
        let mut sender = open(&net.a, "eth0", options(SENDER));
        let mut receiver = open(&net.middle, "m0", options(method));
        let host = receiver.interface().ether.unwrap().octets();
        let before = now();
        let frames = [host, BROADCAST, GROUP, STRANGER].map(|dst| frame(dst, 60));
        assert_eq!(send(&mut sender, &frames), 4);
        let pool = pool();
        let got = receive(&mut receiver, &pool, 4);
        let kinds =
            [PacketType::Host, PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost];
        assert_eq!(got.iter().map(Packet::packet_type).collect::<Vec<_>>(), kinds, "{method:?}");
        for (packet, frame) in got.iter().zip(&frames) {
            assert_eq!(packet.bytes(), frame);
            assert_eq!(packet.device(), 7);
            let time = packet.timestamp();
            assert!(before <= time && time <= now(), "{before} {time}");
        }
        let stats = receiver.stats();
        assert_eq!((stats.received, stats.received_bytes, stats.kernel_drops), (4, 240, 0));
        assert_eq!(sender.stats().sent_bytes, 240);
    }
}

#[test]
fn tags_that_the_kernel_takes_out_are_put_back() {
    for method in [Method::Ring, Method::Socket] {
        let net = test_network("vlan");
        let mut sender = open(&net.a, "eth0", options(SENDER));
        let mut receiver = open(&net.middle, "m0", options(method));
        let tags = [&[0x81, 0x00, 0x60, 0x05][..], &[0x88, 0xa8, 0x00, 0x64, 0x81, 0, 0, 7]];
        let frames = tags.map(|tags| {
            let plain = frame(STRANGER, 100);
            [&plain[..12], tags, &plain[12..]].concat()
        });
        assert_eq!(send(&mut sender, &frames), 2);
        let pool = pool();
        let got = receive(&mut receiver, &pool, 2);
        let got: Vec<&[u8]> = got.iter().map(Packet::bytes).collect();
        assert_eq!(got, frames, "{method:?}");
    }
}

#[test]
fn packets_of_the_host_are_received_only_with_outbound() {
    for method in [Method::Ring, Method::Socket] {
        for outbound in [false, true] {
            let net = test_network("out");
            let mut sender = open(&net.middle, "m0", options(SENDER));
            let mut receiver = open(&net.middle, "m0", Options { outbound, ..options(method) });
            let mut other = open(&net.a, "eth0", options(SENDER));
            assert_eq!(send(&mut sender, &[frame(STRANGER, 61)]), 1);
            assert_eq!(send(&mut other, &[frame(STRANGER, 62)]), 1);
            let pool = pool();
            let expected: &[_] = if outbound {
                &[(61, PacketType::Outgoing), (62, PacketType::OtherHost)]
            } else {
                &[(62, PacketType::OtherHost)]
            };
            let got = receive(&mut receiver, &pool, expected.len());
            let got: Vec<_> = got.iter().map(|p| (p.len(), p.packet_type())).collect();
            assert_eq!(got, expected, "{method:?}");
        }
    }
}

#[test]
fn an_exclusive_device_keeps_packets_from_the_host_until_it_closes() {
    let net = test_network("excl");
    net.middle.ip("addr add 10.9.0.3/24 dev m0").unwrap();
    let ping = || net.a.command("ping").args(["-c", "1", "-W", "1", "10.9.0.3"]).output().unwrap();
    assert!(ping().success());
    let mut device = open(&net.middle, "m0", Options { exclusive: true, ..options(Method::Ring) });
    assert!(!ping().success());
    // The device has received the ping that the host has not.
    assert!(!receive(&mut device, &pool(), 1).is_empty());
    drop(device);
    assert!(ping().success());
}

#[test]
fn a_fanout_group_shares_the_packets() {
    let net = test_network("fanout");
    let fanout =
        Some(Fanout { group: FanoutGroup::default(), mode: FanoutMode::RoundRobin, queue: (0, 1) });
    let shared = Options { fanout, ..options(Method::Ring) };
    let mut receivers = [(); 2].map(|()| open(&net.middle, "m0", shared.clone()));
    let mut sender = open(&net.a, "eth0", options(SENDER));
    let frames: Vec<_> = (0..100).map(|i| frame(STRANGER, 60 + i)).collect();
    assert_eq!(send(&mut sender, &frames), 100);
    let pool = pool();
    let mut lengths = Vec::new();
    for receiver in &mut receivers {
        let got = receive(receiver, &pool, 50);
        assert_eq!(got.len(), 50);
        lengths.extend(got.iter().map(Packet::len));
    }
    lengths.sort_unstable();
    assert_eq!(lengths, (60..160).collect::<Vec<_>>());
}

#[test]
fn packets_that_the_link_refuses_are_counted_and_gone() {
    let net = test_network("long");
    let mut sender = open(&net.a, "eth0", options(SENDER));
    let mut batch = Batch::new();
    for len in [60, 3000, 64] {
        batch.push(Packet::from_bytes(&frame(STRANGER, len)));
    }
    assert_eq!(sender.transmit(&mut batch).unwrap(), 2);
    assert!(batch.is_empty());
    net.a.ip("link set eth0 down").unwrap();
    assert_eq!(send(&mut sender, &[frame(STRANGER, 60)]), 0);
    let stats = sender.stats();
    assert_eq!((stats.sent, stats.tx_errors), (2, 2));
    net.a.ip("link set eth0 up").unwrap();
    assert_eq!(send(&mut sender, &[frame(STRANGER, 60)]), 1);
}

#[test]
fn a_link_that_goes_down_and_up_again_goes_on() {
    for method in [Method::Ring, Method::Socket] {
        let net = test_network("updown");
        let mut receiver = open(&net.middle, "m0", options(method));
        let pool = pool();
        net.middle.ip("link set m0 down").unwrap();
        let mut batch = Batch::new();
        assert_eq!(receiver.receive(&pool, &mut batch, 1).unwrap(), 0);
        net.middle.ip("link set m0 up").unwrap();
        let mut sender = open(&net.a, "eth0", options(SENDER));
        assert_eq!(send(&mut sender, &[frame(STRANGER, 60)]), 1);
        assert_eq!(receive(&mut receiver, &pool, 1).len(), 1, "{method:?}");
    }
}

#[test]
fn an_empty_pool_costs_packets_and_not_more() {
    let net = test_network("full");
    let mut sender = open(&net.a, "eth0", options(SENDER));
    let mut receiver = open(&net.middle, "m0", options(Method::Ring));
    let small = Pool::new(PoolConfig { frames: 16, ..PoolConfig::default() }).unwrap();
    let frames: Vec<_> = (0..40).map(|_| frame(STRANGER, 60)).collect();
    assert_eq!(send(&mut sender, &frames), 40);
    let kept = receive(&mut receiver, &small, 40);
    let stats = receiver.stats();
    assert_eq!((kept.len(), stats.received, stats.no_frame), (16, 16, 24));
    drop(kept);
    assert_eq!(send(&mut sender, &frames[..10]), 10);
    assert_eq!(receive(&mut receiver, &small, 10).len(), 10);
}

#[test]
fn interfaces_are_found_by_name_and_missing_ones_explained() {
    let net = test_network("find");
    net.middle.ip("addr add 10.8.7.6/20 dev m0").unwrap();
    net.middle.ip("link set m0 mtu 1400 address 02:00:00:00:12:34").unwrap();
    net.middle.ip("link set m1 down").unwrap();
    let found = net.middle.enter(|| {
        let missing = Interface::find("m00").unwrap_err();
        let mut names = interface::names();
        names.sort();
        let [m0, m1] = ["m0", "m1"].map(|name| Interface::find(name).unwrap());
        Ok((missing, names, m0, m1))
    });
    let (missing, names, m0, m1) = found.join().unwrap().unwrap();
    assert!(matches!(&missing, IoError::NoInterface { nearest: Some(n), .. } if n == "m0"));
    let text = "no network interface is called ‘m00’; did you mean ‘m0’?";
    assert_eq!(missing.to_string(), text);
    assert!(names.contains(&"m0".into()) && names.contains(&"lo".into()), "{names:?}");
    assert_eq!((m0.name.as_str(), m0.mtu, m0.up, m1.up), ("m0", 1400, true, false));
    assert_eq!(m0.ether.unwrap().with_colons().to_string(), "02:00:00:00:12:34");
    let net: Vec<_> = m0.ipv4.iter().map(|n| (n.address.octets(), n.netmask.octets())).collect();
    assert_eq!(net, [([10, 8, 7, 6], [255, 255, 240, 0])]);
    let odd = Interface::find("no/such").unwrap_err();
    assert!(matches!(odd, IoError::NoInterface { .. }), "{odd:?}");
}

#[test]
fn an_interface_names_its_addresses() {
    use castanet_element::args::AddressKind::{Gateway, Ip, Ip6, Mac, Net, Net6};
    let net = test_network("names");
    net.middle.ip("addr add 10.8.7.6/20 dev m0").unwrap();
    net.middle.sysctl("net/ipv6/conf/m0/disable_ipv6", "0").unwrap();
    net.middle.ip("-6 addr add 2001:db8::7/64 dev m0 nodad").unwrap();
    net.middle.ip("link set m0 address 02:00:00:00:12:34").unwrap();
    net.middle.ip("addr add 10.9.7.6/20 dev m1").unwrap();
    net.middle.ip("route add 10.1.0.0/16 via 10.9.0.5 dev m1").unwrap();
    net.middle.ip("route add default via 10.8.0.1 dev m0").unwrap();
    let all =
        |name| move || Ok([Ip, Net, Mac, Ip6, Net6, Gateway].map(|kind| address_of(name, kind)));
    let [m0, m1] = ["m0", "m1"].map(|name| net.middle.enter(all(name)).join().unwrap().unwrap());
    let said = [
        "10.8.7.6",
        "10.8.7.6/255.255.240.0",
        "02:00:00:00:12:34",
        "2001:db8::7",
        "2001:db8::7/64",
        "10.8.0.1",
    ];
    assert_eq!(m0.map(Option::unwrap), said);
    assert_eq!((m1[0].as_deref(), m1[5].as_deref()), (Some("10.9.7.6"), None));
}
