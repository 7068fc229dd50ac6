//! Joined functions equal the others for packets whose field has a known value.

use super::*;
use crate::bits::Bits;
use crate::header::{HeaderField, IP4, IP6, header_string};
use crate::policy::{Format, compile};
use castanet_wire::headers::Headers;
use castanet_wire::sketch;
use proptest::prelude::*;

const FIELD: &str = "dst=10.0.0.0/29,2001:db8::/126";

const RULES: &[&str] = &[
    "proto udp drop",
    "tcp-dport 80 mod ip-saddr 9.9.9.9",
    "ip-daddr 10.0.0.0/30 mod ip-ttl 7",
    "tcp-syn drop",
    "ip6-daddr 2001:db8::1 accept",
    "all mod ip6-hop-limit 3",
    "ip-daddr 11.0.0.1 drop",
    "net-proto ip6 mod ip6-saddr fd00::/8",
];

fn string(text: &str) -> Bits {
    let bytes = sketch::build(text).expect(text).bytes;
    header_string(&bytes, &Headers::of(&bytes, 0).expect(text))
}

proptest! {
    #[test]
    fn packets_of_the_field_have_equal_results_and_others_are_dropped(
        rules in prop::collection::vec(prop::sample::select(RULES.to_vec()), 0..6),
        least_bits in prop::sample::select(vec![2_u32, 8, 17, 32]),
        is_ip6: bool,
        last in 0..10_u8,
        packet in 0..4_usize,
    ) {
        let policy = compile(Format::Rules, &rules.join("\n")).expect("are rules");
        let field: JoinField = FIELD.parse().expect("is a field");
        let joined = field.join(&policy, least_bits).expect("can be joined");
        let ends = if is_ip6 {
            (format!("[::1]:5 > [2001:db8::{last:x}]:80"), format!("::1 > 2001:db8::{last:x}"))
        } else {
            (format!("1.0.0.1:5 > 10.0.0.{last}:80"), format!("1.0.0.1 > 10.0.0.{last}"))
        };
        let string = string(&match packet {
            0 => format!("{} udp", ends.0),
            1 => format!("{} tcp syn", ends.0),
            2 => format!("{} tcp ack", ends.0),
            _ => format!("{} proto 99", ends.1),
        });
        let is_known = last < if is_ip6 { 4 } else { 8 };
        let is_same = joined == policy;
        let expected = if is_known || is_same { policy.function.evaluate(string) } else { Bits::ZERO };
        let expected = match expected.0[0] {
            0 => Bits::ZERO,
            // The function with the field has a longer header string.
            _ => expected,
        };
        let result = joined.function.evaluate(string);
        if expected.is_zero() || result.0[0] == 0 {
            prop_assert_eq!(result.0[0], expected.0[0]);
        } else {
            prop_assert_eq!(result, expected);
        }
        for it in joined.function.policies() {
            let projection = it.condition.projection();
            prop_assert!(projection.is_zero() || guess_bits(&projection) >= least_bits);
        }
        prop_assert_eq!(joined.ranges.len(), joined.function.policies().len());
    }
}

#[test]
fn drops_cover_the_longer_header_string() {
    let policy = compile(Format::Rules, "ip-ttl 1 drop").expect("is a rule");
    assert_eq!(policy.header_bits, IP4.ttl.at + 8);
    let joined = "dst=10.0.0.1".parse::<JoinField>().expect("is a field").join(&policy, 20);
    let joined = joined.expect("can be joined");
    assert_eq!(joined.header_bits, IP4.dst.at + 32);
    let result = joined.function.evaluate(string("1.0.0.1:5 > 10.0.0.1:6 udp ttl 1"));
    assert!((result & Bits::first(joined.header_bits)).is_zero());
    let six = "src=::1".parse::<JoinField>().expect("is a field").join(&policy, 20);
    assert_eq!(six.expect("can be joined").header_bits, IP6.src.at + 128);
}

#[test]
fn fields_and_functions_that_cannot_be_joined_are_errors() {
    let parse = |text: &str| text.parse::<JoinField>().map(|it| it.values.len());
    assert_eq!(parse("src=10.0.0.0/30, 10.0.0.2, ::1"), Ok(5));
    let HeaderField { at, width } = IP4.src;
    let value = "src=10.0.0.2".parse::<JoinField>().expect("is a field").values[0];
    assert_eq!(value, family(false).with(at, width, 0x0a00_0002));
    for (text, error) in [
        ("dst", "`dst` is no field with its values, such as dst=10.0.0.0/28"),
        ("port=5", "`port=5` is no field with its values, such as dst=10.0.0.0/28"),
        ("dst=x", "`x` is no address and no prefix"),
        ("dst=10.0.0.0/8", "`dst=10.0.0.0/8` has more than 4096 addresses"),
        ("dst=::/0", "`dst=::/0` has more than 4096 addresses"),
    ] {
        assert_eq!(parse(text), Err(error.to_owned()));
    }
    let policy = compile(
        Format::Rules,
        "proto udp drop\ntcp-dport 80 mod ip-daddr 1.0.0.1\nall mod ip-ttl 3",
    );
    let policy = policy.expect("are rules");
    let message = |text: &str, bits| {
        let field: JoinField = text.parse().expect("is a field");
        field.join(&policy, bits).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        message("dst=10.0.0.1", 33),
        "matches of the joined field have 32 bits, fewer than 33"
    );
    let many: String = (0..300).map(|it| format!("udp-sport {it} drop\n")).collect();
    let many = compile(Format::Rules, &many).expect("are rules");
    let field: JoinField = "dst=10.0.0.0/24".parse().expect("is a field");
    let error = field.join(&many, 32).unwrap_err();
    assert!(matches!(error, JoinError::TooMany(_)), "{error}");
    assert!(error.to_string().ends_with("policies; there can be 65536"), "{error}");
}
