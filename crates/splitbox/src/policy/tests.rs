//! Compiled policies through all parties, against plain code, packet bytes included.

use super::document::tests::{BALANCER, balanced, behind_nat, compiled, nat};
use super::rules::tests::reference;
use super::*;
use crate::digest::HashKind;
use crate::header::{SourceHash, header_string, write_header_string};
use crate::setup::{BlindUse, Setup, SetupError, SetupOptions};
use castanet_kit::classify::{Program, Rule};
use castanet_wire::headers::Headers;
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header, sketch};
use proptest::prelude::*;
use std::net::IpAddr;
use std::path::Path;

const FIREWALL: &[&str] = &[
    "deny src net 10.0.0.128/25",
    "allow dst port 80 or 443 or 8080",
    "deny ip frag",
    "allow udp and dst port > 5000",
    "deny tcp opt syn and not tcp opt ack",
    "allow tcp src port < 1024",
    "allow icmp type echo or icmp type echo-reply",
];

const RULES: &[&str] = &[
    "proto udp drop",
    "ip-saddr 192.0.2.0/24 accept",
    "tcp-dport 443 mod tcp-dport 8443 mod ip-daddr 10.0.0.1",
    "tcp-syn mod ip-dscp 5 mod ip6-dscp 5",
    "ip6-daddr 2001:db8:5::/48 mod ip6-daddr fd00:9::/32",
    "! tcp-dport mod ip-ttl 9",
];

/// The addresses of [`JOINED`].
const JOINED_ADDRESSES: [&str; 5] = ["10.0.0.7", "10.0.1.5", "192.0.2.8", "192.0.2.9", "fd00:1::9"];
const JOINED: &str = "src=10.0.0.7, 10.0.1.5, 192.0.2.8/31, fd00:1::9";

const PACKETS: &[&str] = &[
    "10.0.0.7:80 > 203.0.113.10:443 tcp syn",
    "10.0.1.5:8080 > 192.0.3.1:80 tcp ack \"abc\"",
    "10.0.1.5:8080 > 192.0.2.9:5353 udp \"abcd\"",
    "192.0.2.9:53 > 192.0.3.1:81 udp nocheck",
    "203.0.113.10:443 > 10.0.0.9:5000 tcp syn ack ipopt 0x01010100",
    "192.0.2.77:9 > 203.0.113.10:443 tcp id 7 frag 0+ len 60",
    "192.0.2.77 > 203.0.113.10 tcp id 7 frag 16 len 60",
    "192.0.2.9 > 10.0.0.1 icmp type echo",
    "10.0.0.9 > 192.0.2.8 icmp type unreachable",
    "10.0.0.9 > 192.0.2.8 proto 47 len 60",
    "[fd00:1::9]:5 > [2001:db8:5::9]:6 tcp syn",
    "[fd00:2::1]:53 > [2001:db8:6::1]:5353 udp \"x\"",
    "[2001:db8:5::2]:22 > [fd00:1::3]:22 tcp ack",
    "fd00:1::9 > 2001:db8:5::9 icmp6 type 128",
    "fd00:1::9 > 2001:db8:5::9 udp id 7 frag 16 len 80",
];

/// The header string of a packet afterwards, 0 if it is dropped.
type PlainFunction = Box<dyn Fn(&[u8], &Headers, Bits) -> Bits>;

/// A policy and its plain code.
struct Function {
    name: &'static str,
    policy: CompiledPolicy,
    plain: PlainFunction,
}

