//! Tests of translations against expected packets, and round trips.

use super::*;
use castanet_wire::{Ipv4Header, Ipv6Header, ip_proto, sketch};
use proptest::prelude::*;

fn build(text: &str) -> Vec<u8> {
    sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes
}

fn print(bytes: &[u8]) -> String {
    sketch::print(bytes, sketch::Layer::Network)
}

/// Checks the translation of an IPv6 packet to IPv4.
fn assert_v6_to_v4(six: &str, four: &str) {
    let mut out = Vec::new();
    assert_eq!(to_v4(&build(six), &mut out), Ok(()), "{six}");
    assert_eq!(print(&out), print(&build(four)), "{six}");
}

/// Checks the translation of an IPv4 packet to IPv6.
fn assert_v4_to_v6(four: &str, six: &str) {
    let mut out = Vec::new();
    assert_eq!(to_v6(&build(four), &mut out), Ok(()), "{four}");
    assert_eq!(print(&out), print(&build(six)), "{four}");
}

#[test]
fn transport_packets() {
    assert_v6_to_v4(
        "[::ffff:1.0.0.1]:5 > [::2.0.0.2]:6 tcp syn seq 7 hop 9 class 3",
        "1.0.0.1:5 > 2.0.0.2:6 tcp syn seq 7 ttl 9 tos 3 df",
    );
    assert_v6_to_v4(
        "[::1.0.0.1]:5 > [::2.0.0.2]:6 udp \"abc\"",
        "1.0.0.1:5 > 2.0.0.2:6 udp \"abc\" df",
    );
    assert_v6_to_v4(
        "::1.0.0.1 > ::2.0.0.2 proto 99 data 01",
        "1.0.0.1 > 2.0.0.2 proto 99 data 01 df",
    );
    assert_v4_to_v6(
        "1.0.0.1:5 > 2.0.0.2:6 tcp ttl 9 tos 3 id 8 \"x\"",
        "[::1.0.0.1]:5 > [::2.0.0.2]:6 tcp hop 9 class 3 \"x\"",
    );
    assert_v4_to_v6(
        "1.0.0.1:5 > 2.0.0.2:6 udp nocheck \"abc\" ipopt 0x01010100",
        "[::1.0.0.1]:5 > [::2.0.0.2]:6 udp \"abc\"",
    );
}

#[test]
fn dccp_checksum_stays_valid() {
    let mut six = build("::1.0.0.1 > ::2.0.0.2 proto 33 data 0005000604000000200000000000000a");
    let (ip, segment) = Ipv6Header::from_prefix_mut(&mut six).expect("is an IPv6 packet");
    let pseudo = ip.pseudo(ip_proto::DCCP, segment.len());
    let checksum = pseudo.slice(segment).checksum();
    segment[6..8].copy_from_slice(&checksum.to_be_bytes());
    let (mut four, mut back) = (Vec::new(), Vec::new());
    assert_eq!(to_v4(&six, &mut four), Ok(()));
    let (ip, segment) = Ipv4Header::from_prefix(&four).expect("is an IPv4 packet");
    assert_eq!(ip.pseudo(segment.len()).slice(segment).checksum(), 0);
    assert_eq!(to_v6(&four, &mut back), Ok(()));
    assert_eq!(back, six);
}

#[test]
fn fragments() {
    assert_v6_to_v4(
        "::1.0.0.1 > ::2.0.0.2 udp id 0x10007 frag 16+ len 64",
        "1.0.0.1 > 2.0.0.2 udp id 7 frag 16+ len 36",
    );
    assert_v4_to_v6(
        "1.0.0.1 > 2.0.0.2 udp id 7 frag 16 len 36",
        "::1.0.0.1 > ::2.0.0.2 udp id 7 frag 16 len 64",
    );
    let mut out = Vec::new();
    for text in [
        "1.0.0.1 > 2.0.0.2 icmp frag 0+",
        "1.0.0.1 > 2.0.0.2 icmp frag 8 len 28",
        "1.0.0.1 > 2.0.0.2 udp nocheck frag 0+",
    ] {
        assert_eq!(to_v6(&build(text), &mut out), Err(Refusal::Fragment), "{text}");
    }
    let text = "::1.0.0.1 > ::2.0.0.2 icmp6 frag 0+";
    assert_eq!(to_v4(&build(text), &mut out), Err(Refusal::Fragment));
}

