//! Rules in force, and the tables that workers look them up in.

use crate::heirs::Heirs;
use crate::matcher::Tables;
use crate::rules::Rules;
use castanet_engine::prelude::*;
use std::sync::{Arc, Weak};

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
    /// For the rules of the configuration before: who goes on for them here.
    heirs: Common<Option<Known>>,
}

/// Whose heirs they are, and the heirs.
type Known = (Weak<Rules>, Arc<Heirs>);

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
        let goes_on = |tables: &Tables| rules.goes_on_from(tables.rules());
        let before = self.before.change(Option::take).and_then(Arc::into_inner);
        let tables = match before.filter(&goes_on) {
            Some(tables) => Some(tables),
            None => goes_on(&self.tables).then(|| Tables::clone(&self.tables)),
        };
        let next = tables.is_some().then(|| self.tables.clone());
        self.before.change(|before| *before = next);
        let mut tables = tables.unwrap_or_default();
        tables.follow(rules);
        let (tables, before) = (Arc::new(tables), self.before.clone());
        InForce { tables, before, heirs: Common::default() }
    }

    /// Who goes on for the rules of another configuration: found once for all workers.
    pub(crate) fn heirs(&self, before: &Arc<Rules>) -> Arc<Heirs> {
        let is_known =
            |(of, heirs): &Known| (of.as_ptr() == Arc::as_ptr(before)).then(|| heirs.clone());
        if let Some(heirs) = self.heirs.read(|known| known.as_ref().and_then(is_known)) {
            return heirs;
        }
        let heirs = Arc::new(Heirs::of(before, self.rules()));
        self.heirs.change(|known| *known = Some((Arc::downgrade(before), heirs.clone())));
        heirs
    }
}
