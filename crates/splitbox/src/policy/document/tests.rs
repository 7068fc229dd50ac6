//! Policies in TOML, against address translation and load balancing in plain code.

use super::load_balancer::{runs, shares};
use crate::bits::Bits;
use crate::header::{IP4, IP6, SOURCE_HASH, header_string};
use crate::policy::{CompiledPolicy, Format, PolicyError, compile};
use castanet_kit::classify::{Program, Rule};
use castanet_wire::headers::Headers;
use castanet_wire::{ip_proto, sketch};
use proptest::prelude::*;

const MAPS: &str = r#"
[[nat.map]]
inside = "10.0.0.0/24"
outside = "192.0.2.0/24"
[[nat.map]]
inside = "10.0.1.5:8080"
outside = "192.0.3.1:80"
protocol = "tcp"
[[nat.map]]
inside = "10.0.1.5:8080"
outside = "192.0.3.1:81"
protocol = "udp"
[[nat.map]]
inside = "fd00:1::/64"
outside = "2001:db8:5::/64"
[[nat.map]]
inside = "[fd00:2::1]:53"
outside = "[2001:db8:6::1]:5353"
protocol = "udp"
"#;

const FIREWALL: &[&str] =
    &["deny dst port 22", "deny tcp opt rst", "allow tcp or udp", "allow icmp"];

pub(in crate::policy) const BALANCER: &str = r#"
[load_balancer]
service = "203.0.113.10:443"
protocol = "tcp"
buckets = 64
rest = "pass"
[[load_balancer.backend]]
address = "10.0.0.1"
weight = 3
[[load_balancer.backend]]
address = "10.0.0.2:8443"
weight = 2
[[load_balancer.backend]]
address = "10.0.0.3"
"#;

