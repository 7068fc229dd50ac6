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
    /// All connections, a line each; `verbose` with all that is kept of them.
    pub(crate) fn list(&self, places: &Places, now: u64, verbose: bool) -> String {
        let mut lines = Vec::new();
        self.add_lines(&self.four, places, now, verbose, &mut lines);
        self.add_lines(&self.six, places, now, verbose, &mut lines);
        lines.sort();
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

    fn add_lines<K: Family>(
        &self,
        side: &Side<K>,
        places: &Places,
        now: u64,
        verbose: bool,
        lines: &mut Vec<String>,
    ) {
        let Some(table) = side.table() else { return };
        lines.extend(table.iter().map(|(id, key, tracked)| {
            let (from, to) = tracked.ends(key);
            let (from, to) = (from.ends(), to.ends());
            let mut line = self.line(&from, &tracked.own, places);
            if verbose {
                let left = table.ends(id).saturating_sub(now) / 1_000_000_000;
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
        }));
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
