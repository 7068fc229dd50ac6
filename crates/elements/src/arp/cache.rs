//! The neighbours that are known and the packets that wait for others: what one element has for
//! itself, or several share under the name of an `ARPTable`.

use super::neighbours::Protocol;
use castanet_engine::class::Piece;
use castanet_engine::prelude::*;
use castanet_kit::arp::{ArpTable, Limits, sort_oldest_first};

/// Neighbours, and what waits for them.
pub struct Cache<A: Protocol = u32> {
    pub(crate) table: ArpTable<Packet, A>,
    /// How many of the table's drops are accounted for.
    accounted: u64,
    /// Packets whose neighbour a handler made known.
    pub(crate) released: Vec<Packet>,
    pub(crate) now: u64,
}

impl<A: Protocol> Default for Cache<A> {
    fn default() -> Self {
        let table = ArpTable::new(Limits::default());
        Cache { table, accounted: 0, released: Vec::new(), now: 0 }
    }
}

impl<A: Protocol> Cache<A> {
    /// Notes the time; handlers, which have none, use the latest.
    pub(crate) fn tick(&mut self, now: Time) -> u64 {
        self.now = nanos(now);
        self.now
    }

    /// A piece of the neighbours' list, the oldest of all pieces first.
    pub(crate) fn listing(&self, ask: &Ask) -> Value {
        let from = usize::try_from(ask.from).unwrap_or(usize::MAX);
        let (text, next) = self.table.listing(nanos(ask.now), from);
        Piece { text, next: next.map(|next| next as u64), finish: sort_oldest_first }.into()
    }

    /// Learns an address, `IP ETH`; what waits for it leaves with the next burst or tick.
    pub(crate) fn insert(&mut self, text: &str) -> Result<(), ArgError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [ip, mac] = words[..] else { return Err(ArgError::new("expected IP ETH")) };
        let ip = address(ip)?;
        let mac = MacAddr::from_arg(mac, &Names::default()).map_err(|e| e.at("ETH"))?;
        self.released.extend(self.table.insert(ip, mac.octets(), self.now));
        Ok(())
    }

    /// Forgets the Ethernet address of an IP address.
    pub(crate) fn delete(&mut self, text: &str) -> Result<(), ArgError> {
        let ip = address(text.trim())?;
        self.released.extend(self.table.insert(ip, MacAddr::BROADCAST.octets(), self.now));
        Ok(())
    }

    /// Packets kept, or dropped by the table and not yet accounted for.
    pub(crate) fn held(&self) -> usize {
        self.table.queued() + self.released.len() + self.unaccounted() as usize
    }

    pub(crate) fn unaccounted(&self) -> u64 {
        self.table.drops() - self.accounted
    }

    /// Packets that the table has dropped since it was last asked.
    pub(crate) fn account(&mut self) -> usize {
        let dropped = self.unaccounted();
        self.accounted += dropped;
        dropped as usize
    }
}

fn address<A: Protocol>(text: &str) -> Result<A, ArgError> {
    A::parse(text).ok_or_else(|| ArgError::new(format!("`{text}` is no address")).at("IP"))
}

fn nanos(time: Time) -> u64 {
    time.since(Time::default())
}
