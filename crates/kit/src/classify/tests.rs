//! Tests of the classifier against a naive evaluation of the same rules, and examples of the
//! languages.

use proptest::prelude::*;

use super::bytecode::{Bytecode, NO_OUTPUT};
use super::estimate::alternatives;
use super::graph::Graph;
use super::header_words::{HeaderWords, Headers, RawBytes};
use super::pattern::{Base, Expr, Pattern, Test};
use super::table::{Lookups, RuleTable};
use super::{Program, Rule, RuleError};

/// Evaluates the pattern's expression on a packet.
pub(super) fn evaluate(pattern: &Pattern, headers: [&[u8]; 4]) -> bool {
    let mut values: Vec<bool> = Vec::new();
    for expr in &pattern.nodes {
        let value = |id: u32| values[id as usize];
        let answer = match *expr {
            Expr::Const(value, _) => value,
            Expr::Test { test, negated, .. } => {
                answer(&test, headers[test.base as usize]).is_some_and(|a| a != negated)
            }
            Expr::Not(a) => !value(a),
            Expr::And(a, b) => value(a) && value(b),
            Expr::Or(a, b) => value(a) || value(b),
            Expr::Cond(a, b, c) => value(if value(a) { b } else { c }),
        };
        values.push(answer);
    }
    values.pop().unwrap()
}

/// The result of a test, byte by byte; `None` if a masked byte is missing.
fn answer(test: &Test, header: &[u8]) -> Option<bool> {
    let mut word = 0;
    for i in 0..4 {
        let mask = (test.mask >> (24 - 8 * i)) as u8;
        let at = usize::from(test.offset) + i;
        let at = if test.base == Base::Link { at.checked_sub(2) } else { Some(at) };
        let byte = at.and_then(|at| header.get(at)).copied();
        // Bytes before the last masked one exist if that one does.
        word = word << 8 | u32::from(if mask == 0 { 0 } else { byte? });
    }
    Some(test.accepts(word))
}

pub(super) fn linear_search(rules: &[Rule], headers: [&[u8]; 4]) -> Option<u8> {
    rules.iter().find(|r| evaluate(&r.pattern, headers)).and_then(|r| r.output)
}

pub(super) fn headers<'a>(link: &'a [u8], network: &'a [u8]) -> [&'a [u8]; 4] {
    let transport = network.first().map_or(0, |b| usize::from(b & 15) * 4);
    [network, link, network, network.get(transport..).unwrap_or(&[])]
}

/// Rules compiled as tests and as a table, whichever is cheaper.
pub(super) struct BothForms {
    tests: Bytecode,
    pub(super) table: RuleTable,
}

impl BothForms {
    pub(super) fn new(rules: &[Rule]) -> BothForms {
        let tests = Bytecode::new(&Graph::from_rules(rules.iter()));
        BothForms { tests, table: RuleTable::new(rules) }
    }

    /// The outputs of packets by tests, by the table one at a time, and by the table in a batch.
    pub(super) fn outputs<W: HeaderWords>(&self, packets: &[W]) -> Vec<[Option<u8>; 3]> {
        let mut lookups = Lookups::default();
        packets.iter().for_each(|words| self.table.add(&mut lookups, words));
        self.table.find_all(&mut lookups);
        let all = packets.iter().map(|words| {
            let together = self.table.next(&mut lookups, words).unwrap();
            let some = |output: u8| (output != NO_OUTPUT).then_some(output);
            [self.tests.run(words), self.table.run(words), together].map(some)
        });
        let all = all.collect();
        assert_eq!(packets.first().and_then(|it| self.table.next(&mut lookups, it)), None);
        all
    }
}

