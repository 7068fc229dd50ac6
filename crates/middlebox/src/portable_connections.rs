//! The connections of a `Middlebox` as records for another instance.

use crate::connections::{ConnectionKey, ConnectionRecord, Connections};
use crate::matcher::{RuleKey, RuleRef};
use crate::rule_set::Entry;
use crate::state::MiddleboxState;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
/// The most connections that wait for their rules.
const MOST_WAITING: usize = 1 << 20;

/// The connections, on one worker only, as all share the table.
impl PortableState for MiddleboxState {
    const IS_TABLE: bool = true;

    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        let slots = self.matcher.slots();
        let write = |key: ConnectionKey, until: u64, record: ConnectionRecord| {
            let until = to.epoch.offset(until);
            to.write(&key, &(until, record));
        };
        let export = |all: &Connections| all.export(slots, from, write);
        if self.is_primary { self.connections.read(export) } else { None }
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let (until, connection): (i64, ConnectionRecord) = record.value()?;
        let (key, now) = (record.key()?, cx.now().0.unsigned_abs());
        // No connection waits longer than that for its next packet.
        let timeouts = self.matcher.tables().rules().timeouts;
        let longest = timeouts.udp.max(timeouts.tcp_established).max(timeouts.tcp_transient);
        let until = record.epoch.nanos(until).min(now + u64::from(longest) * SECOND);
        let rules: Vec<_> =
            connection.rules.iter().filter_map(|rule| self.matcher.find_rule(rule)).collect();
        let entries = self.entries(&rules);
        let import = |all: &mut Connections| {
            let fits = all.import(key, &connection, &rules, (until, now));
            if fits {
                all.limit(key, &entries, now);
            }
            fits
        };
        if !self.connections.change(import) {
            return Err(ArgError::new("a connection has no room here"));
        }
        if rules.len() < connection.rules.len() && self.unruled.len() < MOST_WAITING {
            self.unruled.push((key, connection.rules));
        }
        self.schedule_expiry(cx);
        Ok(())
    }

    fn remove(&mut self, record: &RecordReader) {
        if let Ok(key) = record.key() {
            self.connections.change(|all| all.forget(key));
        }
    }
}

impl MiddleboxState {
    /// Gives connections that have come before their rules these rules.
    pub(crate) fn find_missing_rules(&mut self, now: u64) {
        for (key, rules) in std::mem::take(&mut self.unruled) {
            let find = |rule: &RuleKey| self.matcher.find_rule(rule);
            let rules: Vec<_> = rules.iter().filter_map(find).collect();
            let entries = self.entries(&rules);
            self.connections.change(|all| {
                all.set_rules_of(key, &rules);
                all.limit(key, &entries, now);
            });
        }
    }

    /// The rules that references are to.
    fn entries(&self, rules: &[RuleRef]) -> Vec<Arc<Entry>> {
        self.matcher.slots().resolve_all(rules).map(|(_, entry)| entry.clone()).collect()
    }
}
