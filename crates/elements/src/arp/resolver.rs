//! The elements of `ARPQuerier` and `IP6NDSolicitor`: they encapsulate packets to next hops, query
//! those that are unknown, and learn from replies.

use super::neighbour_cache::NeighbourCache;
use super::neighbour_state::{NeighbourAddress, NeighbourState, QueryState};
use castanet_element::fate::none_taken;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;
use castanet_kit::address::Address;
use castanet_kit::arp::{EnqueueResult, Limits, Lookup};

/// A class of resolvers: its protocol, with the parameters of one element.
pub(crate) trait ResolverProtocol: Clone + Send + Sync + 'static {
    /// Addresses of next hops.
    type Address: NeighbourAddress;
    /// The exits.
    type Exit: Fate;
    /// The exit of Ethernet frames.
    const FRAME: Self::Exit;
    /// The exit of queries.
    const QUERY: Self::Exit;
    /// The exit of packets whose next hop does not answer.
    const UNANSWERED: Self::Exit;
    /// The exit of packets without a next hop.
    const NO_DESTINATION: Self::Exit;
    /// The exit of packets on input 1 that are not replies.
    const NO_REPLY: Self::Exit;
    /// The Ethernet type of the packets.
    const ETHER_TYPE: u16;
    /// The access to bytes of packets without descriptors: none where destination annotations are no next hops.
    const BYTE_ACCESS: ByteAccess = ByteAccess::None;

    /// Returns the next hop of packets with a destination annotation.
    fn next_hop_of(_destination: u32) -> Option<Self::Address> {
        None
    }

    /// Returns the next hop of a packet.
    fn next_hop(packet: &Packet) -> Self::Address;
    /// Returns the Ethernet address of a next hop that needs no query: a group.
    fn group(&self, next_hop: Self::Address) -> Option<MacAddr>;
    /// Returns the exit of all packets while the element lacks an address of its own.
    fn unconfigured(&self) -> Option<Self::Exit> {
        None
    }
    /// Called for the first packet without a next hop.
    fn warn_no_destination(_name: &str, _cx: &mut Cx) {}
    /// Makes a query; `known` is the Ethernet address that it is to confirm, if there is one. `None`
    /// if there is no frame for it.
    fn query(
        &self,
        eth: MacAddr,
        context: &QueryContext<Self::Address>,
        known: Option<MacAddr>,
        cx: &mut Cx,
    ) -> Option<Packet>;
    /// Whether a packet on input 1 counts as a response.
    fn is_response(_frame: &Packet, is_reply: bool) -> bool {
        is_reply
    }
    /// Parses a reply, and returns the entry to store if there is one; `None` if `frame` is no reply.
    fn reply(
        name: &str,
        cache: &mut NeighbourCache<Self::Address>,
        frame: &Packet,
        cx: &mut Cx,
    ) -> Option<Option<(Self::Address, MacAddr)>>;
}

/// The addresses of this host on a link, and the parameters of its queries.
#[derive(Clone)]
pub(crate) struct Resolver<P: ResolverProtocol> {
    pub(crate) protocol: P,
    pub(crate) name: String,
    pub(crate) eth: MacAddr,
    /// Whether output 1 is connected; otherwise queries leave by output 0.
    pub(crate) has_query_output: bool,
    pub(crate) limits: Limits,
    /// Cache of an `ARPTable`; if `None`, the element uses its own.
    pub(crate) table: Option<Shared<NeighbourCache<P::Address>>>,
    /// Nanoseconds after which an unconfirmed address is queried again; 0 for never.
    pub(crate) poll: u64,
}

/// The next hop to query, and the annotations that the query may take from the packet to it.
pub(crate) struct QueryContext<A> {
    pub(crate) next_hop: A,
    pub(crate) timestamp: i64,
    pub(crate) vlan: u16,
}

/// Interval at which the element removes expired entries and packets.
pub(crate) const TICK: Duration = Duration::from_secs(1);