#[test]
fn messages() {
    assert_v6_to_v4(
        "::1.0.0.1 > ::2.0.0.2 icmp6 type 128 ident 3 seq 4 \"odd\"",
        "1.0.0.1 > 2.0.0.2 icmp type echo ident 3 seq 4 \"odd\" df",
    );
    assert_v4_to_v6(
        "1.0.0.1 > 2.0.0.2 icmp type echo-reply ident 3 seq 4",
        "::1.0.0.1 > ::2.0.0.2 icmp6 type 129 ident 3 seq 4",
    );
    assert_v6_to_v4(
        "::9.0.0.9 > ::1.0.0.1 icmp6 type 2 rest 1400 [[::1.0.0.1]:5 > [::2.0.0.2]:6 udp hop 3]",
        "9.0.0.9 > 1.0.0.1 icmp type unreachable code needfrag rest 1380 df [1.0.0.1:5 > 2.0.0.2:6 udp ttl 3 df]",
    );
    assert_v4_to_v6(
        "9.0.0.9 > 1.0.0.1 icmp type unreachable code needfrag rest 1400 [1.0.0.1:5 > 2.0.0.2:6 tcp ttl 3]",
        "::9.0.0.9 > ::1.0.0.1 icmp6 type 2 rest 1420 [[::1.0.0.1]:5 > [::2.0.0.2]:6 tcp hop 3]",
    );
    assert_v4_to_v6(
        "9.0.0.9 > 1.0.0.1 icmp type timeexceeded [1.0.0.1 > 2.0.0.2 icmp ident 4]",
        "::9.0.0.9 > ::1.0.0.1 icmp6 type 3 [::1.0.0.1 > ::2.0.0.2 icmp6 ident 4]",
    );
}

#[test]
fn types_and_codes() {
    let quoted = ["[1.0.0.1 > 2.0.0.2 udp]", "[::1.0.0.1 > ::2.0.0.2 udp]"];
    for (four, six) in [
        ("type 3 code 0", Some("type 1")),
        ("type 3 code 2", Some("type 4 code 1 rest 6")),
        ("type 3 code 3", Some("type 1 code 4")),
        ("type 3 code 10", Some("type 1 code 1")),
        ("type 3 code 14", None),
        ("type 11 code 1", Some("type 3 code 1")),
        ("type 12 rest 0x09000000", Some("type 4 rest 6")),
        ("type 12 rest 0x10000000", Some("type 4 rest 24")),
        ("type 12 rest 0x04000000", None),
        ("type 5", None),
    ] {
        let packet = build(&format!("9.0.0.9 > 1.0.0.1 icmp {four} {}", quoted[0]));
        let mut out = Vec::new();
        let result = to_v6(&packet, &mut out);
        match six {
            None => assert_eq!(result, Err(Refusal::Message), "{four}"),
            Some(six) => {
                let expected = build(&format!("::9.0.0.9 > ::1.0.0.1 icmp6 {six} {}", quoted[1]));
                assert_eq!(print(&out), print(&expected), "{four}");
            }
        }
    }
    for (six, four) in [
        ("type 1 code 3", Some("type 3 code 1")),
        ("type 1 code 1", Some("type 3 code 10")),
        ("type 1 code 4", Some("type 3 code 3")),
        ("type 4 code 1", Some("type 3 code 2")),
        ("type 4 rest 8", Some("type 12 rest 0x0c000000")),
        ("type 4 code 2", None),
        ("type 4 rest 40", None),
        ("type 135", None),
    ] {
        let packet = build(&format!("::9.0.0.9 > ::1.0.0.1 icmp6 {six} {}", quoted[1]));
        let mut out = Vec::new();
        let result = to_v4(&packet, &mut out);
        match four {
            None => assert_eq!(result, Err(Refusal::Message), "{six}"),
            Some(four) => {
                let quoted = "[1.0.0.1 > 2.0.0.2 udp df]";
                let expected = build(&format!("9.0.0.9 > 1.0.0.1 icmp {four} df {quoted}"));
                assert_eq!(print(&out), print(&expected), "{six}");
            }
        }
    }
}

