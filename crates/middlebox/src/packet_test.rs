//! The command `test`: shows rules, connection and exit of a packet, and changes nothing.

use crate::active_rules::ActiveRules;
use crate::burst::{ConnectionRef, HookContext};
use crate::connections::{
    BurstLookup, Connections, LookupResult, PacketConnection, read_any_tuple,
};
use crate::ct_state::CtInfo;
use crate::exit::Exit;
use crate::fragments::{HeaderBuffer, fragment_key};
use crate::headers::{self, Headers};
use crate::rewrite::RulePlan;
use crate::rule::Chance;
use crate::rule_set::Entry;
use crate::state::MiddleboxState;
use castanet_element::fate::{DROP, Fate};
use castanet_element::prelude::*;
use castanet_element::wire::sketch;
use castanet_kit::fragment_tracker::{Admission, Refusal};
use std::fmt::Write;
use std::sync::Arc;

/// Random bits for which no probability comes true.
const UNLIKELY: u64 = u64::MAX;
/// Random bits for an example of what a connection would draw.
const EXAMPLE: u64 = 7;

/// Renders the reason why a fragment is dropped.
fn refusal_text(refusal: Refusal) -> String {
    match refusal {
        Refusal::Invalid => "there can be no such fragment".into(),
        Refusal::Tiny => "the headers of its packet are cut in two (`tiny_fragment`)".into(),
        Refusal::Overlap => {
            "fragments of its packet overlap or contradict each other (`overlapping_fragment`)"
                .into()
        }
        Refusal::NoFirst => {
            "the first fragment of its packet did not come (`lone_fragment`)".into()
        }
        Refusal::Excess => "there is no room for it to wait (`excess_fragment`)".into(),
        Refusal::Denied(index) => {
            let spec = Exit::FATES.get(usize::from(DROP - index));
            let name = spec.map_or("rule", |spec| spec.name);
            format!("the first fragment of its packet is dropped (`{name}`)")
        }
    }
}

/// Context of a packet test.
pub(crate) struct PacketTest<'m> {
    pub(crate) hook: HookContext<'m>,
    pub(crate) active_rules: &'m ActiveRules,
    pub(crate) is_enabled: bool,
}

/// The connection of the tested packet.
enum TestConnection<'c> {
    /// None.
    None,
    /// An existing connection.
    Existing(&'c Connections, PacketConnection),
    /// The connection that the packet would create, in a table of its own.
    New(Box<Connections>, PacketConnection),
}

