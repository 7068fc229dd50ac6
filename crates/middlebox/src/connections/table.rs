//! The table of connections: which one a packet belongs to, and how one begins.

use super::fragments::Fragments;
use super::key::Ends;
use super::mapping::{Direction, Mapped, Shifts};
use super::tracked::Tracked;
use crate::field::Layer;
use crate::headers::Headers;
use crate::rewrite::{End, Plan};
use crate::rules::{Entry, Rules, Timeouts};
use crate::value::{Value, mask4, mask6};
use castanet_kit::flow::{Counts, Flows, Id, Tuple6};
use castanet_wire::{Icmp, icmp, icmp6, ip_proto};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// How many that are over are looked at for each burst, at the most.
const EXPIRE: usize = 64;
/// How many ports are tried before there is none.
const TRIES: u32 = 1024;
/// The first port that is given to connections.
const FIRST_PORT: u16 = 1024;

/// Lists of rules, each once: connections of the same rules share one.
#[derive(Default)]
struct Lists {
    numbers: HashMap<Box<[u32]>, u32>,
    lists: Vec<Box<[u32]>>,
}

impl Lists {
    /// The number of a list of slots.
    fn number(&mut self, slots: &[u32]) -> u32 {
        if let Some(number) = self.numbers.get(slots) {
            return *number;
        }
        let number = self.lists.len() as u32;
        self.numbers.insert(slots.into(), number);
        self.lists.push(slots.into());
        number
    }

    fn slots(&self, number: u32) -> &[u32] {
        self.lists.get(number as usize).map_or(&[], |list| list)
    }
}

/// Connections, up to a limit.
pub(crate) struct Connections {
    flows: Option<Flows<Tracked>>,
    fragments: Fragments,
    lists: Lists,
    slots: Vec<u32>,
    pub(crate) limit: usize,
}

impl Default for Connections {
    fn default() -> Self {
        let (fragments, lists, slots) = Default::default();
        Connections { flows: None, fragments, lists, slots, limit: usize::MAX }
    }
}

/// The connection of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    list: u32,
    since: u64,
    /// What becomes of the packet.
    pub(crate) mapped: Mapped,
}

/// How it ended when a connection was to begin.
pub(crate) enum Fresh {
    /// It began.
    Begun(Found),
    /// There is no room for it.
    Full,
    /// There is no port for it.
    NoPort,
}

impl Connections {
    fn flows(&mut self, now: u64) -> &mut Flows<Tracked> {
        let limit = self.limit;
        self.flows.get_or_insert_with(|| Flows::new(limit, now))
    }

    /// The table, if there was ever a connection.
    pub(super) fn table(&self) -> Option<&Flows<Tracked>> {
        self.flows.as_ref()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.flows.as_ref().map_or(0, Flows::len)
    }

    /// What became of them.
    pub(crate) fn counts(&self) -> Counts {
        self.flows.as_ref().map(Flows::counts).unwrap_or_default()
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Connections { limit: self.limit, ..Connections::default() };
    }

    /// Goes on under other rules: connections keep those that are still there, in
    /// other slots.
    pub(crate) fn adopt(&mut self, before: &Rules, now: &Rules) {
        let Connections { flows: Some(flows), lists, .. } = self else { return };
        let old = std::mem::take(lists);
        let counterparts = before.counterparts(now);
        let ids: Vec<Id> = flows.iter().map(|(id, _, _)| id).collect();
        let mut slots = Vec::new();
        for id in ids {
            let tracked = flows.get_mut(id);
            let own = old.slots(tracked.list).iter().map(|&slot| slot as usize);
            let own = own.filter(|&slot| before.in_slot(slot, tracked.since).is_some());
            slots.clear();
            slots.extend(own.filter_map(|slot| counterparts[slot]).map(|entry| entry.slot as u32));
            (tracked.list, tracked.since) = (lists.number(&slots), now.last_id());
        }
    }

