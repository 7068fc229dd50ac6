//! What a `Middlebox` keeps: counters of rules, connections, and room to work in.

use crate::burst::Look;
use crate::connections::{Asked, Connections};
use crate::fragments::{HeldFragment, View, release};
use crate::in_force::InForce;
use crate::listing::{self, Count};
use crate::matcher::Matcher;
use crate::rules::{Entry, Rules};
use castanet_engine::class::{Piece, Sums};
use castanet_engine::prelude::*;
use castanet_kit::flow::Counts;
use castanet_kit::fragment_tracker::FragmentTracker;
use std::sync::Arc;

/// What one worker has counted.
#[derive(Default, Local)]
#[local(methods)]
pub struct Books {
    pub(crate) matcher: Matcher,
    /// Those of all workers.
    pub(crate) connections: Common<Connections>,
    /// Packets whose fragments are under way, of all workers.
    pub(crate) datagrams: Common<FragmentTracker<HeldFragment>>,
    /// A fragment as rules see it.
    pub(crate) view: View,
    /// Whether this worker answers for what all have in common.
    pub(crate) is_home: bool,
    /// The packets of a burst.
    pub(crate) looks: Vec<Look>,
    pub(crate) asked: Asked,
    /// Those that wait until connections may be changed.
    pub(crate) late: Vec<u32>,
    pub(crate) fates: Vec<u8>,
    /// The rules that are about a packet, in order.
    pub(crate) matched: Vec<u32>,
    /// The rules that apply to a packet.
    pub(crate) applied: Vec<u32>,
    /// Whether it is to be woken.
    waits: bool,
    /// Options that were not added or changed, for want of room in header or packet.
    #[read(unfit_options)]
    pub(crate) unfit: u64,
}

#[handlers]
impl Books {
    /// The rules with their counters, as a table.
    #[read]
    fn list(&self) -> Value {
        self.listed(listing::text)
    }
    /// The rules with their counters, as JSON.
    #[read]
    fn list_json(&self) -> Value {
        self.listed(listing::json)
    }
    /// The table that rules are found by.
    #[read]
    fn tables(&self) -> String {
        self.matcher.tables().text(false)
    }
    /// The table that rules are found by, with the masks of its keys.
    #[read]
    fn tables_verbose(&self) -> String {
        self.matcher.tables().text(true)
    }
    /// The connections with their rules, a line each.
    #[read]
    fn connections(&self, ask: &Ask) -> Value {
        self.connections_listed(ask, false)
    }
    /// The connections with all that is kept of them, a line each.
    #[read]
    fn connections_verbose(&self, ask: &Ask) -> Value {
        self.connections_listed(ask, true)
    }
    /// How many connections there are.
    #[read]
    fn connection_count(&self) -> Value {
        Value::common(self.connections.read(Connections::len))
    }
    /// What became of connections: added, expired, evicted for others, refused.
    #[read]
    fn connection_events(&self) -> Value {
        let Counts { added, expired, evicted, refused } =
            self.connections.read(Connections::counts);
        Value::common(Value::Counts(vec![
            (added, "added"),
            (expired, "expired"),
            (evicted, "evicted"),
            (refused, "refused"),
        ]))
    }
    /// Fragments that wait for the first of their packet.
    #[read]
    fn waiting_fragments(&self) -> Value {
        Value::common(self.datagrams.read(FragmentTracker::queued))
    }
    /// Packets that the rule at a position was about.
    #[read(packets_)]
    fn packets(&self, ask: &Ask) -> u64 {
        self.count_at(ask).packets
    }
    /// Bytes of packets that the rule at a position was about.
    #[read(bytes_)]
    fn bytes(&self, ask: &Ask) -> u64 {
        self.count_at(ask).bytes
    }
}

impl Books {
    fn rules(&self) -> &Arc<Rules> {
        self.matcher.tables().rules()
    }

    fn connections_listed(&self, ask: &Ask, verbose: bool) -> Value {
        let (places, now) = (self.matcher.places(), ask.now.0.unsigned_abs());
        let some = |all: &Connections| all.some_lines(places, now, verbose, ask.from);
        let (text, next) = self.connections.read(some);
        Piece { text, next, finish: Piece::sorted }.into()
    }

    /// Sees to it that connections that are over are forgotten while no packets come.
    #[inline]
    pub(crate) fn wait(&mut self, cx: &mut Cx) {
        const INTERVAL: Duration = Duration::from_secs(1);
        if !self.waits {
            self.waits = true;
            cx.wake_at(cx.now() + INTERVAL);
        }
    }

