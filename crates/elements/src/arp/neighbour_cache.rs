//! The neighbour cache (resolved addresses and queued packets) of one element, or of several
//! elements that name the same `ARPTable`.

use super::neighbour_state::NeighbourAddress;
use castanet_element::handler::TextChunk;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use castanet_kit::arp::{ArpTable, Limits, sort_oldest_first};

/// Addresses of neighbours, and the packets queued for unresolved addresses.
pub struct NeighbourCache<A: NeighbourAddress = u32> {
    pub(crate) table: ArpTable<Packet, A>,
    /// Number of the table's drops that `report_drops` has returned so far.
    reported_drops: u64,
    /// Packets whose address a handler has resolved; an element sends them with its next burst
    /// or timer.
    pub(crate) released: Vec<Packet>,
    /// Latest time that an element has set, in nanoseconds.
    pub(crate) now: u64,
}

impl<A: NeighbourAddress> Default for NeighbourCache<A> {
    fn default() -> Self {
        let table = ArpTable::new(Limits::default());
        NeighbourCache { table, reported_drops: 0, released: Vec::new(), now: 0 }
    }
}

impl<A: NeighbourAddress> NeighbourCache<A> {
    /// Sets the time and returns it in nanoseconds. Handlers have no clock and use this time.
    pub(crate) fn tick(&mut self, now: Time) -> u64 {
        self.now = nanos(now);
        self.now
    }

    /// One chunk of the list of entries, from the cursor `ask.from`; the oldest entry of all
    /// chunks comes first.
    pub(crate) fn listing(&self, ask: &ReadRequest) -> Value {
        let from = usize::try_from(ask.from).unwrap_or(usize::MAX);
        let (text, next) = self.table.listing(nanos(ask.now), from);
        TextChunk { text, next: next.map(|next| next as u64), finish: sort_oldest_first }.into()
    }

    /// Adds an entry `IP ETH`. Packets queued for it leave with the next burst or timer.
    pub(crate) fn insert(&mut self, text: &str) -> Result<(), ArgError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [ip, mac] = words[..] else { return Err(ArgError::new("expected IP ETH")) };
        let ip = parse_address(ip)?;
        let mac = MacAddr::from_arg(mac, &Names::default()).map_err(|e| e.at("ETH"))?;
        self.released.extend(self.table.insert(ip, mac.octets(), self.now));
        Ok(())
    }

    /// Removes the Ethernet address of an IP address; the table stores the broadcast address in
    /// its place, which makes the entry unresolved.
    pub(crate) fn delete(&mut self, text: &str) -> Result<(), ArgError> {
        let ip = parse_address(text.trim())?;
        self.released.extend(self.table.insert(ip, MacAddr::BROADCAST.octets(), self.now));
        Ok(())
    }

    /// Number of packets queued, released or dropped but not yet reported.
    pub(crate) fn held(&self) -> usize {
        self.table.queued() + self.released.len() + self.unreported_drops() as usize
    }

    pub(crate) fn unreported_drops(&self) -> u64 {
        self.table.drops() - self.reported_drops
    }

    /// Counts the packets that the table has dropped since the last call as drops of the element for
    /// a reason, one of them as the example. Returns their number.
    pub(crate) fn report_drops(&mut self, reason: impl Fate, cx: &mut Cx) -> usize {
        let dropped = self.unreported_drops();
        self.reported_drops += dropped;
        if dropped > 0 {
            cx.count_dropped(reason, dropped as usize);
        }
        if let Some(packet) = self.table.take_dropped() {
            cx.keep_example(reason, &packet);
        }
        dropped as usize
    }
}

/// The known addresses, with the times at which they were confirmed. Packets that wait for an answer, and
/// their addresses, stay: other packets ask for these again.
impl<A: NeighbourAddress> PortableState for NeighbourCache<A> {
    const IS_TABLE: bool = true;

    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        self.table.export(from, |ip, ether, live_at| {
            let live_at = to.epoch.offset(live_at);
            to.write(&ip, &(ether, live_at));
        })
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let (ether, live_at) = record.value()?;
        let (live_at, now) = (record.epoch.nanos(live_at), self.tick(cx.now()));
        self.released.extend(self.table.import(record.key()?, ether, live_at, now));
        Ok(())
    }

    fn remove(&mut self, record: &RecordReader) {
        if let Ok(ip) = record.key() {
            self.table.forget(ip);
        }
    }
}

fn parse_address<A: NeighbourAddress>(text: &str) -> Result<A, ArgError> {
    A::parse(text).ok_or_else(|| ArgError::new(format!("`{text}` is no address")).at("IP"))
}

fn nanos(time: Time) -> u64 {
    time.since(Time::default())
}