fn functions() -> Vec<Function> {
    let filter: Vec<Rule> =
        FIREWALL.iter().map(|it| Rule::filter(it, 1).expect("is a rule")).collect();
    let program = Program::compile(&filter);
    let of_nat = |name, is_outbound, drops_rest, has_firewall| Function {
        name,
        policy: compiled(&nat(
            if is_outbound { "outbound" } else { "inbound" },
            if drops_rest { "drop" } else { "pass" },
            has_firewall,
        )),
        plain: Box::new(move |bytes, headers, string| {
            behind_nat((bytes, headers, string), is_outbound, drops_rest, has_firewall)
        }),
    };
    vec![
        Function {
            name: "firewall",
            policy: compile(Format::IpFilter, &FIREWALL.join("\n")).expect("are rules"),
            plain: Box::new(move |bytes, headers, string| {
                let is_allowed = !headers.is_ip6 && program.run_ip(bytes) == Some(0);
                if is_allowed { string } else { Bits::ZERO }
            }),
        },
        of_nat("outbound translation", true, false, false),
        of_nat("inbound translation behind a firewall", false, true, true),
        Function {
            name: "load balancer",
            policy: compiled(BALANCER),
            plain: Box::new(|_, headers, string| balanced(string, headers)),
        },
        Function {
            name: "rules",
            policy: compile(Format::Rules, &RULES.join("\n")).expect("are rules"),
            plain: Box::new(|bytes, headers, _| {
                let changed = reference(RULES, bytes, headers);
                changed.map_or(Bits::ZERO, |it| header_string(&it, headers))
            }),
        },
    ]
}

/// The IP packets of a capture that the entry takes.
fn captured() -> Vec<Vec<u8>> {
    let capture = include_bytes!("../../../../conf/sample.pcap");
    let mut reader = castanet_wire::pcap::Reader::new(&capture[..]).expect("is a capture");
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().expect("is whole") {
        let ip = packet.data.get(Ethernet::LEN..).unwrap_or_default();
        if Headers::of(ip, 0).is_some_and(|it| !it.is_cut()) {
            packets.push(ip.to_vec());
        }
    }
    packets
}

/// A source of packets: sketches and captured packets, with other addresses and ports, and random bytes.
struct PacketSource {
    packets: Vec<Vec<u8>>,
    captured: Vec<Vec<u8>>,
    state: u64,
}

impl PacketSource {
    fn new(state: u64) -> PacketSource {
        let build = |text: &&str| sketch::build(text).expect("is a packet").bytes;
        let captured = captured();
        assert!(captured.len() > 10, "the capture has packets");
        PacketSource { packets: PACKETS.iter().map(build).collect(), captured, state }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.state >> 32
    }

    /// The next packet that an entry takes.
    fn next(&mut self) -> (Vec<u8>, Headers) {
        loop {
            let which = self.random() as usize;
            let is_captured = self.random().is_multiple_of(8);
            let packets = if is_captured { &self.captured } else { &self.packets };
            let mut bytes = packets[which % packets.len()].clone();
            match self.random() % 4 {
                0 => bytes[1..].iter_mut().for_each(|it| *it = self.random() as u8),
                1 => {}
                _ => {
                    let last = if bytes[0] >> 4 == 6 { [23, 39] } else { [15, 19] };
                    bytes[last[0]] = self.random() as u8;
                    let at = last[1] + 1 + self.random() as usize % 4;
                    bytes[at] = self.random() as u8;
                }
            }
            let headers = Headers::of(&bytes, 0).filter(|it| !it.is_cut());
            if let Some(headers) = headers {
                return (bytes, headers);
            }
        }
    }
}

fn options(processors: usize, header_bits: usize) -> SetupOptions {
    SetupOptions {
        processors,
        hash: HashKind::Blake3,
        header_bits,
        blinds: 61,
        blind_use: BlindUse::Again,
        lanes: 1,
        has_constant_work: false,
    }
}

/// The packet with a changed header string; none if that is 0.
fn written(bytes: &[u8], headers: &Headers, string: Bits) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    write_header_string(&mut bytes, headers, &string);
    (!string.is_zero()).then_some(bytes)
}

