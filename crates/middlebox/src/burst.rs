//! Evaluates bursts of packets: lookups, rules, connections, exits.

use crate::connections::{
    Connections, LookupKey, LookupResult, PacketConnection, TupleRewrite, offsets,
};
use crate::exit::Exit;
use crate::headers::{self, Headers, NonIpKind};
use crate::interfaces::Interfaces;
use crate::match_packet::PacketView;
use crate::matcher::{ACCEPTS, CHANGES, DROPS, INEXACT, STATEFUL};
use crate::rule_set::{Entry, NonIpPolicy, RuleSet};
use crate::state::MiddleboxState;
use crate::verdict::{dropping_rule, rewrite};
use castanet_element::fragment::FragmentGate;
use castanet_element::prelude::*;
use castanet_kit::conntrack::{ExclusiveAccess, Tuple, rewrite_tuple};
use std::sync::Arc;

/// Maximum number of expired connections that are removed per burst.
const EXPIRE: usize = 64;

/// The lookups of one packet of a burst. The headers are not kept: parsing those of most packets
/// again costs less than storing them.
#[derive(Clone, Copy)]
pub(crate) struct PacketLookup {
    key: Option<LookupKey>,
    /// Index of the packet among those whose rules were looked up, if it is one of them.
    match_index: Option<u32>,
}

/// A packet's connection, with the table that holds it and the packet's headers.
#[derive(Clone, Copy)]
pub(crate) struct ConnectionRef<'c> {
    pub(crate) connections: &'c Connections,
    pub(crate) connection: &'c PacketConnection,
    pub(crate) headers: &'c Headers,
}

/// Context in which packets of one input are evaluated.
#[derive(Clone, Copy)]
pub(crate) struct HookContext<'m> {
    pub(crate) rules: &'m RuleSet,
    pub(crate) interfaces: &'m Interfaces,
    pub(crate) connections: &'m RwShared<Connections>,
    pub(crate) fragments: &'m FragmentGate,
    pub(crate) mtu: usize,
    pub(crate) port: usize,
    /// Time in nanoseconds.
    pub(crate) now: u64,
}

