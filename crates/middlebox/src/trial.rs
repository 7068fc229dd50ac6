//! The answer of `test`: rules, connection and exit of a packet. A test changes nothing.

use crate::books::Books;
use crate::burst::{Of, Pass};
use crate::connections::{Asked, Connections, Ends, Finding, Found, Fresh, Looked};
use crate::exits::Exit;
use crate::fragments::{View, piece};
use crate::headers::Headers;
use crate::in_force::InForce;
use crate::rewrite::Plan;
use crate::rule::Chance;
use crate::rules::Entry;
use castanet_engine::element::{DROP, Fate};
use castanet_engine::prelude::*;
use castanet_engine::wire::sketch;
use castanet_kit::fragment_tracker::{Admission, Refusal};
use std::fmt::Write;
use std::sync::Arc;

/// Random bits by which nothing happens that may as well not happen.
const UNLIKELY: u64 = u64::MAX;
/// Random bits for an example of what a connection chooses.
const EXAMPLE: u64 = 7;

/// Why a fragment goes nowhere.
fn reason(refusal: Refusal) -> String {
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

/// A packet that is tried.
pub(crate) struct Trial<'m> {
    pub(crate) pass: Pass<'m>,
    pub(crate) in_force: &'m InForce,
    pub(crate) is_enabled: bool,
    /// The time as connections have it.
    pub(crate) now: u64,
}

/// A connection of a packet, as it is or as it would begin.
enum State<'c> {
    /// There is none.
    None,
    /// It belongs to this one.
    Of(&'c Connections, Found),
    /// It would begin this one, the only one of these.
    Begins(Box<Connections>, Found),
}

