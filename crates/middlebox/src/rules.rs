//! The rules that are in force: numbered, changed one by one, each with a place
//! for its counters.

use crate::language::{Command, Timeout, Which};
use crate::reload;
use crate::rewrite::Plan;
use crate::rule::Rule;
use castanet_kit::parallel;
use imbl::Vector;
use std::fmt::Write;
use std::sync::Arc;

/// A rule in force.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its identifier, which no other rule ever has.
    pub id: u64,
    /// Where its counters are: no other rule has this place at the same time.
    pub slot: usize,
    /// The rule.
    pub rule: Rule,
    /// What its targets come to.
    pub plan: Plan,
}

/// How long connections are kept that are idle, in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// UDP and all that is not TCP.
    pub udp: u32,
    /// TCP, both sides having agreed.
    pub tcp_established: u32,
    /// TCP, beginning or ending.
    pub tcp_transient: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { udp: 600, tcp_established: 4 * 60 * 60, tcp_transient: 120 }
    }
}

/// The verdict on packets that are neither IPv4 nor IPv6, which no rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Other {
    /// They go on.
    #[default]
    Accept,
    /// ARP goes on, others do not.
    Arp,
    /// They do not.
    Drop,
}

impl Other {
    /// All of them, by name.
    pub const ALL: [(&str, Other); 3] =
        [("accept", Other::Accept), ("arp", Other::Arp), ("drop", Other::Drop)];

    /// Its name.
    pub fn word(self) -> &'static str {
        Other::ALL.iter().find(|(_, it)| *it == self).map_or("", |(word, _)| word)
    }
}

/// What happened to the rules.
#[derive(Clone, Debug)]
pub enum Change {
    /// A rule came, with this rank.
    Came(u64, Arc<Entry>),
    /// A rule went.
    Went(Arc<Entry>),
    /// A rule has another rank.
    Moved(u64, Arc<Entry>),
}

/// Changes that are remembered: who follows the rules is seldom further behind.
const REMEMBERED: usize = 64;
/// How far apart the ranks of rules are that came one after the other.
const GAP: u64 = 1 << 32;

/// A rule in its place.
#[derive(Clone, Debug)]
struct Placed {
    /// The greater, the later it applies.
    rank: u64,
    entry: Arc<Entry>,
}

/// The rules in force, in order. A copy shares what it has with the original, so a change
/// made to one costs microseconds, however many rules there are.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    placed: Vector<Placed>,
    last_id: u64,
    free: Vector<usize>,
    slots: usize,
    /// How many are about connections.
    stateful: usize,
    /// How many look behind the IP header.
    deep: usize,
    /// How long connections are kept.
    pub timeouts: Timeouts,
    /// What becomes of what is no IP packet.
    pub other: Other,
    /// The same in all that were made of each other by commands: only there do
    /// identifiers and slots mean the same rules.
    line: Arc<()>,
    /// How often everything was forgotten.
    pub flushes: u64,
    /// How often counting began anew.
    pub resets: u64,
    /// How often others came of which none had been there: slots are given anew then.
    loads: u64,
    /// How often rules came, went or moved.
    version: u64,
    /// The last of these times.
    recent: Vec<Change>,
}