impl HookContext<'_> {
    /// Evaluates a burst and emits its packets.
    pub(crate) fn process_burst(&self, state: &mut MiddleboxState, batch: Batch, cx: &mut Cx) {
        if let Some(returned) = self.process_whole(state, batch, cx) {
            self.process_with_fragments(state, returned, cx);
        }
    }

    /// Evaluates a burst of whole packets and routes it. Returns the burst unchanged if it has
    /// fragments or truncated headers and the rule set tracks fragments.
    pub(crate) fn process_whole(
        &self,
        state: &mut MiddleboxState,
        mut batch: Batch,
        cx: &mut Cx,
    ) -> Option<Batch> {
        let mut fates = std::mem::take(&mut state.fates);
        fates.clear();
        let needs_slow_path = match self.rules.stateful() {
            0 => self.process_stateless(state, &mut batch, &mut fates, cx),
            _ => self.process_stateful(state, &mut batch, &mut fates, cx),
        };
        let returned = if needs_slow_path {
            Some(batch)
        } else {
            cx.route(batch, &mut fates);
            None
        };
        state.fates = fates;
        returned
    }

    /// Evaluates a burst under a rule set without stateful rules. Returns whether the burst is for
    /// [`HookContext::process_with_fragments`] instead.
    fn process_stateless(
        &self,
        state: &mut MiddleboxState,
        batch: &mut Batch,
        fates: &mut Vec<u8>,
        cx: &mut Cx,
    ) -> bool {
        state.matcher.start_burst();
        let mut needs_slow_path = false;
        batch.iter().for_each(|packet| needs_slow_path |= state.matcher.push_packet(packet));
        if needs_slow_path && self.rules.tracks_fragments() {
            return true;
        }
        state.matcher.look_up();
        for (number, packet) in batch.iter_mut().enumerate() {
            // Without stateful rules no packet needs exclusive access.
            let exit =
                self.apply_stateless(state, number as u32, packet, cx).unwrap_or(self.forward());
            fates.push(exit.index());
        }
        if state.matcher.has_non_ip() {
            self.set_non_ip_exits(batch, fates);
        }
        false
    }

    /// Sets the exits of the packets without an IP header.
    #[cold]
    fn set_non_ip_exits(&self, batch: &Batch, fates: &mut [u8]) {
        for (packet, fate) in batch.iter().zip(fates) {
            if headers::find(packet).is_none() {
                *fate = self.non_ip_exit(packet).index();
            }
        }
    }

    /// Returns the exit of a packet without an IP header.
    pub(crate) fn non_ip_exit(&self, packet: &Packet) -> Exit {
        match (NonIpKind::of(packet), self.rules.other) {
            (NonIpKind::Malformed, _) => Exit::Malformed,
            (_, NonIpPolicy::Accept) | (NonIpKind::Arp, NonIpPolicy::Arp) => self.forward(),
            (_, NonIpPolicy::Arp | NonIpPolicy::Drop) => Exit::Other,
        }
    }

    /// Evaluates a burst under a rule set with stateful rules: first all packets that need only
    /// shared access to the connections, then the deferred ones with exclusive access. Returns
    /// whether the burst is for [`HookContext::process_with_fragments`] instead.
    fn process_stateful(
        &self,
        state: &mut MiddleboxState,
        batch: &mut Batch,
        fates: &mut Vec<u8>,
        cx: &mut Cx,
    ) -> bool {
        let mut lookups = std::mem::take(&mut state.lookups);
        state.deferred.clear();
        let done = self.connections.read(|connections| {
            if self.look_up(state, connections, batch, &mut lookups) {
                return None;
            }
            let packets = batch.iter_mut().zip(&lookups).enumerate();
            fates.extend(packets.map(|(number, (packet, lookup))| {
                let exit = match headers::find_plain(packet) {
                    Some(headers) => {
                        self.evaluate(state, connections, lookup, &headers, packet, cx)
                    }
                    None => self.evaluate_slow_path(state, connections, lookup, packet, cx),
                };
                let exit = exit.unwrap_or_else(|ExclusiveAccess| {
                    state.deferred.push(number as u32);
                    self.forward()
                });
                exit.index()
            }));
            Some((connections.is_due(now(cx)), connections.len() > 0))
        });
        let Some((is_due, is_any)) = done else {
            state.lookups = lookups;
            return true;
        };
        if is_due || !state.deferred.is_empty() {
            self.connections.change(|connections| {
                connections.expire(now(cx), EXPIRE);
                self.process_deferred(state, connections, &lookups, batch, fates, cx);
            });
        }
        if is_any || !state.deferred.is_empty() {
            state.schedule_expiry(cx);
        }
        state.lookups = lookups;
        false
    }

    /// Evaluates the deferred packets, in their order, with exclusive access to the connections.
    fn process_deferred(
        &self,
        state: &mut MiddleboxState,
        connections: &mut Connections,
        lookups: &[PacketLookup],
        batch: &mut Batch,
        fates: &mut [u8],
        cx: &mut Cx,
    ) {
        state.matcher.rewind();
        let deferred = std::mem::take(&mut state.deferred);
        let mut waiting = deferred.iter().map(|&number| number as usize).peekable();
        let all = batch.iter_mut().zip(lookups).zip(fates).enumerate();
        for (_, ((packet, lookup), fate)) in all.filter(|(n, _)| waiting.next_if_eq(n).is_some()) {
            *fate = self.evaluate_exclusive(state, connections, lookup, packet, cx).index();
        }
        state.deferred = deferred;
    }

    /// Looks up the connections and the rules of all packets, each in one batch. Returns true
    /// without a rule lookup if a packet is a fragment or has truncated headers.
    fn look_up(
        &self,
        state: &mut MiddleboxState,
        connections: &Connections,
        batch: &Batch,
        lookups: &mut Vec<PacketLookup>,
    ) -> bool {
        let lookup_batch = &mut state.lookup_batch;
        let mut needs_slow_path = false;
        lookups.clear();
        lookup_batch.clear();
        lookups.extend(batch.iter().map(|packet| {
            let key = match headers::find_plain(packet) {
                Some(headers) => lookup_batch.push(packet.bytes(), &headers),
                None => headers::find(packet).and_then(|headers| {
                    needs_slow_path |= headers.is_fragment || headers.is_cut();
                    lookup_batch.push(packet.bytes(), &headers)
                }),
            };
            PacketLookup { key, match_index: None }
        }));
        if needs_slow_path {
            return true;
        }
        lookup_batch.look_up(connections);
        self.look_up_rules(state, batch, lookups);
        false
    }

    /// Looks up the rules of the packets, in one batch.
    #[inline(never)]
    fn look_up_rules(
        &self,
        state: &mut MiddleboxState,
        batch: &Batch,
        lookups: &mut [PacketLookup],
    ) {
        let MiddleboxState { lookup_batch, matcher, .. } = state;
        // If all rules are stateful, a packet of a known connection needs no rule lookup.
        let is_only = self.rules.stateful() == self.rules.len();
        let mut count = 0;
        matcher.start_burst();
        for (packet, lookup) in batch.iter().zip(lookups) {
            if is_only && lookup_batch.is_known(lookup.key) {
                continue;
            }
            matcher.push_packet(packet);
            lookup.match_index = Some(count);
            count += 1;
        }
        matcher.look_up();
    }

    #[inline]
    pub(crate) fn forward(&self) -> Exit {
        Exit::Out(self.port as u8)
    }

    /// Evaluates a packet with shared access. Returns `Wait` if a connection must be created,
    /// removed or otherwise changed with exclusive access.
    #[inline]
    fn evaluate(
        &self,
        state: &mut MiddleboxState,
        connections: &Connections,
        lookup: &PacketLookup,
        headers: &Headers,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Result<Exit, ExclusiveAccess> {
        let (bytes, now) = (packet.bytes(), now(cx));
        // By reference: a copy would stall on the store that has just been made.
        match (
            &connections.find((&state.lookup_batch, lookup.key), bytes, headers, now),
            lookup.match_index,
        ) {
            (LookupResult::Connection(connection), match_index) => {
                let own_actions = self
                    .connection_actions(state, connections, connection)
                    .ok_or(ExclusiveAccess)?;
                connections.refresh(connection, bytes, headers, &self.rules.timeouts, now)?;
                let of = ConnectionRef { connections, connection, headers };
                Ok(self.apply_connection(state, (of, own_actions), match_index, packet, cx))
            }
            // A deferred packet of the burst may create the connection of this packet.
            (LookupResult::None, Some(match_index)) if state.deferred.is_empty() => {
                self.apply_stateless(state, match_index, packet, cx)
            }
            (LookupResult::None | LookupResult::NeedsWrite, _) => Err(ExclusiveAccess),
        }
    }

    /// As [`HookContext::evaluate`], for packets without plain headers.
    #[inline(never)]
    fn evaluate_slow_path(
        &self,
        state: &mut MiddleboxState,
        connections: &Connections,
        lookup: &PacketLookup,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Result<Exit, ExclusiveAccess> {
        match headers::find(packet) {
            Some(headers) => self.evaluate(state, connections, lookup, &headers, packet, cx),
            None => Ok(self.non_ip_exit(packet)),
        }
    }

    /// Applies the rules that matched packet `match_index`. Returns `Wait` if a stateful rule
    /// matched, which may create a connection.
    #[inline]
    fn apply_stateless(
        &self,
        state: &mut MiddleboxState,
        match_index: u32,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Result<Exit, ExclusiveAccess> {
        const SLOW: u8 = CHANGES | STATEFUL | INEXACT;
        let actions = state.matcher.count_unless(match_index, SLOW, packet.len());
        if actions & STATEFUL != 0 {
            return Err(ExclusiveAccess);
        }
        if actions & SLOW != 0 {
            return Ok(self.apply_slow_path(state, Some(match_index), None, packet, cx));
        }
        if actions & (ACCEPTS | DROPS) != DROPS {
            return Ok(self.forward());
        }
        state.matcher.count_drop(Some(match_index), &[]);
        Ok(Exit::Rule)
    }

    /// Returns the union of the actions of the connection's rules; `None` if all of them have been
    /// removed.
    #[inline(always)]
    pub(crate) fn connection_actions(
        &self,
        state: &MiddleboxState,
        connections: &Connections,
        connection: &PacketConnection,
    ) -> Option<u8> {
        let rules = connections.rule_refs(connection);
        let own_actions = rules.iter().filter_map(|&it| state.matcher.slots().actions_of(it));
        // Another worker may already have rules that this worker has not.
        let is_new = || rules.iter().any(|it| it.is_newer_than(self.rules.last_id()));
        own_actions.reduce(|all, actions| all | actions).or_else(|| is_new().then_some(0))
    }

    /// Applies the rules and the translation of a connection to a packet.
    #[inline(always)]
    fn apply_connection(
        &self,
        state: &mut MiddleboxState,
        (of, own_actions): (ConnectionRef, u8),
        match_index: Option<u32>,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let (ConnectionRef { connections, connection, headers }, matcher) =
            (of, &mut state.matcher);
        let others = match_index.map_or(0, |match_index| matcher.stateless_actions(match_index));
        let actions = own_actions & !INEXACT | others;
        if actions & (CHANGES | INEXACT) != 0 {
            return self.apply_slow_path(state, match_index, Some(of), packet, cx);
        }
        for &rule in connections.rule_refs(connection) {
            if matcher.slots().actions_of(rule).is_some() {
                matcher.count(rule.slot, packet.len());
            }
        }
        if let Some(match_index) = match_index {
            matcher.count_stateless(match_index, packet.len());
        }
        if actions & (ACCEPTS | DROPS) == DROPS {
            matcher.count_drop(match_index, connections.rule_refs(connection));
            return Exit::Rule;
        }
        match connections.tuple_rewrite(connection) {
            TupleRewrite::None => {}
            TupleRewrite::Tuple4(from, to) => {
                let is_followed = destination(packet, headers) == Some(packet.dst());
                rewrite_tuple(packet.bytes_mut(), offsets(headers), &from, &to);
                if is_followed {
                    packet.set_dst(to.dst().0);
                }
            }
            TupleRewrite::Full => {
                let mapping = connections.mapping(connection);
                rewrite(packet, *headers, std::iter::empty(), Some(&mapping), None, self.mtu);
            }
        }
        self.forward()
    }

    /// Evaluates a deferred packet, with exclusive access to the connections.
    fn evaluate_exclusive(
        &self,
        state: &mut MiddleboxState,
        connections: &mut Connections,
        lookup: &PacketLookup,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let Some(headers) = &headers::find(packet) else { return self.forward() };
        let seen = (packet.bytes(), headers);
        let found = self.find_connection(state, connections, lookup.key, seen, now(cx));
        if let Some((connection, own_actions)) = &found {
            let of = ConnectionRef { connections, connection, headers };
            let match_index = lookup.match_index;
            return self.apply_connection(state, (of, *own_actions), match_index, packet, cx);
        }
        self.match_rules(state, lookup.match_index, seen);
        match self.create_connection(state, connections, seen, cx) {
            Ok(created) => {
                let of = created.as_ref().map(|connection| ConnectionRef {
                    connections,
                    connection,
                    headers,
                });
                self.apply_matched(state, of, *headers, None, packet, &mut || cx.random())
            }
            Err(exit) => self.refuse(state, exit, headers, packet),
        }
    }

    /// Returns the connection of a packet, refreshed, with the union of the actions of its rules. A
    /// connection without rules is removed.
    pub(crate) fn find_connection(
        &self,
        state: &MiddleboxState,
        connections: &mut Connections,
        key: Option<LookupKey>,
        (bytes, headers): (&[u8], &Headers),
        now: u64,
    ) -> Option<(PacketConnection, u8)> {
        let connection =
            connections.find_exclusive((&state.lookup_batch, key), bytes, headers, now)?;
        let own_actions = self.connection_actions(state, connections, &connection);
        match own_actions {
            Some(_) => {
                let timeouts = &self.rules.timeouts;
                connections.refresh_exclusive(&connection, bytes, headers, timeouts, now);
            }
            None => connections.remove(&connection),
        }
        Some((connection, own_actions?))
    }

    /// Applies all matching rules, including those that rewrite, that draw a probability or whose
    /// keys are inexact.
    fn apply_slow_path(
        &self,
        state: &mut MiddleboxState,
        match_index: Option<u32>,
        of: Option<ConnectionRef>,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let Some(headers) = headers::find(packet) else { return self.forward() };
        self.match_rules(state, match_index, (packet.bytes(), &headers));
        self.apply_matched(state, of, headers, None, packet, &mut || cx.random())
    }

    /// Puts the slots of the matching rules into `matched_rules`.
    pub(crate) fn match_rules(
        &self,
        state: &mut MiddleboxState,
        match_index: Option<u32>,
        (bytes, headers): (&[u8], &Headers),
    ) {
        let (input, output) = self.interfaces.names(self.port);
        let seen = PacketView { bytes, headers, input, output };
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
        let MiddleboxState { matcher, matched_rules, applied_rules, unfit_options, .. } = state;
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
        if let Some(at) = dropping_rule(plans.clone(), random) {
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

    /// Creates the connection of a packet that belongs to none, if a stateful rule matched.
    pub(crate) fn create_connection(
        &self,
        state: &MiddleboxState,
        connections: &mut Connections,
        seen: (&[u8], &Headers),
        cx: &mut Cx,
    ) -> Result<Option<PacketConnection>, Exit> {
        if !self.may_create_connection(state, &mut || cx.random())? {
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

    /// Whether a packet that belongs to no connection may create one; the drop exit, if another
    /// rule drops it.
    pub(crate) fn may_create_connection(
        &self,
        state: &MiddleboxState,
        random: &mut impl FnMut() -> u64,
    ) -> Result<bool, Exit> {
        if self.matched_stateful_rules(state).next().is_none() {
            return Ok(false);
        }
        let MiddleboxState { matcher, matched_rules, .. } = state;
        let entries = matched_rules.iter().filter_map(|&slot| matcher.slots().entry(slot));
        let is_own = self.matched_stateful_rules(state).any(|entry| entry.plan.drop.is_some());
        let is_dropped = !is_own && dropping_rule(entries.map(|it| &it.plan), random).is_some();
        if is_dropped { Err(Exit::Rule) } else { Ok(true) }
    }
}

/// The current time in nanoseconds, as the connection table uses it.
#[inline]
pub(crate) fn now(cx: &Cx) -> u64 {
    cx.now().0.unsigned_abs()
}

/// Returns the destination address in the IPv4 header.
#[inline]
fn destination(packet: &Packet, headers: &Headers) -> Option<std::net::Ipv4Addr> {
    let header = packet.bytes().get(headers.network..)?;
    castanet_wire::Ipv4Header::from_prefix(header).map(|(ip, _)| ip.dst())
}
