//! Tests with thousands of rules: as tests and as a table, against a linear search.

use super::tests::{BothForms, headers, ip, linear_search, packet};
use super::{Lookups, Pattern, Program, Rule};
use crate::classify::header_words::Headers;
use proptest::prelude::*;

/// Pseudorandom numbers.
fn scramble(n: u32) -> u32 {
    let n = (n ^ n >> 15).wrapping_mul(0x2C1B_3C6D);
    (n ^ n >> 12).wrapping_mul(0x297A_2D39) ^ n >> 15
}

/// Source and destination addresses of rule `n`: many rules share few networks.
fn ends(n: u32) -> (u32, u32) {
    let (own, network) = (scramble(n), scramble(!(n / 40)));
    (network & 0xffff_0000 | own & 0xffff, network << 16 | own >> 16)
}

/// Rule `n` of an access list; some are of a kind that keys cannot express.
fn rule(n: u32, odd: u32) -> Rule {
    let bits = scramble(n ^ 0x5555);
    let net = |address: u32, free: u32| {
        format!("{}/{}", std::net::Ipv4Addr::from(address & u32::MAX << free), 32 - free)
    };
    let ((src, dst), free) = (ends(n), [0, 0, 8, 4, 15, 2, 5, 12]);
    let (a, b) = (free[bits as usize % 8], free[bits as usize / 8 % 8]);
    let ends = format!("src net {} and dst net {}", net(src, a), net(dst, b.min(16 - a)));
    let low = bits >> 20 & 0xff;
    let port = match bits % 11 {
        0..4 => format!(" and dst port {low}"),
        4 => format!(" and tcp dst port >= {low} and tcp dst port <= {}", low + bits % 37),
        5 => " and udp dst port > 99".to_owned(),
        6 => format!(" and not src port {low}"),
        7 => format!(" and tcp opt syn and src port != {low}"),
        8 => " and (icmp or dst port 80 or 443)".to_owned(),
        _ => String::new(),
    };
    let text = match n % odd {
        7 => format!("not src host 10.0.0.{low} and ip ttl > {}", 230 + low % 9),
        9 => format!("ip[{}:1] & 5 > {}", low % 3, low % 5),
        11 => format!("tcp ? src port {low} : udp ? dst port > {low} : ip len {low}"),
        _ => ends + &port,
    };
    Rule::new(ip(&text), (bits % 6 < 5).then_some((bits % 5) as u8))
}

/// A packet that matches or nearly matches some of the rules.
fn nearby_packet(n: u32, whole: bool) -> Vec<u8> {
    let bits = scramble(n ^ 0xABCD);
    // The addresses of a rule, sometimes with one bit flipped.
    let of = bits % 3000;
    let (src, dst) = ends(of);
    let src = (src ^ u32::from(bits & 3 == 0) << (bits % 7)).to_be_bytes();
    let dst = (dst ^ u32::from(bits & 12 == 0) << (bits % 5)).to_be_bytes();
    let protocol = [6, 17, 6, 1][(bits >> 4) as usize % 4];
    let port = |shift: u32| (bits >> shift) as u16 & 0xff;
    let dport = if bits & 7 == 0 { 80 } else { (scramble(of ^ 0x5555) >> 20) as u16 & 0xff };
    let mut p = packet(protocol, src, dst, port(9), dport);
    p[8] = (bits >> 3) as u8 % 16;
    p[33] = if bits & 16 == 0 { 2 } else { 0 };
    if !whole {
        p[7] = u8::from(bits & 96 == 0);
        p.truncate((bits >> 7) as usize % 50);
    }
    p
}

proptest! {
    // Each case is a linear search through some thousands of rules.
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn many_rules_agree(
        from in 0..100_000u32,
        count in 300..3000u32,
        odd in prop::sample::select(vec![23, 211, 997]),
        packets in prop::collection::vec((any::<u32>(), prop::bool::weighted(0.8)), 100),
    ) {
        let rules: Vec<Rule> = (from..from + count).map(|n| rule(n % 3000, odd)).collect();
        let packets: Vec<Vec<u8>> =
            packets.into_iter().map(|(n, whole)| nearby_packet(n, whole)).collect();
        let words: Vec<Headers> = packets.iter().map(|p| Headers::new(&[], p)).collect();
        let both = BothForms::new(&rules);
        for (p, actual) in packets.iter().zip(both.outputs(&words)) {
            let expected = linear_search(&rules, headers(&[], p));
            prop_assert_eq!(actual, [expected; 3], "{:?}\n{}", p, &both.table);
        }
    }
}

