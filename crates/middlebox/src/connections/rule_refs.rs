//! References from connections to their rules.

use crate::matcher::RuleRef;
use std::collections::HashMap;

/// The rules of a connection, in eight bytes: one rule, or the index of a list in [`RuleLists`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RuleRefs(RuleRef);

/// The slot of a reference that is the index of a list.
const LIST: u32 = u32::MAX;

impl RuleRefs {
    fn list(number: u32) -> RuleRefs {
        RuleRefs(RuleRef { slot: LIST, id: number })
    }
}

impl Default for RuleRefs {
    fn default() -> RuleRefs {
        RuleRefs::list(u32::MAX)
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
            return RuleRefs(only);
        }
        if let Some(number) = self.numbers.get(rules) {
            return RuleRefs::list(*number);
        }
        let number = self.lists.len() as u32;
        self.numbers.insert(rules.into(), number);
        self.lists.push(rules.into());
        RuleRefs::list(number)
    }

    /// Returns the rules of a reference.
    #[inline]
    pub(super) fn rules<'a>(&'a self, refs: &'a RuleRefs) -> &'a [RuleRef] {
        match &refs.0 {
            RuleRef { slot: LIST, id } => self.lists.get(*id as usize).map_or(&[], |list| list),
            only => std::slice::from_ref(only),
        }
    }
}
