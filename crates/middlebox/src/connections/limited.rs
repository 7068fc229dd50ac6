//! The connections of rules with limits.

use super::packet_connection::Hit;
use super::table::Connections;
use super::tuple::original_tuple;
use crate::field::LimitScope;
use crate::headers::Headers;
use crate::limits::{ALL, CountLimit};
use crate::matcher::RuleRef;
use crate::rule_set::Entry;
use castanet_kit::conntrack::{Id, Tuple};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// Connections that a limit counts together: those of a rule, in a scope, of an address.
type LimitKey = (RuleRef, LimitScope, IpAddr);

/// A connection: whether it is of IPv6, and its identifier.
type LimitedId = (bool, Id);

/// The scopes of limits.
const SCOPES: [LimitScope; 3] = [LimitScope::Rule, LimitScope::Source, LimitScope::Destination];

/// Connections that are looked at for one that has ended, where a rule has as many as it may have: those of
/// a small limit all, those of a large one in turn.
const WINDOW: usize = 64;

/// The connections of rules with limits, by rule and address.
#[derive(Default, Debug)]
pub(crate) struct LimitedConnections(HashMap<LimitKey, BTreeSet<LimitedId>>);

/// The key of a connection with this original tuple.
fn key(rule: RuleRef, scope: LimitScope, tuple: &Tuple) -> LimitKey {
    (rule, scope, scope.of_ends(tuple.src.0, tuple.dst.0).unwrap_or(ALL))
}

/// The limits of a rule's connections.
fn limits(entry: &Entry) -> &[CountLimit] {
    entry.limits.as_ref().map_or(&[], |limits| limits.counts())
}

/// Some of the connections, others at another time, all of few.
fn window(all: &BTreeSet<LimitedId>, now: u64) -> impl Iterator<Item = &LimitedId> {
    let turns = all.len().div_ceil(WINDOW).max(1);
    all.iter().skip(now as usize % turns * WINDOW).take(WINDOW)
}

impl LimitedConnections {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes away a connection that is removed from the table.
    pub(super) fn remove(&mut self, rules: &[RuleRef], tuple: &Tuple, id: LimitedId) {
        for (rule, scope) in rules.iter().flat_map(|rule| SCOPES.map(|scope| (*rule, scope))) {
            let key = key(rule, scope, tuple);
            let Some(all) = self.0.get_mut(&key) else { continue };
            all.remove(&id);
            if all.is_empty() {
                self.0.remove(&key);
            }
        }
    }
}

impl Connections {
    /// Whether a rule may have one more connection, which this packet begins: it has fewer than its limits
    /// allow, or one of them has ended.
    pub(crate) fn has_room_in(
        &self,
        entry: &Entry,
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> bool {
        let limits = limits(entry);
        if limits.is_empty() {
            return true;
        }
        let Some(tuple) = original_tuple(bytes, headers) else { return true };
        limits.iter().all(|CountLimit { scope, most }| {
            let all = self.limited.0.get(&key(RuleRef::new(entry), *scope, &tuple));
            let has_end = |all| window(all, now).any(|id| self.is_ended(id));
            *most > 0 && all.is_none_or(|all| (all.len() as u64) < *most || has_end(all))
        })
    }

    /// Whether a TCP connection has ended, though the table still has it.
    fn is_ended(&self, (is_ip6, id): &LimitedId) -> bool {
        match is_ip6 {
            false => self.ip4.get(*id).state().is_over(),
            true => self.ip6.get(*id).state().is_over(),
        }
    }

    /// Counts a new connection for one of its rules, in the place of one that has ended where there are as
    /// many as there may be.
    pub(super) fn limit_by(&mut self, entry: &Entry, tuple: &Tuple, hit: Hit, now: u64) {
        for CountLimit { scope, most } in limits(entry) {
            let key = key(RuleRef::new(entry), *scope, tuple);
            let all = self.limited.0.get(&key);
            let full = all.filter(|all| all.len() as u64 >= *most);
            let ended: Vec<LimitedId> = full.map_or(Vec::new(), |all| {
                window(all, now).filter(|id| self.is_ended(id)).copied().collect()
            });
            let all = self.limited.0.entry(key).or_default();
            ended.iter().for_each(|id| _ = all.remove(id));
            all.insert((hit.is_ip6, hit.id));
        }
    }
}
