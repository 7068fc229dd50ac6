//! Address and port translation between IPv6 packets: who stands for whom.

mod packet;
#[cfg(test)]
mod tests;

pub use packet::{Parties, parties, rewrite};

use std::collections::HashMap;
use std::net::Ipv6Addr;

use rapidhash::fast::RandomState;

/// An address and a port; an identifier where ICMPv6 has that instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The address.
    pub address: Ipv6Addr,
    /// The port, 0 where there is none.
    pub port: u16,
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the inner hosts: its source is translated.
    Outward = 0,
    /// To the inner hosts: its destination is translated.
    Inward = 1,
}

/// What is given out to those who have no static mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Nothing.
    Nothing,
    /// An address each.
    Addresses(Vec<Ipv6Addr>),
    /// A port of one address for each flow.
    Ports {
        /// The address.
        address: Ipv6Addr,
        /// The first port.
        low: u16,
        /// The last port.
        high: u16,
    },
}

/// Who stands for whom, as far as that is said beforehand.
#[derive(Clone, Debug)]
pub struct Plan {
    /// By way: from whom to whom; without a port for packets that have none, or that go by
    /// their address alone.
    fixed: [HashMap<(Ipv6Addr, Option<u16>), Endpoint, RandomState>; 2],
    by_port: bool,
    pool: Pool,
    allocates: Way,
    timeout: u64,
}

impl Plan {
    /// A plan with these static mappings, inner and outer, which go by address and port or by
    /// address alone. What is in the pool goes to packets of the way that allocates, and may go
    /// to others after `timeout` nanoseconds without a packet, once there is nothing else left.
    pub fn new(
        fixed: &[(Endpoint, Endpoint)],
        by_port: bool,
        pool: Pool,
        allocates: Way,
        timeout: u64,
    ) -> Plan {
        let mut maps = [HashMap::default(), HashMap::default()];
        for &(inner, outer) in fixed {
            for (map, from, to) in [(0, inner, outer), (1, outer, inner)] {
                let map: &mut HashMap<_, _, _> = &mut maps[map];
                map.entry((from.address, Some(from.port))).or_insert(to);
                map.entry((from.address, None)).or_insert(to);
            }
        }
        Plan { fixed: maps, by_port, pool, allocates, timeout }
    }

    /// Whether it gives out the same things to the same way as another: then what was given out
    /// under one has its meaning under the other.
    pub fn gives_as(&self, other: &Plan) -> bool {
        (&self.pool, self.allocates) == (&other.pool, other.allocates)
    }

    /// Who stands for the sender or receiver of a packet, by a static mapping.
    fn fixed(&self, way: Way, parties: &Parties) -> Option<Endpoint> {
        let Endpoint { address, port } = parties.local;
        let by_port = self.by_port && parties.has_ports;
        let key = (address, by_port.then_some(port));
        let to = self.fixed[way as usize].get(&key)?;
        Some(Endpoint { address: to.address, port: if by_port { to.port } else { port } })
    }
}

/// Why there is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nobody {
    /// No mapping says who, and the packet's way gets none from the pool.
    Unmapped,
    /// The pool has nothing left.
    Exhausted,
}

/// To whom something was given and, where ports are given, with whom they speak by which
/// protocol.
type Near = (Endpoint, Option<(Endpoint, u8)>);

/// What was given out.
#[derive(Debug, Default)]
pub struct Bindings {
    slots: Vec<Slot>,
    by_near: HashMap<Near, usize, RandomState>,
    /// The slots of addresses.
    by_address: HashMap<Ipv6Addr, usize, RandomState>,
    /// Until when there is nothing to be taken back.
    full_until: u64,
}

#[derive(Debug)]
struct Slot {
    near: Endpoint,
    remote: Option<(Endpoint, u8)>,
    used: u64,
}

impl Bindings {
    /// How many addresses or ports are given out.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Who stands for the sender of an outward packet or the receiver of an inward one.
    pub fn translate(
        &mut self,
        plan: &Plan,
        way: Way,
        parties: &Parties,
        now: u64,
    ) -> Result<Endpoint, Nobody> {
        if let Some(endpoint) = plan.fixed(way, parties) {
            return Ok(endpoint);
        }
        if way == plan.allocates {
            self.near(plan, parties, now)
        } else {
            self.pooled(plan, parties, now).ok_or(Nobody::Unmapped)
        }
    }

    /// What stands for somebody of the way that allocates.
    fn near(&mut self, plan: &Plan, parties: &Parties, now: u64) -> Result<Endpoint, Nobody> {
        let key = match plan.pool {
            Pool::Nothing => return Err(Nobody::Unmapped),
            Pool::Addresses(_) => (Endpoint { port: 0, ..parties.local }, None),
            // Where ports are given out, only what has one can be told apart.
            Pool::Ports { .. } if !parties.has_ports && !parties.has_id => {
                return Err(Nobody::Unmapped);
            }
            Pool::Ports { .. } => (parties.local, Some((parties.remote, parties.protocol))),
        };
        let at = match self.by_near.get(&key) {
            Some(&at) => at,
            None => {
                let at = self.free(plan, now).ok_or(Nobody::Exhausted)?;
                self.give(plan, at, key, now);
                at
            }
        };
        self.slots[at].used = now;
        Ok(match &plan.pool {
            Pool::Addresses(pool) => Endpoint { address: pool[at], port: parties.local.port },
            Pool::Ports { address, low, .. } => {
                Endpoint { address: *address, port: low + at as u16 }
            }
            Pool::Nothing => return Err(Nobody::Unmapped),
        })
    }

    /// Who was given what a packet of the other way is to or from.
    fn pooled(&mut self, plan: &Plan, parties: &Parties, now: u64) -> Option<Endpoint> {
        let Endpoint { address, port } = parties.local;
        let at = match &plan.pool {
            Pool::Nothing => return None,
            Pool::Addresses(_) => *self.by_address.get(&address)?,
            Pool::Ports { address: ours, low, .. } => {
                usize::from(port.checked_sub(*low).filter(|_| address == *ours)?)
            }
        };
        let slot = self.slots.get_mut(at)?;
        if slot.remote.is_some_and(|remote| remote != (parties.remote, parties.protocol)) {
            return None;
        }
        slot.used = now;
        let port = if slot.remote.is_some() { slot.near.port } else { port };
        Some(Endpoint { address: slot.near.address, port })
    }

    /// A slot that may be given out: a new one, or the one unused for longest.
    fn free(&mut self, plan: &Plan, now: u64) -> Option<usize> {
        let most = match &plan.pool {
            Pool::Nothing => 0,
            Pool::Addresses(pool) => pool.len(),
            Pool::Ports { low, high, .. } => usize::from(high - low) + 1,
        };
        if self.slots.len() < most {
            return Some(self.slots.len());
        }
        if now < self.full_until {
            return None;
        }
        let (at, oldest) = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.used)?;
        let until = oldest.used.saturating_add(plan.timeout);
        if now < until {
            // Nobody looks through all of them again before that.
            self.full_until = until;
            return None;
        }
        Some(at)
    }

    fn give(&mut self, plan: &Plan, at: usize, key: Near, now: u64) {
        let slot = Slot { near: key.0, remote: key.1, used: now };
        match self.slots.get_mut(at) {
            Some(place) => {
                let old = std::mem::replace(place, slot);
                self.by_near.remove(&(old.near, old.remote));
            }
            None => self.slots.push(slot),
        }
        self.by_near.insert(key, at);
        if let Pool::Addresses(pool) = &plan.pool {
            self.by_address.insert(pool[at], at);
        }
    }
}
