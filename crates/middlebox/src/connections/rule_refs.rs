//! References from connections to their rules.

use crate::matcher::RuleRef;
use std::collections::HashMap;

/// The rules of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RuleRefs {
    /// One rule.
    One(RuleRef),
    /// Any other number of rules: an index into [`RuleLists`].
    List(u32),
}

impl Default for RuleRefs {
    fn default() -> RuleRefs {
        RuleRefs::List(u32::MAX)
    }
}

/// Interned lists of rules: connections with equal rules share one.
#[derive(Default)]
pub(super) struct RuleLists {
    numbers: HashMap<Box<[RuleRef]>, u32>,
    lists: Vec<Box<[RuleRef]>>,
}

impl RuleLists {
    /// Interns a list of rules.
    pub(super) fn intern(&mut self, rules: &[RuleRef]) -> RuleRefs {
        if let &[only] = rules {
            return RuleRefs::One(only);
        }
        if let Some(number) = self.numbers.get(rules) {
            return RuleRefs::List(*number);
        }
        let number = self.lists.len() as u32;
        self.numbers.insert(rules.into(), number);
        self.lists.push(rules.into());
        RuleRefs::List(number)
    }

    /// Returns the rules of a reference.
    #[inline]
    pub(super) fn rules<'a>(&'a self, refs: &'a RuleRefs) -> &'a [RuleRef] {
        match refs {
            RuleRefs::One(only) => std::slice::from_ref(only),
            RuleRefs::List(number) => self.lists.get(*number as usize).map_or(&[], |list| list),
        }
    }
}
