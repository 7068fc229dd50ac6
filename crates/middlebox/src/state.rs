//! Per-worker state of a `Middlebox`: counters of rules, handles of shared tables, and scratch
//! buffers.

use crate::active_rules::ActiveRules;
use crate::burst::PacketLookup;
use crate::connections::{BurstLookup, ConnectionFormat, ConnectionKey, Connections, json_array};
use crate::exit::Exit;
use crate::export::{self, Export, ExportArgs};
use crate::fragments::HeaderBuffer;
use crate::listing::{self, Count};
use crate::matcher::{Matcher, RuleKey};
use crate::metrics::{
    CONNECTION_EVENTS, CONNECTIONS, RULE_BYTES, RULE_PACKETS, UNFIT_OPTIONS, WAITING_FRAGMENTS,
};
use crate::packet_log::PacketLog;
use crate::rule_set::{Entry, RuleSet};
use castanet_element::fragment::FragmentGate;
use castanet_element::handler::{Sums, TextChunk};
use castanet_element::prelude::*;
use castanet_io::ipfix::ExportSession;
use castanet_kit::conntrack::Counts;
use castanet_kit::rate::TokenBucket;
use std::sync::Arc;

/// How often expired connections are removed while no packets come.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// State of one worker.
#[derive(Default, Local)]
#[local(methods)]
#[portable(connections)]
pub struct MiddleboxState {
    #[portable(rule_counts)]
    pub(crate) matcher: Matcher,
    /// The connection table, shared by all workers.
    pub(crate) connections: RwShared<Connections>,
    /// Fragmented packets that are not complete, shared by all workers.
    pub(crate) fragments: FragmentGate,
    /// Scratch buffer for a fragment with the headers of its packet.
    pub(crate) view: HeaderBuffer,
    /// Whether this worker reports and cleans up the shared tables.
    pub(crate) is_primary: bool,
    /// The lookups of the current burst.
    pub(crate) lookups: Vec<PacketLookup>,
    pub(crate) lookup_batch: BurstLookup,
    /// Indexes of the packets that need exclusive access to the connections.
    pub(crate) deferred: Vec<u32>,
    pub(crate) fates: Vec<u8>,
    /// Slots of the rules that match the current packet, in rule order.
    pub(crate) matched_rules: Vec<u32>,
    /// Slots of the rules that apply to the current packet.
    pub(crate) applied_rules: Vec<u32>,
    /// Connections from another instance that have come before their rules.
    pub(crate) unruled: Vec<(ConnectionKey, Vec<RuleKey>)>,
    /// The answers to rejected packets that may be sent.
    pub(crate) answers: Option<TokenBucket>,
    /// Packets that were turned into answers.
    #[read(rejected)]
    #[portable]
    pub(crate) rejected: u64,
    /// The log of packets.
    pub(crate) packet_log: PacketLog,
    /// Whether a wake-up is scheduled.
    is_wake_scheduled: bool,
    /// The export of all connections, on the primary worker.
    pub(crate) export: Export,
    #[flatten]
    session: ExportSession,
    /// TCP options that were not added or changed for lack of room in header or packet.
    #[read(unfit_options)]
    #[metric(UNFIT_OPTIONS)]
    #[portable]
    pub(crate) unfit_options: u64,
}

