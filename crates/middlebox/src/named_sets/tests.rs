//! Tests of named sets, and of files that define them.

use crate::active_rules::ActiveRules;
use crate::file::{FileContext, parse_rules, parse_set};
use crate::headers;
use crate::language::command;
use crate::match_packet::PacketView;
use crate::matcher::{CompiledRule, Matcher};
use crate::named_sets::NamedSets;
use crate::rule_set::RuleSet;
use crate::tests::packet;
use castanet_element::error::ArgError;

/// The rule set of a file, which names no other files.
fn of_file(text: &str) -> Result<RuleSet, String> {
    let read = |path: &str| match path {
        "list" => Ok("10.0.0.1 # one\n10.0.0.4,10.0.0.5\n".to_owned()),
        _ => Err(ArgError::new("there is no such file").at(path)),
    };
    let context = FileContext { placement_error: &|_| None, read: &read };
    let mut rules = RuleSet::default();
    let loaded = parse_rules(text, NamedSets::default(), &context).map_err(|it| it.message())?;
    loaded.apply_to(&mut rules);
    Ok(rules)
}

#[test]
fn a_file_is_saved_as_it_was_written() {
    let text = "# The firewall.\nother arp\ntimeout udp 30\nset add lan 10.0.0.0/8\nset add web 80 443\n\
                # Web servers.\n\nadd tcp-dport @web accept # public\nadd ip-saddr @lan accept\n# The end.\n";
    let rules = of_file(text).unwrap();
    assert_eq!(rules.text(), text);
    assert_eq!(of_file(&rules.text()).unwrap().text(), text);
    assert_eq!(rules.timeouts.udp, 30);
}

