//! Resolution of next hops by ARP for `ARPQuerier`: encapsulation, queries and replies.

use super::arp_querier::ARPQuerierExit as Exit;
use super::neighbour_cache::NeighbourCache;
use super::neighbour_state::{NeighbourState, QueryState};
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::{Arp, Ethernet, arp, ether_type};
use castanet_kit::arp::{EnqueueResult, Limits, Lookup};

/// The addresses of this host on a link, and the parameters of its ARP queries.
#[derive(Clone)]
pub(crate) struct ArpResolver {
    pub(crate) name: String,
    pub(crate) eth: MacAddr,
    pub(crate) ip: Ipv4Addr,
    pub(crate) broadcast: Ipv4Addr,
    /// Whether output 1 is connected; otherwise queries leave by output 0.
    pub(crate) has_query_output: bool,
    pub(crate) limits: Limits,
    /// Cache of an `ARPTable`; if `None`, the element uses its own.
    pub(crate) table: Option<Shared<NeighbourCache>>,
    /// Nanoseconds after which an unconfirmed address is queried again; 0 for never.
    pub(crate) poll: u64,
    pub(crate) broadcast_poll: bool,
}

/// The next hop to query, and the annotations that the query takes from the packet to it.
struct QueryContext {
    dst: Ipv4Addr,
    timestamp: i64,
    vlan: u16,
}

impl QueryContext {
    fn new(packet: &Packet) -> QueryContext {
        QueryContext {
            dst: packet.dst(),
            timestamp: packet.timestamp(),
            vlan: packet.anno_u16(anno::VLAN_TCI),
        }
    }
}

impl ArpResolver {
    /// Calls `f` with the selected cache: the shared one, or the element's own.
    pub(crate) fn with_cache(
        &self,
        state: &mut NeighbourState,
        f: impl FnOnce(&mut NeighbourCache, &mut QueryState),
    ) {
        match &self.table {
            Some(link) => link.with(|cache| f(cache, &mut state.query_state)),
            None => f(&mut state.own, &mut state.query_state),
        }
    }

    /// Encapsulates and sends a burst. If all next hops are resolved, the burst leaves whole.
    pub(crate) fn send(
        &self,
        cache: &mut NeighbourCache,
        query_state: &mut QueryState,
        mut batch: Batch,
        cx: &mut Cx,
    ) {
        if self.ip.is_unspecified() {
            query_state.killed += batch.len() as u64;
            return cx.emit_batch(Exit::Unconfigured, batch);
        }
        if self.encapsulate_known(cache, &mut query_state.lookups, &mut batch) {
            return cx.emit_batch(Exit::Frame, batch);
        }
        let lookups = std::mem::take(&mut query_state.lookups);
        for (packet, &lookup) in batch.into_iter().zip(&lookups) {
            self.send_one(cache, query_state, packet, lookup, cx);
        }
        query_state.lookups = lookups;
    }

    /// Looks up the next hop of each packet into `lookups` and encapsulates the packets whose next
    /// hop is resolved. Returns whether all of them are.
    fn encapsulate_known(
        &self,
        cache: &mut NeighbourCache,
        lookups: &mut Vec<Lookup>,
        batch: &mut Batch,
    ) -> bool {
        let (mut all_resolved, mut previous) = (true, None);
        lookups.clear();
        for packet in batch.iter_mut() {
            let dst = packet.dst();
            let lookup = match previous {
                Some((same, lookup)) if same == dst => lookup,
                _ => self.resolve(cache, dst),
            };
            match lookup {
                Lookup::Known(mac) => {
                    encapsulate(packet, MacAddr(mac), self.eth);
                    previous = Some((dst, lookup));
                }
                _ => all_resolved = false,
            }
            lookups.push(lookup);
        }
        all_resolved
    }

    /// Looks up the Ethernet address of `dst`; broadcast and multicast addresses map to theirs.
    #[inline]
    fn resolve(&self, cache: &mut NeighbourCache, dst: Ipv4Addr) -> Lookup {
        match cache.table.lookup(dst.to_bits(), cache.now, self.poll) {
            Lookup::Unknown if dst.is_broadcast() || dst == self.broadcast => {
                Lookup::Known(MacAddr::BROADCAST.octets())
            }
            Lookup::Unknown if dst.is_multicast() => {
                Lookup::Known(MacAddr::from_ipv4_group(dst).octets())
            }
            lookup => lookup,
        }
    }

    /// Sends, queues or drops a packet according to the lookup of its next hop. A packet with a
    /// resolved next hop is encapsulated already.
    fn send_one(
        &self,
        cache: &mut NeighbourCache,
        query_state: &mut QueryState,
        mut packet: Packet,
        lookup: Lookup,
        cx: &mut Cx,
    ) {
        match lookup {
            Lookup::Known(_) => cx.emit(Exit::Frame, packet),
            Lookup::Stale(mac) => {
                self.poll(query_state, &packet, lookup, cx);
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                cx.emit(Exit::Frame, packet);
            }
            Lookup::Unknown if packet.dst().is_unspecified() => {
                if !std::mem::replace(&mut query_state.no_destination_warned, true) {
                    let what = "would query for 0.0.0.0; missing dest IP addr annotation?";
                    cx.chatter(&format!("{} :: ARPQuerier: {what}", self.name));
                }
                query_state.killed += 1;
                cx.emit(Exit::NoDestination, packet);
            }
            Lookup::Unknown => self.enqueue(cache, query_state, packet, cx),
        }
    }

