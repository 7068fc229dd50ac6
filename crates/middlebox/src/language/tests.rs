//! Tests of the parser: round trips, and errors with their ranges.

use super::*;
use crate::field::{FIELDS, Field, Kind};
use crate::named_sets::{SetChange, SetElement};
use crate::rule::{Chance, Hop, Predicate, Rejection, Rule, RuleComment, Target};
use crate::value::{CONDITIONS, Condition, Value};
use crate::value_set::{NumberSet, ValueFamily, ValueSet};
use castanet_lang::{Diagnostics, SourceMap};
use proptest::prelude::*;

/// The rule that a line is, normalised.
fn normal(line: &str) -> String {
    match command(line) {
        Ok(Some(Command::Add(rule))) => rule.command(),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_rules_of_the_documentation_are_read() {
    for line in [
        "add all mod ip-ecn 0",
        "add ip-proto udp drop",
        "add ip-proto != udp ip-proto != tcp drop",
        "add tcp-dport 80 mod tcp-dport 443",
        "add tcp-opt-mss strip tcp-opt-mss",
        "add tcp-opt-mss > 1460 mod tcp-opt-mss 1460",
        "add tcp-opt strip ! tcp-opt-mss strip ! tcp-opt-wscale",
        "add tcp-opt-timestamp strip all",
        "add ! tcp-opt-mss ! tcp-opt-wscale drop",
        "add tcp-opt 22 drop",
        "add-stateful ip-proto tcp ip-saddr 10.0.0.0/24 accept",
        "add-stateful ip-saddr 10.0.0.0/24 ip-proto tcp tcp-syn shuffle tcp-sport mod ip-saddr 200.0.0.1",
        "add-stateful ip-proto tcp ip-saddr 10.0.0.0/24 map ip-saddr 30.30.30.30 shuffle tcp-sport",
        "add tcp-syn ! tcp-opt-mss add tcp-opt-mss 1460",
        "add all drop 0.1",
        "add-stateful tcp-syn shuffle tcp-seq-num shuffle tcp-ack-num",
        "add in eth0 out eth1 net-proto ip4 lb 10.0.0.1 10.0.0.2",
    ] {
        assert_eq!(normal(line), line);
    }
}

#[test]
fn what_is_written_in_other_ways_becomes_the_same() {
    for (line, wanted) in [
        ("tcp-dport==0x50 drop 100%", "add tcp-dport 80 drop"),
        ("add-stateless !tcp-syn ip-ttl<5 accept # a comment", "add ! tcp-syn ip-ttl < 5 accept"),
        ("ip-saddr 10.1.2.3/8 drop", "add ip-saddr 10.0.0.0/8 drop"),
        ("ip-saddr 10.1.2.3/0 drop", "add ip-saddr 0.0.0.0/0 drop"),
        ("ip6-daddr 2001:DB8::7/33 drop 00.50", "add ip6-daddr 2001:db8::/33 drop 0.5"),
        ("tcp-opt 2 1460 strip tcp-opt 8", "add tcp-opt-mss 1460 strip tcp-opt-timestamp"),
        ("tcp-opt 99 5 strip tcp-opt", "add tcp-opt 99 0x05 strip all"),
        ("tcp-payload x474554 drop", "add tcp-payload 0x474554 drop"),
        ("ip-proto 17 drop", "add ip-proto udp drop"),
        ("ip6-next 44 drop", "add ip6-next 44 drop"),
        ("tcp-dport 443,80,8000-8100,81 drop", "add tcp-dport 80-81,443,8000-8100 drop"),
        ("tcp-dport 80-80 drop", "add tcp-dport 80 drop"),
        ("ip-saddr 10.0.0.0-10.255.255.255 drop", "add ip-saddr 10.0.0.0/8 drop"),
        ("ip-saddr !=1.0.0.1,1.0.0.0/31,1.0.0.5 drop", "add ip-saddr != 1.0.0.0/31,1.0.0.5 drop"),
        (
            "ip6-daddr ::1,2001:db8::1-2001:db8::4 drop",
            "add ip6-daddr ::1,2001:db8::1-2001:db8::4 drop",
        ),
        ("proto udp,tcp,20-22 drop", "add proto tcp,udp,20-22 drop"),
        ("! ip-saddr @lan-1 drop", "add ! ip-saddr @lan-1 drop"),
    ] {
        assert_eq!(normal(line), wanted);
    }
}

#[test]
fn an_interface_may_be_called_like_a_word_of_the_language() {
    for name in ["add", "drop", "in", "tcp-dport", "all", "=="] {
        let line = format!("add in == {name} drop");
        assert_eq!(normal(&line), line);
    }
    assert_eq!(normal("in == eth0 drop"), "add in eth0 drop");
}

#[test]
fn commands_are_read() {
    let read = |line: &str| command(line).unwrap().unwrap();
    assert_eq!(read("delete 3"), Command::Delete(RuleSelector::Position(3)));
    assert_eq!(read(" delete id3 # that one"), Command::Delete(RuleSelector::Id(3)));
    assert_eq!(read("move 3 1"), Command::Move(RuleSelector::Position(3), 1));
    assert_eq!(read("flush"), Command::Flush);
    assert_eq!(read("other arp"), Command::SetNonIpPolicy(crate::rule_set::NonIpPolicy::Arp));
    assert_eq!(read("list"), Command::List(ListFormat::Text));
    assert_eq!(read("list --json"), Command::List(ListFormat::Json));
    assert_eq!(read("show tables verbose"), Command::ShowTables { verbose: true });
    assert_eq!(read("show connections"), Command::ShowConnections { verbose: false });
    assert_eq!(read("enable eth0 eth1"), Command::Enable(vec!["eth0".into(), "eth1".into()]));
    assert_eq!(read("disable eth0"), Command::Disable(vec!["eth0".into()]));
    assert_eq!(read("save a file.mmb"), Command::Save("a file.mmb".into()));
    assert_eq!(read("load rules.mmb"), Command::Load("rules.mmb".into()));
    assert_eq!(read("reset counters"), Command::ResetCounters);
    assert_eq!(read("show sets verbose"), Command::ShowSets { verbose: true });
    assert_eq!(read("set load a b c"), Command::LoadSet("a".into(), "b c".into()));
    assert_eq!(read("set delete @a"), Command::ChangeSet("a".into(), SetChange::Delete));
    let elements = ["80", "8000-8100", "10.0.0.0/8"].map(|it| SetElement::parse(it).unwrap());
    let added = SetChange::Add(elements.to_vec());
    assert_eq!(read("set add a 80,8000-8100 10.0.0.0/8"), Command::ChangeSet("a".into(), added));
    assert_eq!(read("timeout udp 30"), Command::SetTimeout(Timeout::Udp, 30));
    let test = |input: Option<&str>, packet: &str| {
        let input = input.map(str::to_owned);
        Command::Test(TestPacket { input, output: None, packet: packet.into() })
    };
    assert_eq!(read("test 1.0.0.1 > 2.0.0.2 tcp"), test(None, "1.0.0.1 > 2.0.0.2 tcp"));
    assert_eq!(read("test in b  1::1 > 2::2 udp"), test(Some("b"), "1::1 > 2::2 udp"));
    assert_eq!(read("test in b \"1::1 > 2::2 udp\""), test(Some("b"), "1::1 > 2::2 udp"));
    let quoted = "1.0.0.1 > 2.0.0.2 tcp \"payload # 1\"";
    assert_eq!(read(&format!("test {quoted}")), test(None, quoted));
    let Command::Replace(RuleSelector::Position(2), rule) = read("replace 2 stateful all accept")
    else {
        panic!("it replaces");
    };
    assert_eq!(rule.command(), "add-stateful all accept");
    assert_eq!((command(""), command(" # nothing")), (Ok(None), Ok(None)));
}

/// Returns the diagnostics of a text, as the program shows them.
fn said(text: &str) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("rules", text);
    let faults = commands(text).expect_err(text);
    let all: Diagnostics = faults.iter().map(|fault| fault.diagnostic(file)).collect();
    all.render_rich(&sources, false)
}

/// Checks message, underlined text and suggestion of an error.
fn golden(line: &str, message: &str, under: &str, help: &str) {
    let fault = command(line).expect_err(line);
    assert_eq!(fault.message, message, "{line}");
    assert_eq!(&line[fault.range.clone()], under, "{line}");
    assert_eq!(fault.help.as_deref().unwrap_or_default(), help, "{line}");
    let said = said(line);
    assert!(said.contains(message) && said.contains("^"), "{said}");
}

#[test]
fn errors_have_ranges_and_suggestions() {
    golden(
        "tcp-dprot 80 drop",
        "`tcp-dprot` is neither a command nor a field",
        "tcp-dprot",
        "did you mean `tcp-dport`?",
    );
    golden(
        "add tcp-dprot 80 drop",
        "there is no field `tcp-dprot`",
        "tcp-dprot",
        "did you mean `tcp-dport`?",
    );
    golden("add tcp-dport 80 dorp", "there is no field `dorp`", "dorp", "did you mean `drop`?");
    golden(
        "add tcp-dport http drop",
        "`http` is no value of tcp-dport",
        "http",
        "tcp-dport wants a number from 0 to 65535",
    );
    golden(
        "add tcp-dport 65536 drop",
        "`65536` is no value of tcp-dport",
        "65536",
        "tcp-dport wants a number from 0 to 65535",
    );
    golden("add ip-ttl = 5 drop", "there is no condition `=`", "=", "write `==`");
    golden(
        "add ip-saddr 10.0.0.0/33 drop",
        "`10.0.0.0/33` is no value of ip-saddr",
        "10.0.0.0/33",
        "ip-saddr wants an IPv4 address or prefix, such as 10.0.0.0/8",
    );
    golden(
        "add net-proto < ip6 drop",
        "`net-proto` has no order: `<` makes no sense",
        "<",
        "it takes `==` and `!=`",
    );
    golden(
        "add tcp-opt > 4 drop",
        "options of any kind have no value",
        "tcp-opt",
        "say which kind: `tcp-opt KIND VALUE`",
    );
    golden("add tcp-opt 1 drop", "kind 1 is padding, no option", "1", "kinds are from 2 to 255");
    golden(
        "add drop",
        "the rule says of no packet that it is about it",
        "drop",
        "a rule begins with what a packet must be: `all` is about every one",
    );
    golden(
        "add tcp-syn",
        "a target is missing",
        "",
        "after the matches comes one of mod, add, strip, drop, reject, accept, map, shuffle, lb, log, jump",
    );
    for (line, message, under, help) in [
        (
            "proto udp rate 10/s drop",
            "`rate` takes `<=` and `>`",
            "rate 10/s",
            "`<=` matches packets within the rate, `>` those beyond it",
        ),
        (
            "tcp-syn ct-count <= 3 accept",
            "`ct-count` is for stateful rules: it counts their connections",
            "ct-count <= 3",
            "add the rule with `add-stateful`, and another one that drops the rest",
        ),
        (
            "add-stateful tcp-syn ct-count > 3 drop",
            "`ct-count` takes `<=` and `<`: the connections that there may be",
            "ct-count > 3",
            "what is beyond does not match, and is for other rules to drop",
        ),
        (
            "tcp-syn rate > 10/s jump web",
            "`rate` does not go with `jump`",
            "rate > 10/s",
            "put the limit into the rules of the chain",
        ),
        (
            "add-stateful tcp-syn jump web",
            "`jump` is for rules that are not stateful",
            "jump web",
            "the rules of the chain may be stateful",
        ),
        (
            "! chain web drop",
            "a rule is of a chain, or says nothing of it",
            "chain",
            "`chain NAME` stands without `!` and `!=`",
        ),
        (
            "ct-state new ct-state established drop",
            "`ct-state established` contradicts `ct-state new`: no packet is both",
            "ct-state established",
            "a packet must be all that the matches say; for one or the other, make a rule for each",
        ),
    ] {
        golden(line, message, under, help);
    }
    golden("add all tcp-syn drop", "`all` stands alone", "all", "leave it out");
    golden("add ! all drop", "`! all` is about no packet", "all", "leave the `!` out");
    golden(
        "add all drop mod ip-ttl 3",
        "`drop` stands alone",
        "drop",
        "make a rule of its own for the other targets; only `log` goes with it",
    );
    golden(
        "add all mod ip-ttl 3 tcp-syn",
        "`tcp-syn` is no target",
        "tcp-syn",
        "all matches come before the targets",
    );
    golden(
        "add all strip all strip ! tcp-opt-mss",
        "`strip` and `strip !` do not mix in one rule",
        "strip ! tcp-opt-mss",
        "name what goes, or name what stays",
    );
    golden(
        "add all shuffle tcp-sport",
        "`shuffle` is for stateful rules",
        "shuffle",
        "add the rule with `add-stateful`",
    );
    golden(
        "add-stateful all shuffle ip-ttl",
        "`shuffle` does not take `ip-ttl`",
        "ip-ttl",
        "`shuffle` takes ip-id, ip6-flow-label, udp-sport, udp-dport, tcp-sport, tcp-dport, \
         tcp-seq-num, tcp-ack-num, tcp-opt-sack",
    );
    golden(
        "add all mod in eth0",
        "`mod` does not take `in`",
        "in",
        "`help fields` says which fields it takes",
    );
    golden("add in drop", "`in` wants the name of an interface", "in", "");
    golden(
        "add all drop 101",
        "`101` is no percentage",
        "101",
        "`drop` wants nothing, or a number from 0 to 100, such as 0.1",
    );
    golden(
        "add all lb here",
        "`here` is no next hop",
        "here",
        "a next hop is an IPv4 or IPv6 address or that of a station",
    );
    let like = "such as `test in eth0 1.0.0.1:1000 > 2.0.0.2:80 tcp syn`";
    golden("test in eth0", "a packet is missing", "", like);
    golden("add all mod ip-ttl", "a number from 0 to 255, the value of ip-ttl, is missing", "", "");
    golden(
        "delete 0",
        "`0` is no rule",
        "0",
        "a rule is its position, from 1, or its identifier, such as id7",
    );
    golden(
        "tcp-dport 80, 443 drop",
        "`80,` is no value of tcp-dport",
        "80,",
        "a list has no blanks and no empty places: `80,443,8000-8100`",
    );
    golden(
        "tcp-dport 90-80 drop",
        "`90-80` is no value of tcp-dport",
        "90-80",
        "the range `90-80` ends before it begins",
    );
    golden(
        "ip-saddr 10.0.0.0/8-11.0.0.0 drop",
        "`10.0.0.0/8-11.0.0.0` is no value of ip-saddr",
        "10.0.0.0/8-11.0.0.0",
        "a range is of two single values, and `10.0.0.0/8-11.0.0.0` has a prefix",
    );
    golden(
        "tcp-dport < 80,90 drop",
        "a set has no order: `<` makes no sense",
        "<",
        "it takes `==` and `!=`",
    );
    golden(
        "ip-saddr @a/b drop",
        "`@a/b` is no value of ip-saddr",
        "@a/b",
        "the name of a set has letters, digits, `-`, `_` and `.`",
    );
    golden(
        "all mod ip-ttl 3-4",
        "`3-4` is no value of ip-ttl",
        "3-4",
        "ip-ttl wants a number from 0 to 255",
    );
    golden(
        "set add blocked 10.0.0.1-5",
        "`10.0.0.1-5` is no value of a set",
        "10.0.0.1-5",
        "a range is of two single values, the lesser one first",
    );
    golden(
        "all reject prot",
        "`prot` is no answer",
        "prot",
        "`reject` wants nothing, or one of port, admin, host, net",
    );
    golden("flush it", "`it` is one word too many", "it", "");
    golden("other maybe", "expected accept or arp or drop, not `maybe`", "maybe", "");
    golden(
        "show rules",
        "expected tables or connections or sets or timeouts, not `rules`",
        "rules",
        "",
    );
    golden("timeout udp 0", "`0` is no time", "0", "a timeout is a number of seconds, at least 1");
    golden("lits", "`lits` is neither a command nor a field", "lits", "did you mean `list`?");
}

#[test]
fn file_errors_have_line_numbers() {
    let said = said("all drop\nall dropp\n\ntcp-syn # no target\n");
    for line in ["rules:2:5", "rules:4:8", "2 | all dropp", "no field `dropp`"] {
        assert!(said.contains(line), "no {line} in\n{said}");
    }
}

/// Values that a field can have, as rules write them.
fn value_of(field: Field) -> BoxedStrategy<Value> {
    let spec = field.spec();
    let bytes = |most| proptest::collection::vec(any::<u8>(), 1..=most);
    let parsed = move |text: String| Value::parse(field, &text).expect("is a value");
    match spec.kind {
        Kind::Presence => Just(Value::Number(0)).boxed(),
        Kind::Flag | Kind::Named(_) => (0u64..2).prop_map(Value::Number).boxed(),
        Kind::Version => prop_oneof![Just(4u64), Just(6)].prop_map(Value::Number).boxed(),
        Kind::Number | Kind::Checksum | Kind::Protocol => {
            let bits = spec.bits();
            any::<u64>().prop_map(move |n| Value::Number(n >> (64 - bits))).boxed()
        }
        Kind::Address4 => (any::<std::net::Ipv4Addr>(), 0u8..=32)
            .prop_map(move |(address, length)| parsed(format!("{address}/{length}")))
            .boxed(),
        Kind::Address6 => (any::<std::net::Ipv6Addr>(), 0u8..=128)
            .prop_map(move |(address, length)| parsed(format!("{address}/{length}")))
            .boxed(),
        Kind::State => (0u64..5).prop_map(Value::Number).boxed(),
        Kind::Chain => "[a-z]{3}[0-9]".prop_map(|it| Value::Name(it.into())).boxed(),
        Kind::Rate => (1u64..1000).prop_map(move |n| parsed(format!("{n}/s"))).boxed(),
        Kind::Station => (0u64..1 << 48).prop_map(Value::Number).boxed(),
        Kind::Prefix => bytes(64).prop_map(|it| Value::Bytes(it.into())).boxed(),
        Kind::Bytes => bytes(38).prop_map(|it| Value::Bytes(it.into())).boxed(),
        Kind::Interface => {
            let words =
                proptest::sample::select(vec!["add", "drop", "in", "tcp-dport", "all", "=="]);
            let name = prop_oneof![4 => "[a-z]{3}[0-9]", 1 => words.prop_map(str::to_owned)];
            name.prop_map(|it| Value::Name(it.into())).boxed()
        }
    }
}

fn any_field() -> impl Strategy<Value = Field> + Clone {
    // Limits and chains go with few conditions and targets.
    let is_plain = |field: &Field| field.spec().kind != Kind::Chain && !field.spec().is_limit();
    let all: Vec<Field> = Field::all().filter(is_plain).collect();
    let plain = proptest::sample::select(all);
    prop_oneof![4 => plain, 1 => (2u8..=255).prop_map(Field::option)]
}

/// Values that a match of the field can have: single ones and sets.
fn value_of_match(field: Field) -> BoxedStrategy<(Value, bool)> {
    let plain = value_of(field).prop_map(|it| (it, false));
    if ValueFamily::of(field).is_none() {
        return plain.boxed();
    }
    let parts = proptest::collection::vec((value_of(field), value_of(field)), 1..4);
    let list = parts.prop_map(move |parts| {
        let range = |(a, b): (Value, Value)| {
            let ends = [a.range(), b.range()].map(|it| it.expect("is a number").0);
            let [low, high] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
            [(low, low), (low + (high - low) / 2, high)]
        };
        let ranges = NumberSet::new(parts.into_iter().flat_map(range).collect());
        match ValueFamily::of(field).and_then(|family| family.single(&ranges)) {
            Some(value) => (value, false),
            None => (Value::Set(ValueSet::list(ranges).into()), true),
        }
    });
    let named = "[a-z]{1,4}[0-9]?".prop_map(|name| {
        let set = ValueSet::named(&name, NumberSet::default()).expect("is a name");
        (Value::Set(set.into()), true)
    });
    let named_weight = u32::from(field.spec().kind != Kind::State);
    prop_oneof![6 => plain, 2 => list, named_weight => named].boxed()
}

/// Predicates of all fields.
pub(crate) fn predicate() -> impl Strategy<Value = Predicate> + Clone {
    let some = any_field().prop_filter("`all` stands alone", |it| it.spec().name != "all");
    some.prop_flat_map(|field| {
        let orders = if field.spec().has_order() { 6usize } else { 2 };
        let test = (0..orders).prop_map(|at| CONDITIONS[at].1);
        (any::<bool>(), Just(field), test, value_of_match(field), any::<bool>())
    })
    .prop_map(|(negated, field, condition, (value, is_set), alone)| {
        let spec = field.spec();
        let condition = match condition {
            it if !is_set || it.is_equality() => it,
            _ => Condition::Equal,
        };
        let bare = spec.kind == Kind::Presence || field == Field::any_option();
        let alone = bare || alone && !spec.needs_value();
        Predicate { negated, field, test: (!alone).then_some((condition, value)) }
    })
}

fn change() -> impl Strategy<Value = Target> {
    let modified = any_field().prop_filter("`mod` takes it", |it| it.modifies());
    let modified = modified.prop_flat_map(|it| (Just(it), value_of(it)));
    let mapped = any_field().prop_filter("`map` takes it", |it| it.spec().maps);
    let mapped = mapped.prop_flat_map(|it| (Just(it), value_of(it)));
    let shuffled = any_field().prop_filter("`shuffle` takes it", |it| it.spec().shuffles);
    let option = (2u8..=255).prop_map(Field::option);
    let added = option.clone().prop_flat_map(|it| (Just(it), value_of(it)));
    let added = added.prop_map(|(option, value)| {
        let value = Some(value).filter(|_| option.spec().kind != Kind::Presence);
        Target::Add { option, value }
    });
    prop_oneof![
        modified.prop_map(|(field, value)| Target::Mod { field, value }),
        mapped.prop_map(|(field, value)| Target::Map { field, value }),
        shuffled.prop_map(Target::Shuffle),
        added,
        option.prop_map(|it| Target::Strip(Some(it))),
        Just(Target::Strip(None)),
    ]
}

/// Targets of a rule, sometimes with a line of the log.
fn targets() -> impl Strategy<Value = Vec<Target>> {
    let name = proptest::option::of("[a-z]{2}[0-9]").prop_map(|it| it.map(Into::into));
    let log = proptest::option::weighted(0.2, name.prop_map(Target::Log));
    (log, other_targets()).prop_map(|(log, others)| log.into_iter().chain(others).collect())
}

fn other_targets() -> impl Strategy<Value = Vec<Target>> {
    let hop = prop_oneof![
        any::<std::net::IpAddr>().prop_map(Hop::Address),
        any::<[u8; 6]>().prop_map(|it| Hop::Station(castanet_wire::MacAddr(it))),
    ];
    prop_oneof![
        4 => proptest::collection::vec(change(), 1..5),
        1 => proptest::sample::select(vec![Rejection::Reset, Rejection::Port, Rejection::Net])
            .prop_map(|it| vec![Target::Reject(it)]),
        1 => (0u32..=100_000_000).prop_map(|it| vec![Target::Drop(Chance(it))]),
        1 => Just(vec![Target::Accept]),
        1 => proptest::collection::vec(hop, 1..4).prop_map(|it| vec![Target::Balance(it)]),
        1 => proptest::collection::vec((2u8..=255).prop_map(|it| Target::Keep(Field::option(it))), 1..4),
    ]
}

proptest! {
    #[test]
    fn printing_and_parsing_round_trip(
        matches in proptest::collection::vec(predicate(), 1..5), targets in targets(),
    ) {
        let wanted = Rule { stateful: true, matches, targets, comment: RuleComment::default() };
        let line = wanted.command();
        match (command(&line), crate::analysis::rule_error(&wanted)) {
            (Ok(Some(Command::Add(read))), None) => prop_assert_eq!(&read, &wanted, "{}", line),
            (Err(fault), Some(remark)) => {
                prop_assert_eq!((fault.message, fault.help), (remark.message, remark.help));
                return Ok(());
            }
            other => prop_assert!(false, "{}: {:?}", line, other),
        }
        let again = rule(&wanted.to_string(), true).map(|rule| rule.to_string());
        prop_assert_eq!(again, Ok(wanted.to_string()));
    }

    #[test]
    fn parser_does_not_panic(line in "(\\PC| |!|<|=|#|tcp-opt|mod|add|0x|strip){0,30}") {
        if let Err(fault) = command(&line) {
            prop_assert!(line.get(fault.range.clone()).is_some(), "{:?}", fault);
        }
    }

    #[test]
    fn probabilities_are_exact(percent in 0u32..=100) {
        let chance = Chance::parse(&percent.to_string()).expect("is one");
        let step = u64::MAX / 10_000;
        let is_drawn = (0..10_000).filter(|n| chance.is_drawn(n * step)).count();
        prop_assert!(is_drawn.abs_diff(percent as usize * 100) <= 1, "{}", is_drawn);
    }
}

#[test]
fn every_field_is_declared_well() {
    for (at, spec) in FIELDS.iter().enumerate() {
        assert!(spec.doc.ends_with('.'), "{}", spec.name);
        assert!(FIELDS[..at].iter().all(|other| other.name != spec.name), "{} twice", spec.name);
        assert!(TARGETS.iter().all(|(name, _, _)| *name != spec.name), "{}", spec.name);
    }
}

/// A long text is parsed in chunks with the same result.
#[test]
fn long_texts_are_parsed_in_chunks() {
    let line = |n: usize| match n % 7 {
        0 => "\n".into(),
        1 => format!("# {}\n", "long ".repeat(n % 40)),
        n => format!("add tcp-dport {n} drop\n"),
    };
    let text: String = (0..60_000).map(line).collect();
    assert!(text.len() > 1 << 20);
    let mut start = 0;
    let mut wanted = Vec::new();
    for line in text.split_inclusive('\n') {
        wanted.extend(command(line).expect("is right").map(|command| (start, command)));
        start += line.len();
    }
    assert_eq!(commands(&text), Ok(wanted));
    // Faults are where they are, in order.
    let wrong = text.replace("add tcp-dport 3 drop", "add tcp-dport 3 dorp");
    let places: Vec<usize> = wrong.match_indices("dorp").map(|(at, _)| at).collect();
    let faults = commands(&wrong).expect_err("is wrong");
    assert_eq!(faults.len(), MAX_ERRORS);
    assert!(faults.iter().map(|fault| fault.range.start).eq(places.into_iter().take(MAX_ERRORS)));
}
