//! What the elements of ARP and of neighbour discovery know of their neighbours.

mod entry;
mod settings;
mod station;
mod station6;

pub use entry::Entry;
pub(crate) use entry::host_or_net;
pub use settings::{Interface, Settings};
pub(crate) use station::Station;
pub(crate) use station6::Station6;

use castanet_engine::prelude::*;
use castanet_kit::address::Address;
use castanet_kit::arp::{ArpTable, Limits, Lookup};

/// Addresses whose neighbours are asked for.
pub trait Protocol: Address {
    /// What `stats` calls the questions.
    const QUERIES: &'static str;
}

impl Protocol for u32 {
    const QUERIES: &'static str = "ARP queries sent";
}

impl Protocol for u128 {
    const QUERIES: &'static str = "ND Solicitation Message sent";
}

/// The neighbours of an `ARPQuerier` or, with `u128`, of an `IP6NDSolicitor`: their addresses,
/// and packets that wait for them.
#[derive(Local)]
#[local(methods)]
pub struct Neighbours<A: Protocol = u32> {
    pub(crate) table: ArpTable<Packet, A>,
    /// Queries sent.
    #[read]
    pub(crate) queries: u64,
    /// Replies received.
    #[read]
    pub(crate) responses: u64,
    /// Packets dropped, those of the table as far as they are accounted for.
    pub(crate) killed: u64,
    /// How many of the table's drops are accounted for.
    accounted: u64,
    /// Packets whose neighbour a handler made known.
    pub(crate) released: Vec<Packet>,
    /// What is known of each packet of the burst at hand.
    pub(crate) found: Vec<Lookup>,
    /// Whether a packet without a destination has been reported.
    pub(crate) warned: bool,
    now: u64,
}

impl<A: Protocol> Default for Neighbours<A> {
    fn default() -> Self {
        Neighbours {
            table: ArpTable::new(Limits::default()),
            queries: 0,
            responses: 0,
            killed: 0,
            accounted: 0,
            released: Vec::new(),
            found: Vec::new(),
            warned: false,
            now: 0,
        }
    }
}

#[handlers]
impl<A: Protocol> Neighbours<A> {
    /// Address, 1 if it is known, Ethernet address and age of every entry, the oldest first.
    #[read(table)]
    fn listing(&self, ask: &Ask) -> String {
        self.table.listing(nanos(ask.now))
    }

    /// Packets dropped and queries sent, in words.
    #[read]
    fn stats(&self) -> String {
        format!("{} packets killed\n{} {}\n", self.drops(), self.queries, A::QUERIES)
    }

    /// Packets dropped.
    #[read]
    fn drops(&self) -> u64 {
        self.killed + self.unaccounted()
    }

    /// Entries of the table.
    #[read]
    fn count(&self) -> usize {
        self.table.count()
    }

    /// Packets that wait for an answer.
    #[read]
    fn length(&self) -> usize {
        self.table.waiting()
    }

    /// Learns an address, `IP ETH`; packets that wait for it leave within a second.
    #[write]
    fn insert(&mut self, text: &str) -> Result<(), ArgError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [ip, mac] = words[..] else { return Err(ArgError::new("expected IP ETH")) };
        let ip = address(ip)?;
        let mac = MacAddr::from_arg(mac, &Names::default()).map_err(|e| e.at("ETH"))?;
        self.released.extend(self.table.insert(ip, mac.octets(), self.now));
        Ok(())
    }

    /// Forgets the Ethernet address of an IP address.
    #[write]
    fn delete(&mut self, text: &str) -> Result<(), ArgError> {
        let waited =
            self.table.insert(address(text.trim())?, MacAddr::BROADCAST.octets(), self.now);
        self.released.extend(waited);
        Ok(())
    }

    /// Forgets all addresses, drops what waits for them, and starts counting from zero.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.table.clear();
        (self.queries, self.responses, self.killed) = (0, 0, 0);
        Ok(())
    }
}

impl<A: Protocol> Neighbours<A> {
    /// Notes the time; handlers, which have none, use the latest.
    pub(crate) fn tick(&mut self, now: Time) -> u64 {
        self.now = nanos(now);
        self.now
    }

    /// Packets kept, or dropped by the table and not yet accounted for.
    pub(crate) fn held(&self) -> usize {
        self.table.waiting() + self.released.len() + self.unaccounted() as usize
    }

    fn unaccounted(&self) -> u64 {
        self.table.drops() - self.accounted
    }

    /// Packets that the table has dropped since it was last asked.
    pub(crate) fn account(&mut self) -> usize {
        let dropped = self.unaccounted();
        self.accounted += dropped;
        self.killed += dropped;
        dropped as usize
    }
}

fn address<A: Protocol>(text: &str) -> Result<A, ArgError> {
    A::parse(text).ok_or_else(|| ArgError::new(format!("`{text}` is no address")).at("IP"))
}

fn nanos(time: Time) -> u64 {
    time.since(Time::default())
}
