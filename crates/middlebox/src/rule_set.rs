//! The rule set: ordered rules, changed by commands, each with a slot for its counters.

use crate::chains::{Chains, leads_to_chain};
use crate::language::{Command, RuleSelector, TIMEOUTS, Timeout};
use crate::limits::RuleLimits;
use crate::match_packet::PacketView;
use crate::named_sets::{NamedSets, SetChange, uses};
use crate::reload;
use crate::rewrite::RulePlan;
use crate::rule::Rule;
use castanet_kit::parallel;
use imbl::Vector;
use std::fmt::Write;
use std::sync::Arc;

/// A rule of the set.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its identifier, which is never reused.
    pub id: u64,
    /// Its slot: index of its counters, unique among the rules of the set.
    pub slot: usize,
    /// The rule.
    pub rule: Rule,
    /// The compiled targets.
    pub plan: RulePlan,
    /// The limits, with what they have counted.
    pub limits: Option<Arc<RuleLimits>>,
}

impl Entry {
    /// Whether a packet that satisfies all else of the rule is within its rates, or beyond them, as the rule
    /// demands. Rates of stateful rules are about packets that begin connections.
    pub(crate) fn allows(&self, packet: &PacketView) -> bool {
        let is_free = self.rule.stateful && packet.ct_info.is_of_connection;
        self.limits.as_ref().is_none_or(|limits| is_free || limits.allow(packet))
    }
}

/// Timeouts of idle connections, in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// UDP and every protocol but TCP.
    pub udp: u32,
    /// Established TCP.
    pub tcp_established: u32,
    /// TCP that is not yet, or no longer, established.
    pub tcp_transient: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { udp: 600, tcp_established: 4 * 60 * 60, tcp_transient: 120 }
    }
}

impl Timeouts {
    /// The timeout of a kind.
    pub(crate) fn of_mut(&mut self, kind: Timeout) -> &mut u32 {
        match kind {
            Timeout::Udp => &mut self.udp,
            Timeout::TcpEstablished => &mut self.tcp_established,
            Timeout::TcpTransient => &mut self.tcp_transient,
        }
    }

    /// The timeouts by name.
    pub(crate) fn named(mut self) -> [(&'static str, u32); 3] {
        TIMEOUTS.map(|(name, kind)| (name, *self.of_mut(kind)))
    }
}

/// The verdict on packets that are neither IPv4 nor IPv6, which no rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NonIpPolicy {
    /// All of them are forwarded.
    #[default]
    Accept,
    /// ARP is forwarded, others are dropped.
    Arp,
    /// All of them are dropped.
    Drop,
}

impl NonIpPolicy {
    /// All policies by name.
    pub const ALL: [(&str, NonIpPolicy); 3] =
        [("accept", NonIpPolicy::Accept), ("arp", NonIpPolicy::Arp), ("drop", NonIpPolicy::Drop)];

    /// Its name.
    pub fn word(self) -> &'static str {
        NonIpPolicy::ALL.iter().find(|(_, it)| *it == self).map_or("", |(word, _)| word)
    }
}

/// One change of the rule set.
#[derive(Clone, Debug)]
pub enum Change {
    /// A rule was added with this rank.
    Added(u64, Arc<Entry>),
    /// A rule was removed.
    Removed(Arc<Entry>),
    /// A rule got another rank.
    Moved(u64, Arc<Entry>),
    /// The rule with this rank got other values in its sets.
    Renewed(u64, Arc<Entry>),
}

/// Length of the change log: readers are seldom further behind.
const MAX_CHANGES: usize = 64;
/// Distance between the ranks of adjacent rules.
const GAP: u64 = 1 << 32;

/// A rule with its rank.
#[derive(Clone, Debug)]
struct RankedEntry {
    /// Rules apply in ascending order of rank.
    rank: u64,
    entry: Arc<Entry>,
}

