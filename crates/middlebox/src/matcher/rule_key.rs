//! Rules as another instance knows them.

use super::Matcher;
use super::slots::{RuleRef, RuleSlots};
use crate::rule_set::{Entry, RuleSet};
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// A rule of another instance: its place and identifier there, which it has here too unless handlers have
/// changed the rules, and a hash of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleKey {
    slot: u32,
    id: u32,
    text: u64,
}

impl RuleKey {
    fn new(entry: &Entry) -> RuleKey {
        let RuleRef { slot, id } = RuleRef::new(entry);
        RuleKey { slot, id, text: text_hash(entry) }
    }
}

/// FNV-1a of the rule's text, which is the same in all versions.
fn text_hash(entry: &Entry) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    entry.rule.command().bytes().fold(0xcbf2_9ce4_8422_2325, add)
}

impl RuleSlots {
    /// The keys of rules that still exist.
    pub(crate) fn keys(&self, rules: &[RuleRef]) -> Vec<RuleKey> {
        self.resolve_all(rules).map(|(_, entry)| RuleKey::new(entry)).collect()
    }
}

/// The rules by the hashes of their texts, as far as keys have been looked up.
#[derive(Default)]
pub(super) struct RuleIndex {
    /// The rules that are indexed.
    rules: Option<Arc<RuleSet>>,
    by_text: HashMap<u64, RuleRef>,
}

/// The most rules that are indexed: the worker does nothing else meanwhile.
const MOST_INDEXED: usize = 1 << 16;

impl Matcher {
    /// The rule of a key; `None` if it is not here.
    pub(crate) fn find_rule(&mut self, key: &RuleKey) -> Option<RuleRef> {
        let reference = RuleRef { slot: key.slot, id: key.id };
        let own = self.slots().resolve(reference);
        if own.is_some_and(|entry| text_hash(entry) == key.text) {
            return Some(reference);
        }
        let rules = self.tables.rules().clone();
        let index = &mut self.rule_index;
        if !index.rules.as_ref().is_some_and(|indexed| Arc::ptr_eq(indexed, &rules)) {
            let entries = rules.entries().take(MOST_INDEXED);
            index.by_text = entries.map(|it| (text_hash(it), RuleRef::new(it))).collect();
            index.rules = Some(rules);
        }
        index.by_text.get(&key.text).copied()
    }
}

/// Packets, bytes and drops of each rule, which are added.
impl PortableState for Matcher {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        const PART: usize = 256;
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        let rules = self.tables.rules();
        for at in first..first.saturating_add(PART).min(rules.len()) {
            let Some(entry) = rules.at(at) else { continue };
            let count = self.counters.of(entry.slot);
            if count.packets > 0 {
                to.write(&RuleKey::new(entry), &[count.packets, count.bytes, count.drops]);
            }
        }
        let end = first.saturating_add(PART);
        (end < rules.len()).then_some(end as u64)
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let (key, counts) = (record.key()?, record.value()?);
        let Some(rule) = self.find_rule(&key) else {
            return Err(ArgError::new("a rule that has counted packets is not here"));
        };
        self.counters.add(rule.slot, counts);
        Ok(())
    }
}
