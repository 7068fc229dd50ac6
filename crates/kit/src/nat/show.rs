//! Mappings as text, in Click's form.

use super::{By, Id, Mapping, Table};
use crate::flow::{Flows, Tuple4};
use std::fmt::Write;

const SECOND: u64 = 1_000_000_000;

/// How many places are looked at for one piece of a listing: some 200 µs.
const PIECE: usize = 256;

impl Table {
    /// Mappings of a member that are of `protocol`, or of any, both directions, a line each: as many
    /// as take a moment, from place `from` on, and where others begin. Those whose time is over are
    /// left out.
    pub fn listing(
        &self,
        zone: u16,
        protocol: Option<u8>,
        now: u64,
        from: usize,
    ) -> (String, Option<usize>) {
        let (mut text, by) = (String::new(), self.members.get(usize::from(zone)));
        let (Some(by), Some(flows)) = (by.map(|member| member.rules.by), &self.flows) else {
            return (text, None);
        };
        let (some, next) = flows.some(from, PIECE);
        for (id, key, mapping) in some {
            let is_one = key.zone() == zone && protocol.is_none_or(|it| it == key.proto());
            if is_one && flows.ends(id) > now {
                let seconds = self.seconds_left(id, now);
                line(by, key, mapping, false, seconds, &mut text);
                line(by, key, mapping, true, seconds, &mut text);
            }
        }
        (text, next)
    }

    fn seconds_left(&self, id: Id, now: u64) -> u64 {
        let ends = self.flows.as_ref().map_or(now, |flows: &Flows<Mapping>| flows.ends(id));
        // Rounded, as Click does.
        (ends + SECOND / 2).saturating_sub(now) / SECOND
    }

    /// What becomes of packets without a mapping on input `only`, or on all, a line each, with
    /// how many mappings they have made.
    pub fn patterns(&self, zone: u16, only: Option<usize>) -> String {
        let mut text = String::new();
        let Some(member) = self.members.get(usize::from(zone)) else { return text };
        let inputs = member.rules.inputs.iter().zip(&member.tallies).enumerate();
        for (_, (input, tally)) in inputs.filter(|(n, _)| only.is_none_or(|only| only == *n)) {
            let _ = match tally.count {
                0 => writeln!(text, "{input}"),
                count => writeln!(text, "{input} [{count}]"),
            };
        }
        text
    }
}

fn line(by: By, key: &Tuple4, mapping: &Mapping, back: bool, seconds: u64, text: &mut String) {
    let reply = mapping.back.unwrap_or(*key);
    let (from, to) = if back { (reply, key.reversed()) } else { (*key, reply.reversed()) };
    let _ = match by {
        By::Both | By::Tcp | By::Udp => {
            let show = |it: Tuple4| {
                let (src, dst) = (it.src(), it.dst());
                format!("({}, {}, {}, {})", src.0, src.1, dst.0, dst.1)
            };
            write!(text, "{} => {}", show(from), show(to))
        }
        By::Source if back => write!(text, "{} => {}", from.dst().0, to.dst().0),
        By::Source => write!(text, "{} => {}", from.src().0, to.src().0),
        By::Pair => {
            let show = |it: Tuple4| format!("({}, {})", it.src().0, it.dst().0);
            write!(text, "{} => {}", show(from), show(to))
        }
        By::Echo => {
            // Of a reply the identifier stands on the other side of the key.
            let show = |it: Tuple4| {
                let id = if back { it.dst().1 } else { it.src().1 };
                format!("({}, {}, {id})", it.src().0, it.dst().0)
            };
            write!(text, "{} => {}", show(from), show(to))
        }
    };
    if let Some(by) = mapping.shifted(back) {
        let _ = write!(text, " seq {by:+}");
    }
    let [forward, backward] = mapping.outputs;
    let (star, other) = if back { ("", "*") } else { ("*", "") };
    let input = mapping.input;
    let _ = writeln!(text, " [{star}{forward} {other}{backward}] i{input} exp{seconds}");
}