pub(super) fn ip(text: &str) -> Pattern {
    Pattern::ip(text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

fn rules(patterns: &[&str]) -> Vec<Rule> {
    patterns.iter().enumerate().map(|(i, p)| Rule::new(ip(p), Some(i as u8))).collect()
}

fn bytes(patterns: &[&str]) -> Program {
    let rules: Vec<Rule> = patterns
        .iter()
        .enumerate()
        .map(|(i, p)| Rule::new(Pattern::bytes(p).unwrap(), Some(i as u8)))
        .collect();
    Program::compile(&rules)
}

/// An IPv4 packet with eight or more bytes of transport header.
pub(super) fn packet(protocol: u8, src: [u8; 4], dst: [u8; 4], sport: u16, dport: u16) -> Vec<u8> {
    let mut p = vec![0x45, 0, 0, 40, 0, 1, 0, 0, 64, protocol, 0, 0];
    p.extend(src);
    p.extend(dst);
    p.extend(sport.to_be_bytes());
    p.extend(dport.to_be_bytes());
    p.extend([0; 16]);
    p
}

fn matches(pattern: &str, packet: &[u8]) -> bool {
    Program::compile(&[Rule::new(ip(pattern), Some(0))]).run_ip(packet).is_some()
}

#[test]
fn classifies_ethernet_as_the_manual_does() {
    let program = bytes(&["12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"]);
    let mut frame = [0u8; 60];
    assert_eq!(program.run_bytes(&frame), Some(3));
    frame[12] = 8;
    assert_eq!(program.run_bytes(&frame), Some(2));
    frame[13] = 6;
    assert_eq!(program.run_bytes(&frame), Some(3));
    frame[21] = 2;
    assert_eq!(program.run_bytes(&frame), Some(1));
    frame[21] = 1;
    assert_eq!(program.run_bytes(&frame), Some(0));
    assert_eq!(program.run_bytes(&frame[..21]), Some(3), "too short for the opcode");
    assert_eq!(program.run_bytes(&[]), Some(3));
    assert_eq!(
        program.to_string(),
        " 0  12/08060000%ffff0000  yes->step 1  no->step 3\n \
         1  20/00010000%ffff0000  yes->[0]  no->step 2\n \
         2  20/00020000%ffff0000  yes->[1]  no->[3]\n \
         3  12/08000000%ffff0000  yes->[2]  no->[3]\n\
         safe length 22\nalignment offset 0\n"
    );
}

#[test]
fn bytes_take_wildcards_masks_and_negation() {
    let program = bytes(&["!0/4?", "0/40%f0 3/aabbccddee", "0/4?55"]);
    assert_eq!(program.run_bytes(&[0x50]), Some(0));
    assert_eq!(program.run_bytes(&[]), Some(0), "a negated clause takes short packets");
    assert_eq!(program.run_bytes(&[0x41, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0xee]), Some(1));
    assert_eq!(program.run_bytes(&[0x41, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd]), None);
    assert_eq!(program.run_bytes(&[0x41, 0x55]), Some(2));
    assert_eq!(bytes(&["100/????"]).run_bytes(&[]), Some(0));
}

#[test]
fn byte_pattern_errors_have_offsets() {
    let error = |text: &str| {
        let e = Pattern::bytes(text).unwrap_err();
        (e.offset, e.message)
    };
    assert_eq!(error("12/0800 x"), (8, "expected a digit".into()));
    assert_eq!(error("12"), (2, "expected '/'".into()));
    assert_eq!(error("12/0"), (3, "value has less than 2 hex digits".into()));
    assert_eq!(error("12/080"), (3, "value has odd number of hex digits".into()));
    assert_eq!(error("12/0800%ff"), (8, "mask has too few hex digits".into()));
    assert_eq!(error("12/08%ffff"), (6, "mask has too many hex digits".into()));
    assert_eq!(error("99999999999999999999/08"), (0, "offset is beyond any packet".into()));
}

#[test]
fn primitives_match_their_protocols_and_fields() {
    let tcp = packet(6, [10, 0, 0, 1], [20, 0, 0, 2], 1234, 80);
    let udp = packet(17, [10, 0, 0, 1], [20, 0, 0, 2], 53, 53);
    for (pattern, takes_tcp, takes_udp) in [
        ("tcp", true, false),
        ("ip proto 17", false, true),
        ("proto != tcp", false, true),
        ("src host 10.0.0.1", true, true),
        ("dst 10.0.0.1", false, false),
        ("host 20.0.0.2", true, true),
        ("src and dst host 10.0.0.1", false, false),
        ("src net 10.0.0.0/8 and dst net 20.0.0.0 mask 255.0.0.0", true, true),
        ("10/8", true, true),
        ("src port 1234 or 53", true, true),
        ("dst tcp port www", true, false),
        ("http", true, false),
        ("dst port != 80", false, true),
        ("not dst port 80", false, true),
        ("dst port > 79 and < 81", true, false),
        ("dst port >= 80", true, false),
        ("dst port <= 79", false, true),
        ("port > 1000", true, false),
        ("port <= 1000", false, true),
        ("port < 1000", false, true),
        ("src tcp port & 0xff == 0xd2", true, false),
        ("ip vers 4 and ip hl 5 and ip len 40 and ip id 1", true, true),
        ("ip ttl < 64", false, false),
        ("ip[8] = 64", true, true),
        ("ip[9:1] 6", true, false),
        ("tcp[2:2] = 80", true, false),
        ("transp[0,1] 53", false, true),
        ("tcp ? dst port 80 : src port 53", true, true),
        ("tcp ? false : udp ? true : false", false, true),
        ("(tcp or udp) and not (src 1.2.3.4)", true, true),
        ("! ! tcp", true, false),
        ("true", true, true),
        ("false", false, false),
        ("any", true, true),
        ("none", false, false),
        ("unfrag", true, true),
        ("ip frag", false, false),
        ("ip ect", false, false),
        ("tcpudp", true, true),
        ("not transp", false, false),
    ] {
        assert_eq!(matches(pattern, &tcp), takes_tcp, "{pattern} on TCP");
        assert_eq!(matches(pattern, &udp), takes_udp, "{pattern} on UDP");
    }
}

#[test]
fn flags_types_and_fragments() {
    let mut tcp = packet(6, [1; 4], [2; 4], 1, 2);
    tcp[33] = 0x12;
    tcp[35] = 7;
    assert!(
        matches("syn", &tcp) && matches("syn ack", &tcp) && matches("tcp opt syn and ack", &tcp)
    );
    assert!(!matches("fin", &tcp) && matches("not rst", &tcp) && matches("tcp win 7", &tcp));
    assert!(matches("tcp[13] & 2 != 0", &tcp) && !matches("tcp[13] & 1 != 0", &tcp));
    tcp[1] = 0xBB;
    assert!(matches("ip ce and ip ect and ip dscp 46 and ip tos 0xbb and ip ect 3", &tcp));
    tcp[7] = 1;
    assert!(matches("tcp", &tcp) && matches("frag", &tcp), "a later fragment is still TCP");
    assert!(!matches("syn", &tcp) && !matches("port 1", &tcp) && !matches("port != 9", &tcp));
    assert!(!matches("tcp[13] & 1 = 0", &tcp), "but has no TCP header");
    let echo = packet(1, [1; 4], [2; 4], 0x0800, 0);
    assert!(matches("icmp type echo", &echo) && matches("icmp echo", &echo));
    assert!(!matches("icmp type != 8", &echo) && !matches("icmp type 0", &echo));
}

#[test]
fn options_move_the_transport_header() {
    let mut p = packet(6, [1; 4], [2; 4], 0, 0);
    p[0] = 0x46;
    p.splice(20..20, [1, 1, 1, 1]);
    p[26..28].copy_from_slice(&443u16.to_be_bytes());
    assert!(matches("dst port https", &p));
    assert!(!matches("dst port https", &p[..27]), "half a port is none");
    assert!(!matches("dst port != https", &p[..27]));
    assert!(matches("not dst port https", &p[..27]));
}

#[test]
fn link_headers_are_matched_if_present() {
    let frame = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0];
    let network = packet(6, [1; 4], [2; 4], 0, 0);
    for (pattern, expected) in [
        ("ether src 07:08:09:0a:0b:0c", true),
        ("ether dst host 01:02:03:04:05:06", true),
        ("ether host 01:02:03:04:05:06", true),
        ("ether src != 01:02:03:04:05:06", true),
        ("ether src and dst 01:02:03:04:05:06", false),
        ("dst 1-2-3-4-5-6", true),
        ("ether dst & ff:00:00:00:00:00 01:ff:ff:ff:ff:ff", true),
    ] {
        let program = Program::compile(&[Rule::new(ip(pattern), Some(0))]);
        assert!(program.needs_link(), "{pattern}");
        let output = program.output_of_frame(&frame, &network);
        assert_eq!(output != Program::NONE, expected, "{pattern}");
        assert_eq!(program.run_ip(&network), None, "{pattern} without a frame");
    }
}

#[test]
fn filter_rules_have_actions() {
    let texts = ["deny src net 10.0.0.0/8", "1 tcp", "allow dst port 53", "drop all"];
    let rules: Vec<Rule> = texts.iter().map(|t| Rule::filter(t, 2).unwrap()).collect();
    let program = Program::compile(&rules);
    let to = |protocol, src, port| program.run_ip(&packet(protocol, src, [9; 4], 1, port));
    assert_eq!(to(17, [10, 0, 0, 1], 53), None);
    assert_eq!(to(6, [1; 4], 53), Some(1));
    assert_eq!(to(17, [1; 4], 53), Some(0));
    assert_eq!(to(17, [1; 4], 54), None);
    assert_eq!(Rule::filter("allow", 1).unwrap().pattern, Pattern::all());
}

#[test]
fn errors_have_offset_message_and_help() {
    fn check(result: Result<Rule, RuleError>, offset: usize, message: &str, help: Option<&str>) {
        let e = result.unwrap_err();
        assert_eq!((e.offset, e.message.as_str(), e.help.as_deref()), (offset, message, help));
    }
    let rule = |text: &str| Rule::filter(text, 2);
    check(rule("alow tcp"), 0, "unknown slot ID 'alow'", Some("did you mean 'allow'?"));
    check(rule("7 tcp"), 0, "slot '7' out of range", Some("the element has 2 outputs"));
    check(rule("allow tpc"), 6, "empty term near 'tpc'", Some("did you mean 'tcp'?"));
    check(rule("allow (tcp"), 6, "missing ')'", Some("this '(' is not closed"));
    check(rule("allow tcp)"), 9, "garbage after expression at ')'", None);
    check(rule("allow tcp or"), 12, "missing expression", None);
    check(rule("allow not"), 9, "missing expression after 'not'", None);
    check(rule("allow src src 1.2.3.4"), 10, "'src' or 'dst' specified twice", None);
    check(rule("allow tcp udp"), 10, "transport protocol specified twice", None);
    check(rule("allow port 70000"), 6, "'port': out of range, bound 65535", None);
    check(rule("allow echo"), 6, "'echo' is ambiguous; try 'port echo', 'icmp type echo'", None);
    check(
        rule("allow tcp[0:5] 1"),
        9,
        "LEN in '[POS:LEN]' out of range, should be between 1 and 4",
        None,
    );
    check(rule("allow tcp[3:2] 1"), 9, "field [3:2] does not fit in a single word", None);
    check(
        rule("allow tcp ? udp"),
        10,
        "missing ':' in ternary expression",
        Some("the ':' needs a blank on either side"),
    );
    check(rule("allow src port = ="), 17, "dangling operator near '='", None);
}

#[test]
fn warnings_and_unused_outputs() {
    let pattern = ip("ip ttl < 256");
    assert_eq!(pattern.warnings()[0].message, "relation '< 256' is always true (range 0-255)");
    assert_eq!(ip("src ip ttl 5").warnings()[0].message, "'ip ttl': 'src' or 'dst' ignored");
    let program = Program::compile(&rules(&["tcp", "tcp port 80", "udp", "-", "icmp"]));
    assert_eq!(program.unused(5), [1, 4]);
    assert_eq!(
        Program::compile(&rules(&["-"])).to_string(),
        "all->[0]\nsafe length 0\nalignment offset 0\n"
    );
    assert_eq!(Program::compile(&[]).unused(1), [0]);
}

#[test]
fn nesting_has_no_limit() {
    let depth = 100_000;
    let text = format!("{}tcp{}", "not (".repeat(depth), ")".repeat(depth));
    assert!(matches(&text, &packet(6, [1; 4], [2; 4], 1, 2)));
    let ternary = format!("{}true{}", "tcp ? ".repeat(depth), " : false".repeat(depth));
    assert!(matches(&ternary, &packet(6, [1; 4], [2; 4], 1, 2)));
    assert!(Pattern::ip(&"(".repeat(depth)).is_err());
}

const WORDS: &[&str] = &[
    "tcp",
    "udp",
    "icmp",
    "src",
    "dst",
    "host",
    "net",
    "port",
    "1.0.0.1",
    "1.0.0.0/30",
    "1.0.0.2",
    "0.0.0.0/0",
    "1",
    "2",
    "3",
    "65535",
    "and",
    "or",
    "not",
    "(",
    ")",
    "?",
    ":",
    ">",
    "<",
    "!=",
    ">=",
    "<=",
    "=",
    "syn",
    "frag",
    "unfrag",
    "ip",
    "ttl",
    "proto",
    "true",
    "false",
    "&",
    "[",
    "]",
    "opt",
    "ect",
    "ether",
    "00:00:00:00:00:01",
    "src or dst",
    "mask",
    "0x3",
    "transp",
    "-",
    "10.0.0.0/8",
    "type",
    "echo",
    "www",
    "win",
    "hl",
    "$",
    "é",
];

/// Primitives over few values, so that rules overlap each other and match the packets.
fn primitive() -> impl Strategy<Value = String> {
    let ends = prop::sample::select(vec!["src", "dst", "src or dst", "src and dst", ""]);
    let relation = prop::sample::select(vec!["", "=", "!=", ">", "<", ">=", "<="]);
    let address = (0u8..3, 24u8..=32).prop_map(|(a, l)| match l {
        32 => format!("host 1.0.0.{a}"),
        _ => format!("net 1.0.0.{}/{}", a * 2, l),
    });
    prop_oneof![
        (ends.clone(), address).prop_map(|(e, a)| format!("{e} {a}")),
        (ends, relation.clone(), 0u16..5, prop::sample::select(vec!["", "tcp", "udp"]))
            .prop_map(|(e, r, p, t)| format!("{e} {t} port {r} {p}")),
        prop::sample::select(vec![
            "tcp",
            "udp",
            "icmp",
            "ip frag",
            "ip unfrag",
            "syn",
            "fin",
            "tcp win 1",
            "true",
            "icmp type 1",
            "ip ect",
            "tcpudp",
            "tcp[0:4] & 0x10001 = 1",
            "ip[20:2] > 1",
            "false",
            "ether src 0:0:0:0:0:1",
            "ether dst != 0:0:0:0:0:1",
            "ip len > 2",
            "ip hl 5",
        ])
        .prop_map(String::from),
        (relation, 0u8..4).prop_map(|(r, v)| format!("ip[0:1] & 3 {r} {v}")),
    ]
}

pub(super) fn expression() -> impl Strategy<Value = String> {
    primitive().prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) and ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) or ({b})")),
            inner.clone().prop_map(|a| format!("not ({a})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
        ]
    })
}

