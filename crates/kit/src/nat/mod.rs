//! Network address and port translation (NAT): mappings of flows, their timeouts and their
//! selection.
//!
//! A [`Table`] holds the mappings of one rewriter, or of several rewriters that share a capacity.
//! Each rewriter is a member of the table, and its flows have a zone of their own. A mapping is one
//! flow of [`crate::conntrack`] with two keys: that of the flow's packets and that of the replies.

mod eviction;
mod ftp;
mod icmp;
mod input;
mod kind;
mod listing;
mod mapper;
mod mapping;
mod mapping_record;
mod pattern;
mod plain;
mod seq_shifts;
#[cfg(test)]
mod tests;
mod translate;

pub use ftp::{PortCommand, parse_port_command, replace_data};
pub use icmp::{OriginalPacket, QuotedPacket, parse_quote, rewrite_error};
pub use input::{InputError, InputSpec, NameResolver, NamedElement, parse_pattern_outputs};
pub use kind::RewriterKind;
pub use mapper::{ChoiceContext, HashRing, Mapper, PatternOutputs};
pub use mapping::{Mapping, Timeouts};
pub use mapping_record::{FlowKey, MappingRecord};
pub use pattern::{Pattern, RoundRobinCursor};
pub use plain::PlainTranslation;

use crate::conntrack::{self, Counts, Id, LookupBatch, Slot, Tuple4};
use eviction::EvictionQueue;
use mapping::{is_tcp, round_to_ms};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The outputs of a flow's packets and of their replies.
pub type Outputs = [u8; 2];

/// The largest capacity that a table may be given.
pub const MAX_CAPACITY: u32 = i32::MAX as u32;

/// The capacity of a table that is given none. A flood then takes at most about 120 MB.
pub const DEFAULT_CAPACITY: u32 = 1 << 20;

/// The configuration of one member.
#[derive(Clone, Debug)]
pub struct RewriterConfig {
    /// The class of rewriter, which determines the keys of flows.
    pub kind: RewriterKind,
    /// Timeouts of TCP mappings (where the kind tells TCP from other protocols), and of all others.
    pub timeouts: [Timeouts; 2],
    /// The treatment of packets that have no mapping, by input.
    pub inputs: Vec<InputSpec>,
    /// The resolved text of the elements that the inputs name; a change of it changes the inputs.
    pub references: Vec<String>,
}

impl RewriterConfig {
    fn timeouts(&self, is_tcp: bool) -> &Timeouts {
        &self.timeouts[usize::from(!is_tcp)]
    }
}

/// The counters of one input's mappings.
#[derive(Clone, Copy, Debug, Default)]
struct InputCounters {
    count: u64,
    failures: u64,
}

/// One rewriter of a table.
#[derive(Debug)]
struct Member {
    name: String,
    config: RewriterConfig,
    counters: Vec<InputCounters>,
}

/// The numbers of mappings in the order in which they are made; all tables with a clone count
/// together.
#[derive(Clone, Debug, Default)]
pub struct MappingNumbers(Arc<AtomicU32>);

impl MappingNumbers {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The mappings of one or more rewriters.
pub struct Table {
    flows: conntrack::Table<Mapping>,
    members: Vec<Member>,
    eviction: EvictionQueue,
    last_failure: Option<FailedSearch>,
    numbers: MappingNumbers,
}

/// A search for a free mapping that failed. Until a mapping is removed, the same search fails
/// again: the table answers from here, so that a port scan does not search all choices for each
/// packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FailedSearch {
    member: (u16, usize),
    /// The source address if the pattern keeps it, then destination and protocol.
    flow: (Option<Ipv4Addr>, (Ipv4Addr, u16), u8),
    removals: u64,
}

/// The reason why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The packet has no mapping, and its input makes none.
    Unmapped,
    /// The pattern has no free choice left, or the table has no room for a mapping.
    Exhausted,
}

/// The result of translating a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// The packet is unchanged and leaves by this output.
    Untouched(u8),
    /// The packet was rewritten.
    Rewritten {
        /// The output that the packet leaves by.
        output: u8,
        /// The new destination, if the kind of rewriter sets destinations.
        dst: Option<Ipv4Addr>,
        /// For replies, the annotation that they get.
        anno: Option<u8>,
    },
}

