//! The rules that are in force: numbered, changed one by one, each with a place
//! for its counters.

use crate::language::{Command, Timeout, Which};
use crate::rewrite::Plan;
use crate::rule::Rule;
use std::collections::{HashMap, VecDeque};
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

/// The rules in force, in order.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    entries: Vec<Arc<Entry>>,
    last_id: u64,
    free: Vec<usize>,
    slots: Vec<Option<Arc<Entry>>>,
    /// How long connections are kept.
    pub timeouts: Timeouts,
    /// The same in all that were made of each other by commands: only there do
    /// identifiers and slots mean the same rules.
    line: Arc<()>,
    /// How often everything was forgotten.
    pub flushes: u64,
    /// How often counting began anew.
    pub resets: u64,
    /// How often rules came, went or moved.
    version: u64,
    /// Whether the last of these times a rule came behind the others.
    is_added: bool,
}

impl Rules {
    /// These rules.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Rules {
        let mut all = Rules::default();
        rules.into_iter().for_each(|rule| _ = all.add(rule));
        all
    }

    /// The rules, in order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// How often rules have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The rule that came last, if nothing else happened since the version before.
    pub fn added(&self) -> Option<&Arc<Entry>> {
        self.entries.last().filter(|_| self.is_added)
    }

    fn changed(&mut self, is_added: bool) {
        self.version += 1;
        self.is_added = is_added;
    }

    /// How many places for counters there are.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The rule in a place, if it is no younger than `id`.
    #[inline]
    pub fn in_slot(&self, slot: usize, id: u64) -> Option<&Arc<Entry>> {
        self.slots.get(slot)?.as_ref().filter(|entry| entry.id <= id)
    }

    /// Whether these were made of those by commands, or those of these.
    pub fn is_akin(&self, other: &Rules) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
    }

    /// For each slot here the rule there that says the same: the first that nobody has
    /// yet.
    pub fn counterparts<'a>(&self, other: &'a Rules) -> Vec<Option<&'a Arc<Entry>>> {
        let mut by_rule: HashMap<String, VecDeque<&Arc<Entry>>> = HashMap::new();
        for entry in other.entries() {
            by_rule.entry(entry.rule.command()).or_default().push_back(entry);
        }
        let mut found = vec![None; self.slots.len()];
        for entry in self.entries() {
            let same = by_rule.get_mut(&entry.rule.command());
            found[entry.slot] = same.and_then(VecDeque::pop_front);
        }
        found
    }

    /// The identifier of the youngest rule there ever was.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Whether one of them is about connections.
    pub fn are_stateful(&self) -> bool {
        self.entries.iter().any(|entry| entry.rule.stateful)
    }

    fn entry(&mut self, rule: Rule) -> Arc<Entry> {
        self.last_id += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let plan = Plan::of(&rule);
        let entry = Arc::new(Entry { id: self.last_id, slot, rule, plan });
        self.slots[slot] = Some(entry.clone());
        entry
    }

    /// Gives the place of a rule free that has gone.
    fn release(&mut self, entry: &Entry) {
        self.slots[entry.slot] = None;
        self.free.push(entry.slot);
    }

    /// Adds a rule behind the others; its position, from 1.
    pub fn add(&mut self, rule: Rule) -> usize {
        let entry = self.entry(rule);
        self.entries.push(entry);
        self.changed(true);
        self.entries.len()
    }

    /// The index of a rule; or that there is none.
    fn find(&self, which: Which) -> Result<usize, String> {
        let (found, name) = match which {
            Which::Position(n) => {
                (n.checked_sub(1).filter(|at| *at < self.entries.len()), format!("{n}"))
            }
            Which::Id(id) => (self.entries.iter().position(|it| it.id == id), format!("id{id}")),
        };
        found.ok_or_else(|| match self.entries.len() {
            0 => format!("there is no rule {name}: there are none"),
            1 => format!("there is no rule {name}: there is one"),
            n => format!("there is no rule {name}: there are {n}"),
        })
    }

    fn replace(&mut self, which: Which, rule: Rule) -> Result<usize, String> {
        let at = self.find(which)?;
        let entry = self.entry(rule);
        let old = std::mem::replace(&mut self.entries[at], entry);
        self.release(&old);
        self.changed(false);
        Ok(at)
    }

    fn delete(&mut self, which: Which) -> Result<Arc<Entry>, String> {
        let at = self.find(which)?;
        let old = self.entries.remove(at);
        self.release(&old);
        self.changed(false);
        Ok(old)
    }

    fn move_to(&mut self, which: Which, position: usize) -> Result<(), String> {
        let at = self.find(which)?;
        let to = self.find(Which::Position(position))?;
        let entry = self.entries.remove(at);
        self.entries.insert(to, entry);
        self.changed(false);
        Ok(())
    }

    /// Puts other rules in place of all.
    pub fn load(&mut self, rules: Vec<Rule>) {
        let old = std::mem::take(&mut self.entries);
        old.iter().for_each(|entry| self.release(entry));
        rules.into_iter().for_each(|rule| _ = self.add(rule));
        self.changed(false);
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
                let count = self.entries.len();
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
            _ => return None,
        })
    }

    /// A rule with its number, as it is echoed.
    fn line(&self, at: usize) -> String {
        let entry = &self.entries[at];
        format!("{} id{} {}", at + 1, entry.id, entry.rule.command())
    }

    /// The commands that make these rules, one a line.
    pub fn text(&self) -> String {
        self.entries.iter().fold(String::new(), |mut text, entry| {
            let _ = writeln!(text, "{}", entry.rule.command());
            text
        })
    }
}
