//! Network address and port translation: which flow becomes which, for how long, and who chooses.
//!
//! A [`Table`] keeps the mappings of one rewriter, or of several that share a capacity: each is a
//! member, whose flows are in a zone of their own. A mapping is one flow of [`crate::flow`],
//! found by what its packets look like on either side.

mod by;
mod ftp;
mod icmp;
mod input;
mod mapper;
mod mapping;
mod order;
mod pass;
mod pattern;
mod shifts;
mod show;
#[cfg(test)]
mod tests;

pub use by::By;
pub use ftp::{Command, command, replace};
pub use icmp::{Quote, Restored, quote, restore};
pub use input::{Element, Input, Named, Wrong, way};
pub use mapper::{Mapper, Ring, Way};
pub use mapping::{Lives, Mapping};
pub use pattern::{Pattern, Turn};

use crate::flow::{Counts, Flows, Id, Slot, Tuple4};
use mapping::{is_tcp, whole};
use order::Order;
use std::net::Ipv4Addr;

/// The outputs of a flow's packets and of their replies.
pub type Outputs = [u8; 2];

/// The largest capacity.
pub const MOST: u32 = i32::MAX as u32;

/// The capacity of who says nothing of it: a flood then takes no more than some 120 MB.
pub const CAPACITY: u32 = 1 << 20;

/// What a member does with its packets.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What it goes by.
    pub by: By,
    /// How long mappings of TCP live, where these are told from others, and all others.
    pub lives: [Lives; 2],
    /// What becomes of packets without a mapping, by input.
    pub inputs: Vec<Input>,
    /// What else these say: the arguments of whom they name.
    pub named: Vec<String>,
}

impl Rules {
    fn lives(&self, is_tcp: bool) -> &Lives {
        &self.lives[usize::from(!is_tcp)]
    }
}

/// One input's mappings.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: u64,
    failures: u64,
}

/// One rewriter.
#[derive(Debug)]
struct Member {
    name: String,
    rules: Rules,
    tallies: Vec<Tally>,
}

/// Mappings.
#[derive(Default)]
pub struct Table {
    flows: Option<Flows<Mapping>>,
    members: Vec<Member>,
    capacity: Option<u32>,
    order: Order,
    /// How often one has gone.
    removals: u64,
    exhausted: Option<Exhausted>,
}

/// For whom there was nothing left, and there is not until a mapping goes: who scans ports must
/// not have each of his packets look through all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Exhausted {
    member: (u16, usize),
    /// The sender, if its address stays, and where it goes.
    flow: (Option<Ipv4Addr>, (Ipv4Addr, u16), u8),
    removals: u64,
}

/// Why a packet goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No mapping is for it, and none is made.
    Unmapped,
    /// There is nothing left that it could become, or no room for a mapping.
    Exhausted,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It was left as it is.
    Untouched(u8),
    /// It was rewritten.
    Rewritten {
        /// Where it goes.
        output: u8,
        /// Its destination, if the rewriter goes by that.
        dst: Option<Ipv4Addr>,
        /// The annotation that replies get.
        anno: Option<u8>,
    },
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Where it came in.
    pub input: usize,
    /// Its key; see [`By::key`].
    pub key: Tuple4,
    /// Whether it may begin a flow.
    pub begins: bool,
    /// What [`Table::find_all`] found.
    pub found: Slot,
    /// The annotation that replies to it would get.
    pub anno: u8,
    /// The time.
    pub now: u64,
}

impl Table {
    /// Makes a rewriter with so many outputs a member, under a name of its own; its zone. Who
    /// was one by that name before goes on with the mappings that it had.
    pub fn join(&mut self, name: &str, rules: Rules, outputs: usize, now: u64) -> u16 {
        if let Some(zone) = self.zone(name) {
            self.set_rules(zone, rules, outputs);
            return zone;
        }
        let tallies = vec![Tally::default(); rules.inputs.len()];
        self.members.push(Member { name: name.to_owned(), rules, tallies });
        if self.flows.is_none() {
            let capacity = self.capacity.unwrap_or(CAPACITY);
            self.flows = Some(Flows::new(capacity as usize, now));
        }
        (self.members.len() - 1) as u16
    }

