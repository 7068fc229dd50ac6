//! Tests of Click's programs against the patterns that they are made of, on random packets.

use super::instruction::{Comparison, Jump};
use super::{Budget, ClickProgram, MAX_WORK, order};
use crate::classify::tests::{any_packet, expression, headers, ip, linear_search};
use crate::classify::{Pattern, Program, Rule};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const LINK: [u8; 14] = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 8, 0];

/// The output of a program for a packet, as Click interprets it.
pub(super) fn interpret(program: &ClickProgram, headers: [&[u8]; 4]) -> Option<u8> {
    let mut jump = program.all.unwrap_or(Jump::Step(0));
    let mut from = None;
    loop {
        match jump {
            Jump::Output(output) => return Some(output),
            Jump::Drop => return None,
            Jump::Failure => panic!("a packet is left over"),
            Jump::Step(step) => {
                assert!(from.is_none_or(|from| from < step), "step {step} leads back");
                from = Some(step);
                let instruction = &program.instructions[step as usize];
                let result = compare(&instruction.test, headers);
                jump = instruction.jump(result.unwrap_or(instruction.test.short_yes));
            }
        }
    }
}

/// The result of a comparison; `None` if the packet is too short.
fn compare(test: &Comparison, [packet, link, network, transport]: [&[u8]; 4]) -> Option<bool> {
    // Programs of `Classifier` are given no link header, only a packet.
    let (header, at) = match usize::from(test.offset) {
        at @ 512.. => (transport, Some(at - 512)),
        at @ 256.. => (network, Some(at - 256)),
        at if link.is_empty() => (packet, Some(at)),
        at => (link, at.checked_sub(2)),
    };
    let mut word = 0;
    for i in 0..4 {
        let byte = match at {
            Some(at) => header.get(at + i),
            // Click's word 0 begins two bytes before the link header.
            None => i.checked_sub(2).and_then(|i| header.get(i)),
        };
        let is_compared = test.mask >> (24 - 8 * i) & 0xFF != 0;
        word = word << 8 | u32::from(if is_compared { *byte? } else { byte.copied().unwrap_or(0) });
    }
    Some(word & test.mask == test.value)
}

/// Primitives of all kinds over few values.
fn primitive() -> impl Strategy<Value = String> {
    let ends = prop::sample::select(vec!["src", "dst", "src or dst", "src and dst", ""]);
    let relation = prop::sample::select(vec!["", "=", "!=", ">", "<", ">=", "<="]);
    let field = prop::sample::select(vec![
        "ip vers",
        "ip hl",
        "ip id",
        "ip tos",
        "ip dscp",
        "ip ttl",
        "ip len",
        "ip ect",
        "ip proto",
        "tcp win",
        "icmp type",
        "tcp[0:4] & 0x50006",
        "transp[4:2] & 5",
        "ip[0] & 12",
        "udp[6]",
    ]);
    prop_oneof![
        (field, relation.clone(), 0u16..4).prop_map(|(f, r, v)| format!("{f} {r} {v}")),
        (ends.clone(), relation, prop::sample::select(vec![0, 1, 2, 3, 511, 1023, 2048, 65534]))
            .prop_map(|(e, r, v)| format!("{e} port {r} {v}")),
        (ends.clone(), prop::sample::select(vec![0, 7, 16, 30, 31, 32]), 0u8..4)
            .prop_map(|(e, length, a)| format!("{e} net 1.0.0.{a}/{length}")),
        (ends, 0u8..3).prop_map(|(e, a)| format!("{e} ether host != 0:0:0:0:0:{a}")),
        prop::sample::select(vec![
            "tcp",
            "udp",
            "icmp",
            "tcpudp",
            "ip proto > 5",
            "ip frag",
            "ip unfrag",
            "ip ce",
            "ip ect",
            "syn",
            "rst",
            "fin",
            "ack",
            "tcp opt 6",
            "port 1 or 2 or 3",
            "dst 1.0.0.2 or 1.0.0.3",
            "src net 1.0.0.0/30 and not src 1.0.0.1",
            "true",
            "false",
            "not transp",
        ])
        .prop_map(String::from),
    ]
}

fn pattern() -> impl Strategy<Value = String> {
    let joined = |between: &'static str| {
        prop::collection::vec(primitive(), 1..6).prop_map(move |all| all.join(between))
    };
    prop_oneof![
        expression(),
        primitive(),
        joined(" and "),
        joined(" or "),
        joined(" and not ").prop_map(|all| format!("not ({all})")),
        (primitive(), primitive(), expression())
            .prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
    ]
}