/// The properties of a packet that the table needs beside its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// The input on which the packet came in.
    pub input: usize,
    /// The packet's key; see [`RewriterKind::key`].
    pub key: Tuple4,
    /// Whether the packet may open a mapping.
    pub may_open: bool,
    /// The slot that [`Table::look_up`] found for the key.
    pub slot: Slot,
    /// The annotation that replies to this packet would get.
    pub anno: u8,
    /// The time in nanoseconds.
    pub now: u64,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            flows: conntrack::Table::new(DEFAULT_CAPACITY as usize),
            members: Vec::new(),
            eviction: EvictionQueue::default(),
            last_failure: None,
            numbers: MappingNumbers::default(),
        }
    }
}

impl Table {
    /// Adds a rewriter with `outputs` outputs under a name of its own, and returns its zone. A
    /// rewriter that takes the name of an earlier member takes over its mappings.
    pub fn add_member(&mut self, name: &str, config: RewriterConfig, outputs: usize) -> u16 {
        if let Some(zone) = self.zone(name) {
            self.reconfigure(zone, config, outputs);
            return zone;
        }
        let counters = vec![InputCounters::default(); config.inputs.len()];
        self.members.push(Member { name: name.to_owned(), config, counters });
        (self.members.len() - 1) as u16
    }

    /// Numbers mappings from now on together with other tables.
    pub fn set_numbers(&mut self, numbers: MappingNumbers) {
        self.numbers = numbers;
    }

    /// The number of the mapping of a member's packet with this key and destination.
    pub fn number(&self, zone: u16, key: &Tuple4, dst: Ipv4Addr) -> Option<u32> {
        let kind = self.members.get(usize::from(zone))?.config.kind;
        let second = || self.flows.find(&kind.second_key(dst)?.in_zone(zone));
        let (id, _) = self.flows.find(key).or_else(second)?;
        Some(self.flows.get(id).number)
    }

    /// The zone of the member of this name.
    pub fn zone(&self, name: &str) -> Option<u16> {
        self.members.iter().position(|member| member.name == name).map(|zone| zone as u16)
    }

    /// Gives a member another configuration. Its mappings stay if their inputs and outputs exist in
    /// the new one.
    pub fn reconfigure(&mut self, zone: u16, config: RewriterConfig, outputs: usize) {
        let Some(member) = self.members.get_mut(usize::from(zone)) else { return };
        let inputs = config.inputs.len();
        member.counters.resize(inputs.max(member.counters.len()), InputCounters::default());
        member.config = config;
        self.remove_where(|key, mapping| {
            let exists = mapping.outputs.iter().all(|&output| usize::from(output) < outputs);
            key.zone() == zone && (usize::from(mapping.input) >= inputs || !exists)
        });
        self.members[usize::from(zone)].counters.truncate(inputs);
    }

    /// Gives a member another configuration if the references differ from those that it has.
    pub fn reconfigure_if_changed(&mut self, zone: u16, config: &RewriterConfig, outputs: usize) {
        let member = self.members.get(usize::from(zone));
        if member.is_some_and(|member| member.config.references != config.references) {
            self.reconfigure(zone, config.clone(), outputs);
        }
    }

    /// Replaces the specification of one input and removes that input's mappings.
    pub fn set_input(&mut self, zone: u16, n: usize, input: InputSpec) {
        self.remove_where(|key, mapping| key.zone() == zone && usize::from(mapping.input) == n);
        let member = self.members.get_mut(usize::from(zone));
        if let Some(slot) = member.and_then(|member| member.config.inputs.get_mut(n)) {
            *slot = input;
        }
    }

    /// Sets how many mappings there may be. Mappings beyond that are evicted in eviction order.
    pub fn set_capacity(&mut self, capacity: u32) {
        self.flows.set_limit(capacity as usize);
        while self.len() > capacity as usize {
            // A lower capacity overrides guarantees.
            let Some((id, _)) = self.next_eviction(u64::MAX) else { return };
            self.evict(id);
        }
    }

    /// How many mappings there may be.
    pub fn capacity(&self) -> u32 {
        self.flows.limit() as u32
    }