    /// The zone of the member of this name.
    pub fn zone(&self, name: &str) -> Option<u16> {
        self.members.iter().position(|member| member.name == name).map(|zone| zone as u16)
    }

    /// Gives a member other rules, under which its mappings stay, as far as they have their
    /// inputs and outputs.
    pub fn set_rules(&mut self, zone: u16, rules: Rules, outputs: usize) {
        let Some(member) = self.members.get_mut(usize::from(zone)) else { return };
        let inputs = rules.inputs.len();
        member.tallies.resize(inputs.max(member.tallies.len()), Tally::default());
        member.rules = rules;
        self.remove_where(|key, mapping| {
            let exists = mapping.outputs.iter().all(|&output| usize::from(output) < outputs);
            key.zone() == zone && (usize::from(mapping.input) >= inputs || !exists)
        });
        self.members[usize::from(zone)].tallies.truncate(inputs);
    }

    /// The same, if they are other than those that it has because they name others.
    pub fn hear(&mut self, zone: u16, rules: &Rules, outputs: usize) {
        let member = self.members.get(usize::from(zone));
        if member.is_some_and(|member| member.rules.named != rules.named) {
            self.set_rules(zone, rules.clone(), outputs);
        }
    }

    /// Sets what becomes of packets on one input, whose mappings go.
    pub fn set_input(&mut self, zone: u16, n: usize, input: Input) {
        self.remove_where(|key, mapping| key.zone() == zone && usize::from(mapping.input) == n);
        let member = self.members.get_mut(usize::from(zone));
        if let Some(slot) = member.and_then(|member| member.rules.inputs.get_mut(n)) {
            *slot = input;
        }
    }

    /// Sets how many mappings there may be; others go, those first that would anyway.
    pub fn set_capacity(&mut self, capacity: u32) {
        self.capacity = Some(capacity);
        let Some(flows) = &mut self.flows else { return };
        flows.set_limit(capacity as usize);
        while self.len() > capacity as usize {
            // No guarantee holds for ever.
            let Some((id, _)) = self.first_to_go(u64::MAX) else { return };
            self.displace(id);
        }
    }

    /// How many mappings there may be.
    pub fn capacity(&self) -> u32 {
        self.capacity.unwrap_or(CAPACITY)
    }