/// Sends packets through all parties of a function; returns how many were dropped and changed.
fn run(
    function: &Function,
    processors: usize,
    packets: &mut PacketSource,
    count: usize,
) -> [usize; 2] {
    let within = Bits::first(function.policy.header_bits);
    let options = options(processors, function.policy.header_bits);
    let setup = Setup::new(&function.policy.function, options).expect("is possible");
    let hash = SourceHash::new(&setup.entry.source_key);
    let mut parties = setup.processors(&setup.rows(1).expect("memory").into());
    let (mut entry, mut client) = (setup.entry(1), setup.client(1));
    let (mut shares, mut dropped, mut changed) = (Vec::new(), 0, 0);
    for _ in 0..count {
        let (bytes, headers) = packets.next();
        let mut string = header_string(&bytes, &headers);
        hash.put(&headers, &mut string);
        let packet = entry.split(string & within).expect("has a blind");
        shares.clear();
        shares.extend(parties.iter_mut().map(|it| it.process(&packet)));
        let result = client.merge(&packet, &shares).expect("all shares");
        let rest = if result.is_zero() { Bits::ZERO } else { string & !within };
        let private = written(&bytes, &headers, result | rest);
        let plain = written(&bytes, &headers, (function.plain)(&bytes, &headers, string));
        assert_eq!(private, plain, "{}, t = {processors}: {bytes:02x?}", function.name);
        dropped += usize::from(plain.is_none());
        changed += usize::from(plain.is_some_and(|it| it != bytes));
    }
    [dropped, changed]
}

#[test]
fn one_million_packets_through_each_function() {
    // Fewer in a build with checks. Each number of processors has a third of the packets.
    let count = if cfg!(debug_assertions) { 1_000 } else { 333_334 };
    for function in functions() {
        for processors in [2, 3, 5] {
            let mut packets = PacketSource::new(processors as u64);
            let [dropped, changed] = run(&function, processors, &mut packets, count);
            let (name, few) = (function.name, count / 50);
            let drops =
                matches!(name, "firewall" | "inbound translation behind a firewall" | "rules");
            assert_eq!(dropped > few, drops, "{name}: {dropped} of {count} dropped");
            assert_eq!(changed > few, name != "firewall", "{name}: {changed} of {count} changed");
        }
    }
}

