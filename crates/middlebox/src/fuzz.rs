//! What a fuzzer feeds: lines of commands, a zero byte, then packets.

use crate::connections::{Asked, Connections, Ends, Finding, Fresh, quotes};
use crate::fragments::{View, piece};
use crate::headers::{Headers, NonIp};
use crate::holds::Seen;
use crate::judge::{is_dropped, rewrite};
use crate::language::{Command, command};
use crate::matcher::{Matcher, Tables};
use crate::rules::Rules;
use castanet_kit::fragment_tracker::{Admission, FragmentTracker, HeaderChain, Limits, Refusal};
use castanet_packet::Packet;
use std::sync::Arc;

/// How many lines and packets are looked at.
const MOST: usize = 64;
/// Between two packets.
const BETWEEN: &[u8] = b"\xff\xfe\xfd";
/// Longer than anything of fragments lasts, in nanoseconds.
const LONG: u64 = 40_000_000_000;

/// Reads what stands before the first zero byte as commands, which must read the same
/// when they are printed, and lets the rules have the packets behind it, four a second; nothing
/// at all between two packets lets time pass.
pub fn fuzz_entry(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let rules = Arc::new(read(&String::from_utf8_lossy(&data[..end])));
    let mut bench = Bench::new(rules);
    let mut rest = data.get(end + 1..).unwrap_or_default();
    for n in 0..MOST as u64 {
        let gap = rest.windows(BETWEEN.len()).position(|it| it == BETWEEN);
        let (bytes, behind) = rest.split_at(gap.unwrap_or(rest.len()));
        bench.now += if bytes.is_empty() { LONG } else { LONG / 160 };
        bench.pass(bytes, n);
        rest = behind.get(BETWEEN.len()..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
    }
    _ = bench.connections.list(bench.matcher.places(), 0, true);
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

/// Rules, and what they remember of packets.
struct Bench {
    rules: Arc<Rules>,
    matcher: Matcher,
    connections: Connections,
    datagrams: FragmentTracker<Packet>,
    now: u64,
}

impl Bench {
    fn new(rules: Arc<Rules>) -> Bench {
        let mut matcher = Matcher::default();
        matcher.follow(&Arc::new(Tables::of(rules.clone())));
        let mut connections = Connections::default();
        connections.set_limit(3);
        let limits = Limits { datagrams: 3, queued: 4, per_datagram: 2, ..Limits::default() };
        let datagrams = FragmentTracker::new(limits);
        Bench { rules, matcher, connections, datagrams, now: 1 }
    }

    /// Lets the rules have a packet, with a network header or behind Ethernet's.
    fn pass(&mut self, bytes: &[u8], n: u64) {
        let mut packet = Packet::from_bytes(bytes);
        let is_frame = matches!(bytes.get(12..14), Some([8, 0] | [0x86, 0xdd] | [0x81, 0]));
        if n.is_multiple_of(2) || !is_frame {
            packet.set_network_header(0, 0);
        }
        self.connections.forget(self.now, 64);
        self.datagrams.expire(self.now, 64);
        _ = self.datagrams.take_dropped();
        let Some(headers) = Headers::find(&packet) else {
            _ = NonIp::of(&packet);
            return;
        };
        if headers.is_fragment && self.rules.follow_fragments() {
            self.fragment(packet, headers, n);
        } else if !headers.is_cut() {
            let mut view = View::default();
            view.show(&packet, &headers);
            self.judge(&view, &mut packet, headers, n);
        }
        assert!(self.datagrams.len() <= 3 && self.datagrams.queued() <= 8);
    }

    /// The same of a fragment, which is whole, follows another, waits or is refused.
    fn fragment(&mut self, mut packet: Packet, headers: Headers, n: u64) {
        let Some((key, piece)) = piece(packet.bytes(), &headers) else { return };
        let mut view = View::default();
        let foreseen = self.datagrams.peek(key, &piece, self.now);
        let admission = self.datagrams.admit(key, &piece, self.now);
        let is_crowded = foreseen == Admission::Refused(Refusal::Excess);
        assert!(foreseen == admission || is_crowded && admission == Admission::Pending);
        match admission {
            Admission::First => {
                assert!(!headers.is_later_fragment && !headers.is_cut());
                view.show(&packet, &headers);
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
        let headers = Headers::find(&packet).expect("it had some before");
        let mut view = View::default();
        view.join(&packet, &headers, head);
        assert!(!view.headers.is_some_and(|it| it.is_cut()), "the first one has all headers");
        if !view.headers.is_some_and(|it| quotes(&view.bytes, &it)) {
            self.judge(&view, &mut packet, headers, n);
        }
    }

    /// Lets the rules have a packet as they see it. Whether it goes on.
    fn judge(&mut self, view: &View, packet: &mut Packet, headers: Headers, n: u64) -> bool {
        let Bench { rules, matcher, connections, now, .. } = self;
        let Some(shown) = &view.headers else { return false };
        let (now, mut found) = (*now, Vec::new());
        let bytes = &view.bytes[..];
        let seen = Seen { bytes, headers: shown, input: "a", output: "b" };
        matcher.begin();
        matcher.ask(bytes, shown);
        matcher.look();
        matcher.matching(0, &seen, &mut found);
        let places = matcher.places();
        let entries = found.iter().filter_map(|&slot| places.entry(slot));
        let stateful = entries.clone().filter(|entry| entry.rule.stateful);
        let mut asked = Asked::default();
        let looked = asked.ask(bytes, shown);
        asked.look(connections);
        let early = connections.find((&asked, looked), bytes, shown, now);
        let mut connection = connections.find_now((&asked, looked), bytes, shown, now);
        match early {
            Finding::Of(_) => assert!(connection.is_some()),
            Finding::None => assert!(connection.is_none()),
            Finding::Wait => {}
        }
        if let Some(found) = &connection {
            connections.keep_now(found, bytes, shown, &rules.timeouts, now);
        } else if stateful.clone().next().is_some() {
            let random = || n << 33 | 5;
            let begun = connections.begin((bytes, shown), stateful, &rules.timeouts, random, now);
            if let Some(Fresh::Begun(found)) = begun {
                connection = Some(found);
            }
        }
        let plans = entries.filter(|entry| !entry.rule.stateful).map(|entry| &entry.plan);
        let passes = !is_dropped(plans.clone(), || n);
        if passes {
            let mapped = connection.as_ref().and_then(|found| connections.mapped(found));
            let ends = Ends::of_any(bytes, shown);
            rewrite(packet, headers, plans, mapped.as_ref(), ends, 1500);
        }
        passes
    }
}