impl Rules {
    /// These rules.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Rules {
        let mut all = Rules::default();
        all.load(rules.into_iter().collect());
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.placed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.placed.is_empty()
    }

    /// The rules, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> + Clone {
        self.placed.iter().map(|placed| &placed.entry)
    }

    /// The rules with their ranks, by which they are in order.
    pub fn ranked(&self) -> impl Iterator<Item = (u64, &Arc<Entry>)> {
        self.placed.iter().map(|placed| (placed.rank, &placed.entry))
    }

    /// The rule at a position, from 0.
    pub fn at(&self, position: usize) -> Option<&Arc<Entry>> {
        self.placed.get(position).map(|placed| &placed.entry)
    }

    /// What has happened since they were `before`; nothing, if nobody remembers.
    pub fn changes_since(&self, before: &Rules) -> Option<&[Change]> {
        let count = usize::try_from(self.version.checked_sub(before.version)?).ok()?;
        let first = self.recent.len().checked_sub(count)?;
        self.recent.get(first..).filter(|_| self.is_akin(before))
    }

    fn changed(&mut self, change: Change) {
        self.version += 1;
        if self.recent.len() == REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push(change);
    }

    /// Something happened that is no matter of single rules.
    fn all_changed(&mut self) {
        self.version += 1;
        self.recent.clear();
    }

    /// How many places for counters there are.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Whether these were made of those by commands, or those of these.
    pub fn is_akin(&self, other: &Rules) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
    }

    /// Whether these were made of `before` by changes under which rules that stay keep their
    /// slots.
    pub(crate) fn goes_on_from(&self, before: &Rules) -> bool {
        self.is_akin(before) && self.loads == before.loads
    }

    /// Whether fewer than half of the rules of either have stayed since these were `before`, and
    /// it is less work to begin anew than to follow.
    pub(crate) fn differ_much_from(&self, before: &Rules) -> bool {
        if self.changes_since(before).is_some() {
            return false;
        }
        let stayed = self.entries().filter(|entry| entry.id <= before.last_id).count();
        2 * stayed < self.len().max(before.len())
    }

    /// The last identifier that a rule was given.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// How many of them are about connections.
    pub fn stateful(&self) -> usize {
        self.stateful
    }

    /// How many of them look behind the IP header.
    pub(crate) fn deep(&self) -> usize {
        self.deep
    }

    fn entry(&mut self, rule: Rule, plan: Plan) -> Arc<Entry> {
        self.last_id += 1;
        let slot = self.free.pop_back().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.stateful += usize::from(rule.stateful);
        self.deep += usize::from(rule.looks_behind());
        Arc::new(Entry { id: self.last_id, slot, rule, plan })
    }

    /// Gives the place of a rule free that has gone.
    fn release(&mut self, entry: &Entry) {
        self.stateful -= usize::from(entry.rule.stateful);
        self.deep -= usize::from(entry.rule.looks_behind());
        self.free.push_back(entry.slot);
    }

    /// Adds a rule behind the others; its position, from 1.
    pub fn add(&mut self, rule: Rule) -> usize {
        let plan = Plan::of(&rule);
        let entry = self.entry(rule, plan);
        let rank = self.placed.last().map_or(0, |last| last.rank) + GAP;
        self.changed(Change::Came(rank, entry.clone()));
        self.placed.push_back(Placed { rank, entry });
        self.len()
    }

    /// The index of a rule; or that there is none.
    fn find(&self, which: Which) -> Result<usize, String> {
        let (found, name) = match which {
            Which::Position(n) => (n.checked_sub(1).filter(|at| *at < self.len()), format!("{n}")),
            Which::Id(id) => (self.entries().position(|it| it.id == id), format!("id{id}")),
        };
        found.ok_or_else(|| match self.len() {
            0 => format!("there is no rule {name}: there are none"),
            1 => format!("there is no rule {name}: there is one"),
            n => format!("there is no rule {name}: there are {n}"),
        })
    }

    fn replace(&mut self, which: Which, rule: Rule) -> Result<usize, String> {
        let at = self.find(which)?;
        let plan = Plan::of(&rule);
        let entry = self.entry(rule, plan);
        let rank = self.placed[at].rank;
        let old = self.placed.set(at, Placed { rank, entry: entry.clone() }).entry;
        self.release(&old);
        self.changed(Change::Went(old));
        self.changed(Change::Came(rank, entry));
        Ok(at)
    }

    fn delete(&mut self, which: Which) -> Result<Arc<Entry>, String> {
        let at = self.find(which)?;
        let old = self.placed.remove(at).entry;
        self.release(&old);
        self.changed(Change::Went(old.clone()));
        Ok(old)
    }

    fn move_to(&mut self, which: Which, position: usize) -> Result<(), String> {
        let at = self.find(which)?;
        let to = self.find(Which::Position(position))?;
        let mut placed = self.placed.remove(at);
        let before = to.checked_sub(1).map_or(0, |at| self.placed[at].rank);
        let behind = self.placed.get(to).map_or(before + 2 * GAP, |placed| placed.rank);
        placed.rank = before.midpoint(behind);
        let (is_between, entry) = (placed.rank > before, placed.entry.clone());
        self.changed(Change::Moved(placed.rank, entry));
        self.placed.insert(to, placed);
        if !is_between {
            self.rank_anew();
        }
        Ok(())
    }

    /// Gives all rules ranks that are far apart.
    fn rank_anew(&mut self) {
        let ranks = (1..).map(|n| n * GAP);
        self.placed.iter_mut().zip(ranks).for_each(|(placed, rank)| placed.rank = rank);
        self.all_changed();
    }

    /// Puts other rules in place of all. A rule equal to one that is there stays that rule, with
    /// its identifier and its slot, wherever it stands now; of equal rules the first of the new
    /// ones is the first of those that are there, and so on.
    pub fn load(&mut self, rules: Vec<Rule>) {
        /// With fewer rules there is nothing to be gained by another thread.
        const MANY: usize = 4096;
        let kept = reload::kept(self.entries(), &rules);
        self.make_room(&kept);
        let new = rules.into_iter().zip(kept).collect::<Vec<_>>();
        let plans = parallel::map(&new, MANY, |(rule, kept)| match kept {
            Some(_) => None,
            None => Some(Plan::of(rule)),
        });
        let mut placed = Vector::new();
        let ranks = (1..).map(|n| n * GAP);
        for (((rule, kept), plan), rank) in new.into_iter().zip(plans).zip(ranks) {
            let entry = kept.unwrap_or_else(|| self.entry(rule, plan.unwrap_or_default()));
            placed.push_back(Placed { rank, entry });
        }
        self.placed = placed;
        self.all_changed();
    }

    /// Gives the places of all rules free that are not among those that stay.
    fn make_room(&mut self, kept: &[Option<Arc<Entry>>]) {
        let mut stays = vec![false; self.slots];
        kept.iter().flatten().for_each(|entry| stays[entry.slot] = true);
        let count = kept.iter().flatten().count();
        if count == 0 {
            (self.free, self.slots) = (Vector::new(), 0);
            (self.stateful, self.deep) = (0, 0);
            self.loads += 1;
        } else if count < self.len() {
            let gone: Vec<_> = self.entries().filter(|it| !stays[it.slot]).cloned().collect();
            gone.iter().for_each(|entry| self.release(entry));
        }
    }

    /// Does what a command says that is about rules, and answers; nothing, if it is
    /// about something else.
    pub fn obey(&mut self, command: &Command) -> Option<Result<String, String>> {
        Some(match command.clone() {
            Command::Add(rule) => {
                let at = self.add(rule);
                Ok(self.line(at - 1))
            }
            Command::Replace(which, rule) => self.replace(which, rule).map(|at| self.line(at)),
            Command::Delete(which) => {
                self.delete(which).map(|it| format!("deleted id{}: {}", it.id, it.rule.command()))
            }
            Command::Move(which, position) => {
                self.move_to(which, position).map(|()| self.line(position - 1))
            }
            Command::Flush => {
                let count = self.len();
                self.load(Vec::new());
                self.flushes += 1;
                Ok(format!("flushed {count} rules and all connections"))
            }
            Command::ResetCounters => {
                self.resets += 1;
                Ok("counters begin anew".into())
            }
            Command::SetTimeout(kind, seconds) => {
                let place = match kind {
                    Timeout::Udp => &mut self.timeouts.udp,
                    Timeout::TcpEstablished => &mut self.timeouts.tcp_established,
                    Timeout::TcpTransient => &mut self.timeouts.tcp_transient,
                };
                *place = seconds;
                Ok(format!("timeout {seconds} s"))
            }
            Command::SetOther(other) => {
                self.other = other;
                Ok(format!("other {}", other.word()))
            }
            _ => return None,
        })
    }

    /// A rule with its number, as it is echoed.
    fn line(&self, at: usize) -> String {
        let entry = &self.placed[at].entry;
        format!("{} id{} {}", at + 1, entry.id, entry.rule.command())
    }

    /// The commands that make these rules, one a line.
    pub fn text(&self) -> String {
        let settings = match self.other {
            Other::Accept => String::new(),
            other => format!("other {}\n", other.word()),
        };
        self.entries().fold(settings, |mut text, entry| {
            let _ = writeln!(text, "{}", entry.rule.command());
            text
        })
    }
}