    /// Forgets connections that are over.
    pub(crate) fn wake(&mut self, cx: &mut Cx) {
        /// How many are looked at in one go, while other workers wait.
        const SOME: usize = 256;
        let now = cx.now().0.unsigned_abs();
        self.waits = false;
        let (is_done, is_empty) = match self.connections.read(|all| all.is_due(now)) {
            true => self.connections.change(|all| (all.forget(now, SOME), all.len() == 0)),
            false => (true, self.connections.read(|all| all.len() == 0)),
        };
        let is_done = is_done & !release(&self.datagrams, SOME, cx);
        let is_empty = is_empty && self.datagrams.read(FragmentTracker::is_empty);
        match is_done {
            false => {
                self.waits = true;
                cx.wake_at(cx.now() + Duration::from_nanos(1));
            }
            true if !is_empty => self.wait(cx),
            true => {}
        }
    }

    fn count_at(&self, ask: &Ask) -> Count {
        let at = ask.param.parse().ok().and_then(|n: usize| n.checked_sub(1));
        let entry = at.and_then(|at| self.rules().at(at));
        entry.map_or(Count::default(), |entry| self.of(entry))
    }

    /// The count of a rule.
    fn of(&self, entry: &Entry) -> Count {
        self.matcher.counts().of(entry.slot)
    }

    /// The rules with the counts of all workers.
    fn listed(&self, show: fn(&Rules, &[Count]) -> String) -> Value {
        let rules = self.rules().clone();
        let counts = rules.entries().flat_map(|entry| {
            let Count { packets, bytes } = self.of(entry);
            [packets, bytes]
        });
        let say = {
            let rules = rules.clone();
            move |counts: &[u64]| {
                let pairs = counts.as_chunks::<2>().0.iter();
                let counts: Vec<Count> =
                    pairs.map(|&[packets, bytes]| Count { packets, bytes }).collect();
                show(&rules, &counts)
            }
        };
        Sums::new(counts.collect(), say).into()
    }

    /// Lets counters and connections follow the rules: counters of a rule that is new begin anew.
    pub(crate) fn follow(
        &mut self,
        in_force: &InForce,
        (connections, limit): (&Common<Connections>, usize),
        datagrams: &Common<FragmentTracker<HeldFragment>>,
    ) {
        if !self.datagrams.is(datagrams) {
            let kept = self.datagrams.change(std::mem::take);
            datagrams.change(|all| all.take_over(kept));
            self.datagrams = datagrams.clone();
        }
        let (rules, tables) = (in_force.rules(), in_force.tables());
        if Arc::ptr_eq(self.matcher.tables(), tables) {
            return;
        }
        self.matcher.follow(tables);
        if !self.connections.is(connections) {
            let kept = self.connections.change(std::mem::take);
            connections.change(|all| all.go_on(kept));
            self.connections = connections.clone();
        }
        connections.change(|all| all.follow(rules, limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{command, rule};

    fn in_force(lines: &[&str]) -> InForce {
        let read = |line: &&str| rule(line, false).expect("is a rule");
        InForce::new(Rules::new(lines.iter().map(read)))
    }

    /// Other rules, made of these by commands.
    fn changed(in_force: &InForce, lines: &[&str]) -> InForce {
        let mut changed = Rules::clone(in_force.rules());
        for line in lines {
            let command = command(line).expect("is a command").expect("says something");
            assert!(changed.obey(&command).is_some_and(|it| it.is_ok()), "{line}");
        }
        in_force.with(changed)
    }

    fn counted(books: &Books) -> Vec<u64> {
        books.rules().entries().map(|entry| books.of(entry).packets).collect()
    }

    #[test]
    fn counters_go_with_their_rules() {
        let mut books = Books::default();
        let first = in_force(&["all mod ip-ttl 1", "all mod ip-ttl 2", "all mod ip-ttl 2"]);
        let (connections, datagrams) = ((&Common::default(), 9), Common::default());
        books.follow(&first, connections, &datagrams);
        for (slot, packets) in [(0, 10), (1, 20), (2, 30)] {
            (0..packets).for_each(|_| books.matcher.count(slot, 0));
        }
        // By commands: places are used again, but not what was counted there.
        let second = changed(&first, &["delete 1", "add all mod ip-ttl 1", "move 1 2"]);
        books.follow(&second, connections, &datagrams);
        assert_eq!(counted(&books), [30, 20, 0]);
        // By another configuration: the same words are the same rule.
        let lines = ["all accept", "all mod ip-ttl 2", "all drop", "all mod ip-ttl 2"];
        let other = in_force(&lines).in_place_of(&second).expect("has room");
        books.follow(&other, connections, &datagrams);
        assert_eq!(counted(&books), [0, 30, 0, 20]);
        // By more commands than anybody remembers.
        let ranks = ["move 1 4"; 100];
        books.follow(&changed(&other, &ranks), connections, &datagrams);
        assert_eq!(counted(&books), [0, 30, 0, 20]);
        let again = changed(&other, &["reset counters"]);
        books.follow(&again, connections, &datagrams);
        assert_eq!(counted(&books), [0; 4]);
    }
}
