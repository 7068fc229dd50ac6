//! Network address and port translation between IPv6 addresses: static mappings and pools.

mod packet;
#[cfg(test)]
mod tests;

pub use packet::{Endpoints, parse_endpoints, rewrite};

use std::collections::HashMap;
use std::net::Ipv6Addr;

use rapidhash::fast::RandomState;
use serde::{Deserialize, Serialize};

/// An address and a port, or an ICMPv6 identifier in place of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// The address.
    pub address: Ipv6Addr,
    /// The port; 0 if there is none.
    pub port: u16,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the inner hosts: the source is translated.
    Outward = 0,
    /// To the inner hosts: the destination is translated.
    Inward = 1,
}

/// The addresses or ports for flows without a static mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pool {
    /// There is none.
    None,
    /// One address for each inner host.
    Addresses(Vec<Ipv6Addr>),
    /// One port of a single address for each flow.
    Ports {
        /// The address.
        address: Ipv6Addr,
        /// The first port.
        low: u16,
        /// The last port.
        high: u16,
    },
}

impl Pool {
    /// How many addresses or ports there are.
    fn len(&self) -> usize {
        match self {
            Pool::None => 0,
            Pool::Addresses(pool) => pool.len(),
            Pool::Ports { low, high, .. } => usize::from(high - low) + 1,
        }
    }
}

/// The configuration of a translator: static mappings and a pool.
#[derive(Clone, Debug)]
pub struct Config {
    /// Static mappings by direction. Keys without a port serve packets without ports and mappings
    /// by address alone.
    fixed: [HashMap<(Ipv6Addr, Option<u16>), Endpoint, RandomState>; 2],
    by_port: bool,
    pool: Pool,
    allocating: Direction,
    timeout: u64,
}

impl Config {
    /// A configuration with these static mappings (inner, outer), by address and port or by address
    /// alone. Packets in direction `allocating` open bindings of the pool. A binding may be reused
    /// after `timeout` nanoseconds without a packet, once the pool is exhausted.
    pub fn new(
        fixed: &[(Endpoint, Endpoint)],
        by_port: bool,
        pool: Pool,
        allocating: Direction,
        timeout: u64,
    ) -> Config {
        let mut maps = [HashMap::default(), HashMap::default()];
        for &(inner, outer) in fixed {
            for (map, from, to) in [(0, inner, outer), (1, outer, inner)] {
                let map: &mut HashMap<_, _, _> = &mut maps[map];
                map.entry((from.address, Some(from.port))).or_insert(to);
                map.entry((from.address, None)).or_insert(to);
            }
        }
        Config { fixed: maps, by_port, pool, allocating, timeout }
    }

    /// Whether another configuration has the same pool for the same direction, so that bindings of
    /// the one are valid in the other.
    pub fn has_same_pool(&self, other: &Config) -> bool {
        (&self.pool, self.allocating) == (&other.pool, other.allocating)
    }

    /// The static translation of a packet's local endpoint.
    fn fixed(&self, direction: Direction, endpoints: &Endpoints) -> Option<Endpoint> {
        let Endpoint { address, port } = endpoints.local;
        let by_port = self.by_port && endpoints.has_ports;
        let key = (address, by_port.then_some(port));
        let to = self.fixed[direction as usize].get(&key)?;
        Some(Endpoint { address: to.address, port: if by_port { to.port } else { port } })
    }
}

/// The reason why a packet has no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no static mapping, and the packet's direction opens no binding.
    Unmapped,
    /// The pool is exhausted.
    Exhausted,
}

/// The key of a binding: the local endpoint and, where the pool is one of ports, the remote
/// endpoint and the protocol.
pub type BindingKey = (Endpoint, Option<(Endpoint, u8)>);

/// How many bindings one part of an export covers.
const PART: usize = 256;

/// The bindings of a pool's addresses or ports to local endpoints.
#[derive(Debug, Default)]
pub struct Bindings {
    slots: Vec<Slot>,
    by_key: HashMap<BindingKey, usize, RandomState>,
    /// The slots of bound addresses.
    by_address: HashMap<Ipv6Addr, usize, RandomState>,
    /// The time before which no slot can be reused.
    full_until: u64,
}

#[derive(Debug)]
struct Slot {
    local: Endpoint,
    remote: Option<(Endpoint, u8)>,
    last_used: u64,
}

impl Bindings {
    /// How many addresses or ports are bound.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none are bound.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Translates the local endpoint: the sender of an outward packet or the receiver of an inward
    /// one.
    pub fn translate(
        &mut self,
        config: &Config,
        direction: Direction,
        endpoints: &Endpoints,
        now: u64,
    ) -> Result<Endpoint, Refusal> {
        if let Some(endpoint) = config.fixed(direction, endpoints) {
            return Ok(endpoint);
        }
        if direction == config.allocating {
            self.translate_allocating(config, endpoints, now)
        } else {
            self.translate_back(config, endpoints, now).ok_or(Refusal::Unmapped)
        }
    }