/// The rules, in order. A copy shares its contents with the original, so that a change of a copy
/// costs microseconds for any number of rules.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    ranked: Vector<RankedEntry>,
    last_id: u64,
    free_slots: Vector<usize>,
    slots: usize,
    /// Number of stateful rules.
    stateful: usize,
    /// Number of rules that test fields behind the IP header.
    transport_rules: usize,
    /// Number of rules that test the state of connections.
    state_rules: usize,
    /// The chains, with the paths to them.
    chains: Arc<Chains>,
    /// Timeouts of connections.
    pub timeouts: Timeouts,
    /// Policy for packets that are neither IPv4 nor IPv6.
    pub other: NonIpPolicy,
    /// The named sets.
    sets: NamedSets,
    /// Comments before the settings, and behind the rules, as whole lines.
    pub(crate) remarks: [Arc<str>; 2],
    /// Identity shared by all sets that were derived from each other by commands: only among those
    /// do identifiers and slots denote the same rules.
    history: Arc<()>,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of counter resets.
    pub resets: u64,
    /// Number of loads that kept no rule, after which slots are assigned anew.
    loads: u64,
    /// Number of changes.
    version: u64,
    /// The last changes.
    recent: Vec<Change>,
}

impl RuleSet {
    /// Creates a set of rules.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> RuleSet {
        let mut all = RuleSet::default();
        all.load(rules.into_iter().collect(), NamedSets::default());
        all
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.ranked.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranked.is_empty()
    }

    /// The rules, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> + Clone {
        self.ranked.iter().map(|ranked| &ranked.entry)
    }

    /// The rules with their ranks, by which they are in order.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = (u64, &Arc<Entry>)> {
        self.ranked.iter().map(|ranked| (ranked.rank, &ranked.entry))
    }

    /// The rule at a position, from 0.
    pub fn at(&self, position: usize) -> Option<&Arc<Entry>> {
        self.ranked.get(position).map(|ranked| &ranked.entry)
    }

    /// Returns the changes since `before`; `None` if the log does not reach back that far.
    pub(crate) fn changes_since(&self, before: &RuleSet) -> Option<&[Change]> {
        let count = usize::try_from(self.version.checked_sub(before.version)?).ok()?;
        let first = self.recent.len().checked_sub(count)?;
        self.recent.get(first..).filter(|_| self.shares_history_with(before))
    }

    fn record_change(&mut self, change: Change) {
        self.version += 1;
        if self.recent.len() == MAX_CHANGES {
            self.recent.remove(0);
        }
        self.recent.push(change);
    }

    /// Records a change that concerns all rules.
    fn forget_changes(&mut self) {
        self.version += 1;
        self.recent.clear();
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Whether one set was derived from the other by commands.
    pub(crate) fn shares_history_with(&self, other: &RuleSet) -> bool {
        Arc::ptr_eq(&self.history, &other.history)
    }

    /// Whether this set was derived from `before`, and rules that stayed kept their slots.
    pub(crate) fn keeps_slots_of(&self, before: &RuleSet) -> bool {
        self.shares_history_with(before) && self.loads == before.loads
    }

    /// Whether fewer than half of the rules of either set stayed since `before`, so that building
    /// tables anew is cheaper than updating them.
    pub(crate) fn differs_much_from(&self, before: &RuleSet) -> bool {
        if self.changes_since(before).is_some() {
            return false;
        }
        let stayed = self.entries().filter(|entry| entry.id <= before.last_id).count();
        2 * stayed < self.len().max(before.len())
    }

    /// The last identifier that was assigned.
    pub(crate) fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Number of stateful rules.
    pub fn stateful(&self) -> usize {
        self.stateful
    }

    /// Number of rules that test fields behind the IP header.
    pub(crate) fn transport_rules(&self) -> usize {
        self.transport_rules
    }

    /// Whether packets may belong to connections: a rule is stateful, or tests their state.
    #[inline]
    pub(crate) fn has_connections(&self) -> bool {
        self.stateful > 0 || self.state_rules > 0
    }

    /// Whether all packets that go on begin connections or belong to them: a rule tests their state.
    #[inline]
    pub(crate) fn tracks_all(&self) -> bool {
        self.state_rules > 0
    }

    fn new_entry(&mut self, rule: Rule, plan: RulePlan) -> Arc<Entry> {
        self.last_id += 1;
        let slot = self.free_slots.pop_back().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.stateful += usize::from(rule.stateful);
        self.transport_rules += usize::from(rule.reads_transport());
        self.state_rules += usize::from(rule.reads_state());
        let limits = RuleLimits::of(&rule).map(Arc::new);
        Arc::new(Entry { id: self.last_id, slot, rule, plan, limits })
    }

    /// Releases the slot of a removed rule.
    fn release(&mut self, entry: &Entry) {
        self.stateful -= usize::from(entry.rule.stateful);
        self.transport_rules -= usize::from(entry.rule.reads_transport());
        self.state_rules -= usize::from(entry.rule.reads_state());
        self.free_slots.push_back(entry.slot);
    }

    /// Appends a rule; returns its position, from 1.
    pub fn add(&mut self, rule: Rule) -> usize {
        let plan = RulePlan::new(&rule);
        let entry = self.new_entry(rule, plan);
        let rank = self.ranked.last().map_or(0, |last| last.rank) + GAP;
        self.record_change(Change::Added(rank, entry.clone()));
        self.ranked.push_back(RankedEntry { rank, entry });
        self.len()
    }

    /// Returns the index of a rule, or an error if there is none.
    fn find(&self, selector: RuleSelector) -> Result<usize, String> {
        let (found, name) = match selector {
            RuleSelector::Position(n) => {
                (n.checked_sub(1).filter(|at| *at < self.len()), format!("{n}"))
            }
            RuleSelector::Id(id) => (self.entries().position(|it| it.id == id), format!("id{id}")),
        };
        found.ok_or_else(|| match self.len() {
            0 => format!("there is no rule {name}: there are none"),
            1 => format!("there is no rule {name}: there is one"),
            n => format!("there is no rule {name}: there are {n}"),
        })
    }

    fn replace(&mut self, selector: RuleSelector, rule: Rule) -> Result<usize, String> {
        let at = self.find(selector)?;
        let plan = RulePlan::new(&rule);
        let entry = self.new_entry(rule, plan);
        let rank = self.ranked[at].rank;
        let old = self.ranked.set(at, RankedEntry { rank, entry: entry.clone() }).entry;
        self.release(&old);
        self.record_change(Change::Removed(old));
        self.record_change(Change::Added(rank, entry));
        Ok(at)
    }

    fn delete(&mut self, selector: RuleSelector) -> Result<Arc<Entry>, String> {
        let at = self.find(selector)?;
        let old = self.ranked.remove(at).entry;
        self.release(&old);
        self.record_change(Change::Removed(old.clone()));
        Ok(old)
    }

    fn move_to(&mut self, selector: RuleSelector, position: usize) -> Result<(), String> {
        let at = self.find(selector)?;
        let to = self.find(RuleSelector::Position(position))?;
        let mut ranked = self.ranked.remove(at);
        let before = to.checked_sub(1).map_or(0, |at| self.ranked[at].rank);
        let behind = self.ranked.get(to).map_or(before + 2 * GAP, |ranked| ranked.rank);
        ranked.rank = before.midpoint(behind);
        let (is_between, entry) = (ranked.rank > before, ranked.entry.clone());
        self.record_change(Change::Moved(ranked.rank, entry));
        self.ranked.insert(to, ranked);
        if !is_between {
            self.reassign_ranks();
        }
        Ok(())
    }

    /// Assigns new ranks that are far apart.
    fn reassign_ranks(&mut self) {
        let ranks = (1..).map(|n| n * GAP);
        self.ranked.iter_mut().zip(ranks).for_each(|(ranked, rank)| ranked.rank = rank);
        self.forget_changes();
    }

    /// The named sets.
    pub(crate) fn sets(&self) -> &NamedSets {
        &self.sets
    }

    /// Replaces all rules, whose sets have their values, and the named sets. A rule equal to an
    /// existing one stays that rule, with its identifier and slot; equal rules are paired in their order.
    pub(crate) fn load(&mut self, rules: Vec<Rule>, sets: NamedSets) {
        self.sets = sets;
        /// With fewer rules another thread gains nothing.
        const MANY: usize = 4096;
        let chains = Chains::new(rules.iter()).unwrap_or_default();
        let mut rules = rules;
        for rule in &mut rules {
            if let Some(resolved) = chains.resolve(rule) {
                *rule = resolved;
            }
        }
        self.chains = Arc::new(chains);
        let kept = reload::reused_entries(self.entries(), &rules);
        self.release_removed(&kept);
        let new = rules.into_iter().zip(kept).collect::<Vec<_>>();
        let plans = parallel::map(&new, MANY, |(rule, kept)| match kept {
            Some(_) => None,
            None => Some(RulePlan::new(rule)),
        });
        let mut ranked = Vector::new();
        let ranks = (1..).map(|n| n * GAP);
        for (((rule, kept), plan), rank) in new.into_iter().zip(plans).zip(ranks) {
            let entry = match kept {
                Some(entry) => renewed(&entry, rule).unwrap_or(entry),
                None => self.new_entry(rule, plan.unwrap_or_default()),
            };
            ranked.push_back(RankedEntry { rank, entry });
        }
        self.ranked = ranked;
        self.forget_changes();
    }

    /// Releases the slots of all rules that do not stay.
    fn release_removed(&mut self, kept: &[Option<Arc<Entry>>]) {
        let mut stays = vec![false; self.slots];
        kept.iter().flatten().for_each(|entry| stays[entry.slot] = true);
        let count = kept.iter().flatten().count();
        if count == 0 {
            (self.free_slots, self.slots) = (Vector::new(), 0);
            (self.stateful, self.transport_rules) = (0, 0);
            self.state_rules = 0;
            self.loads += 1;
        } else if count < self.len() {
            let gone: Vec<_> = self.entries().filter(|it| !stays[it.slot]).cloned().collect();
            gone.iter().for_each(|entry| self.release(entry));
        }
    }

    /// Executes a command that concerns rules, and returns its answer; `None` for other commands.
    pub fn execute(&mut self, command: &Command) -> Option<Result<String, String>> {
        Some(match command.clone() {
            Command::Add(rule) => self.changed(|all| {
                let (rule, leads) = (all.resolved(rule.clone())?, leads_to_chain(&rule));
                let at = all.add(rule);
                Ok((all.describe(at - 1), leads))
            }),
            Command::Replace(selector, rule) => self.changed(|all| {
                let old = all.find(selector)?;
                let led = all.at(old).is_some_and(|entry| leads_to_chain(&entry.rule));
                let (rule, leads) = (all.resolved(rule.clone())?, leads_to_chain(&rule));
                let at = all.replace(selector, rule)?;
                Ok((all.describe(at), led || leads))
            }),
            Command::Delete(selector) => self.changed(|all| {
                let entry = all.delete(selector)?;
                let answer = format!("deleted id{}: {}", entry.id, entry.rule.command());
                Ok((answer, leads_to_chain(&entry.rule)))
            }),
            Command::Move(selector, position) => {
                self.move_to(selector, position).map(|()| self.describe(position - 1))
            }
            Command::Flush => {
                let count = self.len();
                self.load(Vec::new(), self.sets.clone());
                self.flushes += 1;
                Ok(format!("flushed {count} rules and all connections"))
            }
            Command::ResetCounters => {
                self.resets += 1;
                Ok("counters begin anew".into())
            }
            Command::SetTimeout(kind, seconds) => {
                *self.timeouts.of_mut(kind) = seconds;
                Ok(format!("timeout {seconds} s"))
            }
            Command::ChangeSet(name, change) => self.change_set(&name, &change),
            Command::SetNonIpPolicy(other) => {
                self.other = other;
                Ok(format!("other {}", other.word()))
            }
            _ => return None,
        })
    }

    /// Changes rules, and then the paths to chains if the change concerns them; if either fails, nothing changes.
    fn changed(
        &mut self,
        change: impl FnOnce(&mut RuleSet) -> Result<(String, bool), String>,
    ) -> Result<String, String> {
        let mut new = self.clone();
        let (answer, leads_to_chain) = change(&mut new)?;
        if leads_to_chain {
            new.renew_chains()?;
        }
        *self = new;
        Ok(answer)
    }

    /// Gives the rules of chains the paths to them that there are now.
    ///
    /// # Errors
    /// A chain leads to itself, or there are too many paths to one; then nothing changes.
    pub(crate) fn renew_chains(&mut self) -> Result<(), String> {
        let chains = Chains::new(self.entries().map(|entry| &entry.rule))?;
        let new = self
            .entries()
            .enumerate()
            .filter_map(|(at, entry)| Some((at, chains.resolve(&entry.rule)?)));
        let new: Vec<_> = new.collect();
        self.renew(new);
        self.chains = Arc::new(chains);
        Ok(())
    }

    /// Gives rules at these positions other values of their sets and chains.
    fn renew(&mut self, rules: Vec<(usize, Rule)>) {
        for (at, rule) in rules {
            let RankedEntry { rank, entry } = &self.ranked[at];
            let (rank, entry) = (*rank, Arc::new(Entry { rule, ..Entry::clone(entry) }));
            self.ranked.set(at, RankedEntry { rank, entry: entry.clone() });
            self.record_change(Change::Renewed(rank, entry));
        }
    }

    /// Renders a rule with its position and identifier.
    fn describe(&self, at: usize) -> String {
        let entry = &self.ranked[at].entry;
        format!("{} id{} {}", at + 1, entry.id, entry.rule.command())
    }

    /// The rule with the values of its named sets and the paths to its chains, or an error if there is no such
    /// set.
    pub(crate) fn resolved(&self, rule: Rule) -> Result<Rule, String> {
        let rule = self.sets.resolve(&rule)?.unwrap_or(rule);
        Ok(self.chains.resolve(&rule).unwrap_or(rule))
    }

    /// The names of sets that no rule uses.
    pub fn unused_sets(&self) -> Vec<&str> {
        let is_unused = |name: &&str| !self.entries().any(|entry| uses(&entry.rule, name));
        self.sets.names().filter(is_unused).collect()
    }

    /// Changes a named set, and the rules that use it.
    pub(crate) fn change_set(&mut self, name: &str, change: &SetChange) -> Result<String, String> {
        let mut sets = self.sets.clone();
        let answer = sets.change(name, change)?;
        if *change == SetChange::Delete
            && let Some(at) = self.entries().position(|entry| uses(&entry.rule, name))
        {
            return Err(format!("set `{name}` is used by rule {}", at + 1));
        }
        let used = self.entries().enumerate().filter(|(_, entry)| uses(&entry.rule, name));
        let new = used.filter_map(|(at, entry)| {
            let rule = sets.resolve(&entry.rule).transpose()?;
            Some(rule.map(|rule| (at, rule)))
        });
        let new = new.collect::<Result<Vec<_>, String>>()?;
        self.sets = sets;
        self.renew(new);
        if !self.chains.is_empty() {
            self.renew_chains()?;
        }
        Ok(answer)
    }

    /// Renders the commands that make these rules, one a line, with their comments.
    pub fn text(&self) -> String {
        let mut text = self.remarks[0].to_string();
        if self.other != NonIpPolicy::default() {
            let _ = writeln!(text, "other {}", self.other.word());
        }
        let usual = Timeouts::default().named();
        for (timeout, _) in self.timeouts.named().iter().zip(usual).filter(|(a, b)| *a != b) {
            let _ = writeln!(text, "timeout {} {}", timeout.0, timeout.1);
        }
        text += &self.sets.text();
        for entry in self.entries() {
            let comment = &entry.rule.comment;
            let _ = write!(text, "{}{}", comment.above(), entry.rule.command());
            match comment.beside() {
                "" => text.push('\n'),
                beside => _ = writeln!(text, " # {beside}"),
            }
        }
        text + &self.remarks[1]
    }
}

/// An entry with the sets and the comment of an equal rule; `None` if it has them.
fn renewed(entry: &Arc<Entry>, rule: Rule) -> Option<Arc<Entry>> {
    let is_same = entry.rule.comment.is_text_of(&rule.comment) && entry.rule.has_values_of(&rule);
    (!is_same).then(|| Arc::new(Entry { rule, ..Entry::clone(entry) }))
}