    /// How many mappings there are, of all members.
    pub fn len(&self) -> usize {
        self.flows.as_ref().map_or(0, Flows::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many mappings a member has, and how many it could not make.
    pub fn counts(&self, zone: u16) -> (u64, u64) {
        let tallies = self.members.get(usize::from(zone)).map_or(&[][..], |it| &it.tallies);
        tallies.iter().fold((0, 0), |sum, it| (sum.0 + it.count, sum.1 + it.failures))
    }

    /// What became of mappings, of all members; those that other mappings replaced and those
    /// that were cleared have gone too, but are not among these.
    pub fn events(&self) -> Counts {
        let counts = self.flows.as_ref().map(Flows::counts).unwrap_or_default();
        let refused = self.members.iter().flat_map(|it| &it.tallies).map(|it| it.failures).sum();
        Counts { refused, ..counts }
    }

    /// How many mappings ended otherwise than by their time or for others.
    pub fn removed(&self) -> u64 {
        let Counts { expired, evicted, .. } = self.events();
        self.removals - expired - evicted
    }

    /// Ends all mappings, of all members.
    pub fn clear(&mut self) {
        self.remove_where(|_, _| true);
    }

    /// Whether there may be mappings whose time is over.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.flows.as_ref().is_some_and(|flows| flows.is_due(now))
    }

    /// Ends mappings whose time is over, looking at `most` of them.
    pub fn expire(&mut self, now: u64, most: usize) -> bool {
        let Table { flows: Some(flows), members, removals, .. } = self else {
            return true;
        };
        flows.expire(now, most, |key, mapping| {
            *removals += 1;
            forget(members, &key, &mapping);
        })
    }

    /// Whether the time of a mapping is over, which then ends.
    fn is_overdue(&mut self, id: Id, now: u64) -> bool {
        let over = self.flows.as_mut().and_then(|flows| flows.overdue(id, now));
        let Some((key, mapping)) = over else { return false };
        self.removals += 1;
        forget(&mut self.members, &key, &mapping);
        true
    }

    /// Looks up the keys of a burst, as [`Flows::find_all`].
    pub fn find_all(&self, keys: &[Tuple4], found: &mut [Slot]) {
        match &self.flows {
            Some(flows) => flows.find_all(keys, found),
            None => found.fill(Slot::NONE),
        }
    }

    /// Looks up one key, as [`Table::find_all`] does.
    pub fn at(&self, key: &Tuple4) -> Slot {
        let mut found = [Slot::NONE];
        self.find_all(std::slice::from_ref(key), &mut found);
        found[0]
    }

    fn find(&self, key: &Tuple4) -> Option<(Id, bool)> {
        self.flows.as_ref()?.find(key)
    }

    fn iter(&self) -> impl Iterator<Item = (Id, &Tuple4, &Mapping)> {
        self.flows.iter().flat_map(Flows::iter)
    }

    fn remove(&mut self, id: Id) {
        if let Some(flows) = &mut self.flows {
            let (key, mapping) = flows.remove(id);
            self.removals += 1;
            forget(&mut self.members, &key, &mapping);
        }
    }

    fn remove_where(&mut self, goes: impl Fn(&Tuple4, &Mapping) -> bool) {
        let going = self.iter().filter(|(_, key, mapping)| goes(key, mapping));
        let ids: Vec<Id> = going.map(|(id, ..)| id).collect();
        ids.into_iter().for_each(|id| self.remove(id));
    }

    /// The mapping that makes room for others first, and when it would end.
    fn first_to_go(&mut self, now: u64) -> Option<(Id, u64)> {
        let flows = self.flows.as_mut()?;
        let id = self.order.first(flows, now)?;
        Some((id, flows.ends(id)))
    }

    fn displace(&mut self, id: Id) {
        if let Some(flows) = &mut self.flows {
            let (key, mapping) = flows.displace(id);
            self.removals += 1;
            forget(&mut self.members, &key, &mapping);
        }
    }

    fn anno(&mut self, id: Id, anno: u8) {
        if let Some(flows) = &mut self.flows {
            flows.get_mut(id).anno = anno;
        }
    }

    /// Makes a mapping as if the first packet of a flow had come in on an input.
    fn open(
        &mut self,
        zone: u16,
        n: usize,
        flow: Tuple4,
        now: u64,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<Opened, Refusal> {
        let member = &self.members[usize::from(zone)];
        let (by, input) = (member.rules.by, member.rules.inputs.get(n).ok_or(Refusal::Unmapped)?);
        let taken = |reply: &Tuple4| self.find(&reply.in_zone(zone)).is_some();
        let chosen = match input {
            Input::Drop => return Err(Refusal::Unmapped),
            Input::Pass(output) => return Ok(Opened::Passes(*output)),
            Input::Keep(outputs) => Some((flow, *outputs)),
            Input::Pattern(pattern, outputs) => {
                let src = pattern.keeps_src().then_some(flow.src().0);
                let flow_to = (src, flow.dst(), flow.proto());
                let (member, removals) = ((zone, n), self.removals);
                let exhausted = Exhausted { member, flow: flow_to, removals };
                let all_taken = self.exhausted == Some(exhausted);
                let to = match all_taken {
                    true => None,
                    false => pattern.rewrite(flow, taken, random),
                };
                self.exhausted = if to.is_none() { Some(exhausted) } else { self.exhausted };
                to.map(|to| (to, *outputs))
            }
            Input::Mapper(mapper) => mapper.rewrite(flow, taken, random),
        };
        let id = chosen.and_then(|(to, outputs)| {
            let mut mapping = Mapping::new(by, flow, to, outputs, n as u16);
            let (key, reply) = (flow.in_zone(zone), to.reversed().in_zone(zone));
            mapping.back = (reply != key).then_some(reply);
            self.add(key, mapping, now)
        });
        let tally = &mut self.members[usize::from(zone)].tallies[n];
        match id {
            Some(_) => tally.count += 1,
            None => tally.failures += 1,
        }
        id.map(Opened::As).ok_or(Refusal::Exhausted)
    }

    fn add(&mut self, key: Tuple4, mapping: Mapping, now: u64) -> Option<Id> {
        // Who has the same replies goes, as in Click: what is fixed does not ask.
        if let Some((old, _)) = mapping.back.and_then(|reply| self.find(&reply)) {
            self.remove(old);
        }
        let rules = &self.members[usize::from(key.zone())].rules;
        let lives = *rules.lives(is_tcp(rules.by, key.proto()));
        let life = lives.of(0, false);
        let until = whole(now).saturating_add(life);
        if self.len() >= self.capacity() as usize {
            // A newcomer without a guarantee may itself be the one that ends first.
            let (id, end) = self.first_to_go(now)?;
            if lives.guarantee == 0 && end > until {
                return None;
            }
            self.displace(id);
        }
        mapping.set_life(life, &lives);
        let capacity = self.capacity();
        let flows = self.flows.as_mut()?;
        let id = flows.insert(key, mapping, until, |_| false).ok()?;
        self.order.add(flows, id, now, capacity as usize);
        Some(id)
    }

    /// What a flow of a member becomes, as if a packet of it had come in on an input; with the
    /// annotation that replies get.
    pub fn expect(
        &mut self,
        zone: u16,
        input: usize,
        flow: Tuple4,
        anno: u8,
        now: u64,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Tuple4> {
        let by = self.members.get(usize::from(zone))?.rules.by;
        let flow = by.of(flow)?;
        let id = match self.find(&flow.in_zone(zone)) {
            Some((id, _)) => id,
            None => match self.open(zone, input, flow, now, random).ok()? {
                Opened::As(id) => id,
                Opened::Passes(_) => return None,
            },
        };
        self.anno(id, anno);
        let flows = self.flows.as_ref()?;
        let reply = flows.get(id).back.unwrap_or(*flows.key(id));
        Some(reply.reversed())
    }

    /// The mapping of a flow of a member, and whether the flow is that of its replies.
    pub fn mapping(&mut self, zone: u16, flow: Tuple4) -> Option<(&mut Mapping, bool)> {
        let (id, back) = self.find(&flow.in_zone(zone))?;
        Some((self.flows.as_mut()?.get_mut(id), back))
    }

    /// What a flow of a member is rewritten to now.
    pub fn lookup(&self, zone: u16, flow: Tuple4) -> Option<Tuple4> {
        let (id, back) = self.find(&flow.in_zone(zone))?;
        let flows = self.flows.as_ref()?;
        let key = *flows.key(id);
        Some(if back { key } else { flows.get(id).back.unwrap_or(key) }.reversed())
    }
}

/// What came of a flow without a mapping.
enum Opened {
    As(Id),
    Passes(u8),
}

/// Takes a mapping that has gone off its member's count.
fn forget(members: &mut [Member], key: &Tuple4, mapping: &Mapping) {
    let member = members.get_mut(usize::from(key.zone()));
    let tally = member.and_then(|member| member.tallies.get_mut(usize::from(mapping.input)));
    if let Some(tally) = tally {
        tally.count -= 1;
    }
}

impl Mapping {
    /// The annotation that replies get.
    pub fn reply_anno(&self) -> u8 {
        self.anno
    }
}
