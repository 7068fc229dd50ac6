//! The numbers of connections of rules with limits.

use crate::field::LimitScope;
use crate::limits::{ALL, CountLimit};
use crate::matcher::RuleRef;
use crate::rule_set::Entry;
use castanet_kit::conntrack::Tuple;
use std::collections::HashMap;
use std::net::IpAddr;

/// What a limit counts together: of a rule, in a scope, those of an address.
type LimitKey = (RuleRef, LimitScope, IpAddr);

/// The scopes of limits.
const SCOPES: [LimitScope; 3] = [LimitScope::Rule, LimitScope::Source, LimitScope::Destination];

/// Numbers of connections by rule and address; of rules without limits there are none.
#[derive(Default, Debug)]
pub(crate) struct LimitedConnections(HashMap<LimitKey, u64>);

/// The key of a connection with this original tuple.
fn key(rule: RuleRef, scope: LimitScope, tuple: &Tuple) -> LimitKey {
    (rule, scope, scope.of_ends(tuple.src.0, tuple.dst.0).unwrap_or(ALL))
}

impl LimitedConnections {
    /// Whether no connection counts.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one more connection with this original tuple is within the limits of a rule.
    pub(super) fn has_room(&self, rule: RuleRef, limits: &[CountLimit], tuple: &Tuple) -> bool {
        limits.iter().all(|CountLimit { scope, most }| {
            self.0.get(&key(rule, *scope, tuple)).copied().unwrap_or_default() < *most
        })
    }

    /// Counts a new connection for one of its rules.
    pub(super) fn add(&mut self, entry: &Entry, tuple: &Tuple) {
        let counts = entry.limits.as_ref().map_or(&[][..], |limits| limits.counts());
        for (at, CountLimit { scope, .. }) in counts.iter().enumerate() {
            // Two limits with the same scope share a number.
            if counts[..at].iter().all(|it| it.scope != *scope) {
                *self.0.entry(key(RuleRef::new(entry), *scope, tuple)).or_default() += 1;
            }
        }
    }

    /// Takes away a connection that has ended.
    pub(super) fn remove(&mut self, rules: &[RuleRef], tuple: &Tuple) {
        for (rule, scope) in rules.iter().flat_map(|rule| SCOPES.map(|scope| (*rule, scope))) {
            let key = key(rule, scope, tuple);
            let Some(count) = self.0.get_mut(&key) else { continue };
            *count -= 1;
            if *count == 0 {
                self.0.remove(&key);
            }
        }
    }
}
