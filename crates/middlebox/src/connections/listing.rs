//! Connections, a line each.

use super::key::Ends;
use super::mapping::Shifts;
use super::table::Connections;
use super::tracked::Tracked;
use crate::rules::Rules;
use castanet_kit::flow::{Id, Tuple6};
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
    pub(crate) fn list(&self, rules: &Rules, now: u64, verbose: bool) -> String {
        let Some(table) = self.table() else { return String::new() };
        let mut lines: Vec<String> = table
            .iter()
            .map(|(id, key, it)| self.line(rules, now, verbose, (id, key, it)))
            .collect();
        lines.sort();
        lines.concat()
    }

    fn line(
        &self,
        rules: &Rules,
        now: u64,
        verbose: bool,
        (id, key, tracked): (Id, &Tuple6, &Tracked),
    ) -> String {
        let (from, to) = tracked.ends(key);
        let mut line = format!("{} {}", protocol(from.proto), both(&from));
        for rule in self.rules_of(tracked, rules) {
            let _ = write!(line, " id{}", rule.id);
        }
        if verbose {
            let ends = self.table().map_or(0, |table| table.ends(id));
            let _ = write!(line, " expires {} s", ends.saturating_sub(now) / 1_000_000_000);
            if from.proto == ip_proto::TCP {
                let [forward, reverse] = tracked.flags.map(letters);
                let state = if tracked.is_established() { "established" } else { "transient" };
                let _ = write!(line, " {state} flags {forward} {reverse}");
            }
            if from != to {
                let _ = write!(line, " as {}", both(&to));
            }
            shifts(&mut line, &tracked.shifts);
        }
        line + "\n"
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
