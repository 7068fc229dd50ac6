//! Flow rules: what is read, and what is refused.

use super::*;
use proptest::prelude::*;

fn item(rule: &FlowRule, name: &str) -> Item {
    let named = |item: &&Item| ITEMS[item.kind].name == name;
    rule.pattern.iter().find(named).expect("the item").clone()
}

#[test]
fn values_lie_where_the_headers_have_them() {
    let rule = FlowRule::parse(
        "flow create 0 priority 7 ingress pattern eth type is 0x0800 / vlan vid is 5 pcp spec 3 / \
         ipv4 src is 10.0.0.1 dst spec 192.168.0.0 dst prefix 16 / \
         udp dst spec 1000 dst last 2000 dst mask 0xffff / end \
         actions mark id 77 / count / queue index 1 / end",
    );
    let rule = rule.expect("a rule");
    assert_eq!((rule.group, rule.priority, rule.ingress, rule.egress), (0, 7, true, false));
    assert!(rule.text.starts_with("priority 7 ingress pattern eth type is"), "{}", rule.text);
    assert_eq!(item(&rule, "eth").spec.expect("spec")[12..], [8, 0]);
    let vlan = item(&rule, "vlan");
    assert_eq!((vlan.spec, vlan.mask), (Some(vec![0x60, 5, 0, 0]), Some(vec![0x0f, 0xff, 0, 0])));
    let ip = item(&rule, "ipv4");
    assert_eq!(ip.spec.expect("spec")[12..], [10, 0, 0, 1, 192, 168, 0, 0]);
    assert_eq!(ip.mask.expect("mask")[12..], [255, 255, 255, 255, 255, 255, 0, 0]);
    assert_eq!(ip.last, None);
    let udp = item(&rule, "udp");
    assert_eq!(udp.spec.expect("spec")[..4], [0, 0, 3, 232]);
    assert_eq!(udp.last.expect("last")[..4], [0, 0, 7, 208]);
    assert_eq!(rule.actions, [Action::Mark(77), Action::Count(0), Action::Queue(1)]);
    assert!(rule.queues().eq([1]) && rule.counter() == Some(0));
}

#[test]
fn items_without_fields_have_no_values() {
    let rule = FlowRule::parse("ingress pattern eth / ipv6 / tcp / end actions drop / end");
    let rule = rule.expect("a rule");
    assert!(rule.pattern.iter().all(|it| it.spec.is_none() && it.mask.is_none()));
    assert_eq!(rule.actions, [Action::Drop]);
}

#[test]
fn rss_has_lists() {
    let rss = |text: &str| {
        let rule = format!("ingress pattern eth / end actions rss {text} / end");
        match FlowRule::parse(&rule).expect("a rule").actions.remove(0) {
            Action::Rss(rss) => rss,
            other => panic!("{other:?}"),
        }
    };
    let plain = Rss { function: 0, level: 0, types: RSS_IP, queues: vec![] };
    assert_eq!(rss(""), plain);
    let types = 1 << 2 | 1 << 5 | 1 << 11 | 1 << 17;
    let full = Rss { function: 1, level: 2, types, queues: vec![3, 0] };
    assert_eq!(rss("func toeplitz level 2 types ipv4 udp end queues 3 0 end"), full);
    assert_eq!(rss("types none end").types, 0);
}

