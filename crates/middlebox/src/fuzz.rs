//! What a fuzzer feeds: lines of commands, a zero byte, then packets.

use crate::connections::{Asked, Connections, Finding, Fresh};
use crate::headers::Headers;
use crate::holds::Seen;
use crate::judge::{is_dropped, rewrite};
use crate::language::{Command, command};
use crate::matcher::{Matcher, Tables};
use crate::rules::Rules;
use castanet_packet::Packet;
use std::sync::Arc;

/// How many lines and packets are looked at.
const MOST: usize = 64;
/// Between two packets.
const BETWEEN: &[u8] = b"\xff\xfe\xfd";

/// Reads what stands before the first zero byte as commands, which must read the same
/// when they are printed, and lets the rules have the packets behind it.
pub fn fuzz_entry(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let rules = Arc::new(read(&String::from_utf8_lossy(&data[..end])));
    let mut matcher = Matcher::default();
    matcher.follow(&Arc::new(Tables::of(rules.clone())));
    let mut connections = Connections::default();
    connections.set_limit(3);
    let mut rest = data.get(end + 1..).unwrap_or_default();
    for n in 0..MOST as u64 {
        let gap = rest.windows(BETWEEN.len()).position(|it| it == BETWEEN);
        let (bytes, behind) = rest.split_at(gap.unwrap_or(rest.len()));
        pass(&rules, &mut matcher, &mut connections, bytes, n);
        rest = behind.get(BETWEEN.len()..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
    }
    _ = connections.list(matcher.places(), 0, true);
}

/// The rules of a text of commands; other commands change them.
fn read(text: &str) -> Rules {
    let mut rules = Rules::default();
    for line in text.lines().take(MOST) {
        match command(line) {
            Ok(Some(Command::Add(rule))) => {
                let again = command(&rule.command());
                assert_eq!(again, Ok(Some(Command::Add(rule.clone()))), "{line}");
                rules.add(rule);
            }
            Ok(Some(other)) => _ = rules.obey(&other),
            Ok(None) => {}
            Err(fault) => assert!(line.get(fault.range.clone()).is_some(), "{line}: {fault:?}"),
        }
    }
    rules
}

/// Lets the rules have a packet, with a network header or behind Ethernet's.
fn pass(rules: &Rules, matcher: &mut Matcher, connections: &mut Connections, bytes: &[u8], n: u64) {
    let mut packet = Packet::from_bytes(bytes);
    if n.is_multiple_of(2) {
        packet.set_network_header(0, 0);
    }
    let now = (n + 1) * 1_000_000_000;
    connections.expire(now);
    let Some(headers) = Headers::find(&packet) else { return };
    let mut found = Vec::new();
    let seen = Seen { bytes: packet.bytes(), headers: &headers, input: "a", output: "b" };
    matcher.begin();
    matcher.ask(seen.bytes, &headers);
    matcher.look();
    matcher.matching(0, &seen, &mut found);
    let places = matcher.places();
    let entries = found.iter().filter_map(|&slot| places.entry(slot));
    let stateful = entries.clone().filter(|entry| entry.rule.stateful);
    let mut asked = Asked::default();
    let looked = asked.ask(packet.bytes(), &headers);
    asked.look(connections);
    let early = connections.find((&asked, looked), packet.bytes(), &headers, now);
    let mut connection = connections.find_now((&asked, looked), packet.bytes(), &headers, now);
    match early {
        Finding::Of(_) => assert!(connection.is_some()),
        Finding::None => assert!(connection.is_none()),
        Finding::Wait => {}
    }
    if let Some(found) = &connection {
        connections.keep_now(found, packet.bytes(), &headers, &rules.timeouts, now);
    } else if stateful.clone().next().is_some() {
        let seen = (packet.bytes(), &headers);
        let begun = connections.begin(seen, stateful, &rules.timeouts, || n << 33 | 5, now);
        if let Some(Fresh::Begun(found)) = begun {
            connection = Some(found);
        }
    }
    let plans = entries.filter(|entry| !entry.rule.stateful).map(|entry| &entry.plan);
    if !is_dropped(plans.clone(), || n) {
        let mapped = connection.as_ref().and_then(|found| connections.mapped(found));
        rewrite(&mut packet, headers, plans, mapped.as_ref(), 1500);
    }
}
