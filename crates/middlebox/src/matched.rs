//! Applies the rules that match a packet, and begins its connection.

use crate::burst::{ConnectionRef, HookContext, now};
use crate::connections::{Connections, PacketConnection};
use crate::ct_state::{CtInfo, CtState};
use crate::exit::Exit;
use crate::headers::{self, Headers};
use crate::match_packet::PacketView;
use crate::packet_log::Verdict;
use crate::rule_set::Entry;
use crate::state::MiddleboxState;
use crate::verdict::{dropping_rule, rewrite};
use castanet_element::prelude::*;
use castanet_kit::conntrack::Tuple;
use std::sync::Arc;

impl HookContext<'_> {
    /// Puts the slots of the rules that match a packet by these headers into `matched_rules`.
    pub(crate) fn match_rules(
        &self,
        state: &mut MiddleboxState,
        match_index: Option<u32>,
        packet: &Packet,
        (bytes, headers): (&[u8], &Headers),
        ct_info: CtInfo,
    ) {
        let (input, output) = self.interfaces.names(self.port);
        let (now, is_counted) = (self.now, self.is_counted);
        let link = headers::link(packet, headers);
        let seen = PacketView { bytes, link, headers, input, output, ct_info, now, is_counted };
        match match_index {
            Some(match_index) => {
                state.matcher.matching_rules(match_index, &seen, &mut state.matched_rules)
            }
            None => state.matcher.matching_rules_of(&seen, &mut state.matched_rules),
        }
    }

    /// Applies the matched rules and those of the connection. `ends` is the tuple of a later
    /// fragment, which has no ports itself.
    pub(crate) fn apply_matched(
        &self,
        state: &mut MiddleboxState,
        of: Option<ConnectionRef>,
        headers: Headers,
        ends: Option<Tuple>,
        packet: &mut Packet,
        random: &mut impl FnMut() -> u64,
    ) -> Exit {
        let MiddleboxState {
            matcher, matched_rules, applied_rules, unfit_options, packet_log, ..
        } = state;
        let slots = matcher.slots();
        let is_stateless = |slot: &u32| slots.entry(*slot).is_some_and(|it| !it.rule.stateful);
        applied_rules.clear();
        applied_rules.extend(matched_rules.iter().copied().filter(is_stateless));
        if let Some(ConnectionRef { connections, connection, .. }) = of {
            let first = applied_rules.len();
            applied_rules.extend(connections.rules(connection, slots).map(|(slot, _)| slot));
            // Rules may have been moved since the connection was created.
            slots.sort(&mut applied_rules[first..]);
        }
        applied_rules.iter().for_each(|&slot| matcher.count(slot, packet.len()));
        let slots = matcher.slots();
        let plans = applied_rules.iter().filter_map(|&slot| Some(&slots.entry(slot)?.plan));
        let dropping = dropping_rule(plans.clone(), random);
        if self.is_counted && plans.clone().any(|plan| plan.logs) {
            let verdict = Verdict::of(dropping.and_then(|at| plans.clone().nth(at)));
            let entries = applied_rules.iter().filter_map(|&slot| slots.entry(slot));
            packet_log.add_by(self, entries, verdict, &self.logged(packet, &headers));
        }
        if let Some(at) = dropping {
            let slot = applied_rules.get(at).copied().unwrap_or_default();
            return self.drop_by(state, slot, &headers, packet);
        }
        let is_changed = of.is_some_and(|of| of.connections.is_translated(of.connection));
        if is_changed || plans.clone().any(|plan| !plan.is_verdict_only()) {
            let mapping = of.map(|of| of.connections.mapping(of.connection));
            let created = of.map(|of| of.connections.original_tuple(of.connection));
            let ends = created.or(ends);
            *unfit_options +=
                rewrite(packet, headers, plans, mapping.as_ref(), ends, self.mtu) as u64;
        }
        self.forward()
    }

    /// Creates the connection of a packet that belongs to none, if a stateful rule matched, or if all
    /// packets belong to connections.
    pub(crate) fn create_connection(
        &self,
        state: &mut MiddleboxState,
        connections: &mut Connections,
        seen: (&[u8], &Headers),
        cx: &mut Cx,
    ) -> Result<Option<PacketConnection>, Exit> {
        if !self.may_create_connection(state, connections, seen, &mut || cx.random())? {
            return Ok(None);
        }
        let (entries, now) = (self.matched_stateful_rules(state), now(cx));
        connections.create(seen, entries, &self.rules.timeouts, || cx.random(), now)
    }

    /// Returns the matched stateful rules.
    pub(crate) fn matched_stateful_rules<'b>(
        &self,
        state: &'b MiddleboxState,
    ) -> impl Iterator<Item = &'b Arc<Entry>> + Clone {
        let MiddleboxState { matcher, matched_rules, .. } = state;
        let entries = matched_rules.iter().filter_map(|&slot| matcher.slots().entry(slot));
        entries.filter(|entry| entry.rule.stateful)
    }

    /// Takes out of the matched rules those that have as many connections as they may have.
    fn leave_rules_in_excess(
        &self,
        state: &mut MiddleboxState,
        connections: &Connections,
        (bytes, headers): (&[u8], &Headers),
    ) {
        let MiddleboxState { matcher, matched_rules, .. } = state;
        matched_rules.retain(|&slot| {
            let entry = matcher.slots().entry(slot);
            entry.is_none_or(|entry| connections.has_room_in(entry, bytes, headers, self.now))
        });
    }

    /// Whether a packet that belongs to no connection may create one, without the rules that have as many as
    /// they may have; the drop exit, if another rule drops it.
    pub(crate) fn may_create_connection(
        &self,
        state: &mut MiddleboxState,
        connections: &Connections,
        seen: (&[u8], &Headers),
        random: &mut impl FnMut() -> u64,
    ) -> Result<bool, Exit> {
        self.leave_rules_in_excess(state, connections, seen);
        if self.rules.tracks_all() && CtState::of_no_connection(seen.0, seen.1) != CtState::New {
            return Ok(false);
        }
        if self.matched_stateful_rules(state).next().is_none() && !self.rules.tracks_all() {
            return Ok(false);
        }
        let MiddleboxState { matcher, matched_rules, .. } = &*state;
        let entries = matched_rules.iter().filter_map(|&slot| matcher.slots().entry(slot));
        let is_own = self.matched_stateful_rules(state).any(|entry| entry.plan.drop.is_some());
        let is_dropped = !is_own && dropping_rule(entries.map(|it| &it.plan), random).is_some();
        if is_dropped { Err(Exit::Rule) } else { Ok(true) }
    }
}
