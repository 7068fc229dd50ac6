//! Fuzz entry point: lines of commands, a zero byte, then packets.

use crate::connections::{
    BurstLookup, ConnectionFormat, Connections, LookupResult, quotes, read_any_tuple,
};
use crate::fragments::{HeaderBuffer, fragment_key};
use crate::headers::{self, Headers, NonIpKind};
use crate::language::{Command, command};
use crate::match_packet::PacketView;
use crate::matcher::{Matcher, Tables};
use crate::rule_set::RuleSet;
use crate::verdict::{dropping_rule, rewrite};
use castanet_kit::fragment_tracker::{Admission, FragmentTracker, HeaderChain, Limits, Refusal};
use castanet_packet::Packet;
use std::sync::Arc;

/// Maximum number of lines and of packets.
const MOST: usize = 64;
/// Separator of packets.
const BETWEEN: &[u8] = b"\xff\xfe\xfd";
/// Longer than any timeout of fragments, in nanoseconds.
const LONG: u64 = 40_000_000_000;

/// Parses the text before the first zero byte as commands, checks that each prints and parses to
/// itself, and evaluates the packets behind it at four a second. An empty packet lets all timeouts
/// of fragments pass.
pub fn fuzz_entry(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let rules = Arc::new(read(&String::from_utf8_lossy(&data[..end])));
    let mut harness = Harness::new(rules);
    let mut rest = data.get(end + 1..).unwrap_or_default();
    for n in 0..MOST as u64 {
        let gap = rest.windows(BETWEEN.len()).position(|it| it == BETWEEN);
        let (bytes, behind) = rest.split_at(gap.unwrap_or(rest.len()));
        harness.now += if bytes.is_empty() { LONG } else { LONG / 160 };
        harness.pass(bytes, n);
        rest = behind.get(BETWEEN.len()..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
    }
    _ = harness.connections.list(harness.matcher.slots(), 0, ConnectionFormat::Verbose);
}

/// Builds the rule set of a text of commands.
fn read(text: &str) -> RuleSet {
    let mut rules = RuleSet::default();
    for line in text.lines().take(MOST) {
        match command(line) {
            Ok(Some(Command::Add(rule))) => {
                let again = command(&rule.command());
                assert_eq!(again, Ok(Some(Command::Add(rule.clone()))), "{line}");
                rules.add(rule);
            }
            Ok(Some(other)) => _ = rules.execute(&other),
            Ok(None) => {}
            Err(fault) => assert!(line.get(fault.range.clone()).is_some(), "{line}: {fault:?}"),
        }
    }
    rules
}

/// A rule set with its connections and fragments.
struct Harness {
    rules: Arc<RuleSet>,
    matcher: Matcher,
    connections: Connections,
    datagrams: FragmentTracker<Packet>,
    now: u64,
}

impl Harness {
    fn new(rules: Arc<RuleSet>) -> Harness {
        let mut matcher = Matcher::default();
        matcher.set_tables(&Arc::new(Tables::new(rules.clone())));
        let mut connections = Connections::default();
        connections.set_limit(3);
        let limits = Limits { datagrams: 3, queued: 4, per_datagram: 2, ..Limits::default() };
        let datagrams = FragmentTracker::new(limits);
        Harness { rules, matcher, connections, datagrams, now: 1 }
    }

    /// Evaluates a packet with a network header or an Ethernet header.
    fn pass(&mut self, bytes: &[u8], n: u64) {
        let mut packet = Packet::from_bytes(bytes);
        let is_frame = matches!(bytes.get(12..14), Some([8, 0] | [0x86, 0xdd] | [0x81, 0]));
        if n.is_multiple_of(2) || !is_frame {
            packet.set_network_header(0, 0);
        }
        self.connections.expire(self.now, 64);
        self.datagrams.expire(self.now, 64);
        _ = self.datagrams.take_dropped();
        let Some(headers) = headers::find(&packet) else {
            _ = NonIpKind::of(&packet);
            return;
        };
        if headers.is_fragment && self.rules.tracks_fragments() {
            self.fragment(packet, headers, n);
        } else if !headers.is_cut() {
            let mut view = HeaderBuffer::default();
            view.set_packet(&packet, &headers);
            self.judge(&view, &mut packet, headers, n);
        }
        assert!(self.datagrams.len() <= 3 && self.datagrams.queued() <= 8);
    }

    /// Evaluates a fragment: a first one, a later one, one that waits or a refused one.
    fn fragment(&mut self, mut packet: Packet, headers: Headers, n: u64) {
        let Some((key, piece)) = fragment_key(packet.bytes(), &headers) else { return };
        let mut view = HeaderBuffer::default();
        let foreseen = self.datagrams.peek(key, &piece, self.now);
        let admission = self.datagrams.admit(key, &piece, self.now);
        let is_crowded = foreseen == Admission::Refused(Refusal::Excess);
        assert!(foreseen == admission || is_crowded && admission == Admission::Pending);
        match admission {
            Admission::First => {
                assert!(!headers.is_later_fragment && !headers.is_cut());
                view.set_packet(&packet, &headers);
                let passes = self.judge(&view, &mut packet, headers, n);
                let waited = self.datagrams.set_verdict(key, (!passes).then_some(255));
                let head = piece.head.expect("a first fragment has one");
                waited.into_iter().for_each(|later| self.follow(later, &head, n));
            }
            Admission::Later(head) => self.follow(packet, &head, n),
            Admission::Pending => {
                assert!(headers.is_later_fragment);
                let now = self.now;
                let back = self.datagrams.enqueue(key, &piece, now, packet);
                assert!(back.is_none(), "nobody else has had the first one");
            }
            Admission::Refused(_) => {}
        }
    }

    fn follow(&mut self, mut packet: Packet, head: &HeaderChain, n: u64) {
        let headers = headers::find(&packet).expect("it had some before");
        let mut view = HeaderBuffer::default();
        view.set_later_fragment(&packet, &headers, head);
        assert!(!view.headers.is_some_and(|it| it.is_cut()), "the first one has all headers");
        if !view.headers.is_some_and(|it| quotes(&view.bytes, &it)) {
            self.judge(&view, &mut packet, headers, n);
        }
    }

    /// Evaluates a packet by the headers in `view`. Returns whether it is forwarded.
    fn judge(
        &mut self,
        view: &HeaderBuffer,
        packet: &mut Packet,
        headers: Headers,
        n: u64,
    ) -> bool {
        let Harness { rules, matcher, connections, now, .. } = self;
        let Some(shown) = &view.headers else { return false };
        let (now, mut found) = (*now, Vec::new());
        let bytes = &view.bytes[..];
        let seen = PacketView::new(bytes, shown, ("a", "b"));
        matcher.start_burst();
        matcher.push(bytes, shown);
        matcher.look_up();
        matcher.matching_rules(0, &seen, &mut found);
        let slots = matcher.slots();
        let entries = found.iter().filter_map(|&slot| slots.entry(slot));
        let stateful = entries.clone().filter(|entry| entry.rule.stateful);
        let mut batch = BurstLookup::default();
        let key = batch.push(bytes, shown);
        batch.look_up(connections);
        let early = connections.find((&batch, key), bytes, shown, now);
        let mut connection = connections.find_exclusive((&batch, key), bytes, shown, now);
        match early {
            LookupResult::Connection(_) => assert!(connection.is_some()),
            LookupResult::None => assert!(connection.is_none()),
            LookupResult::NeedsWrite => {}
        }
        if let Some(found) = &connection {
            connections.refresh_exclusive(found, bytes, shown, &rules.timeouts, now);
        } else if stateful.clone().next().is_some() {
            let random = || n << 33 | 5;
            let begun = connections.create((bytes, shown), stateful, &rules.timeouts, random, now);
            connection = begun.ok().flatten();
        }
        let plans = entries.filter(|entry| !entry.rule.stateful).map(|entry| &entry.plan);
        let passes = dropping_rule(plans.clone(), || n).is_none();
        if passes {
            let mapping = connection.as_ref().map(|found| connections.mapping(found));
            let ends = read_any_tuple(bytes, shown);
            rewrite(packet, headers, plans, mapping.as_ref(), ends, 1500);
        }
        passes
    }
}