#[handlers]
impl MiddleboxState {
    /// The rules with their counters, as a table.
    #[read]
    fn list(&self) -> Value {
        self.list_rules(listing::text)
    }
    /// The rules with their counters, as JSON.
    #[read]
    fn list_json(&self) -> Value {
        self.list_rules(listing::json)
    }
    /// The lookup table of the rules.
    #[read]
    fn tables(&self) -> String {
        self.matcher.tables().text(false)
    }
    /// The lookup table of the rules, with the masks of its keys.
    #[read]
    fn tables_verbose(&self) -> String {
        self.matcher.tables().text(true)
    }
    /// The connections with their rules, a line each.
    #[read]
    fn connections(&self, ask: &ReadRequest) -> Value {
        self.list_connections(ask, ConnectionFormat::Brief)
    }
    /// The connections with timeouts, TCP state and translations, a line each.
    #[read]
    fn connections_verbose(&self, ask: &ReadRequest) -> Value {
        self.list_connections(ask, ConnectionFormat::Verbose)
    }
    /// The connections as JSON: `expires` is in seconds, `rules` has identifiers.
    #[read]
    fn connections_json(&self, ask: &ReadRequest) -> Value {
        self.list_connections(ask, ConnectionFormat::Json)
    }
    /// Packets that rules have logged.
    #[read]
    fn logged(&self) -> u64 {
        self.packet_log.logged()
    }
    /// Number of connections.
    #[read]
    #[metric(CONNECTIONS)]
    fn connection_count(&self) -> Value {
        Value::common(self.connections.read(Connections::len))
    }
    /// Counts of connections: added, expired, evicted for others, refused.
    #[read]
    #[metric(CONNECTION_EVENTS)]
    fn connection_events(&self) -> Value {
        let Counts { added, expired, evicted, refused } =
            self.connections.read(Connections::counts);
        Value::common(Value::Counts(vec![
            (added, "added".into()),
            (expired, "expired".into()),
            (evicted, "evicted".into()),
            (refused, "refused".into()),
        ]))
    }
    /// Fragments that wait for the first fragment of their packet.
    #[read]
    #[metric(WAITING_FRAGMENTS)]
    fn waiting_fragments(&self) -> Value {
        Value::common(self.fragments.held())
    }
    /// Packets that matched each rule, by its identifier; those of later rules than the first 2000 are
    /// added up.
    #[read]
    #[metric(RULE_PACKETS)]
    fn rule_packets(&self) -> Value {
        self.counts_by_rule(|count| count.packets)
    }
    /// Bytes of the packets that matched each rule, in the same order.
    #[read]
    #[metric(RULE_BYTES)]
    fn rule_bytes(&self) -> Value {
        self.counts_by_rule(|count| count.bytes)
    }
    /// Packets that matched the rule at a position.
    #[read(packets_)]
    fn packets(&self, ask: &ReadRequest) -> u64 {
        self.count_at(ask).packets
    }
    /// Bytes of packets that matched the rule at a position.
    #[read(bytes_)]
    fn bytes(&self, ask: &ReadRequest) -> u64 {
        self.count_at(ask).bytes
    }
}

impl MiddleboxState {
    fn rules(&self) -> &Arc<RuleSet> {
        self.matcher.tables().rules()
    }

    fn list_connections(&self, ask: &ReadRequest, format: ConnectionFormat) -> Value {
        let (slots, now) = (self.matcher.slots(), ask.now.0.unsigned_abs());
        let some = |all: &Connections| all.list_chunk(slots, now, format, ask.from);
        let (text, next) = self.connections.read(some);
        let finish = match format {
            ConnectionFormat::Json => json_array,
            _ => TextChunk::sorted,
        };
        TextChunk { text, next, finish }.into()
    }

    /// Schedules a wake-up, so that connections expire while no packets come.
    #[inline]
    pub(crate) fn schedule_expiry(&mut self, cx: &mut Cx) {
        self.schedule_wake(EXPIRY_INTERVAL, cx);
    }

    #[inline]
    fn schedule_wake(&mut self, delay: Duration, cx: &mut Cx) {
        if !self.is_wake_scheduled {
            self.is_wake_scheduled = true;
            cx.set_timer(cx.now() + delay);
        }
    }

    /// Removes expired connections and fragments, a limited number at a time.
    pub(crate) fn wake(&mut self, cx: &mut Cx) {
        /// Number of entries to look at while other workers wait.
        const SOME: usize = 256;
        let now = cx.now().0.unsigned_abs();
        self.is_wake_scheduled = false;
        let is_done = !self.connections.read(|all| all.is_due(now))
            || self.connections.change(|all| all.expire(now, SOME));
        let is_done = is_done & self.fragments.expire::<Exit>(SOME, cx);
        self.export.step(&mut self.session, &self.connections, cx);
        let is_empty = self.connections.read(|all| all.len() == 0) && self.fragments.is_empty();
        if !is_done {
            self.schedule_wake(Duration::from_nanos(1), cx);
        } else if self.export.is_on() {
            self.schedule_wake(export::INTERVAL, cx);
        } else if !is_empty {
            self.schedule_wake(EXPIRY_INTERVAL, cx);
        }
    }

    /// Begins, changes or ends the export of connections, on the primary worker.
    pub(crate) fn set_export(
        &mut self,
        args: Option<ExportArgs>,
        cx: &mut Cx,
    ) -> Result<(), ArgError> {
        self.export.open(&mut self.session, args)?;
        if self.export.is_on() {
            self.is_wake_scheduled = true;
            cx.set_timer(cx.now() + export::INTERVAL);
        }
        Ok(())
    }

    /// Exports all connections, which end by force.
    pub(crate) fn end_export(&mut self, cx: &mut Cx) {
        self.export.end(&mut self.session, &self.connections, cx);
    }

    fn count_at(&self, ask: &ReadRequest) -> Count {
        let at = ask.param.parse().ok().and_then(|n: usize| n.checked_sub(1));
        let entry = at.and_then(|at| self.rules().at(at));
        entry.map_or(Count::default(), |entry| self.count_of(entry))
    }

