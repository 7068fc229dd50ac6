//! Listings of mappings as text, in Click's form.

use super::{Mapping, RewriterKind, Table};
use crate::conntrack::Tuple4;
use std::fmt::Write;

const SECOND: u64 = 1_000_000_000;

impl Table {
    /// The mappings of a member, of one `protocol` or of all, both directions, one per line. Lists
    /// one part from slot `from` on and returns the slot where the next part starts. Expired
    /// mappings are left out.
    pub fn listing(
        &self,
        zone: u16,
        protocol: Option<u8>,
        now: u64,
        from: u64,
    ) -> (String, Option<u64>) {
        let Some(member) = self.members.get(usize::from(zone)) else { return Default::default() };
        self.flows.list_chunk(from, |text, id, key, mapping| {
            let is_one = key.zone() == zone && protocol.is_none_or(|it| it == key.proto());
            let end = self.flows.deadline(id);
            if is_one && end > now {
                // Rounded, as Click does.
                let seconds = (end + SECOND / 2 - now) / SECOND;
                write_line(member.config.kind, key, mapping, false, seconds, text);
                write_line(member.config.kind, key, mapping, true, seconds, text);
            }
        })
    }

    /// How many mappings each input of a member has.
    pub fn input_counts(&self, zone: u16) -> Vec<u64> {
        let counters = self.members.get(usize::from(zone)).map_or(&[][..], |it| &it.counters);
        counters.iter().map(|counter| counter.count).collect()
    }

    /// The specification of input `only`, or of all inputs, one per line, with the number of its
    /// mappings in `counts`.
    pub fn patterns(&self, zone: u16, only: Option<usize>, counts: &[u64]) -> String {
        let mut text = String::new();
        let Some(member) = self.members.get(usize::from(zone)) else { return text };
        let inputs = member.config.inputs.iter().zip(counts).enumerate();
        for (_, (input, count)) in inputs.filter(|(n, _)| only.is_none_or(|only| only == *n)) {
            let _ = match count {
                0 => writeln!(text, "{input}"),
                count => writeln!(text, "{input} [{count}]"),
            };
        }
        text
    }
}

fn write_line(
    kind: RewriterKind,
    key: &Tuple4,
    mapping: &Mapping,
    back: bool,
    seconds: u64,
    text: &mut String,
) {
    let reply = mapping.reply_key.unwrap_or(*key);
    let (from, to) = if back { (reply, key.reversed()) } else { (*key, reply.reversed()) };
    let _ = match kind {
        RewriterKind::TcpUdp | RewriterKind::Tcp | RewriterKind::Udp => {
            let show = |it: Tuple4| {
                let (src, dst) = (it.src(), it.dst());
                format!("({}, {}, {}, {})", src.0, src.1, dst.0, dst.1)
            };
            write!(text, "{} => {}", show(from), show(to))
        }
        RewriterKind::SourceAddress if back => write!(text, "{} => {}", from.dst().0, to.dst().0),
        RewriterKind::SourceAddress => write!(text, "{} => {}", from.src().0, to.src().0),
        RewriterKind::AddressPair => {
            let show = |it: Tuple4| format!("({}, {})", it.src().0, it.dst().0);
            write!(text, "{} => {}", show(from), show(to))
        }
        RewriterKind::IcmpEcho => {
            // In a reply's key the identifier is on the destination side.
            let show = |it: Tuple4| {
                let id = if back { it.dst().1 } else { it.src().1 };
                format!("({}, {}, {id})", it.src().0, it.dst().0)
            };
            write!(text, "{} => {}", show(from), show(to))
        }
    };
    if let Some(by) = mapping.last_shift(back) {
        let _ = write!(text, " seq {by:+}");
    }
    let [forward, backward] = mapping.outputs;
    let (star, other) = if back { ("", "*") } else { ("*", "") };
    let input = mapping.input;
    let _ = writeln!(text, " [{star}{forward} {other}{backward}] i{input} exp{seconds}");
}