impl<P: ResolverProtocol> PerBatch for Resolver<P>
where
    Self: Describe + Build,
{
    type On = on::Any;
    type Local = NeighbourState<P::Address>;
    type Fate = P::Exit;
    // An address that one worker learns is known to all workers.
    const SHARED: bool = true;

    fn can_take_state(&self, _: &Self) -> bool {
        true
    }

    fn after_take_state(&self, state: &mut NeighbourState<P::Address>, cx: &mut Cx) {
        state.own.table.set_limits(self.limits);
        state.use_table(self.table.as_ref(), cx);
    }

    fn start(&self, state: &mut NeighbourState<P::Address>, cx: &mut Cx) -> Result<(), ArgError> {
        self.after_take_state(state, cx);
        self.run_timer(state, cx);
        Ok(())
    }

    fn batch(
        &self,
        state: &mut NeighbourState<P::Address>,
        port: usize,
        batch: Batch,
        cx: &mut Cx,
    ) {
        self.with_cache(state, |cache, query_state| {
            cache.tick(cx.now());
            match port {
                0 => self.send(cache, query_state, batch, cx),
                _ => self.learn(cache, query_state, batch, cx),
            }
            self.flush(cache, query_state, cx);
        });
    }

    fn run_timer(&self, state: &mut NeighbourState<P::Address>, cx: &mut Cx) {
        self.with_cache(state, |cache, query_state| {
            let now = cache.tick(cx.now());
            cache.table.expire(now);
            self.flush(cache, query_state, cx);
        });
        cx.set_timer(cx.now() + TICK);
    }

    const BYTE_ACCESS: ByteAccess = P::BYTE_ACCESS;

    fn byte_length(&self, state: &mut NeighbourState<P::Address>, now: Time) -> Option<usize> {
        let is_fit = self.with_cache(state, |cache, _| {
            cache.tick(now);
            cache.released.is_empty()
        });
        (is_fit && self.protocol.unconfigured().is_none()).then_some(0)
    }

    /// Keeps the first eight bytes of each packet's header as its word.
    fn handle_bytes(
        &self,
        state: &mut NeighbourState<P::Address>,
        bytes: &mut BurstBytes,
        fates: &mut [u8],
    ) -> u8 {
        let mut previous = None;
        let is_known = bytes.unstrip(Ethernet::LEN)
            && self.with_cache(state, |cache, _| {
                bytes.keep_words(|destination| match previous {
                    Some((same, word)) if same == destination => Some(word),
                    _ => {
                        let mac = self.known(cache, P::next_hop_of(destination)?)?;
                        let header = Ethernet::new(mac, self.eth, P::ETHER_TYPE);
                        let word =
                            header.0.first_chunk().map(|first| u64::from_ne_bytes(*first))?;
                        previous = Some((destination, word));
                        Some(word)
                    }
                })
            });
        if is_known { P::FRAME.index() } else { none_taken(fates) }
    }

    fn write_bytes(&self, _: &mut NeighbourState<P::Address>, bytes: &mut BurstBytes) {
        let mut header = Ethernet::new(MacAddr::BROADCAST, self.eth, P::ETHER_TYPE).0;
        for (bytes, word) in bytes.with_words() {
            let Some(room) = bytes.first_chunk_mut() else { continue };
            header[..size_of::<u64>()].copy_from_slice(&word.to_ne_bytes());
            *room = header;
        }
    }

    fn held(&self, state: &NeighbourState<P::Address>) -> usize {
        state.held()
    }
}

impl<P: ResolverProtocol> Resolver<P> {
    /// Calls `f` with the selected cache: the shared one, or the element's own.
    fn with_cache<A>(
        &self,
        state: &mut NeighbourState<P::Address>,
        f: impl FnOnce(&mut NeighbourCache<P::Address>, &mut QueryState) -> A,
    ) -> A {
        match &self.table {
            Some(link) => link.with(|cache| f(cache, &mut state.query_state)),
            None => f(&mut state.own, &mut state.query_state),
        }
    }

