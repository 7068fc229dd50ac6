//! Rules in force, and the tables that workers look them up in.

use crate::matcher::{PLACES, Tables};
use crate::rules::Rules;
use castanet_engine::prelude::*;
use std::sync::Arc;

/// Tables that workers share, and others beside them that nobody looks at: a change goes into
/// those, where it may take its time, and then they are the ones that workers look at. So rules
/// come and go, by one or by the million, and packets never wait for it.
///
/// The second tables are there from the first change on.
#[derive(Clone, Default)]
pub struct InForce {
    tables: Arc<Tables>,
    /// What was in force before, as soon as no worker looks at it any more.
    before: Common<Option<Arc<Tables>>>,
}

impl InForce {
    /// These rules.
    pub fn new(rules: Rules) -> InForce {
        let tables = Arc::new(Tables::of(Arc::new(rules)));
        InForce { tables, ..InForce::default() }
    }

    /// The tables.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<Rules> {
        self.tables.rules()
    }

    /// Other rules, made of these by commands.
    pub fn with(&self, rules: Rules) -> InForce {
        let rules = Arc::new(rules);
        let goes_on = |tables: &Tables| {
            let before = tables.rules();
            rules.goes_on_from(before) && !rules.differ_much_from(before)
        };
        let before = self.before.change(Option::take).and_then(Arc::into_inner);
        let tables = match before.filter(&goes_on) {
            Some(tables) => Some(tables),
            None => goes_on(&self.tables).then(|| Tables::clone(&self.tables)),
        };
        let next = tables.is_some().then(|| self.tables.clone());
        self.before.change(|before| *before = next);
        let mut tables = tables.unwrap_or_default();
        tables.follow(rules);
        InForce { tables: Arc::new(tables), before: self.before.clone() }
    }

    /// The same rules where they come in place of those of another configuration: as if they had
    /// been loaded there. Nothing, if there are too many of both.
    pub(crate) fn in_place_of(&self, before: &InForce) -> Option<InForce> {
        let mut rules = Rules::clone(before.rules());
        rules.load(self.rules().entries().map(|entry| entry.rule.clone()).collect());
        rules.timeouts = self.rules().timeouts;
        rules.other = self.rules().other;
        (rules.slots() <= PLACES).then(|| before.with(rules))
    }
}