pub(in crate::policy) fn compiled(text: &str) -> CompiledPolicy {
    compile(Format::Toml, text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

pub(in crate::policy) fn nat(direction: &str, rest: &str, has_firewall: bool) -> String {
    let firewall = format!("[firewall]\nrules = {FIREWALL:?}\nip6 = \"pass\"\n");
    let firewall = if has_firewall { &firewall[..] } else { "" };
    format!("{firewall}[nat]\ndirection = \"{direction}\"\nrest = \"{rest}\"\n{MAPS}")
}

/// Address and port of one side in a header string.
fn end(string: &[u8], headers: &Headers, is_source: bool) -> (Vec<u8>, Vec<u8>) {
    let fields = if headers.is_ip6 { IP6 } else { IP4 };
    let (address, port) =
        if is_source { (fields.src, fields.sport) } else { (fields.dst, fields.dport) };
    let part = |it: crate::header::HeaderField| string[it.at / 8..(it.at + it.width) / 8].to_vec();
    (part(address), part(port))
}

fn put_end(string: &mut [u8], headers: &Headers, is_source: bool, new: &(Vec<u8>, Vec<u8>)) {
    let fields = if headers.is_ip6 { IP6 } else { IP4 };
    let (address, port) =
        if is_source { (fields.src, fields.sport) } else { (fields.dst, fields.dport) };
    for (field, bytes) in [(address, &new.0), (port, &new.1)] {
        string[field.at / 8..][..bytes.len()].copy_from_slice(bytes);
    }
}

/// The translation of a header string in plain code; `None` if it is of no map.
fn translated(string: Bits, headers: &Headers, is_outbound: bool) -> Option<Bits> {
    let mut bytes = string.0;
    let (mut address, mut port) = end(&bytes, headers, is_outbound);
    let has_ports = |protocol| headers.protocol == protocol && !headers.is_later_fragment;
    let prefixes: [(&[u8], &[u8]); 2] = match headers.is_ip6 {
        false => [(&[10, 0, 0], &[192, 0, 2]), (&[1; 5], &[1; 5])],
        true => [
            (&[0xfd, 0, 0, 1, 0, 0, 0, 0], &[0x20, 1, 0xd, 0xb8, 0, 5, 0, 0]),
            (&[1; 17], &[1; 17]),
        ],
    };
    for (inside, outside) in prefixes {
        let (from, to) = if is_outbound { (inside, outside) } else { (outside, inside) };
        if address.starts_with(from) {
            address[..to.len()].copy_from_slice(to);
            put_end(&mut bytes, headers, is_outbound, &(address, port));
            return Some(Bits(bytes));
        }
    }
    let six = |first: u8, second: u8, block: u8| {
        let mut address = vec![0; 16];
        (address[0], address[1], address[15]) = (first, second, 1);
        if first == 0x20 {
            (address[2], address[3], address[5]) = (0xd, 0xb8, block);
        } else {
            address[3] = block;
        }
        address
    };
    let ports = [
        (ip_proto::TCP, vec![10, 0, 1, 5], 8080_u16, vec![192, 0, 3, 1], 80_u16),
        (ip_proto::UDP, vec![10, 0, 1, 5], 8080, vec![192, 0, 3, 1], 81),
        (ip_proto::UDP, six(0xfd, 0, 2), 53, six(0x20, 1, 6), 5353),
    ];
    for (protocol, inside, inner, outside, outer) in ports {
        let (mut from, mut to) = ((inside, inner), (outside, outer));
        if !is_outbound {
            std::mem::swap(&mut from, &mut to);
        }
        if has_ports(protocol) && address == from.0 && port == from.1.to_be_bytes() {
            (address, port) = (to.0, to.1.to_be_bytes().to_vec());
            put_end(&mut bytes, headers, is_outbound, &(address, port));
            return Some(Bits(bytes));
        }
    }
    None
}

/// Packets of and beside the maps and the service.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let four = prop::sample::select(vec![
        "10.0.0.7",
        "10.0.1.5",
        "192.0.2.9",
        "192.0.3.1",
        "10.0.1.6",
        "203.0.113.10",
    ]);
    let six = prop::sample::select(vec![
        "fd00:1::9",
        "fd00:2::1",
        "2001:db8:5::9",
        "2001:db8:6::1",
        "fd00:1:0:1::1",
    ]);
    let port = || prop::sample::select(vec![8080_u16, 80, 81, 53, 5353, 22, 443]);
    let end = [four, six];
    let ends = prop_oneof![
        (end[0].clone(), end[0].clone(), port(), port()).prop_map(|(a, b, p, q)| {
            (format!("{a}:{p} > {b}:{q}"), format!("{a} > {b}"), false)
        }),
        (end[1].clone(), end[1].clone(), port(), port()).prop_map(|(a, b, p, q)| {
            (format!("[{a}]:{p} > [{b}]:{q}"), format!("{a} > {b}"), true)
        }),
    ];
    (ends, 0..6_usize).prop_map(|((with_ports, without, is_ip6), kind)| {
        let text = match kind {
            0 => format!("{with_ports} udp \"abc\""),
            1 => format!("{with_ports} tcp syn"),
            2 => format!("{with_ports} tcp rst"),
            3 => format!("{with_ports} udp id 7 frag 0+ len 80"),
            4 => format!("{without} udp id 7 frag 16 len 80"),
            _ if is_ip6 => format!("{without} icmp6 type 128"),
            _ => format!("{without} icmp type echo"),
        };
        sketch::build(&text).expect("is a packet").bytes
    })
}

fn passes_firewall(bytes: &[u8], headers: &Headers) -> bool {
    let rules: Vec<Rule> =
        FIREWALL.iter().map(|text| Rule::filter(text, 1).expect("is a rule")).collect();
    headers.is_ip6 || Program::compile(&rules).run_ip(bytes) == Some(0)
}

