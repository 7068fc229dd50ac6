//! Evaluates bursts of packets: lookups, rules, connections, exits.

use crate::connections::{
    ConnectionState, Connections, LookupKey, LookupResult, PacketConnection, TupleRewrite,
    rewrite_packet4,
};
use crate::ct_state::{CtInfo, CtState};
use crate::exit::Exit;
use crate::headers::{self, Headers, NonIpKind};
use crate::interfaces::Interfaces;
use crate::matcher::{ACCEPTS, CHANGES, DROPS, INEXACT, STATEFUL};
use crate::packet_log::LogSettings;
use crate::rule_set::{NonIpPolicy, RuleSet};
use crate::state::MiddleboxState;
use crate::verdict::rewrite;
use castanet_element::fragment::FragmentGate;
use castanet_element::prelude::*;
use castanet_kit::conntrack::ExclusiveAccess;

/// Maximum number of expired connections that are removed per burst.
const EXPIRE: usize = 64;

/// The lookups of one packet of a burst. The headers are not kept: parsing those of most packets
/// again costs less than storing them.
#[derive(Clone, Copy)]
pub(crate) struct PacketLookup {
    key: Option<LookupKey>,
    /// Index of the packet among those whose rules were looked up, if it is one of them.
    match_index: Option<u32>,
    /// The state of its connection, if a rule tests it.
    ct_info: CtInfo,
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
    /// Whether limits count the packets and the log has them: not where one is only tested.
    pub(crate) is_counted: bool,
    pub(crate) log: &'m LogSettings,
}