#[test]
fn sets_change_under_their_rules() {
    let mut rules =
        of_file("set load bad list\nip-saddr @bad drop\nip-daddr @bad accept\n").unwrap();
    let (first, mut matcher) = (ActiveRules::new(rules.clone()), Matcher::default());
    matcher.set_tables(first.tables());
    let matched = |matcher: &mut Matcher, text: &str| {
        let packet = packet(text).0;
        let headers = headers::find(&packet).unwrap();
        matcher.start_burst();
        matcher.push(packet.bytes(), &headers);
        matcher.look_up();
        let view = PacketView::new(packet.bytes(), &headers, ("", ""));
        let mut found = Vec::new();
        matcher.matching_rules(0, &view, &mut found);
        found
    };
    assert_eq!(matched(&mut matcher, "10.0.0.4 > 10.0.0.5 udp"), [0, 1]);
    assert_eq!(matched(&mut matcher, "10.0.0.2 > 10.0.0.1 udp"), [1]);
    let mut active = first;
    let mut change = |rules: &mut RuleSet, matcher: &mut Matcher, line: &str| {
        let answer = rules.execute(&command(line).unwrap().unwrap()).unwrap();
        active = active.with(rules.clone());
        matcher.set_tables(active.tables());
        answer.unwrap_or_else(|error| error)
    };
    let said = change(&mut rules, &mut matcher, "set add bad 10.0.0.2-10.0.0.3");
    assert_eq!(said, "set bad has 1 value or range");
    assert_eq!(matched(&mut matcher, "10.0.0.2 > 10.0.0.1 udp"), [0, 1]);
    change(&mut rules, &mut matcher, "set remove bad 10.0.0.0/30");
    assert_eq!(matched(&mut matcher, "10.0.0.2 > 10.0.0.5 udp"), [1]);
    change(&mut rules, &mut matcher, "set replace bad 2001:db8::/32");
    assert_eq!(matched(&mut matcher, "10.0.0.4 > 10.0.0.5 udp"), [0; 0]);
    for (line, error) in [
        ("set delete bad", "set `bad` is used by rule 1"),
        ("set delete bda", "there is no set `bda`; did you mean `bad`?"),
        ("tcp-dport @bad drop", "set `bad` has IP addresses, and tcp-dport wants numbers"),
        ("set replace bad 80", "set `bad` has numbers, and ip-saddr wants IPv4 addresses"),
        ("set add bad 80", "set bad cannot have both numbers and IP addresses"),
        ("ip-saddr @good drop", "there is no set `good`; `set add good VALUE…` makes one"),
    ] {
        assert_eq!(change(&mut rules, &mut matcher, line), error);
    }
    assert_eq!(
        rules.text(),
        "set add bad 2001:db8::/32\nadd ip-saddr @bad drop\nadd ip-daddr @bad accept\n"
    );
    let ids: Vec<u64> = rules.entries().map(|entry| entry.id).collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn wrong_sets_in_files_are_named_with_their_lines() {
    let error = |text| of_file(text).unwrap_err();
    assert_eq!(error("all accept\nset load x none"), "line 2: none: there is no such file");
    let both = "ip-saddr @lan drop\nset add lann 1\n";
    assert_eq!(error(both), "line 1: there is no set `lan`; did you mean `lann`?");
    let said = parse_set("f", "1.2.3.4\n5.6.7.8 nine # ten\n").unwrap_err().message();
    assert!(said.starts_with("f: line 2: `nine` is no value; a set has numbers"), "{said}");
}

#[test]
fn a_set_may_have_numbers_that_a_field_cannot_have() {
    let rules = of_file("set add ports 9 65000-70000 80000\ntcp-dport @ports drop\n").unwrap();
    let (active, mut matcher) = (ActiveRules::new(rules), Matcher::default());
    matcher.set_tables(active.tables());
    for (port, is_matched) in
        [(9, true), (10, false), (64999, false), (65535, true), (14464, false)]
    {
        let packet = packet(&format!("1.0.0.1:5 > 2.0.0.2:{port} tcp")).0;
        let headers = headers::find(&packet).unwrap();
        let view = PacketView::new(packet.bytes(), &headers, ("", ""));
        let mut found = Vec::new();
        matcher.matching_rules_of(&view, &mut found);
        assert_eq!(!found.is_empty(), is_matched, "{port}");
    }
}

#[test]
fn stations_and_vlans_are_matched_where_packets_have_them() {
    let text = "set add known 02-00-00-00-00-01 02:00:00:00:00:10-02:00:00:00:00:1F\n\
                eth-saddr @known accept\neth-daddr 02:00:00:00:00:02 accept\n\
                vlan-id 100-200 accept\n! vlan-id accept\nvlan-pcp > 3 accept\n";
    let rules = of_file(text).unwrap();
    let (active, mut matcher) = (ActiveRules::new(rules), Matcher::default());
    matcher.set_tables(active.tables());
    let matched = |frame: &str| {
        let packet = packet(frame).0;
        let headers = headers::find(&packet).unwrap();
        let view = PacketView::new(packet.bytes(), &headers, ("", ""));
        let mut found = Vec::new();
        matcher.matching_rules_of(&view, &mut found);
        found
    };
    let ip = "1.0.0.1:5 > 2.0.0.2:6 udp";
    assert_eq!(matched(&format!("eth 2:0:0:0:0:1 > 2:0:0:0:0:2 {ip}")), [0, 1, 3]);
    assert_eq!(matched(&format!("eth 2:0:0:0:0:12 > 2:0:0:0:0:3 vlan 150 prio 5 {ip}")), [0, 2, 4]);
    assert_eq!(matched(&format!("eth 2:0:0:0:0:2 > 2:0:0:0:0:3 vlan 99 {ip}")), [0; 0]);
    // A packet without its Ethernet header has neither.
    assert_eq!(matched(ip), [3]);
}

#[test]
fn a_large_set_is_found_by_the_table() {
    let values: Vec<String> =
        (0..5000u32).map(|n| format!("10.{}.{}.7", n / 250, n % 250)).collect();
    let rules = of_file(&format!(
        "set add many {}\nip-saddr @many tcp-dport 80,443 drop\n",
        values.join(" ")
    ));
    let compiled = CompiledRule::of(&rules.unwrap().at(0).unwrap().rule);
    assert!(compiled.is_exact);
    assert_eq!(compiled.keys.len(), 10_000);
}