    /// Sets how many there may be.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        if let Some(flows) = &mut self.flows {
            flows.set_limit(limit);
        }
    }

    /// Forgets some that are over.
    pub(crate) fn expire(&mut self, now: u64) {
        self.forget(now, EXPIRE);
        self.fragments.expire(now, EXPIRE);
    }

    /// Forgets connections that are over, looking at `most` at the most. Whether there are no
    /// more of them.
    pub(crate) fn forget(&mut self, now: u64, most: usize) -> bool {
        self.flows.as_mut().is_none_or(|flows| flows.expire(now, most, |_, _| ()))
    }

    /// The same, of one in the table.
    pub(super) fn rules_of<'a>(
        &'a self,
        tracked: &Tracked,
        rules: &'a Rules,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + 'a {
        let since = tracked.since;
        let slots = self.lists.slots(tracked.list).iter();
        slots.filter_map(move |&slot| rules.in_slot(slot as usize, since))
    }

    /// The rules of a connection, as far as they are still there.
    pub(crate) fn rules<'a>(
        &'a self,
        found: &Found,
        rules: &'a Rules,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + Clone + 'a {
        let since = found.since;
        let slots = self.lists.slots(found.list).iter();
        slots.filter_map(move |&slot| rules.in_slot(slot as usize, since))
    }

    /// The ends of a packet, and the packet that an ICMP error quotes; nothing, if
    /// it belongs to no connection of any kind.
    fn ends(&mut self, bytes: &[u8], headers: &Headers, now: u64) -> Option<(Ends, Option<usize>)> {
        if let Some(at) = quoted(bytes, headers) {
            let inner = Headers::of(bytes.get(..headers.end)?, at)?;
            let ends = Ends::of_packet(&bytes[..headers.end], &inner)?;
            return Some((ends, Some(at)));
        }
        let ends = Ends::of_packet(bytes, headers)?;
        Some((self.fragments.complete(ends, headers, now)?, None))
    }

    /// The connection that a packet belongs to, whose rules are not all gone.
    pub(crate) fn find(
        &mut self,
        bytes: &[u8],
        headers: &Headers,
        rules: &Rules,
        now: u64,
    ) -> Option<Found> {
        self.flows.as_ref()?;
        let (ends, quoted) = self.ends(bytes, headers, now)?;
        let (key, swapped) = ends.tuple().ordered();
        let (id, is_second) = self.flows.as_ref()?.find(&key)?;
        if self.flows(now).overdue(id, now).is_some() {
            return None;
        }
        let found = self.found(id, is_second, swapped, quoted)?;
        if self.rules(&found, rules).next().is_none() {
            self.flows(now).remove(id);
            return None;
        }
        // An error is no sign of life.
        if quoted.is_none() {
            let flags = headers.tcp_flags(bytes);
            self.keep(id, found.mapped.direction, flags, ends.proto, &rules.timeouts, now);
        }
        Some(found)
    }

    fn keep(
        &mut self,
        id: Id,
        direction: Direction,
        tcp_flags: u8,
        proto: u8,
        timeouts: &Timeouts,
        now: u64,
    ) {
        let Some(flows) = &mut self.flows else { return };
        flows.get_mut(id).see(direction, tcp_flags);
        let timeout = flows.get(id).timeout(proto, timeouts);
        flows.keep(id, now + timeout);
    }

    /// What becomes of a packet of a connection, found by its second key or not, in
    /// this order of ends.
    fn found(
        &self,
        id: Id,
        is_second: bool,
        swapped: bool,
        quoted: Option<usize>,
    ) -> Option<Found> {
        let flows = self.flows.as_ref()?;
        let tracked = flows.get(id);
        let quotes = tracked.direction(is_second, swapped);
        let (from, to) = tracked.ends(flows.key(id));
        let is_mapped = from != to;
        // What is quoted went the other way than what quotes it.
        let (direction, ends) = match (quoted, quotes, is_second) {
            (None, Direction::Forward, false) => (Direction::Forward, (from, to)),
            (None, Direction::Forward, true) => (Direction::Forward, (to, to)),
            (None, Direction::Reverse, true) => {
                (Direction::Reverse, (to.reversed(), from.reversed()))
            }
            (None, Direction::Reverse, false) => {
                (Direction::Reverse, (from.reversed(), from.reversed()))
            }
            (Some(_), Direction::Forward, true) => (Direction::Reverse, (to, from)),
            (Some(_), Direction::Forward, false) => (Direction::Reverse, (from, from)),
            (Some(_), Direction::Reverse, false) => {
                (Direction::Forward, (from.reversed(), to.reversed()))
            }
            (Some(_), Direction::Reverse, true) => {
                (Direction::Forward, (to.reversed(), to.reversed()))
            }
        };
        // Where ends are mapped, numbers are shifted with them.
        let passes = is_mapped && ends.0 == ends.1;
        let shifts = if passes { Shifts::default() } else { tracked.shifts };
        let mapped = Mapped { direction, ends, shifts, quoted };
        Some(Found { list: tracked.list, since: tracked.since, mapped })
    }

    /// Begins the connection of a packet that these stateful rules are about, and
    /// that belongs to none; nothing, if it cannot belong to any.
    pub(crate) fn begin<'r>(
        &mut self,
        (bytes, headers): (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>> + Clone,
        rules: &Rules,
        random: impl FnMut() -> u64,
        now: u64,
    ) -> Option<Fresh> {
        let (ends, quoted) = self.ends(bytes, headers, now)?;
        if quoted.is_some() || headers.is_later_fragment {
            return None;
        }
        self.slots.clear();
        self.slots.extend(entries.clone().map(|entry| entry.slot as u32));
        let list = self.lists.number(&self.slots);
        let mut wish = Wish::new(ends, random);
        entries.for_each(|entry| wish.follow(&entry.plan));
        let flows = self.flows(now);
        if !wish.settle(|key| flows.find(key).is_some()) {
            return Some(Fresh::NoPort);
        }
        let (key, mut tracked) = Tracked::new(&ends, &wish.ends);
        (tracked.list, tracked.since) = (list, rules.last_id());
        tracked.shifts = wish.shifts;
        tracked.see(Direction::Forward, headers.tcp_flags(bytes));
        let until = now + tracked.timeout(ends.proto, &rules.timeouts);
        let swapped = ends.tuple().ordered().1;
        let Ok(id) = flows.insert(key, tracked, until, Tracked::may_go) else {
            return Some(Fresh::Full);
        };
        self.found(id, false, swapped, None).map(Fresh::Begun)
    }
}

