//! The active rule set, and the lookup tables that all workers share.

use crate::matcher::{MAX_SLOTS, Tables};
use crate::rule_set::RuleSet;
use castanet_element::prelude::*;
use std::sync::Arc;

/// Shared tables, and a spare copy that no worker reads. The control thread applies a change to the
/// spare copy, however long that takes, and then swaps the two, so that packets never wait for a
/// change of one rule or of a million.
///
/// The spare copy exists from the first change on.
#[derive(Clone, Default)]
pub struct ActiveRules {
    tables: Arc<Tables>,
    /// The previous tables, reused as soon as no worker reads them.
    spare: RwShared<Option<Arc<Tables>>>,
}

impl ActiveRules {
    /// Builds the tables of a rule set.
    pub fn new(rules: RuleSet) -> ActiveRules {
        let tables = Arc::new(Tables::new(Arc::new(rules)));
        ActiveRules { tables, ..ActiveRules::default() }
    }

    /// Returns the current tables.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Returns the current rule set.
    pub fn rules(&self) -> &Arc<RuleSet> {
        self.tables.rules()
    }

    /// Returns the active rules after a change that was made to a copy of the rule set.
    pub fn with(&self, rules: RuleSet) -> ActiveRules {
        let rules = Arc::new(rules);
        let goes_on = |tables: &Tables| {
            let before = tables.rules();
            rules.keeps_slots_of(before) && !rules.differs_much_from(before)
        };
        let before = self.spare.change(Option::take).and_then(Arc::into_inner);
        let tables = match before.filter(&goes_on) {
            Some(tables) => Some(tables),
            None => goes_on(&self.tables).then(|| Tables::clone(&self.tables)),
        };
        let next = tables.is_some().then(|| self.tables.clone());
        self.spare.change(|before| *before = next);
        let mut tables = tables.unwrap_or_default();
        tables.set_rules(rules);
        ActiveRules { tables: Arc::new(tables), spare: self.spare.clone() }
    }

    /// Returns these rules as a reload of `before`, so that unchanged rules keep identifier, slot
    /// and counters. `None` if there are too many rules in both.
    pub(crate) fn replacing(&self, before: &ActiveRules) -> Option<ActiveRules> {
        let mut rules = RuleSet::clone(before.rules());
        let new = self.rules();
        let all = new.entries().map(|entry| entry.rule.clone());
        rules.load(all.collect(), new.sets().clone());
        (rules.timeouts, rules.other) = (new.timeouts, new.other);
        rules.remarks = new.remarks.clone();
        (rules.slots() <= MAX_SLOTS).then(|| before.with(rules))
    }
}
