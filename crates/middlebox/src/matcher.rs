//! Which rules are about a packet: asked here, answered one rule after the other.

use crate::holds::Seen;
use crate::rules::Entry;
use std::sync::Arc;

/// Finds the rules that are about a packet. Whoever asks knows nothing of how they
/// are found, so that a faster way can take this one's place.
#[derive(Debug, Default)]
pub struct Matcher {
    entries: Vec<Arc<Entry>>,
}

impl Matcher {
    /// For these rules, in their order.
    pub fn new(entries: &[Arc<Entry>]) -> Matcher {
        Matcher { entries: entries.to_vec() }
    }

    /// The tables that rules are found by; `verbose` with what is in them.
    pub fn tables(&self, verbose: bool) -> String {
        let mut text = format!("list of {} rules, looked at one by one\n", self.entries.len());
        if verbose {
            text.extend(self.entries.iter().map(|it| format!("id{} {}\n", it.id, it.rule)));
        }
        text
    }

    /// Puts the positions of all rules that are about a packet into `found`, in
    /// order.
    #[inline]
    pub fn matching(&self, seen: &Seen, found: &mut Vec<u32>) {
        found.clear();
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.rule.holds(seen) {
                found.push(at as u32);
            }
        }
    }
}
