//! `ARPTable`: stores the ARP entries that several queriers share.

use super::args::ARPTableArgs;
use super::neighbour_cache::NeighbourCache;
use super::resolver::TICK;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use castanet_kit::arp::Limits;

/// Stores Ethernet addresses by IPv4 address, for all `ARPQuerier`s that name it as their TABLE.
///
/// It has no ports. It also holds the packets that these queriers queue for an
/// unknown address. They leave by the querier that receives the reply, or,
/// after the handler `insert`, by the first querier that runs.
///
/// ```click
/// t :: ARPTable(CAPACITY 2, CAPACITY_SLIM_FACTOR 2, ENTRY_PACKET_CAPACITY 2)
/// a -> x :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1, TABLE t) -> xout;  xre -> [1] x;  x[1] -> xq
/// b -> y :: ARPQuerier(1.0.0.9, 0:0:0:0:0:9, TABLE t) -> yout;  yre -> [1] y;  y[1] -> yq
/// > a    9.0.0.9 > 1.0.0.2 udp
/// > b    9.0.0.9 > 1.0.0.2 udp ttl 3
/// < xq   eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1
/// = t.length 2
/// = x.length 2
/// > yre  eth 0:0:0:0:0:2 > 0:0:0:0:0:9 arp reply 1.0.0.2 is-at 0:0:0:0:0:2 to 1.0.0.9 0:0:0:0:0:9
/// < yout eth 0:0:0:0:0:9 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp
/// < yout eth 0:0:0:0:0:9 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp ttl 3
/// > a    9.0.0.9 > 1.0.0.2 udp
/// < xout eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp
/// = t.table 1.0.0.2 1 00-00-00-00-00-02 0.000000
/// = y.table 1.0.0.2 1 00-00-00-00-00-02 0.000000
/// = x.stats 0 packets killed\n1 ARP queries sent
/// ! t.insert 1.0.0.3 0:0:0:0:0:3
/// = x.count 2
/// ! t.delete 1.0.0.2
/// > b    9.0.0.9 > 1.0.0.2 udp
/// < yq   eth 0:0:0:0:0:9 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.2 tell 1.0.0.9 0:0:0:0:0:9
/// > b    9.0.0.9 > 1.0.0.2 udp
/// > b    9.0.0.9 > 1.0.0.2 udp
/// = t.drops 1
/// = y.drops 0
/// = y.stats 1 packets killed\n1 ARP queries sent
/// ! t.clear
/// = t.drops 3
/// = t.count 0
/// + 1s
/// = t.drops.unanswered 3
/// > xre  9.0.0.9 > 1.0.0.1 udp
/// ```
#[derive(Element)]
#[element(room = "arp", args = ARPTableArgs, ports = "0/0")]
pub struct ARPTable {
    cache: Shared<NeighbourCache>,
    limits: Limits,
}

/// Link to the shared neighbour cache, for the handlers.
#[derive(Default, Local)]
#[local(methods)]
#[portable(neighbours)]
pub struct ARPTableState {
    cache: Shared<NeighbourCache>,
}

#[handlers]
impl ARPTableState {
    /// Entries: IPv4 address, 1 if it is resolved, Ethernet address, age in seconds; oldest first.
    #[read]
    fn table(&self, ask: &ReadRequest) -> Value {
        self.cache.with(|cache| cache.listing(ask))
    }

    /// Number of packets dropped because no reply came or the queue was full.
    #[read]
    fn drops(&self) -> u64 {
        self.cache.with(|cache| cache.table.drops())
    }

    /// Number of entries.
    #[read]
    fn count(&self) -> usize {
        self.cache.with(|cache| cache.table.count())
    }

    /// Number of packets queued for a reply.
    #[read]
    fn length(&self) -> usize {
        self.cache.with(|cache| cache.table.queued())
    }

    /// Adds an entry `IP ETH`.
    #[write]
    fn insert(&mut self, text: &str) -> Result<(), ArgError> {
        self.cache.with(|cache| cache.insert(text))
    }

    /// Removes the Ethernet address of an IPv4 address.
    #[write]
    fn delete(&mut self, text: &str) -> Result<(), ArgError> {
        self.cache.with(|cache| cache.delete(text))
    }

    /// Removes all entries and drops the packets queued for them.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.cache.with(|cache| cache.table.clear());
        Ok(())
    }
}

/// The known addresses.
impl PortableState for ARPTableState {
    const IS_TABLE: bool = true;

    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        self.cache.with(|cache| cache.export(from, to))
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        self.cache.with(|cache| cache.import(record, cx))
    }

    fn remove(&mut self, record: &RecordReader) {
        self.cache.with(|cache| cache.remove(record));
    }
}

/// Reason to drop queued packets.
#[derive(Fate)]
pub enum ARPTableExit {
    /// Packets whose next hop did not answer in time, or that found the queue for it full. Check
    /// that the next hop is up and on this link.
    #[drop]
    Unanswered,
}

impl Build for ARPTable {
    type Args = ARPTableArgs;

    fn build(args: ARPTableArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ARPTable { cache: setup.own_shared(), limits: args.limits()? })
    }
}

impl PerBatch for ARPTable {
    type On = on::Any;
    type Local = ARPTableState;
    type Fate = ARPTableExit;
    const SHARED: bool = true;

    fn can_take_state(&self, _: &ARPTable) -> bool {
        true
    }

    fn after_take_state(&self, state: &mut ARPTableState, _: &mut Cx) {
        self.cache.with(|cache| cache.table.set_limits(self.limits));
        state.cache = self.cache.clone();
    }

    fn start(&self, state: &mut ARPTableState, cx: &mut Cx) -> Result<(), ArgError> {
        self.after_take_state(state, cx);
        self.run_timer(state, cx);
        Ok(())
    }

    fn batch(&self, _: &mut ARPTableState, _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }

    fn run_timer(&self, _: &mut ARPTableState, cx: &mut Cx) {
        // A querier counts a packet as consumed when it queues it here, so packets that the
        // table drops are received and dropped by this element.
        let dropped = self.cache.with(|cache| {
            let now = cache.tick(cx.now());
            cache.table.expire(now);
            cache.report_drops(ARPTableExit::Unanswered, cx)
        });
        cx.count_received(dropped);
        cx.set_timer(cx.now() + TICK);
    }
}
