//! Tests of programs for bursts against the same programs for single packets.

use proptest::prelude::*;

use super::graph::Graph;
use super::table::Lookups;
use super::tests::{any_packet, expression, headers, ip, linear_search, packet};
use super::vector::{FEWEST, VectorProgram};
use super::{Base, Pattern, Program, Rule};

/// The output of packets that are none.
const NONE: u8 = 77;

/// The outputs of a burst of frames.
fn outputs(program: &Program, frames: &[Option<(&[u8], &[u8])>]) -> Vec<u8> {
    let (mut outputs, mut lookups) = (vec![NONE + 1; frames.len()], Lookups::default());
    program.look_up(frames.iter().flatten().copied(), &mut lookups);
    program.outputs_of_frames(frames.iter().copied(), NONE, &mut lookups, &mut outputs);
    outputs
}

/// The outputs of a burst of packets whose words are loaded for all, where their network headers have no options.
fn outputs_of_words(program: &Program, packets: &[&[u8]]) -> Option<Vec<u8>> {
    let load = |base, offset, first: usize, words: &mut [u32]| {
        let offset = match base {
            Base::Network | Base::Packet => offset,
            Base::Transport => 20 + offset,
            Base::Link => return false,
        };
        let has_word = |packet: &&[u8]| packet.len() >= offset + 4;
        let all = words.iter_mut().zip(&packets[first..]);
        all.for_each(|(word, packet)| {
            let bytes = packet.get(offset..).and_then(<[u8]>::first_chunk);
            *word = bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        });
        packets.iter().all(has_word)
    };
    let mut outputs = vec![NONE; packets.len()];
    let bits = program.outputs_of_words(&mut outputs, load);
    match bits {
        Some(bits) => assert_eq!(bits, outputs.iter().fold(0, |bits, output| bits | output)),
        None => assert!(outputs.iter().all(|output| *output == NONE), "nothing is done"),
    }
    bits.map(|_| outputs)
}

/// Rules of these patterns, with their numbers as outputs.
fn classifier(texts: impl IntoIterator<Item = String>) -> Vec<Rule> {
    let patterns = texts.into_iter().filter_map(|text| Pattern::bytes(&text).ok());
    patterns.zip(0..).map(|(pattern, output)| Rule::new(pattern, Some(output))).collect()
}

/// The outputs of packets, together and one by one.
fn outputs_of_bytes(rules: &[Rule], packets: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
    let program = Program::compile(rules);
    let mut together = vec![0; packets.len()];
    program.outputs_of_bytes(packets.iter().map(Vec::as_slice), &mut together);
    (together, packets.iter().map(|packet| program.output_of_bytes(packet)).collect())
}

fn has_vectors(rules: &[Rule]) -> bool {
    VectorProgram::new(&Graph::from_rules(rules.iter())).is_some()
}