#[test]
fn errors_say_what_would_be_right() {
    for (text, error) in [
        ("", "the rule ends where `ingress` and `pattern` is expected"),
        (
            "pattern eth / end actions drop / end",
            "the rule does not say `ingress`, `egress` or `transfer`",
        ),
        (
            "inbound",
            "`inbound` is no attribute; known are group, priority, ingress, egress, transfer, pattern",
        ),
        (
            "ingress pattern udp source is 5 / end",
            "`source` is no field of `udp`; known are src, dst, /",
        ),
        (
            "ingress pattern udp src = 5 / end",
            "`=` is no relation for `udp src`; known are is, spec, last, mask, prefix",
        ),
        (
            "ingress pattern udp src is 65536 /",
            "udp src is: `65536` is not a number from 0 to 65535",
        ),
        ("ingress pattern ipv4 src is 10.0.0 /", "ipv4 src is: `10.0.0` is not an IPv4 address"),
        ("ingress pattern ipv4 src prefix 33 /", "ipv4 src prefix 33: the field has 32 bits"),
        (
            "ingress pattern eth src is 02:00 /",
            "eth src is: `02:00` is not an Ethernet address such as 02:00:00:00:00:01",
        ),
        ("ingress pattern eth / end drop", "`drop` stands where `actions` is expected"),
        (
            "ingress pattern eth / end actions queue 1 / end",
            "queue: `1` stands where `index` is expected",
        ),
        ("ingress pattern eth / end actions drop", "the rule ends where `/` is expected"),
        ("ingress pattern eth / end actions drop / end now", "`now` stands behind the rule's end"),
        ("flow destroy 0", "`destroy` stands where `create` is expected"),
    ] {
        assert_eq!(FlowRule::parse(text), Err(error.to_owned()), "{text}");
    }
    let unknown = FlowRule::parse("ingress pattern ip4 / end").expect_err("no item");
    assert!(unknown.starts_with("`ip4` is no item; known are void, invert"), "{unknown}");
}

/// The value of a field in a header, read by another way than it is written.
fn read(field: &Field, header: &[u8]) -> u128 {
    if field.form == Form::Native {
        return u32::from_ne_bytes(header[..4].try_into().expect("4 bytes")).into();
    }
    let first = field.at / 8;
    let last = (field.at + field.bits).div_ceil(8);
    let all = header[first..last].iter().fold(0, |all: u128, byte| all << 8 | u128::from(*byte));
    all >> (8 * last - field.at - field.bits) & u128::MAX >> (128 - field.bits)
}

fn written(field: &Field, value: u128) -> String {
    match field.form {
        Form::Number | Form::Native => value.to_string(),
        Form::Mac => {
            let bytes: Vec<_> =
                value.to_be_bytes()[10..].iter().map(|it| format!("{it:02x}")).collect();
            bytes.join(":")
        }
        Form::Ipv4 => std::net::Ipv4Addr::from_bits(value as u32).to_string(),
        Form::Ipv6 => std::net::Ipv6Addr::from_bits(value).to_string(),
    }
}

proptest! {
    /// Every field of every item reads back, touches no other bits, and lies in its header.
    #[test]
    fn fields_read_back(any in any::<u128>(), other in any::<u128>()) {
        for (kind, item) in ITEMS.iter().enumerate() {
            for field in item.fields {
                prop_assert!(field.at + field.bits <= 8 * item.len, "{} {}", item.name, field.name);
                let ones = u128::MAX >> (128 - field.bits);
                let (value, mask) = (any & ones, other & ones);
                let (name, shown) = (field.name, written(field, value));
                let text = format!(
                    "ingress pattern {} {name} spec {shown} {name} mask {} / end actions drop / end",
                    item.name, written(field, mask),
                );
                let rule = FlowRule::parse(&text).expect("a rule");
                let parsed = &rule.pattern[0];
                let (spec, got) = (parsed.spec.clone().expect("spec"), parsed.mask.clone().expect("mask"));
                prop_assert_eq!(parsed.kind, kind);
                prop_assert_eq!(spec.len(), item.len);
                prop_assert_eq!((read(field, &spec), read(field, &got)), (value, mask), "{}", text);
                let bits: u32 = spec.iter().map(|byte| byte.count_ones()).sum();
                prop_assert_eq!(bits, value.count_ones(), "{}", text);
                prop_assert_eq!(FlowRule::parse(&rule.text), Ok(rule.clone()));
            }
        }
    }

    /// Any words are a rule or an error.
    #[test]
    fn any_text_is_read_or_refused(
        words in proptest::collection::vec(
            prop_oneof![
                Just("ingress"), Just("pattern"), Just("/"), Just("end"), Just("actions"),
                Just("eth"), Just("ipv4"), Just("src"), Just("dst"), Just("is"), Just("prefix"),
                Just("rss"), Just("queues"), Just("types"), Just("queue"), Just("index"),
                Just("1"), Just("0x"), Just("10.0.0.1"), Just("flow"), Just("create"), Just("\u{e9}"),
            ],
            0..20,
        ),
    ) {
        if let Err(error) = FlowRule::parse(&words.join(" ")) {
            prop_assert!(!error.is_empty());
        }
    }
}