/// Packets that rules over few values distinguish, many of them cut short.
pub(super) fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    let few = prop_oneof![4 => 0u8..4, 1 => any::<u8>()];
    let protocol = prop::sample::select(vec![1u8, 6, 17, 4]);
    let first = prop_oneof![5 => Just(0x45u8), 1 => any::<u8>()];
    let tail = prop::collection::vec(few, 44);
    (first, tail, protocol, prop_oneof![Just(44usize), 0usize..44], any::<bool>()).prop_map(
        |(first, mut p, protocol, length, whole)| {
            (p[0], p[9], p[12], p[16]) = (first, protocol, 1, 1);
            if whole {
                p[6..8].fill(0);
                p[13..15].fill(0);
                p[17..19].fill(0);
            }
            p.truncate(length);
            p
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn programs_agree_with_their_rules(
        texts in prop::collection::vec((expression(), prop::option::of(0u8..4)), 0..12),
        packets in prop::collection::vec(any_packet(), 24),
    ) {
        let rules: Vec<Rule> =
            texts.iter().map(|(text, output)| Rule::new(ip(text), *output)).collect();
        let program = Program::compile(&rules);
        let link = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 8, 0];
        for p in &packets {
            let expected = linear_search(&rules, headers(&[], p));
            prop_assert_eq!(program.run_ip(p), expected, "{:?}\n{}\n{:?}", texts, &program, p);
            let cut = &link[..p.len().min(14)];
            let expected = linear_search(&rules, headers(cut, p)).unwrap_or(Program::NONE);
            prop_assert_eq!(program.output_of_frame(cut, p), expected);
        }
        let split: Vec<Rule> = rules.iter().flat_map(alternatives).collect();
        let cut = |p: &[u8]| &link[..p.len().min(14)];
        let frames: Vec<Headers> = packets.iter().map(|p| Headers::new(cut(p), p)).collect();
        let both = BothForms::new(&rules);
        for (p, actual) in packets.iter().zip(both.outputs(&frames)) {
            let expected = linear_search(&rules, headers(cut(p), p));
            prop_assert_eq!(linear_search(&split, headers(cut(p), p)), expected);
            prop_assert_eq!(actual, [expected; 3], "{:?}\n{}\n{:?}", texts, &both.table, p);
        }
    }

    #[test]
    fn classifiers_agree_with_their_clauses(
        texts in prop::collection::vec(
            prop::collection::vec("!?[0-9]/([0-1?]{2}|[0-1]{4}|[0-1]{4}%0[0-1]f?|[?01]{10})", 1..4),
            1..16,
        ),
        packets in prop::collection::vec(prop::collection::vec(0u8..2, 0..16), 24),
    ) {
        let texts = texts.into_iter().map(|clauses| clauses.join(" ").replace("f?", "f0"));
        let rules: Vec<Rule> = texts
            .filter_map(|t| Pattern::bytes(&t).ok())
            .enumerate()
            .map(|(i, p)| Rule::new(p, Some(i as u8)))
            .collect();
        let program = Program::compile(&rules);
        let words: Vec<RawBytes> = packets.iter().map(|p| RawBytes(p)).collect();
        let both = BothForms::new(&rules);
        for (p, actual) in packets.iter().zip(both.outputs(&words)) {
            let expected = linear_search(&rules, headers(&[], p));
            prop_assert_eq!(program.run_bytes(p), expected, "{}", &program);
            prop_assert_eq!(actual, [expected; 3], "{}", &both.table);
        }
    }

    #[test]
    fn many_rules_of_one_word_agree(
        nets in prop::collection::vec((0u32..64, 20u32..=32, 0u16..4), 1..200),
        packets in prop::collection::vec((0u32..64, 0u16..5), 32),
    ) {
        let rules: Vec<Rule> = nets.iter().enumerate().map(|(i, (net, length, port))| {
            let address = std::net::Ipv4Addr::from((net << 6) | 0x0a00_0000);
            let text = match port {
                0 => format!("src net {address}/{length}"),
                _ => format!("src net {address}/{length} and dst port {port}"),
            };
            Rule::new(ip(&text), Some(i as u8))
        }).collect();
        let program = Program::compile(&rules);
        let packets: Vec<Vec<u8>> = packets
            .into_iter()
            .map(|(src, port)| packet(6, ((src << 6) | 0x0a00_0000).to_be_bytes(), [0; 4], 0, port))
            .collect();
        let words: Vec<Headers> = packets.iter().map(|p| Headers::new(&[], p)).collect();
        for (p, actual) in packets.iter().zip(BothForms::new(&rules).outputs(&words)) {
            let expected = linear_search(&rules, headers(&[], p));
            prop_assert_eq!(program.run_ip(p), expected, "{}", &program);
            prop_assert_eq!(actual, [expected; 3]);
        }
    }

    #[test]
    fn parsers_never_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..12)) {
        let text = words.join(" ");
        for result in [Pattern::ip(&text), Pattern::bytes(&text)] {
            match result {
                Ok(pattern) => {
                    let rules = [Rule::new(pattern, Some(0))];
                    let p = packet(6, [1, 0, 0, 1], [1, 0, 0, 2], 1, 2);
                    let expected = linear_search(&rules, headers(&[], &p));
                    prop_assert_eq!(Program::compile(&rules).run_ip(&p), expected, "{}", text);
                }
                Err(e) => prop_assert!(e.offset <= text.len() && !e.message.is_empty()),
            }
        }
    }
}