impl Trial<'_> {
    /// Tries a packet that is described so; says what happens to it, line by line.
    pub(crate) fn of(&self, text: &str) -> Result<String, String> {
        let built = sketch::build(text)?;
        let mut packet = Packet::from_bytes(&built.bytes);
        if built.layer == sketch::Layer::Network {
            packet.set_network_header(0, 0);
        }
        let (input, output) = self.pass.interfaces.names(self.pass.port);
        let mut said = format!("in {input}: {}\n", sketch::print(packet.bytes(), built.layer));
        let exit = match self.is_enabled {
            true => self.judge(&mut packet, &mut said),
            false => {
                _ = writeln!(said, "no rules: {input} is disabled");
                Some(self.pass.on())
            }
        };
        let Some(exit) = exit else { return Ok(said) };
        _ = match exit {
            Exit::Out(_) => {
                let came = sketch::print(packet.bytes(), built.layer);
                writeln!(said, "out {output}: {came}")
            }
            // Which one is said already.
            Exit::Rule => Ok(()),
            Exit::Full => writeln!(said, "dropped: there is no room for its connection"),
            Exit::NoPort => writeln!(said, "dropped: there is no port for its connection"),
            Exit::Malformed => writeln!(said, "dropped: its headers are malformed"),
            Exit::Other => writeln!(said, "dropped: `other` says so"),
            Exit::Fragment(refusal) => writeln!(said, "dropped: {}", reason(refusal)),
        };
        Ok(said)
    }

    /// Lets the packet pass as a burst does, but for what that would change. Nothing, if that is a
    /// matter of a fragment that has not come.
    fn judge(&self, packet: &mut Packet, said: &mut String) -> Option<Exit> {
        let Some(headers) = Headers::find(packet) else {
            *said += "no rules: it is no IP packet\n";
            return Some(self.pass.other(packet));
        };
        let mut view = View::default();
        view.show(packet, &headers);
        if self.pass.rules.follow_fragments() {
            if headers.is_fragment {
                if let Err(exit) = self.admit(&mut view, packet, &headers, said) {
                    return exit;
                }
            } else if headers.is_cut() {
                return Some(Exit::Malformed);
            }
        }
        Some(self.by_view(&view, headers, packet, said))
    }

    /// A fragment as rules would see it, or where it goes without them.
    fn admit(
        &self,
        view: &mut View,
        packet: &Packet,
        headers: &Headers,
        said: &mut String,
    ) -> Result<(), Option<Exit>> {
        let Some((key, piece)) = piece(packet.bytes(), headers) else {
            return Err(Some(Exit::Malformed));
        };
        let key = key.for_input(self.pass.port);
        match self.pass.datagrams.read(|all| all.peek(key, &piece, self.now)) {
            Admission::First => Ok(()),
            Admission::Later(head) => {
                *said +=
                    "follows the first fragment of its packet, by whose headers it is judged\n";
                view.join(packet, headers, &head);
                match self.pass.is_refused(view) {
                    true => Err(Some(Exit::Malformed)),
                    false => Ok(()),
                }
            }
            Admission::Pending => {
                *said += "goes where the first fragment of its packet goes, and waits for it\n";
                Err(None)
            }
            Admission::Refused(refusal) => Err(Some(Exit::Fragment(refusal))),
        }
    }

    /// Judges a packet by a view, as a burst does.
    fn by_view(
        &self,
        view: &View,
        headers: Headers,
        packet: &mut Packet,
        said: &mut String,
    ) -> Exit {
        let Some(shown) = &view.headers else { return Exit::Malformed };
        let seen = (&view.bytes[..], shown);
        // Counters and room of its own.
        let mut books = Books::default();
        books.matcher.follow(self.in_force.tables());
        self.pass.meet(&mut books, None, seen);
        self.pass.connections.read(|connections| {
            let state = match self.state(&books, connections, seen) {
                Ok(state) => state,
                Err(exit) => {
                    self.tell_rules(&books, &books.matched, said);
                    self.tell_verdict(&books, &books.matched, exit, said);
                    return exit;
                }
            };
            let headers = &headers;
            let of = match &state {
                State::None => None,
                State::Of(connections, found) => Some(Of { connections, found, headers }),
                State::Begins(connections, found) => Some(Of { connections, found, headers }),
            };
            let hop = (packet.dst(), packet.dst6());
            let ends = Ends::of_any(seen.0, shown);
            let random = &mut || UNLIKELY;
            let exit = self.pass.apply(&mut books, of, *headers, ends, packet, random);
            self.tell(&books, &state, exit, said);
            if exit != Exit::Rule && (packet.dst(), packet.dst6()) != hop {
                let (four, six) = (packet.dst(), packet.dst6());
                let next = if four != hop.0 { four.to_string() } else { six.to_string() };
                _ = writeln!(said, "destination annotation: {next}");
            }
            if books.unfit > 0 {
                _ = writeln!(said, "{} options find no room", books.unfit);
            }
            exit
        })
    }

    /// The connection of a packet, or the one that it would begin.
    fn state<'c>(
        &self,
        books: &Books,
        connections: &'c Connections,
        (bytes, headers): (&[u8], &Headers),
    ) -> Result<State<'c>, Exit> {
        let asked = Asked::default();
        // Who only waits for those that are over to be forgotten belongs to none.
        if let Finding::Of(found) =
            connections.find((&asked, Looked::Alone), bytes, headers, self.now)
            && self.pass.own(books, connections, &found).is_some()
        {
            return Ok(State::Of(connections, found));
        }
        if !self.pass.may_begin(books, &mut || UNLIKELY)? {
            return Ok(State::None);
        }
        let seen = (bytes, headers);
        let Some(proposal) = connections.propose(seen, self.pass.beginners(books), || EXAMPLE)
        else {
            return Ok(State::None);
        };
        let proposal = proposal.ok_or(Exit::NoPort)?;
        let mut own = Box::new(Connections::default());
        let timeouts = &self.pass.rules.timeouts;
        match own.establish(proposal, self.pass.beginners(books), timeouts, self.now) {
            Fresh::Begun(_) if !connections.has_room() => Err(Exit::Full),
            Fresh::Begun(found) => Ok(State::Begins(own, found)),
            Fresh::Full => Err(Exit::Full),
            Fresh::NoPort => Err(Exit::NoPort),
        }
    }

    fn entry<'b>(&self, books: &'b Books, slot: u32) -> Option<&'b Arc<Entry>> {
        books.matcher.places().entry(slot)
    }

    fn is_stateful(&self, books: &Books, slot: u32) -> bool {
        self.entry(books, slot).is_some_and(|entry| entry.rule.stateful)
    }

    /// Which rules apply, by themselves and by the packet's connection, and what they decide.
    fn tell(&self, books: &Books, state: &State, exit: Exit, said: &mut String) {
        let applied = &books.applied;
        let by_state =
            |slot: &u32| matches!(state, State::Of(..)) && self.is_stateful(books, *slot);
        let (of_state, others): (Vec<u32>, Vec<u32>) =
            applied.iter().partition(|slot| by_state(slot));
        self.tell_rules(books, &others, said);
        self.tell_state(books, state, said);
        self.tell_rules(books, &of_state, said);
        self.tell_verdict(books, applied, exit, said);
    }

    fn tell_rules(&self, books: &Books, slots: &[u32], said: &mut String) {
        for entry in slots.iter().filter_map(|&slot| self.entry(books, slot)) {
            _ = writeln!(said, "{}: {}", self.name(entry), entry.rule.command());
        }
    }

    /// A rule by its position and identifier.
    fn name(&self, entry: &Entry) -> String {
        let at = self.pass.rules.entries().position(|it| it.id == entry.id).unwrap_or_default();
        format!("rule {} id{}", at + 1, entry.id)
    }

    fn tell_state(&self, books: &Books, state: &State, said: &mut String) {
        let places = books.matcher.places();
        _ = match state {
            State::None => Ok(()),
            State::Of(connections, found) => {
                let line = connections.describe(found, places);
                writeln!(said, "of connection {line}, with its rules:")
            }
            State::Begins(connections, found) => {
                writeln!(said, "begins connection {}", connections.describe(found, places))
            }
        };
    }

    /// Which rules accept or drop it, for certain or by chance.
    fn tell_verdict(&self, books: &Books, applied: &[u32], exit: Exit, said: &mut String) {
        let entries = || applied.iter().filter_map(|&slot| self.entry(books, slot));
        let drops = |entry: &&Arc<Entry>| entry.plan.drop == Some(Chance::ALWAYS);
        let is_chancy = |plan: &Plan| plan.drop.filter(|it| *it != Chance::ALWAYS);
        match entries().find(|entry| entry.plan.accept) {
            Some(entry) if entries().any(|it| it.plan.drop.is_some()) => {
                _ = writeln!(said, "accepted by {}, whatever drops it", self.name(entry));
            }
            Some(_) => {}
            None if exit == Exit::Rule => {
                let name = entries().find(drops).map(|entry| self.name(entry));
                _ = writeln!(said, "dropped by {}", name.unwrap_or_default());
            }
            None => {
                for entry in entries() {
                    if let Some(chance) = is_chancy(&entry.plan) {
                        let name = self.name(entry);
                        _ = writeln!(said, "dropped by {name} in {chance} % of cases, else:");
                    }
                }
            }
        }
    }
}
