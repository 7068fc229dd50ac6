//! The rules of connections.

use crate::matcher::Reference;
use std::collections::HashMap;

/// The rules of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// One.
    One(Reference),
    /// Others, a number of [`Lists`].
    List(u32),
}

impl Default for Own {
    fn default() -> Own {
        Own::List(u32::MAX)
    }
}

/// Lists of rules, each once: connections of the same rules share one.
#[derive(Default)]
pub(super) struct Lists {
    numbers: HashMap<Box<[Reference]>, u32>,
    lists: Vec<Box<[Reference]>>,
}

impl Lists {
    /// These rules.
    pub(super) fn own(&mut self, rules: &[Reference]) -> Own {
        if let &[only] = rules {
            return Own::One(only);
        }
        if let Some(number) = self.numbers.get(rules) {
            return Own::List(*number);
        }
        let number = self.lists.len() as u32;
        self.numbers.insert(rules.into(), number);
        self.lists.push(rules.into());
        Own::List(number)
    }

    /// The rules.
    #[inline]
    pub(super) fn rules<'a>(&'a self, own: &'a Own) -> &'a [Reference] {
        match own {
            Own::One(only) => std::slice::from_ref(only),
            Own::List(number) => self.lists.get(*number as usize).map_or(&[], |list| list),
        }
    }
}