#[test]
fn refusals() {
    let mut out = Vec::new();
    for text in ["2001:db8::1 > ::2.0.0.2 udp", "::1.0.0.1 > ::1 udp", ":: > ::1.0.0.1 udp"] {
        assert_eq!(to_v4(&build(text), &mut out), Err(Refusal::Address), "{text}");
    }
    for text in [
        "::1.0.0.1 > ::2.0.0.2 udp len 60 short 3",
        "::1.0.0.1 > ::2.0.0.2 icmp6 len 44 iplen 4 short 0",
    ] {
        let packet = sketch::build(text).map(|sketch| sketch.bytes);
        let Ok(packet) = packet else { continue };
        assert_eq!(to_v4(&packet, &mut out), Err(Refusal::Malformed), "{text}");
    }
    assert_eq!(to_v4(&[0x60; 39], &mut out), Err(Refusal::Malformed));
    assert_eq!(to_v6(&build("1.0.0.1 > 2.0.0.2 udp short 1"), &mut out), Err(Refusal::Malformed));
    let nested =
        "9.0.0.9 > 1.0.0.1 icmp type 11 [1.0.0.1 > 2.0.0.2 icmp type 11 [3.0.0.3 > 1.0.0.1 udp]]";
    assert_eq!(to_v6(&build(nested), &mut out), Err(Refusal::Message));
}

proptest! {
    #[test]
    fn round_trips_preserve_packets(
        kind in 0usize..4, a: u32, b: u32, ports: (u16, u16), payload in prop::collection::vec(any::<u8>(), 0..80),
        ttl: u8, tos: u8,
    ) {
        let (a, b) = (Ipv4Addr::from(a | 2), Ipv4Addr::from(b | 2));
        let data: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let body = match kind {
            0 => format!("{a}:{} > {b}:{} udp", ports.0, ports.1),
            1 => format!("{a}:{} > {b}:{} tcp", ports.0, ports.1),
            2 => format!("{a} > {b} icmp ident {} seq {}", ports.0, ports.1),
            _ => format!("{a} > {b} proto 99"),
        };
        let data = if data.is_empty() { data } else { format!("data {data}") };
        let packet = build(&format!("{body} ttl {ttl} tos {tos} df {data}"));
        let (mut six, mut four) = (Vec::new(), Vec::new());
        prop_assert_eq!(to_v6(&packet, &mut six), Ok(()));
        prop_assert!(!print(&six).contains("check"), "{}", print(&six));
        prop_assert_eq!(to_v4(&six, &mut four), Ok(()));
        prop_assert_eq!(print(&four), print(&packet));
    }

    #[test]
    fn translation_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), four: bool, kind in 0usize..6) {
        let mut bytes = bytes;
        let kinds = [6, 17, 58, 1, 44, 0];
        let addresses = [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]; 2].concat();
        if let (false, Some(head)) = (four, bytes.get_mut(..40)) {
            (head[0], head[6]) = (0x60, kinds[kind]);
            head[8..].copy_from_slice(&addresses);
            let len = (bytes.len() - 40) as u16;
            bytes[4..6].copy_from_slice(&len.to_be_bytes());
        } else if let Some(head) = bytes.get_mut(..20) {
            (head[0], head[9]) = (0x45, kinds[kind]);
            let len = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&len.to_be_bytes());
        }
        let mut out = Vec::new();
        let _ = (to_v4(&bytes, &mut out), to_v6(&bytes, &mut out));
    }
}