/// Packets whose network and transport header have all bytes that patterns ask for.
fn whole_packet() -> impl Strategy<Value = Vec<u8>> {
    let with_options = prop::bool::weighted(0.2);
    (any_packet(), with_options).prop_map(|(mut packet, with_options)| {
        packet.resize(48, 1);
        packet[0] = if with_options { 0x46 } else { 0x45 };
        packet
    })
}

/// Packets that end in the network header, or in a transport header behind it.
fn short_packet() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![0usize..20, 28usize..44];
    (whole_packet(), len).prop_map(|(mut packet, len)| {
        packet[0] = 0x45;
        packet.truncate(len);
        packet
    })
}

fn rules(texts: &[(String, Option<u8>)]) -> Vec<Rule> {
    texts.iter().map(|(text, output)| Rule::new(ip(text), *output)).collect()
}

/// A program before any optimisation.
fn assembled(rules: &[Rule]) -> ClickProgram {
    let mut program = ClickProgram::default();
    rules.iter().for_each(|rule| program.append(ClickProgram::of_rule(rule)));
    program.redirect_failures(Jump::Drop);
    if program.instructions.is_empty() {
        program.all = Some(Jump::Drop);
    }
    program
}

/// The same cases in each run: about one program in 15000 is wrong, as it is in Click. Where both
/// branches of a test lead to the same place, Click may take one of them for the only one.
fn cases() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(300) }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn programs_send_whole_packets_where_the_matcher_does(
        texts in prop::collection::vec((pattern(), prop::option::of(0u8..4)), 0..10),
        packets in prop::collection::vec(whole_packet(), 32),
        work in prop_oneof![4 => Just(MAX_WORK), 1 => 0u64..500],
    ) {
        let rules = rules(&texts);
        let program = ClickProgram::of_ip_rules_within(&rules, &mut Budget(work));
        let matcher = Program::compile(&rules);
        for packet in &packets {
            let expected = matcher.output_of_frame(&LINK, packet);
            let actual = interpret(&program, headers(&LINK, packet)).unwrap_or(Program::NONE);
            prop_assert_eq!(actual, expected, "{:?}\n{}\n{:?}", texts, &program, packet);
        }
    }

    // Click's later steps may send packets that end within a word elsewhere: they take the length that is
    // known at one instruction for the length that is known at another one with the same test.
    #[test]
    fn instructions_agree_with_patterns_on_short_packets(
        texts in prop::collection::vec((pattern(), prop::option::of(0u8..4)), 0..10),
        packets in prop::collection::vec(short_packet(), 32),
    ) {
        let rules = rules(&texts);
        let program = assembled(&rules);
        let mut sorted = program.clone();
        order::sort(&mut sorted.instructions, super::Language::Ip, &mut Budget(MAX_WORK));
        for packet in &packets {
            let expected = linear_search(&rules, headers(&LINK, packet));
            for program in [&program, &sorted] {
                let actual = interpret(program, headers(&LINK, packet));
                prop_assert_eq!(actual, expected, "{:?}\n{}\n{:?}", texts, program, packet);
            }
        }
    }

    #[test]
    fn classifiers_send_packets_where_the_matcher_does(
        texts in prop::collection::vec(
            prop::collection::vec("!?[0-9]/([0-1?]{2}|[0-1]{4}|[0-1]{4}%0[0-1]f0|[?01]{10})", 1..4),
            0..12,
        ),
        packets in prop::collection::vec(prop::collection::vec(0u8..2, 18), 32),
    ) {
        let texts: Vec<String> = texts.iter().map(|it| it.join(" ")).collect();
        let patterns = texts.iter().map(|it| Pattern::bytes(it).unwrap()).enumerate();
        let rules: Vec<Rule> =
            patterns.map(|(n, pattern)| Rule::new(pattern, Some(n as u8))).collect();
        let program = ClickProgram::of_byte_patterns(&texts, 0).unwrap();
        let matcher = Program::compile(&rules);
        for packet in &packets {
            let actual = interpret(&program, [packet, &[], &[], &[]]);
            prop_assert_eq!(actual, matcher.run_bytes(packet), "{:?}\n{}", texts, &program);
        }
    }
}