    /// Returns the counter of a rule.
    fn count_of(&self, entry: &Entry) -> Count {
        self.matcher.counters().of(entry.slot)
    }

    /// Returns a count of each rule, with the rule's identifier.
    fn counts_by_rule(&self, count: fn(Count) -> u64) -> Value {
        /// Rules with a count of their own: to name many more would take a worker too long.
        const MOST_RULES: usize = 2000;
        let mut entries = self.rules().entries();
        let own = entries.by_ref().take(MOST_RULES);
        let own = own.map(|entry| (count(self.count_of(entry)), format!("id{}", entry.id).into()));
        let mut counts: Vec<_> = own.collect();
        if entries.len() > 0 {
            let others = entries.map(|entry| count(self.count_of(entry))).sum();
            counts.push((others, "other".into()));
        }
        Value::Counts(counts)
    }

    /// Renders the rules with the counters of all workers added up.
    fn list_rules(&self, show: fn(&RuleSet, &[Count]) -> String) -> Value {
        let rules = self.rules().clone();
        let counts = rules.entries().flat_map(|entry| {
            let Count { packets, bytes, drops } = self.count_of(entry);
            [packets, bytes, drops]
        });
        let say = {
            let rules = rules.clone();
            move |counts: &[u64]| {
                let all = counts.as_chunks::<3>().0.iter();
                let count = |&[packets, bytes, drops]: &[u64; 3]| Count { packets, bytes, drops };
                let counts: Vec<Count> = all.map(count).collect();
                show(&rules, &counts)
            }
        };
        Sums::new(counts.collect(), say).into()
    }

    /// Adopts the active rules and the shared tables of the configuration. Counters of new rules
    /// start at zero.
    pub(crate) fn update(
        &mut self,
        active_rules: &ActiveRules,
        (connections, limit): (&RwShared<Connections>, usize),
        fragments: &FragmentGate,
        is_exported: bool,
    ) {
        (self.connections, self.fragments) = (connections.clone(), fragments.clone());
        if connections.read(|all| all.is_metered() != is_exported) {
            connections.change(|all| all.set_metered(is_exported));
        }
        let (rules, tables) = (active_rules.rules(), active_rules.tables());
        if Arc::ptr_eq(self.matcher.tables(), tables) {
            return;
        }
        self.matcher.set_tables(tables);
        connections.change(|all| all.set_rules(rules, limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{command, rule};

    fn active_rules(lines: &[&str]) -> ActiveRules {
        let read = |line: &&str| rule(line, false).expect("is a rule");
        ActiveRules::new(RuleSet::new(lines.iter().map(read)))
    }

    /// Other rules, made of these by commands.
    fn changed(active_rules: &ActiveRules, lines: &[&str]) -> ActiveRules {
        let mut changed = RuleSet::clone(active_rules.rules());
        for line in lines {
            let command = command(line).expect("is a command").expect("says something");
            assert!(changed.execute(&command).is_some_and(|it| it.is_ok()), "{line}");
        }
        active_rules.with(changed)
    }

    fn counted(state: &MiddleboxState) -> Vec<u64> {
        state.rules().entries().map(|entry| state.count_of(entry).packets).collect()
    }

    #[test]
    fn counters_follow_their_rules() {
        let mut state = MiddleboxState::default();
        let first = active_rules(&["all mod ip-ttl 1", "all mod ip-ttl 2", "all mod ip-ttl 2"]);
        let (connections, fragments) = ((&RwShared::default(), 9), FragmentGate::default());
        state.update(&first, connections, &fragments, false);
        for (slot, packets) in [(0, 10), (1, 20), (2, 30)] {
            (0..packets).for_each(|_| state.matcher.count(slot, 0));
        }
        // By commands: places are used again, but not what was counted there.
        let second = changed(&first, &["delete 1", "add all mod ip-ttl 1", "move 1 2"]);
        state.update(&second, connections, &fragments, false);
        assert_eq!(counted(&state), [30, 20, 0]);
        // By another configuration: the same words are the same rule.
        let lines = ["all accept", "all mod ip-ttl 2", "all drop", "all mod ip-ttl 2"];
        let other = active_rules(&lines).replacing(&second).expect("has room");
        state.update(&other, connections, &fragments, false);
        assert_eq!(counted(&state), [0, 30, 0, 20]);
        // By more commands than anybody remembers.
        let ranks = ["move 1 4"; 100];
        state.update(&changed(&other, &ranks), connections, &fragments, false);
        assert_eq!(counted(&state), [0, 30, 0, 20]);
        let again = changed(&other, &["reset counters"]);
        state.update(&again, connections, &fragments, false);
        assert_eq!(counted(&state), [0; 4]);
    }
}