    /// Encapsulates and sends a burst. If all next hops are resolved, the burst leaves whole.
    fn send(
        &self,
        cache: &mut NeighbourCache<P::Address>,
        query_state: &mut QueryState,
        mut batch: Batch,
        cx: &mut Cx,
    ) {
        if let Some(exit) = self.protocol.unconfigured() {
            query_state.killed += batch.len() as u64;
            return cx.emit_batch(exit, batch);
        }
        if self.encapsulate_known(cache, &mut query_state.lookups, &mut batch) {
            return cx.emit_batch(P::FRAME, batch);
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
        cache: &mut NeighbourCache<P::Address>,
        lookups: &mut Vec<Lookup>,
        batch: &mut Batch,
    ) -> bool {
        let (mut all_resolved, mut previous) = (true, None);
        lookups.clear();
        for packet in batch.iter_mut() {
            let next_hop = P::next_hop(packet);
            let lookup = match previous {
                Some((same, lookup)) if same == next_hop => lookup,
                _ => self.resolve(cache, next_hop),
            };
            match lookup {
                Lookup::Known(mac) => {
                    self.encapsulate(packet, MacAddr(mac));
                    previous = Some((next_hop, lookup));
                }
                _ => all_resolved = false,
            }
            lookups.push(lookup);
        }
        all_resolved
    }

    /// Looks up the Ethernet address of a next hop; groups map to theirs.
    #[inline]
    fn resolve(&self, cache: &mut NeighbourCache<P::Address>, next_hop: P::Address) -> Lookup {
        match cache.table.lookup(next_hop, cache.now, self.poll) {
            Lookup::Unknown => {
                let group = self.protocol.group(next_hop);
                group.map_or(Lookup::Unknown, |mac| Lookup::Known(mac.octets()))
            }
            lookup => lookup,
        }
    }

    /// The Ethernet address of a next hop, where a lookup would find it and change nothing.
    #[inline]
    fn known(&self, cache: &NeighbourCache<P::Address>, next_hop: P::Address) -> Option<MacAddr> {
        match cache.table.peek(next_hop, cache.now, self.poll) {
            Some(mac) => Some(MacAddr(mac)),
            None if cache.table.contains(next_hop) => None,
            None => self.protocol.group(next_hop),
        }
    }

    /// Sends, queues or drops a packet according to the lookup of its next hop. A packet with a
    /// resolved next hop is encapsulated already.
    fn send_one(
        &self,
        cache: &mut NeighbourCache<P::Address>,
        query_state: &mut QueryState,
        mut packet: Packet,
        lookup: Lookup,
        cx: &mut Cx,
    ) {
        let context = || QueryContext {
            next_hop: P::next_hop(&packet),
            timestamp: packet.timestamp(),
            vlan: packet.anno_u16(anno::VLAN_TCI),
        };
        match lookup {
            Lookup::Known(_) => cx.emit(P::FRAME, packet),
            Lookup::Stale(mac) => {
                self.send_query(query_state, &context(), Some(MacAddr(mac)), cx);
                self.encapsulate(&mut packet, MacAddr(mac));
                cx.emit(P::FRAME, packet);
            }
            Lookup::Unknown if P::next_hop(&packet) == P::Address::ZERO => {
                if !std::mem::replace(&mut query_state.no_destination_warned, true) {
                    P::warn_no_destination(&self.name, cx);
                }
                query_state.killed += 1;
                cx.emit(P::NO_DESTINATION, packet);
            }
            Lookup::Unknown => {
                let context = context();
                self.enqueue(cache, query_state, packet, &context, cx);
            }
        }
    }

    /// Queues a packet until its next hop answers, and sends a query if one is due.
    fn enqueue(
        &self,
        cache: &mut NeighbourCache<P::Address>,
        query_state: &mut QueryState,
        packet: Packet,
        context: &QueryContext<P::Address>,
        cx: &mut Cx,
    ) {
        let Some(packet) = cx.keep_one(packet, || cache.table.queued()) else { return };
        self.count_enqueued(1, cx);
        match cache.table.enqueue(context.next_hop, packet, cache.now) {
            EnqueueResult::Queued { query: true } => {
                self.send_query(query_state, context, None, cx)
            }
            EnqueueResult::Queued { query: false } => {}
            EnqueueResult::Known(mac, mut packet) => {
                self.encapsulate(&mut packet, MacAddr(mac));
                self.count_dequeued(1, cx);
                cx.emit(P::FRAME, packet);
            }
            // The table has counted the drop.
            EnqueueResult::Full(packet) => cache.table.set_dropped(packet),
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

    /// Sends a query for a next hop; `known` is the Ethernet address that it is to confirm.
    fn send_query(
        &self,
        query_state: &mut QueryState,
        context: &QueryContext<P::Address>,
        known: Option<MacAddr>,
        cx: &mut Cx,
    ) {
        let Some(query) = self.protocol.query(self.eth, context, known, cx) else { return };
        query_state.queries += 1;
        cx.emit(if self.has_query_output { P::QUERY } else { P::FRAME }, query);
    }

    /// Stores the addresses of replies and sends the packets queued for them.
    fn learn(
        &self,
        cache: &mut NeighbourCache<P::Address>,
        query_state: &mut QueryState,
        frames: Batch,
        cx: &mut Cx,
    ) {
        for frame in frames {
            let reply = P::reply(&self.name, cache, &frame, cx);
            query_state.responses += u64::from(P::is_response(&frame, reply.is_some()));
            let Some(entry) = reply else {
                cx.emit(P::NO_REPLY, frame);
                continue;
            };
            if let Some((address, mac)) = entry {
                let queued = cache.table.insert(address, mac.octets(), cache.now);
                self.count_dequeued(queued.len(), cx);
                for mut packet in queued {
                    self.encapsulate(&mut packet, mac);
                    cx.emit(P::FRAME, packet);
                }
            }
            cx.consume(frame.into());
        }
    }

    /// Sends the packets that a handler has released, and reports the drops of the element's own
    /// table.
    fn flush(
        &self,
        cache: &mut NeighbourCache<P::Address>,
        query_state: &mut QueryState,
        cx: &mut Cx,
    ) {
        if !cache.released.is_empty() {
            let released = std::mem::take(&mut cache.released);
            self.count_dequeued(released.len(), cx);
            self.send(cache, query_state, released.into_iter().collect(), cx);
        }
        if self.table.is_none() {
            query_state.killed += cache.report_drops(P::UNANSWERED, cx) as u64;
        }
    }

    /// Prepends the Ethernet header to a packet.
    #[inline(always)]
    fn encapsulate(&self, packet: &mut Packet, dst: MacAddr) {
        if let Some((header, _)) = Ethernet::from_prefix_mut(packet.push_front(Ethernet::LEN)) {
            *header = Ethernet::new(dst, self.eth, P::ETHER_TYPE);
        }
        packet.set_mac_header(0);
    }
}