    /// How many mappings there are, of all members.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many mappings a member has, and how many it could not make.
    pub fn counts(&self, zone: u16) -> (u64, u64) {
        let counters = self.members.get(usize::from(zone)).map_or(&[][..], |it| &it.counters);
        counters.iter().fold((0, 0), |sum, it| (sum.0 + it.count, sum.1 + it.failures))
    }

    /// Counters of all members' mappings. Mappings that were replaced or cleared are in none of
    /// them; [`Table::removed`] has these.
    pub fn events(&self) -> Counts {
        let refused = self.members.iter().flat_map(|it| &it.counters).map(|it| it.failures).sum();
        Counts { refused, ..self.flows.counts() }
    }

    /// How many mappings were removed for another reason than expiry or eviction.
    pub fn removed(&self) -> u64 {
        let Counts { expired, evicted, .. } = self.flows.counts();
        self.removals() - expired - evicted
    }

    /// How many mappings were removed so far.
    fn removals(&self) -> u64 {
        self.flows.counts().added - self.len() as u64
    }

    /// Removes all mappings of all members.
    pub fn clear(&mut self) {
        self.remove_where(|_, _| true);
    }

    /// Whether some mappings may have expired.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.flows.is_due(now)
    }

    /// Removes expired mappings, looking at up to `limit`; whether none is left to look at.
    pub fn expire(&mut self, now: u64, limit: usize) -> bool {
        let Table { flows, members, .. } = self;
        flows.expire(now, limit, |_, key, mapping| uncount(members, (key, mapping)))
    }

    /// Removes a mapping if it has expired; whether it did.
    fn remove_if_expired(&mut self, id: Id, now: u64) -> bool {
        let expired = self.flows.take_expired(id, now);
        expired.map(|removed| uncount(&mut self.members, removed)).is_some()
    }

    /// Looks up the keys of a burst.
    pub fn look_up(&self, batch: &mut LookupBatch<Tuple4>) {
        batch.look_up(&self.flows);
    }

    /// Looks up one key.
    pub fn find_one(&self, key: &Tuple4) -> Slot {
        self.flows.find_slot(key)
    }

    fn remove(&mut self, id: Id) {
        uncount(&mut self.members, self.flows.remove(id));
    }

    fn remove_where(&mut self, matches: impl Fn(&Tuple4, &Mapping) -> bool) {
        let matching = self.flows.iter().filter(|(_, key, mapping)| matches(key, mapping));
        let ids: Vec<Id> = matching.map(|(id, ..)| id).collect();
        ids.into_iter().for_each(|id| self.remove(id));
    }

    /// The mapping that is evicted first, and its expiry time.
    fn next_eviction(&mut self, now: u64) -> Option<(Id, u64)> {
        let id = self.eviction.first(&mut self.flows, now)?;
        Some((id, self.flows.deadline(id)))
    }

    fn evict(&mut self, id: Id) {
        uncount(&mut self.members, self.flows.evict_id(id));
    }

    /// Makes a mapping as for the first packet of a flow that comes in on input `n`.
    fn open_mapping(
        &mut self,
        zone: u16,
        n: usize,
        flow: Tuple4,
        now: u64,
        context: &mut ChoiceContext,
    ) -> Result<NewFlow, Refusal> {
        let member = &self.members[usize::from(zone)];
        let input = member.config.inputs.get(n).ok_or(Refusal::Unmapped)?;
        let taken = |reply: &Tuple4| self.flows.find(&reply.in_zone(zone)).is_some();
        let target = match input {
            InputSpec::Drop => return Err(Refusal::Unmapped),
            InputSpec::Pass(output) => return Ok(NewFlow::Passed(*output)),
            InputSpec::Keep(outputs) => Some((flow, *outputs)),
            InputSpec::Pattern(pattern, outputs) => {
                let src = pattern.keeps_src().then_some(flow.src().0);
                let flow_to = (src, flow.dst(), flow.proto());
                let (member, removals) = ((zone, n), self.removals());
                let search = FailedSearch { member, flow: flow_to, removals };
                let known_failure = self.last_failure == Some(search);
                let to = match known_failure {
                    true => {
                        pattern.draw_in_vain(context.random);
                        None
                    }
                    false => pattern.rewrite(flow, taken, context.random),
                };
                self.last_failure = if to.is_none() { Some(search) } else { self.last_failure };
                to.map(|to| (to, *outputs))
            }
            InputSpec::Mapper(mapper) => mapper.rewrite(flow, taken, context),
        };
        let id = target.and_then(|(to, outputs)| {
            let (key, reply) = (flow.in_zone(zone), to.reversed().in_zone(zone));
            let reply_key = (reply != key).then_some(reply);
            let mapping = Mapping::new(reply_key, outputs, n as u16);
            self.add(key, Mapping { number: self.numbers.next(), ..mapping }, now)
        });
        let counter = &mut self.members[usize::from(zone)].counters[n];
        match id {
            Some(_) => counter.count += 1,
            None => counter.failures += 1,
        }
        id.map(NewFlow::Mapped).ok_or(Refusal::Exhausted)
    }

    fn add(&mut self, key: Tuple4, mapping: Mapping, now: u64) -> Option<Id> {
        // A pattern without a range does not check whether its reply key is taken: as in Click, the
        // older mapping with that key is removed.
        if let Some((old, _)) = mapping.reply_key.and_then(|reply| self.flows.find(&reply)) {
            self.remove(old);
        }
        let config = &self.members[usize::from(key.zone())].config;
        let timeouts = *config.timeouts(is_tcp(config.kind, key.proto()));
        let timeout = timeouts.idle_timeout(0, false);
        let until = round_to_ms(now).saturating_add(timeout);
        if self.len() >= self.flows.limit() {
            // A new mapping without a guarantee is refused if it would be the first to expire.
            let (id, end) = self.next_eviction(now)?;
            if timeouts.guarantee == 0 && end > until {
                return None;
            }
            self.evict(id);
        }
        mapping.set_timeout(timeout, &timeouts);
        let id = self.flows.insert(key, mapping, until, now).ok()?;
        self.eviction.add(&mut self.flows, id, now);
        Some(id)
    }

    /// Returns the tuple that a member rewrites a flow to, and opens a mapping if there is none, as
    /// if a packet had come in on `input`. Replies get annotation `anno`.
    pub fn get_or_open(
        &mut self,
        zone: u16,
        input: usize,
        flow: Tuple4,
        anno: u8,
        now: u64,
        context: &mut ChoiceContext,
    ) -> Option<Tuple4> {
        let kind = self.members.get(usize::from(zone))?.config.kind;
        let flow = kind.flow_key(flow)?;
        let id = match self.flows.find(&flow.in_zone(zone)) {
            Some((id, _)) => id,
            None => match self.open_mapping(zone, input, flow, now, context).ok()? {
                NewFlow::Mapped(id) => id,
                NewFlow::Passed(_) => return None,
            },
        };
        self.flows.get_mut(id).anno = anno;
        Some(self.reply_key(id).reversed())
    }

    /// The mapping of a member's flow, and whether the flow is the reply direction.
    pub fn mapping(&mut self, zone: u16, flow: Tuple4) -> Option<(&mut Mapping, bool)> {
        let (id, back) = self.flows.find(&flow.in_zone(zone))?;
        Some((self.flows.get_mut(id), back))
    }

    /// The tuple that a member rewrites a flow to, if the flow has a mapping.
    pub fn lookup(&self, zone: u16, flow: Tuple4) -> Option<Tuple4> {
        let (id, back) = self.flows.find(&flow.in_zone(zone))?;
        Some(if back { *self.flows.key(id) } else { self.reply_key(id) }.reversed())
    }

    /// The key of a mapping's replies.
    fn reply_key(&self, id: Id) -> Tuple4 {
        self.flows.get(id).reply_key.unwrap_or(*self.flows.key(id))
    }
}

/// The result of opening a flow without a mapping.
enum NewFlow {
    Mapped(Id),
    Passed(u8),
}

/// Subtracts a removed mapping from its input's counter.
fn uncount(members: &mut [Member], (key, mapping): (Tuple4, Mapping)) {
    let member = members.get_mut(usize::from(key.zone()));
    let counter = member.and_then(|member| member.counters.get_mut(usize::from(mapping.input)));
    if let Some(counter) = counter {
        counter.count -= 1;
    }
}

impl Mapping {
    /// The annotation that replies get.
    pub fn reply_anno(&self) -> u8 {
        self.anno
    }
}
