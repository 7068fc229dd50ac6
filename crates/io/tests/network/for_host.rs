//! Tests of packets that the host still receives beside AF_XDP.

use crate::test_network;
use crate::xdp::open_with;
use castanet_io::Device;
use castanet_io::af_xdp::{HostFilter, Options};
use castanet_kit::classify::{Pattern, Program, Rule};
use castanet_packet::{Batch, Pool, PoolConfig};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;

/// Patterns with every kind of condition.
const IP: &[&str] = &[
    "tcp port 22 or icmp",
    "not udp",
    "src net 10.0.0.0/8 and not dst host 10.1.2.3",
    "tcp opt syn and not tcp opt ack",
    "dst port <= 1023 or src port > 60000",
    "ip vers 4 and ip ttl < 5",
    "udp and (dst port 53 or dst port 67 or dst port 68 or src port 123)",
    "ip frag or ip dscp 10",
    "icmp type echo or icmp type 11",
    "ether host 2:0:0:0:0:1 or ether dst ff:ff:ff:ff:ff:ff",
    "all",
    "none",
];
const FRAMES: &[&str] =
    &["12/0806", "!12/0800", "0/01%01", "3/a?%f0 14/45", "58/00", "13/06 12/08"];

/// A random frame, likely to match some of the patterns.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let octet = prop_oneof![Just(0u8), Just(1), Just(2), Just(6), Just(17), Just(10), any::<u8>()];
    let kind = prop_oneof![
        4 => Just(vec![0x08, 0x00]),
        2 => Just(vec![0x81, 0x00, 0x00, 0x05, 0x08, 0x00]),
        1 => Just(vec![0x08, 0x06]),
        1 => Just(vec![0x81, 0x00, 0x00, 0x05, 0x08, 0x06]),
        1 => proptest::collection::vec(any::<u8>(), 2),
    ];
    let header = (4u8..=15, 0u8..=1, prop_oneof![Just(1u8), Just(6), Just(17), any::<u8>()]);
    let ends = prop_oneof![Just([2u8, 0, 0, 0, 0, 1]), Just([0xff; 6]), any::<[u8; 6]>()];
    let rest = proptest::collection::vec(octet, 1..80);
    (ends, any::<[u8; 6]>(), kind, header, rest).prop_map(|(dst, src, kind, header, mut ip)| {
        let (words, fragment, protocol) = header;
        let places = [(0, 0x40 | words), (6, 0), (7, fragment), (9, protocol)];
        for (at, byte) in places {
            ip.get_mut(at).into_iter().for_each(|it| *it = byte);
        }
        [&dst[..], &src, &kind, &ip].concat()
    })
}

/// Returns the offset of the IP packet in a frame, if the frame has one.
fn network(frame: &[u8]) -> Option<usize> {
    let kind = |at: usize| frame.get(at..at + 2);
    match (kind(12), kind(16)) {
        (Some([8, 0]), _) => Some(14),
        (Some([0x81, 0]), Some([8, 0])) => Some(18),
        _ => None,
    }
}

#[test]
fn the_kernel_chooses_as_the_patterns_say() {
    castanet_lab::require(&["ip"]).unwrap();
    let program = |pattern: &Pattern| Program::compile(&[Rule::new(pattern.clone(), Some(0))]);
    let mut seen = [0; 2];
    for (n, ip) in IP.iter().enumerate() {
        let (frames, ip) = (FRAMES[n % FRAMES.len()], Pattern::ip(ip).unwrap());
        let frames = (n % 3 > 0).then(|| Pattern::bytes(frames).unwrap());
        let for_host = HostFilter::new(frames.as_ref(), Some(&ip)).unwrap();
        let (frames, ip) = (frames.as_ref().map(program), program(&ip));
        let mut runner =
            TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&frame(), |frame| {
            let by_bytes = frames.as_ref().is_some_and(|it| it.run_bytes(&frame).is_some());
            let by_ip = network(&frame)
                .filter(|&at| at < frame.len())
                .is_some_and(|at| ip.output_of_frame(&frame, &frame[at..]) == 0);
            prop_assert_eq!(for_host.matches(&frame).unwrap(), by_bytes || by_ip);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{}: {error}", IP[n]));
    }
    let all = Pattern::all();
    for (frames, ip) in [(Some(&all), None), (Some(&all), Some(&all))] {
        let error = HostFilter::new(frames, ip).unwrap_err();
        assert!(error.contains("leaves nothing to receive"), "{error}");
    }
    let far = Pattern::bytes("4000/01").unwrap();
    let error = HostFilter::new(Some(&far), None).unwrap_err();
    assert!(error.contains("byte 4001"), "{error}");
    // One frame matches and one does not.
    let icmp = HostFilter::new(None, Some(&Pattern::ip("icmp").unwrap())).unwrap();
    for protocol in [1, 6] {
        let mut frame = [0; 60];
        (frame[12], frame[14], frame[23]) = (8, 0x45, protocol);
        seen[usize::from(icmp.matches(&frame).unwrap())] += 1;
    }
    assert_eq!(seen, [1, 1]);
}

#[test]
fn the_host_answers_what_is_chosen_for_it() {
    let net = test_network("xhost");
    net.middle.ip("address add 10.9.0.254/24 dev m0").unwrap();
    let pool = Pool::new(PoolConfig::default()).unwrap();
    let (arp, icmp) = (Pattern::bytes("12/0806").unwrap(), Pattern::ip("icmp").unwrap());
    let for_host = Some(Arc::new(HostFilter::new(Some(&arp), Some(&icmp)).unwrap()));
    let options = Options { host_filter: for_host, ..Options::default() };
    let mut device = open_with(&net.middle, "m0", &pool, options).unwrap();
    assert!(device.describe().contains(", chosen packets left to the host"));
    let ping = net.a.command("ping").args(["-c", "3", "-i", "0.02", "-q", "10.9.0.254"]);
    let output = ping.check().unwrap();
    assert!(output.stdout.contains("3 received"), "{}", output.stdout);
    let send = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                s.sendto(b'ours', ('10.9.0.254', 9))";
    net.a.command("python3").args(["-c", send]).check().unwrap();
    let mut batch = Batch::new();
    while device.receive(&pool, &mut batch, 32).unwrap() > 0 {}
    let is_ip = |frame: &&[u8]| frame[12..14] == [8, 0];
    let ip: Vec<&[u8]> = batch.iter().map(|it| it.bytes()).filter(is_ip).collect();
    assert_eq!(ip.len(), 1, "{ip:?}");
    assert!(ip[0].ends_with(b"ours"));
    assert!(batch.iter().all(|it| it.bytes()[12..14] != [8, 6]));
}