/// Joins a function with sources, if a match needs it; in plain code packets of others are dropped.
fn join(function: &mut Function) {
    let field: JoinField = JOINED.parse().expect("is a field");
    let joined = field.join(&function.policy, 32).expect("can be joined");
    if joined == function.policy {
        return;
    }
    function.policy = joined;
    let plain = std::mem::replace(&mut function.plain, Box::new(|_, _, string| string));
    function.plain = Box::new(move |bytes, headers, string| {
        let source: IpAddr = match headers.is_ip6 {
            false => Ipv4Header::from_prefix(bytes).expect("is whole").0.src().into(),
            true => Ipv6Header::from_prefix(bytes).expect("is whole").0.src().into(),
        };
        let is_known = JOINED_ADDRESSES.contains(&source.to_string().as_str());
        if is_known { plain(bytes, headers, string) } else { Bits::ZERO }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Order changes no result of a compiled policy, through all parties; joining none of packets
    /// of known sources.
    #[test]
    fn ordered_and_joined_policies_are_equal_through_all_parties(
        number in 0..5_usize,
        is_joined: bool,
        has_branches: bool,
        seed: u64,
        processors in prop::sample::select(vec![2, 3, 5]),
    ) {
        let mut function = functions().swap_remove(number);
        let mut packets = PacketSource::new(seed);
        let profile: Profile = (0..200).map(|_| {
            let (bytes, headers) = packets.next();
            header_string(&bytes, &headers)
        }).collect();
        let shape = if has_branches { TreeShape::Branches } else { TreeShape::Lists };
        let (policy, report) = order(&function.policy, &profile, shape);
        prop_assert!(report.after <= report.before);
        function.policy = policy;
        if is_joined {
            join(&mut function);
        }
        run(&function, processors, &mut packets, 200);
    }
}

#[test]
fn formats_have_names_and_endings() {
    for name in ["ipfilter", "ipclassifier", "rules", "toml"] {
        assert_eq!(name.parse::<Format>().map(|it| it.to_string()), Ok(name.to_owned()));
    }
    let error = |text: &str| text.parse::<Format>().unwrap_err();
    assert_eq!(error("rule"), "`rule` is no format; did you mean `rules`?");
    assert_eq!(
        error("nothing"),
        "`nothing` is no format; a format is one of ipfilter, ipclassifier, rules, toml"
    );
    let of = |name: &str| Format::of_file(Path::new(name));
    assert_eq!(
        [of("a.toml"), of("b/c.mmb"), of("d.txt"), of("e")],
        [Format::Toml, Format::Rules, Format::IpFilter, Format::IpFilter,]
    );
}

#[test]
fn errors_of_a_setup_have_places_in_the_policy() {
    let text = "deny src host 1.0.0.1\nallow dst port 80\n";
    let policy = compile(Format::IpFilter, text).expect("are rules");
    let error = Setup::new(&policy.function, options(2, 8)).unwrap_err();
    let SetupError::Width { policy: index, .. } = error else { panic!("{error}") };
    let error = policy.error_at(index, &error);
    assert_eq!((&text[error.range.clone()], error.line(text)), ("deny src host 1.0.0.1", 1));
    let mut sources = castanet_lang::SourceMap::new();
    let file = sources.add("policy", text);
    let all: castanet_lang::Diagnostics = [error.diagnostic(file)].into_iter().collect();
    assert!(
        all.render_rich(&sources, false).contains("policy:1:1"),
        "{}",
        all.render_rich(&sources, false)
    );
}

#[test]
fn actions_and_paths_that_cannot_be_private_are_errors_at_their_places() {
    use stage::{Effect, Entry, Stage, build, family, transport};
    let entry = |condition, action, next, at: usize| Entry {
        condition,
        effect: Effect::Set(action, next),
        range: at..at + 1,
    };
    let (four, tcp) = (family(false), transport(false, castanet_wire::ip_proto::TCP));
    let set = |field: crate::header::HeaderField| Ternary::ANY.with(field.at, field.width, 1);
    let crate::header::HeaderFields { ttl, protocol, sport, dst, .. } = crate::header::IP4;
    let message = |stages: &[Stage]| {
        let errors = build(stages).map(|_| ()).unwrap_err();
        errors.iter().map(|it| (it.range.start, it.message.clone())).collect::<Vec<_>>()
    };
    let outside = "the action changes what no action may change".to_owned();
    let entries = vec![
        entry(four, set(ttl), 1, 0),
        entry(four, set(protocol), 1, 1),
        entry(four, set(sport), 1, 2),
        entry(tcp, set(sport), 1, 3),
        entry(Ternary::ANY, set(ttl), 1, 4),
    ];
    let expected = [1, 2, 4].map(|at| (at, outside.clone()));
    assert_eq!(message(&[Stage { entries, rest: 1 }]), expected);
    let two = |first: Entry, second: Entry| {
        [Stage { entries: vec![first], rest: 1 }, Stage { entries: vec![second], rest: 2 }]
    };
    let overlap = two(entry(four, set(dst), 1, 0), entry(four, set(dst), 2, 7));
    let text = "the action changes bits that an earlier action changes".to_owned();
    assert_eq!(message(&overlap), [(7, text)]);
    let tested = four.with(dst.at, 8, 10);
    let chaining = two(entry(four, set(dst), 1, 0), entry(tested, set(ttl), 2, 7));
    let text = "the match tests bits that an earlier action changes".to_owned();
    assert_eq!(message(&chaining), [(7, text)]);
    // No packet takes both.
    let exclusive =
        two(entry(tested, set(dst), 1, 0), entry(four.with(dst.at, 8, 11), set(ttl), 2, 7));
    assert!(build(&exclusive).is_ok());
}