    /// Translates a packet of the allocating direction, and opens a binding if there is none.
    fn translate_allocating(
        &mut self,
        config: &Config,
        endpoints: &Endpoints,
        now: u64,
    ) -> Result<Endpoint, Refusal> {
        let key = match config.pool {
            Pool::None => return Err(Refusal::Unmapped),
            Pool::Addresses(_) => (Endpoint { port: 0, ..endpoints.local }, None),
            // In a pool of ports, packets without port or identifier cannot be told apart.
            Pool::Ports { .. } if !endpoints.has_ports && !endpoints.has_id => {
                return Err(Refusal::Unmapped);
            }
            Pool::Ports { .. } => (endpoints.local, Some((endpoints.remote, endpoints.protocol))),
        };
        let index = match self.by_key.get(&key) {
            Some(&index) => index,
            None => {
                let index = self.find_slot(config, now).ok_or(Refusal::Exhausted)?;
                self.bind(config, index, key, now);
                index
            }
        };
        self.slots[index].last_used = now;
        Ok(match &config.pool {
            Pool::Addresses(pool) => Endpoint { address: pool[index], port: endpoints.local.port },
            Pool::Ports { address, low, .. } => {
                Endpoint { address: *address, port: low + index as u16 }
            }
            Pool::None => return Err(Refusal::Unmapped),
        })
    }

    /// Translates a packet of the other direction back, if there is a binding.
    fn translate_back(
        &mut self,
        config: &Config,
        endpoints: &Endpoints,
        now: u64,
    ) -> Option<Endpoint> {
        let Endpoint { address, port } = endpoints.local;
        let index = match &config.pool {
            Pool::None => return None,
            Pool::Addresses(_) => *self.by_address.get(&address)?,
            Pool::Ports { address: pool_address, low, .. } => {
                usize::from(port.checked_sub(*low).filter(|_| address == *pool_address)?)
            }
        };
        let slot = self.slots.get_mut(index)?;
        if slot.remote.is_some_and(|remote| remote != (endpoints.remote, endpoints.protocol)) {
            return None;
        }
        slot.last_used = now;
        let port = if slot.remote.is_some() { slot.local.port } else { port };
        Some(Endpoint { address: slot.local.address, port })
    }

    /// A slot for a new binding: an unused one, or the one that has been idle longest.
    fn find_slot(&mut self, config: &Config, now: u64) -> Option<usize> {
        if self.slots.len() < config.pool.len() {
            return Some(self.slots.len());
        }
        if now < self.full_until {
            return None;
        }
        let (index, oldest) =
            self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.last_used)?;
        let until = oldest.last_used.saturating_add(config.timeout);
        if now < until {
            // No search before that time can succeed.
            self.full_until = until;
            return None;
        }
        Some(index)
    }

    /// Calls `each` with some bindings, by their places in the pool from `from` on, and the time at which each
    /// was used; returns the place behind them, if there are more.
    pub fn export(&self, from: u64, mut each: impl FnMut(u32, BindingKey, u64)) -> Option<u64> {
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        let end = first.saturating_add(PART).min(self.slots.len());
        for (place, slot) in (from as u32..).zip(self.slots.get(first..end).unwrap_or_default()) {
            each(place, (slot.local, slot.remote), slot.last_used);
        }
        (end < self.slots.len()).then_some(end as u64)
    }

    /// Takes over a binding of a place in the pool, which was used at some time; returns whether the pool has
    /// this place, and a binding of this kind can have it. Bindings come in the order of their places.
    pub fn import(&mut self, config: &Config, place: u32, key: BindingKey, used: u64) -> bool {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let by_flow = matches!(config.pool, Pool::Ports { .. });
        let fits = place < config.pool.len() && place <= self.slots.len();
        if !fits || key.1.is_some() != by_flow {
            return false;
        }
        self.bind(config, place, key, used);
        true
    }

    fn bind(&mut self, config: &Config, index: usize, key: BindingKey, now: u64) {
        let slot = Slot { local: key.0, remote: key.1, last_used: now };
        match self.slots.get_mut(index) {
            Some(place) => {
                let old = std::mem::replace(place, slot);
                let old = (old.local, old.remote);
                // Another place may have come with this key.
                if self.by_key.get(&old) == Some(&index) {
                    self.by_key.remove(&old);
                }
            }
            None => self.slots.push(slot),
        }
        self.by_key.insert(key, index);
        if let Pool::Addresses(pool) = &config.pool {
            self.by_address.insert(pool[index], index);
        }
    }
}