#[test]
fn a_few_inexpressible_rules_leave_the_others_in_the_table() {
    let rules: Vec<Rule> = (0..4000).map(|n| rule(n, 997)).collect();
    let program = Program::compile(&rules);
    assert!(program.matcher().starts_with("table: about "), "{}", program.matcher());
    let text = program.to_string();
    assert!(text.starts_with("table of 39"), "{text}");
    assert!(text.contains(" patterns are asked once the table has found them\n"), "{text}");
    assert!(text.contains(" patterns are tests that end at their numbers\n 0 "), "{text}");
    let mut lookups = Lookups::default();
    let packets: Vec<Vec<u8>> = (0..64).map(|n| nearby_packet(n, true)).collect();
    program.look_up(packets.iter().map(|p| (&[][..], &p[..])), &mut lookups);
    // No looked-up packet is left at the end, so that one is looked up by itself.
    let all: Vec<&[u8]> =
        packets.iter().chain([&packets[0], &packets[0]]).map(Vec::as_slice).collect();
    let mut outputs = vec![0; all.len()];
    // A packet that is none takes no result.
    let input = |(n, packet)| (n != 64).then_some((&[][..], packet));
    let inputs = all.iter().copied().enumerate().map(input);
    program.outputs_of_frames(inputs, 77, &mut lookups, &mut outputs);
    for (n, (p, output)) in all.iter().zip(&outputs).enumerate() {
        let expected = linear_search(&rules, headers(&[], p));
        let all = if n == 64 { 77 } else { expected.unwrap_or(Program::NONE) };
        assert_eq!(*output, all, "packet {n}");
        assert_eq!(program.run_ip(p), expected);
    }
}

#[test]
fn few_rules_and_rules_of_one_word_become_tests() {
    let matcher = |rules: &[Rule]| Program::compile(rules).matcher();
    let few = [Rule::new(ip("tcp and src host 1.2.3.4"), None)];
    assert_eq!(matcher(&few), "tests: 2 of them are too few for a table");
    let host =
        |n: u32| Rule::new(ip(&format!("src host {}", std::net::Ipv4Addr::from(n))), Some(0));
    let hosts: Vec<Rule> = (0..5000).map(|n| host(scramble(n))).collect();
    assert!(matcher(&hosts).starts_with("tests: about 1"), "{}", matcher(&hosts));
}

#[test]
fn a_pattern_of_many_alternatives_has_many_keys() {
    let host = |n: u32| {
        let (src, dst) = (scramble(n), scramble(n).swap_bytes());
        let net = |bits: u32, free: u32| {
            format!("{}/{}", std::net::Ipv4Addr::from(bits & u32::MAX << free), 32 - free)
        };
        format!("src net {} and dst net {}", net(src, src % 9), net(dst, dst % 9))
    };
    let of = |from: u32| (from..from + 2000).map(host).collect::<Vec<_>>().join(" or ");
    let rules = [Rule::new(ip(&of(0)), Some(0)), Rule::new(ip(&of(2000)), Some(1))];
    let rules = [&rules[..], &[Rule::new(Pattern::all(), Some(2))]].concat();
    let both = BothForms::new(&rules);
    let text = both.table.to_string();
    assert!(text.starts_with("table of 2 patterns, 4000 keys, 27 masks, "), "{text}");
    assert!(text.ends_with("else->[2]\n"), "{text}");
    assert_eq!(Program::compile(&rules).unused(4), [3]);
    for n in (0..4500).step_by(41) {
        let src = scramble(n).to_be_bytes();
        let p = packet(6, src, scramble(n).to_le_bytes(), 1, 2);
        let expected = linear_search(&rules, headers(&[], &p));
        assert_eq!(both.outputs(&[Headers::new(&[], &p)]), [[expected; 3]], "{n}");
    }
}

#[test]
fn patterns_with_exponential_expansions_compile_in_time() {
    // A full expansion of these alternatives would have 2⁶⁰ terms.
    let ends = |n: u32| format!("(src net 1.{n}.0.0/16 or dst net 2.{n}.0.0/16)");
    let product = (0..60).map(ends).collect::<Vec<_>>().join(" and ");
    let long = (0..3000).map(|n| format!("src host 1.2.{}.{}", n / 256, n % 256));
    let long = long.collect::<Vec<_>>().join(" or ");
    let again = format!("({long}) and {}", vec!["tcp"; 3000].join(" and "));
    let choices = format!("{}true{}", format!("({long}) ? tcp : ").repeat(3), "");
    let rules: Vec<Rule> =
        [&product, &again, &choices].map(|text| Rule::new(ip(text), Some(0))).to_vec();
    let both = BothForms::new(&rules);
    let p = packet(6, [1, 2, 3, 4], [9; 4], 1, 2);
    let expected = linear_search(&rules, headers(&[], &p));
    assert_eq!(expected, Some(0));
    assert_eq!(both.outputs(&[Headers::new(&[], &p)]), [[expected; 3]]);
}