/// Where the packet begins that an ICMP error quotes.
fn quoted(bytes: &[u8], headers: &Headers) -> Option<usize> {
    if headers.is_later_fragment || !matches!(headers.upper, Layer::Icmp | Layer::Icmp6) {
        return None;
    }
    let (message, _) = Icmp::from_prefix(bytes.get(headers.transport..)?)?;
    let is_error = match headers.is_ip6 {
        false => icmp::is_error(message.kind()),
        true => icmp6::is_error(message.kind()),
    };
    is_error.then_some(headers.transport + Icmp::LEN)
}

/// What the ends of a new connection are to become.
struct Wish<R> {
    from: Ends,
    ends: Ends,
    shifts: Shifts,
    /// Which ports, source and destination, may be any.
    free: [bool; 2],
    random: R,
}

impl<R: FnMut() -> u64> Wish<R> {
    fn new(from: Ends, random: R) -> Wish<R> {
        Wish { from, ends: from, shifts: Shifts::default(), free: [false; 2], random }
    }

    /// What a rule wishes.
    fn follow(&mut self, plan: &Plan) {
        for turn in &plan.turns {
            match &turn.value {
                _ if !self.has(turn.layer) => {}
                Some(value) => self.set(turn.end, value),
                None => self.shuffle(turn.end),
            }
        }
    }