impl PacketTest<'_> {
    /// Tests the packet that a text describes; returns the report, line by line.
    pub(crate) fn run(&self, text: &str) -> Result<String, String> {
        let built = sketch::build(text)?;
        let mut packet = Packet::from_bytes(&built.bytes);
        if built.layer == sketch::Layer::Network {
            packet.set_network_header(0, 0);
        }
        let (input, _) = self.hook.interfaces.names(self.hook.port);
        let mut report = format!("in {input}: {}\n", sketch::print(packet.bytes(), built.layer));
        let exit = match self.is_enabled {
            true => self.evaluate(&mut packet, &mut report),
            false => {
                _ = writeln!(report, "no rules: {input} is disabled");
                Some(self.hook.forward())
            }
        };
        let Some(exit) = exit else { return Ok(report) };
        _ = match exit {
            Exit::Out(port) => {
                let output = self.hook.interfaces.name(port.into(), true);
                let came = sketch::print(packet.bytes(), built.layer);
                writeln!(report, "out {output}: {came}")
            }
            // The report names the rule already.
            Exit::Rule => Ok(()),
            Exit::Full => writeln!(report, "dropped: there is no room for its connection"),
            Exit::NoPort => writeln!(report, "dropped: there is no port for its connection"),
            Exit::Malformed => writeln!(report, "dropped: its headers are malformed"),
            Exit::Other => writeln!(report, "dropped: `other` says so"),
            Exit::Fragment(refusal) => writeln!(report, "dropped: {}", refusal_text(refusal)),
        };
        Ok(report)
    }

    /// Evaluates the packet as a burst does, without side effects. `None` if the result depends on
    /// a fragment that has not come.
    fn evaluate(&self, packet: &mut Packet, report: &mut String) -> Option<Exit> {
        let Some(headers) = headers::find(packet) else {
            *report += "no rules: it is no IP packet\n";
            return Some(self.hook.non_ip_exit(packet));
        };
        let mut view = HeaderBuffer::default();
        view.set_packet(packet, &headers);
        if self.hook.rules.tracks_fragments() {
            if headers.is_fragment {
                if let Err(exit) = self.admit_fragment(&mut view, packet, &headers, report) {
                    return exit;
                }
            } else if headers.is_cut() {
                return Some(Exit::Malformed);
            }
        }
        Some(self.evaluate_view(&view, headers, packet, report))
    }

    /// Fills `view` for a fragment, or returns its exit.
    fn admit_fragment(
        &self,
        view: &mut HeaderBuffer,
        packet: &Packet,
        headers: &Headers,
        report: &mut String,
    ) -> Result<(), Option<Exit>> {
        let Some((key, fragment)) = fragment_key(packet.bytes(), headers) else {
            return Err(Some(Exit::Malformed));
        };
        let key = key.for_input(self.hook.port);
        match self.hook.fragments.peek(key, &fragment, self.hook.now) {
            Admission::First => Ok(()),
            Admission::Later(head) => {
                *report +=
                    "follows the first fragment of its packet, by whose headers it is judged\n";
                view.set_later_fragment(packet, headers, &head);
                match self.hook.is_fragmented_error(view) {
                    true => Err(Some(Exit::Malformed)),
                    false => Ok(()),
                }
            }
            Admission::Pending => {
                *report += "goes where the first fragment of its packet goes, and waits for it\n";
                Err(None)
            }
            Admission::Refused(refusal) => Err(Some(Exit::Fragment(refusal))),
        }
    }

    /// Evaluates a packet by the headers in `view`, as a burst does.
    fn evaluate_view(
        &self,
        view: &HeaderBuffer,
        headers: Headers,
        packet: &mut Packet,
        report: &mut String,
    ) -> Exit {
        let Some(view_headers) = &view.headers else { return Exit::Malformed };
        let seen = (&view.bytes[..], view_headers);
        // Counters and buffers of its own.
        let mut state = MiddleboxState::default();
        state.matcher.set_tables(self.active_rules.tables());
        self.hook.connections.read(|connections| {
            let connection = match self.find_connection(&mut state, connections, packet, seen) {
                Ok(connection) => connection,
                Err(exit) => {
                    self.write_rules(&state, &state.matched_rules, report);
                    self.write_verdict(&state, &state.matched_rules, exit, report);
                    return exit;
                }
            };
            let headers = &headers;
            let of = match &connection {
                TestConnection::None => None,
                TestConnection::Existing(connections, connection) => {
                    Some(ConnectionRef { connections, connection, headers })
                }
                TestConnection::New(connections, connection) => {
                    Some(ConnectionRef { connections, connection, headers })
                }
            };
            let hop = (packet.dst(), packet.dst6());
            let ends = read_any_tuple(seen.0, view_headers);
            let random = &mut || UNLIKELY;
            let exit = self.hook.apply_matched(&mut state, of, *headers, ends, packet, random);
            self.write_report(&state, &connection, exit, report);
            if exit != Exit::Rule && (packet.dst(), packet.dst6()) != hop {
                let (four, six) = (packet.dst(), packet.dst6());
                let next = if four != hop.0 { four.to_string() } else { six.to_string() };
                _ = writeln!(report, "destination annotation: {next}");
            }
            if state.unfit_options > 0 {
                _ = writeln!(report, "{} options find no room", state.unfit_options);
            }
            exit
        })
    }

    /// Finds the connection of a packet, or plans the one that it would create.
    fn find_connection<'c>(
        &self,
        state: &mut MiddleboxState,
        connections: &'c Connections,
        packet: &Packet,
        (bytes, headers): (&[u8], &Headers),
    ) -> Result<TestConnection<'c>, Exit> {
        let batch = BurstLookup::default();
        let seen = (bytes, headers);
        // An expired connection that is not removed yet does not count.
        if let LookupResult::Connection(connection) =
            connections.find((&batch, None), bytes, headers, self.hook.now)
            && self
                .hook
                .connection_actions(state, connections, connections.state(&connection))
                .is_some()
            && !self.hook.begins_anew(connections, &connection, bytes, headers)
        {
            let ct_info = connections.ct_info_of(&connection);
            self.hook.match_rules(state, None, packet, seen, ct_info);
            return Ok(TestConnection::Existing(connections, connection));
        }
        let ct_info = CtInfo::of_no_connection(bytes, headers);
        self.hook.match_rules(state, None, packet, seen, ct_info);
        if !self.hook.may_create_connection(state, connections, seen, &mut || UNLIKELY)? {
            return Ok(TestConnection::None);
        }
        let entries = self.hook.matched_stateful_rules(state);
        let Some(proposal) = connections.propose(seen, entries.clone(), || EXAMPLE)? else {
            return Ok(TestConnection::None);
        };
        let mut own = Box::new(Connections::default());
        let connection = own.insert(proposal, entries, &self.hook.rules.timeouts, self.hook.now)?;
        match connections.has_room() {
            true => Ok(TestConnection::New(own, connection)),
            false => Err(Exit::Full),
        }
    }

    fn entry<'b>(&self, state: &'b MiddleboxState, slot: u32) -> Option<&'b Arc<Entry>> {
        state.matcher.slots().entry(slot)
    }

    fn is_stateful(&self, state: &MiddleboxState, slot: u32) -> bool {
        self.entry(state, slot).is_some_and(|entry| entry.rule.stateful)
    }

    /// Reports the matching rules, the connection and its rules, and the verdict.
    fn write_report(
        &self,
        state: &MiddleboxState,
        connection: &TestConnection,
        exit: Exit,
        report: &mut String,
    ) {
        let applied_rules = &state.applied_rules;
        let by_connection = |slot: &u32| {
            matches!(connection, TestConnection::Existing(..)) && self.is_stateful(state, *slot)
        };
        let (of_connection, others): (Vec<u32>, Vec<u32>) =
            applied_rules.iter().partition(|slot| by_connection(slot));
        self.write_rules(state, &others, report);
        self.write_connection(state, connection, report);
        self.write_rules(state, &of_connection, report);
        self.write_verdict(state, applied_rules, exit, report);
    }

    fn write_rules(&self, state: &MiddleboxState, slots: &[u32], report: &mut String) {
        for entry in slots.iter().filter_map(|&slot| self.entry(state, slot)) {
            _ = writeln!(report, "{}: {}", self.name(entry), entry.rule.command());
        }
    }

    /// Names a rule by position and identifier.
    fn name(&self, entry: &Entry) -> String {
        let at = self.hook.rules.entries().position(|it| it.id == entry.id).unwrap_or_default();
        format!("rule {} id{}", at + 1, entry.id)
    }

    fn write_connection(
        &self,
        state: &MiddleboxState,
        connection: &TestConnection,
        report: &mut String,
    ) {
        let slots = state.matcher.slots();
        _ = match connection {
            TestConnection::None => Ok(()),
            TestConnection::Existing(connections, connection) => {
                let line = connections.describe(connection, slots);
                writeln!(report, "of connection {line}, with its rules:")
            }
            TestConnection::New(connections, connection) => {
                writeln!(report, "begins connection {}", connections.describe(connection, slots))
            }
        };
    }

    /// Reports the rules that accept or drop the packet, for certain or with a probability.
    fn write_verdict(
        &self,
        state: &MiddleboxState,
        applied_rules: &[u32],
        exit: Exit,
        report: &mut String,
    ) {
        let entries = || applied_rules.iter().filter_map(|&slot| self.entry(state, slot));
        let drops = |entry: &&Arc<Entry>| entry.plan.drop == Some(Chance::ALWAYS);
        let is_chancy = |plan: &RulePlan| plan.drop.filter(|it| *it != Chance::ALWAYS);
        match entries().find(|entry| entry.plan.accept) {
            Some(entry) if entries().any(|it| it.plan.drop.is_some()) => {
                _ = writeln!(report, "accepted by {}, whatever drops it", self.name(entry));
            }
            Some(_) => {}
            None if exit == Exit::Rule || entries().any(|entry| drops(&entry)) => {
                let entry = entries().find(drops);
                let is_answered = exit != Exit::Rule;
                let verb = if is_answered { "rejected" } else { "dropped" };
                let answer = if is_answered { ", with the answer:" } else { "" };
                let name = entry.map(|entry| self.name(entry)).unwrap_or_default();
                _ = writeln!(report, "{verb} by {name}{answer}");
            }
            None => {
                for entry in entries() {
                    if let Some(chance) = is_chancy(&entry.plan) {
                        let name = self.name(entry);
                        _ = writeln!(report, "dropped by {name} in {chance} % of cases, else:");
                    }
                }
            }
        }
    }
}
