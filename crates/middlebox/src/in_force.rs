//! Rules in force, and the tables that workers look them up in.

use crate::heirs::Heirs;
use crate::matcher::Tables;
use crate::rules::Rules;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Tables that workers share, and others beside them that nobody looks at: a change goes into
/// those, where it may take its time, and then they are the ones that workers look at. So rules
/// come and go, by one or by the million, and packets never wait for it.
///
/// The second tables are there from the first change on.
#[derive(Clone, Default)]
pub struct InForce {
    tables: Arc<Tables>,
    /// What was in force before, as soon as no worker looks at it any more.
    before: Arc<Mutex<Option<Arc<Tables>>>>,
    /// For the rules of the configuration before: who goes on for them here.
    heirs: Arc<Mutex<Option<Known>>>,
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
        let mut before = lock(&self.before);
        let goes_on = |tables: &Tables| rules.goes_on_from(tables.rules());
        let tables = match before.take().and_then(Arc::into_inner).filter(&goes_on) {
            Some(tables) => Some(tables),
            None => goes_on(&self.tables).then(|| Tables::clone(&self.tables)),
        };
        *before = tables.is_some().then(|| self.tables.clone());
        drop(before);
        let mut tables = tables.unwrap_or_default();
        tables.follow(rules);
        InForce { tables: Arc::new(tables), before: self.before.clone(), heirs: Arc::default() }
    }

    /// Who goes on for the rules of another configuration: found once for all workers.
    pub(crate) fn heirs(&self, before: &Arc<Rules>) -> Arc<Heirs> {
        let mut known = lock(&self.heirs);
        if let Some((of, heirs)) = &*known
            && of.as_ptr() == Arc::as_ptr(before)
        {
            return heirs.clone();
        }
        let heirs = Arc::new(Heirs::of(before, self.rules()));
        *known = Some((Arc::downgrade(before), heirs.clone()));
        heirs
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