    /// Sends a query for the packet's next hop if the lookup is stale.
    fn poll(&self, query_state: &mut QueryState, packet: &Packet, lookup: Lookup, cx: &mut Cx) {
        if let Lookup::Stale(mac) = lookup {
            let to = if self.broadcast_poll { MacAddr::BROADCAST } else { MacAddr(mac) };
            self.send_query(query_state, &QueryContext::new(packet), to, cx);
        }
    }

    /// Queues a packet until its next hop answers, and sends a query if one is due.
    fn enqueue(
        &self,
        cache: &mut NeighbourCache,
        query_state: &mut QueryState,
        packet: Packet,
        cx: &mut Cx,
    ) {
        let context = QueryContext::new(&packet);
        let Some(packet) = cx.keep_one(packet, || cache.table.queued()) else { return };
        self.count_enqueued(1, cx);
        match cache.table.enqueue(context.dst.to_bits(), packet, cache.now) {
            EnqueueResult::Queued { query: true } => {
                self.send_query(query_state, &context, MacAddr::BROADCAST, cx)
            }
            EnqueueResult::Queued { query: false } => {}
            EnqueueResult::Known(mac, mut packet) => {
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                self.count_dequeued(1, cx);
                cx.emit(Exit::Frame, packet);
            }
            // The table has counted the drop.
            EnqueueResult::Full(packet) => drop(packet),
        }
    }

    /// Counts packets as consumed when they enter a shared table; another element may send them.
    fn count_enqueued(&self, n: usize, cx: &mut Cx) {
        if self.table.is_some() {
            cx.count_consumed(n);
        }
    }

    /// Counts packets as received when they leave a shared table.
    fn count_dequeued(&self, n: usize, cx: &mut Cx) {
        if self.table.is_some() {
            cx.count_received(n);
        }
    }

    /// Sends an ARP request for `question.dst` to the Ethernet address `to`.
    fn send_query(
        &self,
        query_state: &mut QueryState,
        context: &QueryContext,
        to: MacAddr,
        cx: &mut Cx,
    ) {
        let ether = Ethernet::new(to, self.eth, ether_type::ARP);
        let message = Arp::request((self.eth, self.ip), context.dst);
        let mut bytes = [0; Ethernet::LEN + Arp::LEN];
        let (front, back) = bytes.split_at_mut(Ethernet::LEN);
        front.copy_from_slice(ether.bytes());
        back.copy_from_slice(message.bytes());
        let Some(mut query) = cx.copy_in(&bytes) else { return };
        query.set_mac_header(0);
        query.set_network_header(Ethernet::LEN as isize, Arp::LEN);
        if context.timestamp != 0 {
            query.set_timestamp(context.timestamp);
        }
        if context.vlan != 0 {
            query.set_anno_u16(anno::VLAN_TCI, context.vlan);
        }
        query_state.queries += 1;
        cx.emit(if self.has_query_output { Exit::Query } else { Exit::Frame }, query);
    }

    /// Stores the addresses of ARP replies and sends the packets queued for them.
    pub(crate) fn learn(
        &self,
        cache: &mut NeighbourCache,
        query_state: &mut QueryState,
        frames: Batch,
        cx: &mut Cx,
    ) {
        for frame in frames {
            query_state.responses += u64::from(frame.len() >= Ethernet::LEN + Arp::LEN);
            let Some((ip, mac)) = parse_reply(&frame) else {
                cx.emit(Exit::NoReply, frame);
                continue;
            };
            let queued = cache.table.insert(ip.to_bits(), mac.octets(), cache.now);
            self.count_dequeued(queued.len(), cx);
            for mut packet in queued {
                encapsulate(&mut packet, mac, self.eth);
                cx.emit(Exit::Frame, packet);
            }
            cx.consume(frame.into());
        }
    }

    /// Sends the packets that a handler has released, and reports the drops of the element's own
    /// table.
    pub(crate) fn flush(
        &self,
        cache: &mut NeighbourCache,
        query_state: &mut QueryState,
        cx: &mut Cx,
    ) {
        if !cache.released.is_empty() {
            let released = std::mem::take(&mut cache.released);
            self.count_dequeued(released.len(), cx);
            self.send(cache, query_state, released.into_iter().collect(), cx);
        }
        if self.table.is_none() {
            let dropped = cache.take_unreported_drops();
            query_state.killed += dropped as u64;
            if dropped > 0 {
                cx.count_dropped(Exit::Unanswered, dropped);
            }
        }
    }
}

/// Prepends the Ethernet header to an IPv4 packet.
#[inline(always)]
fn encapsulate(packet: &mut Packet, dst: MacAddr, src: MacAddr) {
    if let Some((header, _)) = Ethernet::from_prefix_mut(packet.push_front(Ethernet::LEN)) {
        *header = Ethernet::new(dst, src, ether_type::IPV4);
    }
    packet.set_mac_header(0);
}

/// The IPv4 address and the Ethernet address of the sender, if the frame is an ARP reply with a
/// unicast sender.
fn parse_reply(frame: &Packet) -> Option<(Ipv4Addr, MacAddr)> {
    let (ether, rest) = Ethernet::from_prefix(frame.bytes())?;
    let (message, _) = Arp::from_prefix(rest)?;
    let is_reply = ether.ether_type() == ether_type::ARP
        && message.is_ethernet_ipv4()
        && message.operation() == arp::REPLY
        && message.sender_mac().is_unicast();
    is_reply.then(|| (message.sender_ip(), message.sender_mac()))
}
