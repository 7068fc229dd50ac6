//! Rules by the thousand that come at once: looked up where workers do not wait for it.

use crate::matcher::Matcher;
use crate::rules::Rules;
use castanet_engine::prelude::*;
use std::sync::{Arc, Weak};

/// Where workers find what the configuration before has made for them, and leave what they had.
#[derive(Clone, Default)]
pub(crate) struct Handover {
    /// A matcher for each worker that knows the rules, of which all are new.
    ready: Common<Vec<Matcher>>,
    /// What workers leave that follow the next configuration. It ends with this one, on no
    /// worker: that takes its time.
    left: Arc<Common<Vec<Matcher>>>,
    /// That of the configuration before.
    before: Weak<Common<Vec<Matcher>>>,
}

impl Handover {
    /// To the next configuration, whose rules workers learn by themselves.
    pub(crate) fn next(&self) -> Handover {
        let before = Arc::downgrade(&self.left);
        Handover { before, ..Handover::default() }
    }

    /// To these rules, by so many workers.
    pub(crate) fn to(self, rules: &Rules, workers: usize) -> Handover {
        let mut matcher = Matcher::default();
        matcher.follow(&Rules::default(), rules);
        let copies = (1..workers).map(|_| matcher.clone()).collect::<Vec<_>>();
        self.ready.change(|ready| {
            ready.extend(copies);
            ready.push(matcher);
        });
        self
    }

    /// Puts in place of a worker's matcher the one that is ready, if there is one.
    pub(crate) fn take(&self, matcher: &mut Matcher) -> bool {
        let Some(ready) = self.ready.change(Vec::pop) else { return false };
        let old = std::mem::replace(matcher, ready);
        if let Some(before) = self.before.upgrade() {
            before.change(|left| left.push(old));
        }
        true
    }
}
