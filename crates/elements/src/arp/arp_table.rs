//! `ARPTable`: what several queriers know together.

use super::cache::Cache;
use super::settings::Room;
use castanet_engine::prelude::*;
use castanet_kit::arp::Limits;

/// Stores Ethernet addresses by IPv4 address, for all `ARPQuerier`s that name it as their TABLE.
///
/// It has no ports. Packets of any of these queriers wait in it for their
/// neighbour, and leave by the querier that hears the reply, or by the first
/// that has something to do after `insert` made it known.
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
#[element(room = "arp", args = Room, ports = "0/0")]
pub struct ARPTable {
    cache: Link<Cache>,
    limits: Limits,
}

/// What it stores.
#[derive(Default, Local)]
#[local(methods)]
pub struct Stored {
    cache: Link<Cache>,
}

#[handlers]
impl Stored {
    /// Address, 1 if it is known, Ethernet address and age of every entry, the oldest first.
    #[read]
    fn table(&self, ask: &Ask) -> Value {
        self.cache.with(|cache| cache.listing(ask))
    }

    /// Packets that waited in vain, or found no room.
    #[read]
    fn drops(&self) -> u64 {
        self.cache.with(|cache| cache.table.drops())
    }

    /// Entries.
    #[read]
    fn count(&self) -> usize {
        self.cache.with(|cache| cache.table.count())
    }

    /// Packets that wait for an answer.
    #[read]
    fn length(&self) -> usize {
        self.cache.with(|cache| cache.table.queued())
    }

    /// Learns an address, `IP ETH`.
    #[write]
    fn insert(&mut self, text: &str) -> Result<(), ArgError> {
        self.cache.with(|cache| cache.insert(text))
    }

    /// Forgets the Ethernet address of an IP address.
    #[write]
    fn delete(&mut self, text: &str) -> Result<(), ArgError> {
        self.cache.with(|cache| cache.delete(text))
    }

    /// Forgets all addresses, and drops what waits for them.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.cache.with(|cache| cache.table.clear());
        Ok(())
    }
}

/// What becomes of packets that wait.
#[derive(Fate)]
pub enum End {
    /// Packets whose neighbour did not answer, or that found no room to wait.
    #[drop]
    Unanswered,
}

impl Build for ARPTable {
    type Args = Room;

    fn build(room: Room, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ARPTable { cache: setup.own(), limits: room.limits()? })
    }
}

/// How often the table is looked through for what has expired.
const TICK: Duration = Duration::from_secs(1);

impl PerBatch for ARPTable {
    type On = on::Any;
    type Local = Stored;
    type Fate = End;
    const SHARED: bool = true;

    fn continues(&self, _: &ARPTable) -> bool {
        true
    }

    fn resume(&self, stored: &mut Stored, _: &mut Cx) {
        self.cache.with(|cache| cache.table.set_limits(self.limits));
        stored.cache = self.cache.clone();
    }

    fn start(&self, stored: &mut Stored, cx: &mut Cx) -> Result<(), ArgError> {
        self.resume(stored, cx);
        self.wake(stored, cx);
        Ok(())
    }

    fn batch(&self, _: &mut Stored, _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }

    fn wake(&self, _: &mut Stored, cx: &mut Cx) {
        // The queriers have let these packets go; here they come to an end.
        let dropped = self.cache.with(|cache| {
            let now = cache.tick(cx.now());
            cache.table.expire(now);
            cache.account()
        });
        if dropped > 0 {
            cx.received(dropped);
            cx.dropped(End::Unanswered, dropped);
        }
        cx.wake_at(cx.now() + TICK);
    }
}