impl HookContext<'_> {
    /// Evaluates a burst and emits its packets.
    pub(crate) fn process_burst(&self, state: &mut MiddleboxState, batch: Batch, cx: &mut Cx) {
        if let Some(returned) = self.process_whole(state, batch, cx) {
            self.process_with_fragments(state, returned, cx);
        }
        state.packet_log.flush(cx);
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
        let needs_slow_path = match self.rules.has_connections() {
            false => self.process_stateless(state, &mut batch, &mut fates, cx),
            true => self.process_stateful(state, &mut batch, &mut fates, cx),
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

    /// Evaluates a burst under a rule set without connections. Returns whether the burst is for
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
            // Without connections no packet needs exclusive access.
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

    /// Evaluates a burst under a rule set with connections: first all packets that need only
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
            PacketLookup { key, match_index: None, ct_info: CtInfo::default() }
        }));
        if needs_slow_path {
            return true;
        }
        lookup_batch.look_up(connections);
        if self.rules.tracks_all() {
            self.look_up_rules_by_state(state, connections, batch, lookups);
        } else {
            self.look_up_rules(state, batch, lookups);
        }
        false
    }

    /// As [`HookContext::look_up_rules`], if rules test the state of connections.
    #[inline(never)]
    fn look_up_rules_by_state(
        &self,
        state: &mut MiddleboxState,
        connections: &Connections,
        batch: &Batch,
        lookups: &mut [PacketLookup],
    ) {
        let MiddleboxState { lookup_batch, matcher, .. } = state;
        matcher.start_burst();
        for ((packet, lookup), number) in batch.iter().zip(lookups).zip(0..) {
            matcher.push_packet(packet);
            lookup.match_index = Some(number);
            let headers = headers::find_plain(packet).or_else(|| headers::find(packet));
            let Some(headers) = &headers else { continue };
            let by = (&*lookup_batch, lookup.key);
            let found = connections.find(by, packet.bytes(), headers, self.now);
            lookup.ct_info = connections.ct_info(&found, packet.bytes(), headers);
            matcher.set_state(lookup.ct_info.state);
        }
        matcher.look_up();
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
                if self.begins_anew(connections, connection, bytes, headers) {
                    return Err(ExclusiveAccess);
                }
                let connection_state = connections.state(connection);
                let own_actions = self
                    .connection_actions(state, connections, connection_state)
                    .ok_or(ExclusiveAccess)?;
                connections.refresh(connection, bytes, headers, &self.rules.timeouts, now)?;
                let of = ConnectionRef { connections, connection, headers };
                let known = (connection_state, own_actions);
                Ok(self.apply_connection(state, (of, known), match_index, packet, cx))
            }
            // A deferred packet of the burst may create the connection of this packet.
            (LookupResult::None, Some(match_index)) if state.deferred.is_empty() => {
                // A packet that goes on begins a connection.
                let begins = self.rules.tracks_all() && lookup.ct_info.state == CtState::New;
                if begins && !state.matcher.is_dropped_only(match_index) {
                    return Err(ExclusiveAccess);
                }
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
        state.matcher.count_own_drop(match_index);
        Ok(Exit::Rule)
    }

    /// Returns the union of the actions of the connection's rules; `None` if all of them have been
    /// removed.
    #[inline(always)]
    pub(crate) fn connection_actions(
        &self,
        state: &MiddleboxState,
        connections: &Connections,
        connection_state: &ConnectionState,
    ) -> Option<u8> {
        let rules = connections.rule_refs(connection_state);
        let own_actions = rules.iter().filter_map(|&it| state.matcher.slots().actions_of(it));
        // Another worker may already have rules that this worker has not.
        let is_new = || rules.iter().any(|it| it.is_newer_than(self.rules.last_id()));
        let stays = || self.rules.tracks_all() || is_new();
        own_actions.reduce(|all, actions| all | actions).or_else(|| stays().then_some(0))
    }

    /// Applies the rules and the translation of a connection to a packet.
    #[inline(always)]
    fn apply_connection(
        &self,
        state: &mut MiddleboxState,
        (of, (connection_state, own_actions)): (ConnectionRef, (&ConnectionState, u8)),
        match_index: Option<u32>,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let (ConnectionRef { connections, connection, headers }, matcher) =
            (of, &mut state.matcher);
        let (others, hits) =
            match_index.map_or_else(Default::default, |it| matcher.stateless_actions(it));
        let actions = own_actions & !INEXACT | others;
        if actions & (CHANGES | INEXACT) != 0 {
            return self.apply_slow_path(state, match_index, Some(of), packet, cx);
        }
        for &rule in connections.rule_refs(connection_state) {
            if matcher.slots().actions_of(rule).is_some() {
                matcher.count(rule.slot, packet.len());
            }
        }
        matcher.count_stateless(hits, packet.len());
        if actions & (ACCEPTS | DROPS) == DROPS {
            matcher.count_drop(match_index, connections.rule_refs(connection_state));
            return Exit::Rule;
        }
        match connections.tuple_rewrite(connection, connection_state) {
            TupleRewrite::None => {}
            TupleRewrite::Tuple4(from, to) => {
                let is_followed = destination(packet, headers) == Some(packet.dst());
                rewrite_packet4(packet.bytes_mut(), headers, &from, &to);
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
            if self.rules.tracks_all() {
                // The connection may be younger than the lookup of the rules.
                return self.apply_slow_path(state, None, Some(of), packet, cx);
            }
            let match_index = lookup.match_index;
            let known = (connections.state(connection), *own_actions);
            return self.apply_connection(state, (of, known), match_index, packet, cx);
        }
        if self.rules.tracks_all() {
            // The lookup may have found a connection that has ended since.
            let ct_info = CtInfo::of_no_connection(seen.0, seen.1);
            self.match_rules(state, None, packet, seen, ct_info);
        } else {
            self.match_rules(state, lookup.match_index, packet, seen, CtInfo::default());
        }
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

    /// Whether a packet begins a connection in place of one that has ended, if rules test the state of
    /// connections: its ends may have changed their parts.
    #[inline]
    pub(crate) fn begins_anew(
        &self,
        connections: &Connections,
        connection: &PacketConnection,
        bytes: &[u8],
        headers: &Headers,
    ) -> bool {
        self.rules.tracks_all() && connections.begins_anew(connection, bytes, headers)
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
        if self.begins_anew(connections, &connection, bytes, headers) {
            connections.remove(&connection);
            return None;
        }
        let own_actions =
            self.connection_actions(state, connections, connections.state(&connection));
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
        let seen = (packet.bytes(), &headers);
        let ct_info = match of {
            Some(of) => of.connections.ct_info_of(of.connection),
            None if self.rules.tracks_all() => CtInfo::of_no_connection(seen.0, seen.1),
            None => CtInfo::default(),
        };
        self.match_rules(state, match_index, packet, seen, ct_info);
        self.apply_matched(state, of, headers, None, packet, &mut || cx.random())
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
