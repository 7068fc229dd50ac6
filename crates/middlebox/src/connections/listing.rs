//! Listings of connections, one line each.

use super::entry::ConnectionState;
use super::mapping::Offsets;
use super::packet_connection::PacketConnection;
use super::table::{Connections, FamilyTable};
use crate::matcher::RuleSlots;
use castanet_element::handler::TextChunk;
use castanet_kit::conntrack::{Address, Tuple};
use castanet_wire::ip_proto;
use std::fmt::Write;
use std::net::SocketAddr;

/// Cursor at which the IPv6 connections begin.
const IP6_START: u64 = 1 << 32;

/// The TCP flags by letters, as IP summary dumps have them.
fn flag_letters(flags: u8) -> String {
    let letters = "FSRPAUEW".chars().enumerate();
    let set: String =
        letters.filter(|(bit, _)| flags >> bit & 1 != 0).map(|(_, letter)| letter).collect();
    if set.is_empty() { ".".into() } else { set }
}

fn tuple_text(ends: &Tuple) -> String {
    format!("{} > {}", SocketAddr::from(ends.src), SocketAddr::from(ends.dst))
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

/// The form in which a listing has connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionFormat {
    /// A line with the tuple and the rules.
    Brief,
    /// A line that also has the timeout, the TCP state and the translation.
    Verbose,
    /// A JSON object with the same.
    Json,
}

/// Makes a JSON array of lines of objects.
pub(crate) fn json_array(lines: String) -> String {
    let lines = TextChunk::sorted(lines);
    format!("[{}\n]\n", lines.lines().map(|it| format!("\n  {it}")).collect::<Vec<_>>().join(","))
}

impl Connections {
    /// Lists all connections, sorted.
    pub(crate) fn list(&self, slots: &RuleSlots, now: u64, format: ConnectionFormat) -> String {
        let (mut text, mut from) = (String::new(), Some(0));
        while let Some(begin) = from {
            let (some, next) = self.list_chunk(slots, now, format, begin);
            text += &some;
            from = next;
        }
        TextChunk::sorted(text)
    }

    /// Describes a connection: its tuple and rules, and its translation.
    pub(crate) fn describe(&self, connection: &PacketConnection, slots: &RuleSlots) -> String {
        let (state, (from, to)) = (self.state(connection), self.tuples(connection));
        let mut line = String::new();
        self.write_rules(&mut line, &from, state, slots);
        self.write_translation(&mut line, (&from, &to), state);
        line
    }

    /// Writes the original tuple and the rules of a connection.
    fn write_rules(
        &self,
        line: &mut String,
        from: &Tuple,
        state: &ConnectionState,
        slots: &RuleSlots,
    ) {
        let _ = write!(line, "{} {}", protocol(from.proto), tuple_text(from));
        for (_, rule) in slots.resolve_all(self.rule_lists.rules(&state.rule_refs)) {
            let _ = write!(line, " id{}", rule.id);
        }
    }

    /// Writes the translated tuple and the offsets of a connection, if it has any.
    fn write_translation(
        &self,
        line: &mut String,
        (from, to): (&Tuple, &Tuple),
        state: &ConnectionState,
    ) {
        if from != to {
            let _ = write!(line, " as {}", tuple_text(to));
        }
        write_offsets(line, &self.seq_offsets.get(state.offsets));
    }

    /// Lists the chunk of connections at cursor `from` (0 is the first), and returns the cursor of
    /// the next chunk.
    pub(crate) fn list_chunk(
        &self,
        slots: &RuleSlots,
        now: u64,
        format: ConnectionFormat,
        from: u64,
    ) -> (String, Option<u64>) {
        match from.checked_sub(IP6_START) {
            None => {
                let (text, next) = self.chunk_of(&self.ip4, slots, now, format, from);
                (text, next.or(Some(IP6_START)))
            }
            Some(from) => {
                let (text, next) = self.chunk_of(&self.ip6, slots, now, format, from);
                (text, next.map(|next| next + IP6_START))
            }
        }
    }

    fn chunk_of<A: Address>(
        &self,
        table: &FamilyTable<A>,
        slots: &RuleSlots,
        now: u64,
        format: ConnectionFormat,
        from: u64,
    ) -> (String, Option<u64>) {
        table.list_chunk(from, |text, id, key, entry| {
            let (state, (from, to)) = (entry.state(), entry.tuples(key));
            let (from, to) = (from.tuple(), to.tuple());
            let left = table.deadline(id).saturating_sub(now).div_ceil(1_000_000_000);
            if format == ConnectionFormat::Json {
                let _ = writeln!(text, "{}", self.object((&from, &to), state, slots, left));
                return;
            }
            self.write_rules(text, &from, state, slots);
            if format == ConnectionFormat::Verbose {
                let _ = write!(text, " expires {left} s");
                if from.proto == ip_proto::TCP {
                    let [forward, reverse] = state.flags().map(flag_letters);
                    let state = if state.is_established() { "established" } else { "transient" };
                    let _ = write!(text, " {state} flags {forward} {reverse}");
                }
                self.write_translation(text, (&from, &to), state);
            }
            text.push('\n');
        })
    }
}

impl Connections {
    /// A connection as a JSON object, with the seconds that are left to it.
    fn object(
        &self,
        (from, to): (&Tuple, &Tuple),
        state: &ConnectionState,
        slots: &RuleSlots,
        left: u64,
    ) -> serde_json::Value {
        let ends = |tuple: &Tuple| {
            serde_json::json!({
                "source": tuple.src.0.to_string(), "source_port": tuple.src.1,
                "destination": tuple.dst.0.to_string(), "destination_port": tuple.dst.1,
            })
        };
        let rules = slots.resolve_all(self.rule_lists.rules(&state.rule_refs));
        let rules: Vec<u64> = rules.map(|(_, rule)| rule.id).collect();
        let mut object = serde_json::json!({
            "protocol": protocol(from.proto), "original": ends(from), "rules": rules,
            "expires": left, "is_answered": state.has_reply(),
        });
        if from.proto == ip_proto::TCP {
            object["is_established"] = state.is_established().into();
            object["flags"] = state.flags().map(flag_letters).to_vec().into();
        }
        if from != to {
            object["translated"] = ends(to);
        }
        let mut offsets = String::new();
        write_offsets(&mut offsets, &self.seq_offsets.get(state.offsets));
        if !offsets.is_empty() {
            object["offsets"] = offsets.trim_start().into();
        }
        object
    }
}

fn write_offsets(line: &mut String, offsets: &Offsets) {
    let Offsets { seq, ack, id, fixed_id, label } = *offsets;
    let mut write_nonzero = |name: &str, number: u32| {
        if number != 0 {
            let _ = write!(line, " {name} {number}");
        }
    };
    write_nonzero("seq +", seq);
    write_nonzero("ack -", ack);
    write_nonzero("id +", id.into());
    write_nonzero("id", fixed_id.map_or(0, u32::from));
    write_nonzero("label", label.unwrap_or(0));
}