#[test]
fn every_form_of_a_step_decides_as_its_tests() {
    let filter = |texts: &[&str]| -> Vec<Rule> {
        texts.iter().map(|text| Rule::filter(text, 4).expect("a rule")).collect()
    };
    let hosts = |count: u32| (0..count).map(|n| format!("2 src host 10.0.{}.{}", n / 7, n % 7));
    let hosts = |count: u32| -> Vec<Rule> {
        let texts: Vec<String> = hosts(count).chain(["1 udp".into(), "deny all".into()]).collect();
        filter(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let programs = [
        // Values that are compared, values that are looked up.
        hosts(10),
        hosts(60),
        // Ranges with the sign bit in their words, and of ports.
        filter(&["0 src net 128.0.0.0/1 and ip ttl > 64", "1 dst port > 40000", "2 all"]),
        filter(&["deny src port > 80", "0 ip ttl < 45", "3 tcp"]),
        // Chains of equalities, and packets of which nothing is asked.
        filter(&["0 src host 10.0.1.2 and dst host 1.2.3.4 and udp", "1 tcp"]),
        filter(&["0 ip ttl < 64 or src port 90 or dst port > 50000"]),
    ];
    let mut packets = Vec::new();
    for n in 0..203u32 {
        let src = [if n % 5 == 0 { 200 } else { 10 }, 0, (n / 7 % 9) as u8, (n % 7) as u8];
        let protocol = if n % 3 == 0 { 6 } else { 17 };
        let ports = ((n * 7 % 200) as u16, (n * 321) as u16);
        let mut packet = packet(protocol, src, [1, 2, 3, 4], ports.0, ports.1);
        packet[8] = (n % 130) as u8;
        packet[3] = 30 + (n % 20) as u8;
        // Some end early.
        packet.truncate(if n % 11 == 0 { (n % 40) as usize } else { 40 });
        packets.push(packet);
    }
    for rules in &programs {
        assert!(has_vectors(rules), "{}", Program::compile(rules));
        let program = Program::compile(rules);
        // The last vectors have few packets; single packets go by tests.
        for count in [1, 3, 4, 15, 16, 17, 64, 65, 203] {
            let mut frames: Vec<_> =
                packets[..count].iter().map(|packet| Some((&[][..], &packet[..]))).collect();
            frames.iter_mut().skip(5).step_by(13).for_each(|frame| *frame = None);
            for (frame, output) in frames.iter().zip(outputs(&program, &frames)) {
                let expected =
                    frame.map_or(Some(NONE), |(_, it)| linear_search(rules, headers(&[], it)));
                assert_eq!(output, expected.unwrap_or(Program::NONE), "{program}\n{frame:?}");
            }
            let whole: Vec<&[u8]> =
                packets.iter().map(Vec::as_slice).filter(|it| it.len() == 40).take(count).collect();
            let expected = whole.iter().map(|it| linear_search(rules, headers(&[], it)));
            let expected = expected.map(|output| output.unwrap_or(Program::NONE)).collect();
            let is_burst = whole.len() >= FEWEST;
            assert_eq!(
                outputs_of_words(&program, &whole),
                is_burst.then_some(expected),
                "{program}"
            );
            // One of them lacks a word.
            let short = [&whole[..], &[&packets[0][..]]].concat();
            assert_eq!(outputs_of_words(&program, &short), None, "{program}");
        }
    }
}

#[test]
fn programs_without_tests_or_with_too_many_have_no_vectors() {
    let bytes = |texts: &[&str]| classifier(texts.iter().map(|text| (*text).to_owned()));
    assert!(!has_vectors(&bytes(&["-"])), "there is nothing to test");
    assert!(has_vectors(&bytes(&["12/0806 20/0001", "12/0800", "-"])));
    let many = (0..40).map(|n| format!("{}/{:02x}", 4 * (n % 4), n + 1));
    assert!(!has_vectors(&classifier(many)), "so many tests");
    let wide = (0..5).map(|n| format!("{}/01", 4 * n));
    assert!(!has_vectors(&classifier(wide)), "so many words");
    // A state has no room for output 127.
    let ports: Vec<String> = (0..128).map(|n| format!("12/{n:04x}")).collect();
    assert!(has_vectors(&classifier(ports[..127].iter().cloned())));
    assert!(!has_vectors(&classifier(ports)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bursts_of_frames_agree_with_their_rules(
        texts in prop::collection::vec((expression(), prop::option::of(0u8..4)), 0..6),
        packets in prop::collection::vec(any_packet(), 0..90),
    ) {
        let rules: Vec<Rule> =
            texts.iter().map(|(text, output)| Rule::new(ip(text), *output)).collect();
        let program = Program::compile(&rules);
        let link = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 8, 0];
        let frames: Vec<_> =
            packets.iter().map(|it| Some((&link[..it.len().min(14)], &it[..]))).collect();
        for (frame, output) in frames.iter().flatten().zip(outputs(&program, &frames)) {
            let expected = linear_search(&rules, headers(frame.0, frame.1));
            prop_assert_eq!(output, expected.unwrap_or(Program::NONE), "{:?}\n{}", texts, &program);
        }
    }

    #[test]
    fn bursts_of_bytes_agree_with_their_clauses(
        texts in prop::collection::vec(
            prop::collection::vec("!?[0-9]/([0-1?]{2}|[0-1]{4}|[0-1]{4}%0[0-1]f?)", 1..3), 1..8,
        ),
        mut packets in prop::collection::vec(prop::collection::vec(0u8..2, 0..16), 0..90),
    ) {
        let texts = texts.into_iter().map(|clauses| clauses.join(" ").replace("f?", "f0"));
        let rules = classifier(texts);
        let (together, alone) = outputs_of_bytes(&rules, &packets);
        prop_assert_eq!(&together, &alone);
        // Where all have these bytes.
        packets.iter_mut().for_each(|packet| packet.resize(16, 0));
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        let program = Program::compile(&rules);
        let alone = packets.iter().map(|packet| program.output_of_bytes(packet)).collect();
        let is_burst = has_vectors(&rules) && packets.len() >= FEWEST;
        prop_assert_eq!(outputs_of_words(&program, &packets), is_burst.then_some(alone));
    }

    #[test]
    fn outputs_depend_on_no_bytes_behind_the_length_of_a_program(
        texts in prop::collection::vec(
            prop::collection::vec("!?[0-9]/([0-1?]{2}|[0-1?]{4}|[0-1]{4}%0[0-1]f?)", 1..3), 0..8,
        ),
        packets in prop::collection::vec(prop::collection::vec(0u8..2, 16..20), 0..40),
    ) {
        let texts = texts.into_iter().map(|clauses| clauses.join(" ").replace("f?", "f0"));
        let rules = classifier(texts);
        let length = Program::compile(&rules).length();
        let length = length.expect("so few rules are tests");
        prop_assert!(length <= 12);
        let short: Vec<_> = packets.iter().map(|packet| packet[..length].to_vec()).collect();
        let (short, whole) = (outputs_of_bytes(&rules, &short), outputs_of_bytes(&rules, &packets));
        prop_assert_eq!(short, whole);
    }
}