#[test]
fn ten_thousand_rules_are_a_small_program_that_agrees() {
    let shapes: [fn(u32) -> String; 5] = [
        |i| format!("src host 10.{}.{}.{}", i >> 16, i >> 8 & 255, i & 255),
        |i| format!("src net 10.{}.{}.0/24 and tcp dst port {}", i >> 8, i & 255, i % 1000),
        |i| format!("tcp dst port {} or udp src port > {}", i, 65535 - i),
        |i| format!("net 10.{}.{}.0/{} and not port {}", i & 255, i >> 8, 16 + i % 16, i),
        |i| format!("ip[{}:4] & 0x{:x} = {}", i % 16 / 4 * 4, i.wrapping_mul(0x9E37_79B1) | 1, i),
    ];
    for (n, shape) in shapes.into_iter().enumerate() {
        let mut rules: Vec<Rule> =
            (0..10_000).map(|i| Rule::new(ip(&shape(i)), Some((i % 250) as u8))).collect();
        rules.push(Rule::new(Pattern::all(), Some(254)));
        let program = Program::compile(&rules);
        eprintln!("shape {n}: {} tests", program.tests());
        assert!(program.tests() < 200_000);
        for i in [0u32, 1, 77, 5000, 9999, 20_000] {
            let src = [10, (i >> 8) as u8, i as u8, 7];
            let p = packet(6, src, [10, i as u8, (i >> 8) as u8, 9], 3, (i % 1000) as u16);
            assert_eq!(
                program.run_ip(&p),
                linear_search(&rules, headers(&[], &p)),
                "shape {n}, {i}"
            );
        }
    }
}