/// The header string of a packet behind the load balancer, in plain code.
pub(in crate::policy) fn balanced(string: Bits, headers: &Headers) -> Bits {
    let (mut bytes, hash) = (string.0, u16::from_be_bytes([string.0[1], string.0[2]]));
    let (address, port) = end(&bytes, headers, false);
    let is_service = address == [203, 0, 113, 10] && port == 443_u16.to_be_bytes();
    if is_service && headers.protocol == ip_proto::TCP && !headers.is_later_fragment {
        // 32 : 21 : 11 of 64 buckets; long runs come first.
        let lengths = [(0, 32), (1, 16), (2, 8), (1, 4), (2, 2), (1, 1), (2, 1)];
        let table = lengths.iter().flat_map(|&(backend, length)| vec![backend; length]);
        let backend: u8 = table.collect::<Vec<_>>()[usize::from(hash >> 10)];
        let port = if backend == 1 { 8443_u16.to_be_bytes().to_vec() } else { port };
        put_end(&mut bytes, headers, false, &(vec![10, 0, 0, backend + 1], port));
    }
    Bits(bytes)
}

/// The header string of a packet behind firewall and translation, in plain code; other packets are dropped
/// or pass.
pub(in crate::policy) fn behind_nat(
    (bytes, headers, string): (&[u8], &Headers, Bits),
    is_outbound: bool,
    drops_rest: bool,
    has_firewall: bool,
) -> Bits {
    let is_passed = !has_firewall || passes_firewall(bytes, headers);
    match translated(string, headers, is_outbound) {
        _ if !is_passed => Bits::ZERO,
        Some(new) => new,
        None if drops_rest => Bits::ZERO,
        None => string,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn addresses_are_translated_as_in_plain_code(
        bytes in packets(),
        is_outbound: bool,
        drops_rest: bool,
        has_firewall: bool,
    ) {
        let direction = if is_outbound { "outbound" } else { "inbound" };
        let policy = compiled(&nat(direction, if drops_rest { "drop" } else { "pass" }, has_firewall));
        let headers = Headers::of(&bytes, 0).expect("has headers");
        let string = header_string(&bytes, &headers) & Bits::first(policy.header_bits);
        let expected = behind_nat((&bytes, &headers, string), is_outbound, drops_rest, has_firewall);
        prop_assert_eq!(policy.function.evaluate(string), expected);
    }

    #[test]
    fn backends_get_the_buckets_of_their_weights(
        bytes in packets(),
        hash: u16,
    ) {
        let policy = compiled(BALANCER);
        let headers = Headers::of(&bytes, 0).expect("has headers");
        let mut string = header_string(&bytes, &headers);
        string.put(SOURCE_HASH.at, SOURCE_HASH.width, hash.into());
        let string = string & Bits::first(policy.header_bits);
        prop_assert_eq!(policy.function.evaluate(string), balanced(string, &headers));
    }

    #[test]
    fn replies_of_backends_come_from_the_service(
        bytes in packets(),
        hash: u16,
    ) {
        let requests = compiled(BALANCER);
        let replies = compiled(&BALANCER.replace("buckets", "direction = \"outbound\"\nbuckets"));
        let headers = Headers::of(&bytes, 0).expect("has headers");
        let mut string = header_string(&bytes, &headers);
        string.put(SOURCE_HASH.at, SOURCE_HASH.width, hash.into());
        let string = string & Bits::first(requests.header_bits.max(replies.header_bits));
        let exchanged = |string: Bits| {
            let mut bytes = string.0;
            let ends = [true, false].map(|is_source| end(&bytes, &headers, is_source));
            put_end(&mut bytes, &headers, true, &ends[1]);
            put_end(&mut bytes, &headers, false, &ends[0]);
            Bits(bytes)
        };
        let has_ports = !headers.is_later_fragment && matches!(headers.protocol, ip_proto::TCP);
        let request = requests.function.evaluate(string);
        if request != string {
            prop_assert!(has_ports);
            let reply = replies.function.evaluate(exchanged(request));
            prop_assert_eq!(reply, exchanged(string));
        }
    }

    #[test]
    fn shares_are_in_proportion_and_runs_are_prefixes(
        weights in prop::collection::vec(0..50_u32, 1..40),
        bits in 6..13_u32,
    ) {
        let total: u32 = weights.iter().sum();
        prop_assume!(total > 0);
        let shares = shares(&weights, 1 << bits);
        prop_assert_eq!(shares.iter().sum::<u32>(), 1 << bits);
        let is_small = |weight: u32| weight > 0 && (weight << bits) < total;
        for (&weight, &share) in weights.iter().zip(&shares) {
            prop_assert_eq!(weight > 0, share > 0);
            // Backends with less than a bucket get one, at the expense of others.
            if !weights.iter().any(|&it| is_small(it)) {
                prop_assert!((share * total).abs_diff(weight << bits) < total);
            }
        }
        let mut next = 0;
        for run in runs(&shares) {
            prop_assert_eq!(run.first, next);
            prop_assert!(run.first.is_multiple_of(1 << run.size_bits));
            next += 1 << run.size_bits;
        }
        prop_assert_eq!(next, 1 << bits);
    }
}

/// Errors as line, words and message.
fn errors(text: &str) -> Vec<String> {
    let show = |it: &PolicyError| {
        let words = text[it.range.clone()].lines().next().unwrap_or_default();
        format!("{}: {words}: {}", it.line(text), it.message)
    };
    compile(Format::Toml, text).map(|_| ()).unwrap_err().iter().map(show).collect()
}

#[test]
fn errors_have_places_and_come_together() {
    let text = r#"[firewall]
rules = ["allow tcp", "allow prot 6", 'deny ip len > 99999999999']
[nat]
direction = "inbound"
rest = "pass"
[[nat.map]]
inside = "10.0.0.1/24"
outside = "192.0.2.0/24"
[[nat.map]]
inside = "10.0.0.0/24"
outside = "192.0.2.0/25"
[[nat.map]]
inside = "10.0.0.1:5"
outside = "192.0.2.1:5"
[[nat.map]]
inside = "10.0.0.1"
outside = "x"
"#;
    let shown = errors(text);
    assert!(shown[0].starts_with("2: prot: "), "{shown:?}");
    assert!(shown[1].starts_with("2: "), "{shown:?}");
    assert_eq!(
        shown[2..],
        [
            "7: \"10.0.0.1/24\": `10.0.0.1/24` has bits behind its prefix",
            "9: [[nat.map]]: the prefixes have different lengths",
            "12: [[nat.map]]: ports without a protocol",
            "17: \"x\": `x` is no address",
        ]
    );
}

#[test]
fn maps_that_overlap_are_errors() {
    let map = |inside: &str, outside: &str, protocol: &str| {
        let protocol = if protocol.is_empty() {
            String::new()
        } else {
            format!("protocol = \"{protocol}\"\n")
        };
        format!("[[nat.map]]\ninside = \"{inside}\"\noutside = \"{outside}\"\n{protocol}")
    };
    let head = "[nat]\ndirection = \"outbound\"\nrest = \"drop\"\n";
    let all = |maps: &[String]| format!("{head}{}", maps.concat());
    let first = map("10.0.0.0/24", "192.0.2.0/24", "");
    for (second, expected) in [
        (
            map("10.0.0.128/25", "192.0.3.0/25", ""),
            vec![
                "8: \"10.0.0.128/25\": `10.0.0.128/25` overlaps 10.0.0.0/24, which another map has",
            ],
        ),
        (
            map("10.0.1.0:5", "192.0.2.7:6", "tcp"),
            vec!["9: \"192.0.2.7:6\": `192.0.2.7:6` overlaps 192.0.2.0/24, which another map has"],
        ),
        (map("10.0.0.1", "fd00::1", ""), vec!["7: [[nat.map]]: one side is IPv4, the other IPv6"]),
        (map("10.0.5.1", "1.0.0.1", "udp"), vec!["7: [[nat.map]]: a protocol without ports"]),
        (
            map("10.0.5.1:5", "1.0.0.1", "udp"),
            vec!["7: [[nat.map]]: one side has a port, the other has none"],
        ),
    ] {
        assert_eq!(errors(&all(&[first.clone(), second])), expected);
    }
    let ports = map("10.0.0.1:5", "1.0.0.1:6", "tcp");
    assert_eq!(errors(&all(&[ports.clone(), map("10.0.0.1:5", "1.0.0.1:7", "tcp")])).len(), 1);
    for fine in [map("10.0.0.1:5", "1.0.0.1:6", "udp"), map("10.0.0.1:6", "1.0.0.1:7", "tcp")] {
        compiled(&all(&[ports.clone(), fine]));
    }
}

#[test]
fn structure_and_load_balancers_have_errors_too() {
    let one = |text: &str| {
        let all = errors(text);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    };
    assert!(
        one("[nat]\ndirectoin = \"inbound\"\n")
            .starts_with("2: directoin: unknown field `directoin`")
    );
    assert!(one("[nat]\nrest = \"pass\"\nmap = []\n").contains("missing field `direction`"));
    assert!(one("[firewall]\nrules = [5]\n").starts_with("2: 5: invalid type"));
    assert!(one("[firewall\n").starts_with("1: "));
    assert_eq!(one(""), "1: : the policy is empty");
    let both = format!("{}{BALANCER}", nat("inbound", "pass", false));
    assert!(one(&both).contains("not both"));
    for (before, after, expected) in [
        ("buckets = 64", "buckets = 65", "65 buckets: it is a power of two, at most 4096"),
        ("buckets = 64", "buckets = 2", "2 buckets for 3 backends"),
        ("203.0.113.10:443", "203.0.113.0/24", "the service is a prefix"),
        ("protocol = \"tcp\"", "", "a port without a protocol"),
        ("203.0.113.10:443", "203.0.113.10", "the backend has a port, and the service has none"),
        ("10.0.0.3", "fd00::3", "the backend is of another family than the service"),
        ("10.0.0.3", "10.0.3.0/24", "the backend is a prefix"),
    ] {
        let error = one(&BALANCER.replace(before, after));
        assert!(error.ends_with(expected), "{error}");
    }
    let none = BALANCER.replace("weight = 3", "weight = 0").replace("weight = 2", "weight = 0");
    assert!(
        one(&none.replace("10.0.0.3\"", "10.0.0.3\"\nweight = 0"))
            .ends_with("no backend has a weight")
    );
    // A service of all protocols, IPv6, behind a firewall.
    let text = "[firewall]\nrules = []\nip6 = \"pass\"\n[load_balancer]\nservice = \"2001:db8::1\"\n\
                buckets = 1\nrest = \"drop\"\nbackend = [{ address = \"fd00::1\" }]\n";
    let policy = compiled(text);
    let result = |text: &str| {
        let bytes = sketch::build(text).expect(text).bytes;
        let headers = Headers::of(&bytes, 0).expect(text);
        let string = header_string(&bytes, &headers) & Bits::first(policy.header_bits);
        let result = policy.function.evaluate(string);
        (!result.is_zero()).then(|| result.0[IP6.dst.at / 8..][..2].to_vec())
    };
    assert_eq!(result("[::1]:5 > [2001:db8::1]:6 udp"), Some(vec![0xfd, 0]));
    assert_eq!(result("::1 > 2001:db8::1 icmp6 type 128"), Some(vec![0xfd, 0]));
    assert_eq!(result("[::1]:5 > [2001:db8::2]:6 udp"), None);
    assert_eq!(result("1.0.0.1:5 > 2.0.0.2:6 udp"), None);
}
