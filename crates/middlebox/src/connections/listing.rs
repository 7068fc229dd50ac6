//! Connections, a line each.

use super::key::{Ends, Family};
use super::mapping::Shifts;
use super::own::Own;
use super::side::Side;
use super::table::{Connections, Found};
use crate::matcher::Places;
use castanet_kit::flow::Id;
use castanet_wire::ip_proto;
use castanet_wire::tcp::flag;
use std::fmt::Write;
use std::net::IpAddr;

/// The flags by letters, as IP summary dumps have them.
const LETTERS: [(u8, char); 8] = [
    (flag::FIN, 'F'),
    (flag::SYN, 'S'),
    (flag::RST, 'R'),
    (flag::PSH, 'P'),
    (flag::ACK, 'A'),
    (flag::URG, 'U'),
    (flag::ECE, 'E'),
    (flag::CWR, 'W'),
];

/// How many places of a table are looked at for one piece of a listing: some 200 µs.
const PIECE: usize = 256;
/// Where connections of IPv6 begin.
const SIX: u64 = 1 << 32;

fn letters(flags: u8) -> String {
    let set = LETTERS.iter().filter(|(flag, _)| flags & flag != 0);
    match set.map(|(_, letter)| letter).collect::<String>() {
        none if none.is_empty() => ".".into(),
        some => some,
    }
}

fn end((address, port): (IpAddr, u16)) -> String {
    match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    }
}

fn both(ends: &Ends) -> String {
    format!("{} > {}", end(ends.src), end(ends.dst))
}

fn protocol(number: u8) -> String {
    match number {
        ip_proto::TCP => "tcp".into(),
        ip_proto::UDP => "udp".into(),
        ip_proto::ICMP => "icmp".into(),
        ip_proto::ICMPV6 => "icmp6".into(),
        other => format!("proto {other}"),
    }
}

impl Connections {
    /// All connections, a line each, sorted; `verbose` with all that is kept of them.
    pub(crate) fn list(&self, places: &Places, now: u64, verbose: bool) -> String {
        let (mut text, mut from) = (String::new(), Some(0));
        while let Some(begin) = from {
            let (some, next) = self.some_lines(places, now, verbose, begin);
            text += &some;
            from = next;
        }
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        lines.sort_unstable();
        lines.concat()
    }

    /// A packet's connection: its ends and rules, and what the ends become.
    pub(crate) fn describe(&self, found: &Found, places: &Places) -> String {
        match found.is_ip6() {
            false => self.described(&self.four, found.id(), places),
            true => self.described(&self.six, found.id(), places),
        }
    }

    fn described<K: Family>(&self, side: &Side<K>, id: Id, places: &Places) -> String {
        let Some(table) = side.table() else { return String::new() };
        let tracked = table.get(id);
        let (from, to) = tracked.ends(table.key(id));
        let (from, to) = (from.ends(), to.ends());
        let mut line = self.line(&from, &tracked.own, places);
        if from != to {
            let _ = write!(line, " as {}", both(&to));
        }
        shifts(&mut line, &self.shelf.get(tracked.shifts));
        line
    }

    /// The ends of a connection and its rules.
    fn line(&self, from: &Ends, own: &Own, places: &Places) -> String {
        let mut line = format!("{} {}", protocol(from.proto), both(from));
        for (_, rule) in self.rules_of(own, places) {
            let _ = write!(line, " id{}", rule.id);
        }
        line
    }

    /// Some connections, as many as take a moment, from `from` on, 0 being the first, and where
    /// others begin.
    pub(crate) fn some_lines(
        &self,
        places: &Places,
        now: u64,
        verbose: bool,
        from: u64,
    ) -> (String, Option<u64>) {
        match from.checked_sub(SIX) {
            None => {
                let (text, next) = self.lines(&self.four, places, now, verbose, from);
                (text, next.or(Some(SIX)))
            }
            Some(from) => {
                let (text, next) = self.lines(&self.six, places, now, verbose, from);
                (text, next.map(|next| next + SIX))
            }
        }
    }

    fn lines<K: Family>(
        &self,
        side: &Side<K>,
        places: &Places,
        now: u64,
        verbose: bool,
        from: u64,
    ) -> (String, Option<u64>) {
        let Some(table) = side.table() else { return (String::new(), None) };
        let (some, next) = table.iter_range(usize::try_from(from).unwrap_or(usize::MAX), PIECE);
        let lines = some.map(|(id, key, tracked)| {
            let (from, to) = tracked.ends(key);
            let (from, to) = (from.ends(), to.ends());
            let mut line = self.line(&from, &tracked.own, places);
            if verbose {
                let left = table.deadline(id).saturating_sub(now).div_ceil(1_000_000_000);
                let _ = write!(line, " expires {left} s");
                if from.proto == ip_proto::TCP {
                    let [forward, reverse] = tracked.flags().map(letters);
                    let state = if tracked.is_established() { "established" } else { "transient" };
                    let _ = write!(line, " {state} flags {forward} {reverse}");
                }
                if from != to {
                    let _ = write!(line, " as {}", both(&to));
                }
                shifts(&mut line, &self.shelf.get(tracked.shifts));
            }
            line + "\n"
        });
        (lines.collect(), next.map(|next| next as u64))
    }
}

fn shifts(line: &mut String, shifts: &Shifts) {
    let Shifts { seq, ack, id, fixed_id, label } = *shifts;
    let mut say = |name: &str, number: u32| {
        if number != 0 {
            let _ = write!(line, " {name} {number}");
        }
    };
    say("seq +", seq);
    say("ack -", ack);
    say("id +", id.into());
    say("id", fixed_id.map_or(0, u32::from));
    say("label", label.unwrap_or(0));
}
