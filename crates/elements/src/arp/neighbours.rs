//! What the elements of ARP and of neighbour discovery know of their neighbours.

use super::cache::Cache;
use castanet_engine::prelude::*;
use castanet_kit::address::Address;
use castanet_kit::arp::Lookup;

/// Addresses whose neighbours are asked for.
pub trait Protocol: Address + Send + 'static {
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
    /// Those of this element alone.
    pub(crate) own: Cache<A>,
    /// Those in whose place it uses others, for handlers.
    pub(crate) shared: Option<Link<Cache<A>>>,
    pub(crate) tally: Tally,
}

/// What one element has seen and done.
#[derive(Default)]
pub struct Tally {
    pub(crate) queries: u64,
    pub(crate) responses: u64,
    /// Packets dropped, those of its own table as far as they are accounted for.
    pub(crate) killed: u64,
    /// What is known of each packet of the burst at hand.
    pub(crate) found: Vec<Lookup>,
    /// Whether a packet without a destination has been reported.
    pub(crate) warned: bool,
}

impl<A: Protocol> Default for Neighbours<A> {
    fn default() -> Self {
        Neighbours { own: Cache::default(), shared: None, tally: Tally::default() }
    }
}

#[handlers]
impl<A: Protocol> Neighbours<A> {
    /// Address, 1 if it is known, Ethernet address and age of every entry, the oldest first.
    #[read(table)]
    fn listing(&self, ask: &Ask) -> Value {
        self.see(|cache| cache.listing(ask))
    }

    /// Packets dropped and queries sent, in words.
    #[read]
    fn stats(&self) -> String {
        let shared = self.shared.as_ref().map_or(0, |it| it.with(|cache| cache.table.drops()));
        let killed = self.drops() + shared;
        format!("{killed} packets killed\n{} {}\n", self.tally.queries, A::QUERIES)
    }

    /// Queries sent.
    #[read]
    fn queries(&self) -> u64 {
        self.tally.queries
    }

    /// Replies received.
    #[read]
    fn responses(&self) -> u64 {
        self.tally.responses
    }

    /// Packets dropped, but for those that a table of several dropped.
    #[read]
    fn drops(&self) -> u64 {
        self.tally.killed + self.own.unaccounted()
    }

    /// Entries of the table.
    #[read]
    fn count(&self) -> usize {
        self.see(|cache| cache.table.count())
    }

    /// Packets that wait for an answer.
    #[read]
    fn length(&self) -> usize {
        self.see(|cache| cache.table.queued())
    }

    /// Learns an address, `IP ETH`; packets that wait for it leave within a second.
    #[write]
    fn insert(&mut self, text: &str) -> Result<(), ArgError> {
        self.change(|cache| cache.insert(text))
    }

    /// Forgets the Ethernet address of an IP address.
    #[write]
    fn delete(&mut self, text: &str) -> Result<(), ArgError> {
        self.change(|cache| cache.delete(text))
    }

    /// Forgets all addresses, drops what waits for them, and starts counting from zero.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.change(|cache| cache.table.clear());
        let tally = &mut self.tally;
        (tally.queries, tally.responses, tally.killed) = (0, 0, 0);
        Ok(())
    }
}

impl<A: Protocol> Neighbours<A> {
    fn see<R>(&self, f: impl FnOnce(&Cache<A>) -> R) -> R {
        match &self.shared {
            Some(link) => link.with(|cache| f(cache)),
            None => f(&self.own),
        }
    }

    fn change<R>(&mut self, f: impl FnOnce(&mut Cache<A>) -> R) -> R {
        match &self.shared {
            Some(link) => link.with(f),
            None => f(&mut self.own),
        }
    }

    /// Uses a table that others use too, or its own again. Packets that waited here wait there;
    /// those that waited there stay.
    pub(crate) fn share(&mut self, link: Option<&Link<Cache<A>>>, cx: &mut Cx) {
        self.shared = link.cloned();
        if let Some(link) = link {
            let mut waited = self.own.table.take_queued();
            waited.append(&mut self.own.released);
            cx.consumed(waited.len());
            link.with(|cache| cache.released.append(&mut waited));
        }
    }

    /// Packets kept, or dropped by its own table and not yet accounted for.
    pub(crate) fn held(&self) -> usize {
        self.own.held()
    }
}
