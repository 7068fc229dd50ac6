//! Per-worker state of the elements that resolve addresses by ARP or by neighbour discovery.

use super::neighbour_cache::NeighbourCache;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter, add_counts};
use castanet_element::prelude::*;
use castanet_kit::address::Address;
use castanet_kit::arp::Lookup;
use serde::{Serialize, de::DeserializeOwned};

/// An IP address that ARP (`u32`) or neighbour discovery (`u128`) resolves.
pub trait NeighbourAddress: Address + Serialize + DeserializeOwned + Send + 'static {
    /// Words for the number of queries in the handler `stats`.
    const QUERY_LABEL: &'static str;
}

impl NeighbourAddress for u32 {
    const QUERY_LABEL: &'static str = "ARP queries sent";
}

impl NeighbourAddress for u128 {
    const QUERY_LABEL: &'static str = "ND Solicitation Message sent";
}

/// State of an `ARPQuerier` or, with `u128`, of an `IP6NDSolicitor`: the neighbour cache and the
/// counters.
#[derive(Local)]
#[local(methods)]
#[portable(neighbours)]
pub struct NeighbourState<A: NeighbourAddress = u32> {
    /// Cache of this element alone.
    pub(crate) own: NeighbourCache<A>,
    /// Cache of an `ARPTable`, if the element uses one instead of its own.
    pub(crate) shared: Option<Shared<NeighbourCache<A>>>,
    #[portable]
    pub(crate) query_state: QueryState,
}

/// Counters of one element, and the lookups of its current burst.
#[derive(Default)]
pub struct QueryState {
    /// Queries sent.
    pub(crate) queries: u64,
    /// Replies received.
    pub(crate) responses: u64,
    /// Packets dropped, including the reported drops of the element's own cache.
    pub(crate) killed: u64,
    /// Result of the lookup of each packet of the current burst; kept to reuse its memory.
    pub(crate) lookups: Vec<Lookup>,
    /// Whether the element has warned about a packet without destination.
    pub(crate) no_destination_warned: bool,
}

impl<A: NeighbourAddress> Default for NeighbourState<A> {
    fn default() -> Self {
        NeighbourState {
            own: NeighbourCache::default(),
            shared: None,
            query_state: QueryState::default(),
        }
    }
}

/// The known addresses of the element's own cache; an `ARPTable` hands over those of a shared one.
impl<A: NeighbourAddress> PortableState for NeighbourState<A> {
    const IS_TABLE: bool = true;

    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        match self.shared {
            Some(_) => None,
            None => self.own.export(from, to),
        }
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        self.own.import(record, cx)
    }

    fn remove(&mut self, record: &RecordReader) {
        self.own.remove(record);
    }
}

/// Counts that are added.
impl PortableState for QueryState {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        to.write(&(), &[self.queries, self.responses, self.killed]);
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let counts = record.value()?;
        add_counts([&mut self.queries, &mut self.responses, &mut self.killed], counts)
    }
}

const QUERIES: Metric =
    Metric::counter("neighbour_queries", "ARP requests and neighbour solicitations sent.");
const RESPONSES: Metric =
    Metric::counter("neighbour_responses", "ARP replies and neighbour advertisements received.");
const ENTRIES: Metric =
    Metric::gauge("neighbour_entries", "Entries in the table of Ethernet addresses.");

#[handlers]
impl<A: NeighbourAddress> NeighbourState<A> {
    /// Entries: IP address, 1 if it is resolved, Ethernet address, age in seconds; oldest first.
    #[read(table)]
    fn listing(&self, ask: &ReadRequest) -> Value {
        self.read_cache(|cache| cache.listing(ask))
    }

    /// Numbers of packets dropped and of queries sent, a line of text each.
    #[read]
    fn stats(&self) -> String {
        let shared = self.shared.as_ref().map_or(0, |it| it.with(|cache| cache.table.drops()));
        let killed = self.drops() + shared;
        format!("{killed} packets killed\n{} {}\n", self.query_state.queries, A::QUERY_LABEL)
    }

    /// Number of queries sent.
    #[read]
    #[metric(QUERIES)]
    fn queries(&self) -> u64 {
        self.query_state.queries
    }

    /// Number of replies received.
    #[read]
    #[metric(RESPONSES)]
    fn responses(&self) -> u64 {
        self.query_state.responses
    }

    /// Number of packets dropped, without those that a shared table dropped.
    #[read]
    fn drops(&self) -> u64 {
        self.query_state.killed + self.own.unreported_drops()
    }

    /// Number of entries in the table.
    #[read]
    #[metric(ENTRIES)]
    fn count(&self) -> usize {
        self.read_cache(|cache| cache.table.count())
    }

    /// Number of packets queued for a reply.
    #[read]
    fn length(&self) -> usize {
        self.read_cache(|cache| cache.table.queued())
    }

    /// Adds an entry `IP ETH`; packets queued for it leave within a second.
    #[write]
    fn insert(&mut self, text: &str) -> Result<(), ArgError> {
        self.write_cache(|cache| cache.insert(text))
    }

    /// Removes the Ethernet address of an IP address.
    #[write]
    fn delete(&mut self, text: &str) -> Result<(), ArgError> {
        self.write_cache(|cache| cache.delete(text))
    }

    /// Removes all entries, drops the packets queued for them and sets the counters to 0.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.write_cache(|cache| cache.table.clear());
        let query_state = &mut self.query_state;
        (query_state.queries, query_state.responses, query_state.killed) = (0, 0, 0);
        Ok(())
    }
}

impl<A: NeighbourAddress> NeighbourState<A> {
    fn read_cache<R>(&self, f: impl FnOnce(&NeighbourCache<A>) -> R) -> R {
        match &self.shared {
            Some(link) => link.with(|cache| f(cache)),
            None => f(&self.own),
        }
    }

    fn write_cache<R>(&mut self, f: impl FnOnce(&mut NeighbourCache<A>) -> R) -> R {
        match &self.shared {
            Some(link) => link.with(f),
            None => f(&mut self.own),
        }
    }

    /// Selects the cache: that of a shared table, or the element's own. Packets queued in the
    /// element's own cache move to the shared one; packets queued there stay there.
    pub(crate) fn use_table(&mut self, link: Option<&Shared<NeighbourCache<A>>>, cx: &mut Cx) {
        self.shared = link.cloned();
        if let Some(link) = link {
            let mut queued = self.own.table.take_queued();
            queued.append(&mut self.own.released);
            cx.count_consumed(queued.len());
            link.with(|cache| cache.released.append(&mut queued));
        }
    }

    /// Number of packets that the element's own cache holds, or dropped and has not reported.
    pub(crate) fn held(&self) -> usize {
        self.own.held()
    }
}