    fn has(&self, layer: Layer) -> bool {
        match layer {
            Layer::Ip4 => !self.from.is_ip6,
            Layer::Ip6 => self.from.is_ip6,
            Layer::Tcp => self.from.proto == ip_proto::TCP,
            Layer::Udp => self.from.proto == ip_proto::UDP,
            _ => false,
        }
    }

    fn set(&mut self, end: End, value: &Value) {
        let number = match value {
            Value::Number(n) => *n,
            _ => 0,
        };
        match end {
            End::Src => self.ends.src.0 = moved(self.ends.src.0, value),
            End::Dst => self.ends.dst.0 = moved(self.ends.dst.0, value),
            End::SrcPort => (self.ends.src.1, self.free[0]) = (number as u16, false),
            End::DstPort => (self.ends.dst.1, self.free[1]) = (number as u16, false),
            End::Id => self.shifts.fixed_id = Some(number as u16),
            End::Label => self.shifts.label = Some(number as u32),
            End::Seq | End::Ack | End::Sack => {}
        }
    }

    fn shuffle(&mut self, end: End) {
        let random = (self.random)();
        match end {
            End::SrcPort => self.free[0] = true,
            End::DstPort => self.free[1] = true,
            End::Id => (self.shifts.id, self.shifts.fixed_id) = (random as u16, None),
            End::Label => self.shifts.label = Some(random as u32 & 0xf_ffff),
            End::Seq => self.shifts.seq = random as u32,
            End::Ack => self.shifts.ack = random as u32,
            // They follow sequence numbers by themselves.
            End::Sack | End::Src | End::Dst => {}
        }
    }

    /// Sees to it that nobody else has these ends: by other ports where they are
    /// free, or where somebody has them. Whether there are some.
    fn settle(&mut self, mut taken: impl FnMut(&Tuple6) -> bool) -> bool {
        let from = self.from.tuple().ordered().0;
        let mut is_free = |ends: &Ends| {
            let key = ends.tuple().ordered().0;
            key == from || !taken(&key)
        };
        if self.free == [false; 2] {
            if self.ends == self.from || is_free(&self.ends) {
                return true;
            }
            self.free[0] = has_ports(self.from.proto);
        }
        if self.free == [false; 2] {
            return false;
        }
        let (mut at, step) = ((self.random)() as u32, (self.random)() as u32 | 1);
        for _ in 0..TRIES {
            at = at.wrapping_add(step);
            self.choose(at);
            if is_free(&self.ends) {
                return true;
            }
        }
        false
    }

    /// Chooses ports by a number.
    fn choose(&mut self, number: u32) {
        let count = u32::from(u16::MAX - FIRST_PORT) + 1;
        let port = FIRST_PORT + (number % count) as u16;
        // An identifier of ICMP stands for both.
        let is_icmp = matches!(self.from.proto, ip_proto::ICMP | ip_proto::ICMPV6);
        if self.free[0] || is_icmp {
            self.ends.src.1 = port;
        }
        if self.free[1] && !self.free[0] || is_icmp {
            self.ends.dst.1 = port;
        } else if self.free[1] {
            self.ends.dst.1 = FIRST_PORT + ((number / count) % count) as u16;
        }
    }
}

fn has_ports(proto: u8) -> bool {
    use ip_proto::{ICMP, ICMPV6, TCP, UDP};
    matches!(proto, TCP | UDP | ICMP | ICMPV6)
}

/// An address with a prefix put in.
fn moved(address: IpAddr, value: &Value) -> IpAddr {
    match (address, value) {
        (IpAddr::V4(old), Value::Net4 { address, length }) => {
            IpAddr::V4((old.to_bits() & !mask4(*length) | address).into())
        }
        (IpAddr::V6(old), Value::Net6 { address, length }) => {
            IpAddr::V6((old.to_bits() & !mask6(*length) | address).into())
        }
        (address, _) => address,
    }
}
