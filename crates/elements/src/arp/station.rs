//! What an `ARPQuerier` does with packets and replies.

use super::arp_querier::Exit;
use super::cache::Cache;
use super::neighbours::{Neighbours, Tally};
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Arp, Ethernet, arp, ether_type};
use castanet_kit::arp::{Enqueued, Limits, Lookup};

/// One host on a link: its addresses, and how it asks for those of others.
#[derive(Clone)]
pub(crate) struct Station {
    pub(crate) name: String,
    pub(crate) eth: MacAddr,
    pub(crate) ip: Ipv4Addr,
    pub(crate) broadcast: Ipv4Addr,
    pub(crate) queries_apart: bool,
    pub(crate) limits: Limits,
    /// Neighbours that others use too, rather than its own.
    pub(crate) table: Option<Link<Cache>>,
    pub(crate) poll: u64,
    pub(crate) broadcast_poll: bool,
}

/// What a query takes over from the packet that it is sent for.
struct Question {
    dst: Ipv4Addr,
    timestamp: i64,
    vlan: u16,
}

impl Question {
    fn of(packet: &Packet) -> Question {
        Question {
            dst: packet.dst(),
            timestamp: packet.timestamp(),
            vlan: packet.anno_u16(anno::VLAN_TCI),
        }
    }
}

impl Station {
    /// Does something with the neighbours, its own or those that others use too.
    pub(crate) fn using(&self, known: &mut Neighbours, f: impl FnOnce(&mut Cache, &mut Tally)) {
        match &self.table {
            Some(link) => link.with(|cache| f(cache, &mut known.tally)),
            None => f(&mut known.own, &mut known.tally),
        }
    }

    /// Sends a burst; where all neighbours are known no packet moves.
    pub(crate) fn send(&self, cache: &mut Cache, tally: &mut Tally, mut batch: Batch, cx: &mut Cx) {
        if self.ip.is_unspecified() {
            tally.killed += batch.len() as u64;
            return cx.emit_batch(Exit::Unconfigured, batch);
        }
        if self.address(cache, &mut tally.found, &mut batch) {
            return cx.emit_batch(Exit::Frame, batch);
        }
        let found = std::mem::take(&mut tally.found);
        for (packet, &found) in batch.into_iter().zip(&found) {
            self.send_as(cache, tally, packet, found, cx);
        }
        tally.found = found;
    }

    /// Looks every packet's neighbour up, and encapsulates the packets for those that are
    /// known; answers whether these are all.
    fn address(&self, cache: &mut Cache, all: &mut Vec<Lookup>, batch: &mut Batch) -> bool {
        let (mut all_known, mut last) = (true, None);
        all.clear();
        for packet in batch.iter_mut() {
            let dst = packet.dst();
            let found = match last {
                Some((same, found)) if same == dst => found,
                _ => self.find(cache, dst),
            };
            match found {
                Lookup::Known(mac) => {
                    encapsulate(packet, MacAddr(mac), self.eth);
                    last = Some((dst, found));
                }
                _ => all_known = false,
            }
            all.push(found);
        }
        all_known
    }

    /// What Ethernet address `dst` has.
    #[inline]
    fn find(&self, cache: &mut Cache, dst: Ipv4Addr) -> Lookup {
        match cache.table.lookup(dst.to_bits(), cache.now, self.poll) {
            Lookup::Unknown if dst.is_broadcast() || dst == self.broadcast => {
                Lookup::Known(MacAddr::BROADCAST.octets())
            }
            Lookup::Unknown if dst.is_multicast() => {
                Lookup::Known(MacAddr::from_ipv4_group(dst).octets())
            }
            found => found,
        }
    }

    /// Sends a packet on, as far as its neighbour has been found.
    fn send_as(
        &self,
        cache: &mut Cache,
        tally: &mut Tally,
        mut packet: Packet,
        found: Lookup,
        cx: &mut Cx,
    ) {
        match found {
            Lookup::Known(_) => cx.emit(Exit::Frame, packet),
            Lookup::Stale(mac) => {
                self.poll(tally, &packet, found, cx);
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                cx.emit(Exit::Frame, packet);
            }
            Lookup::Unknown if packet.dst().is_unspecified() => {
                if !std::mem::replace(&mut tally.warned, true) {
                    let what = "would query for 0.0.0.0; missing dest IP addr annotation?";
                    cx.chatter(&format!("{} :: ARPQuerier: {what}", self.name));
                }
                tally.killed += 1;
                cx.emit(Exit::NoDestination, packet);
            }
            Lookup::Unknown => self.wait(cache, tally, packet, cx),
        }
    }

    /// Asks again for the address of a packet's neighbour, if it is getting old.
    fn poll(&self, tally: &mut Tally, packet: &Packet, found: Lookup, cx: &mut Cx) {
        if let Lookup::Stale(mac) = found {
            let to = if self.broadcast_poll { MacAddr::BROADCAST } else { MacAddr(mac) };
            self.ask(tally, &Question::of(packet), to, cx);
        }
    }

    /// Keeps a packet until its neighbour answers, and asks for it if it is time to.
    fn wait(&self, cache: &mut Cache, tally: &mut Tally, packet: Packet, cx: &mut Cx) {
        let question = Question::of(&packet);
        let Some(packet) = cx.keep_one(packet, || cache.table.queued()) else { return };
        self.lodged(1, cx);
        match cache.table.enqueue(question.dst.to_bits(), packet, cache.now) {
            Enqueued::Queued { query: true } => self.ask(tally, &question, MacAddr::BROADCAST, cx),
            Enqueued::Queued { query: false } => {}
            Enqueued::Known(mac, mut packet) => {
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                self.fetched(1, cx);
                cx.emit(Exit::Frame, packet);
            }
            // The table has counted it.
            Enqueued::Full(packet) => drop(packet),
        }
    }

    /// Accounts for packets that now are in a table of several, from where any of them may take
    /// them.
    fn lodged(&self, n: usize, cx: &mut Cx) {
        if self.table.is_some() {
            cx.consumed(n);
        }
    }

    /// Accounts for packets that have come out of such a table.
    fn fetched(&self, n: usize, cx: &mut Cx) {
        if self.table.is_some() {
            cx.received(n);
        }
    }

    fn ask(&self, tally: &mut Tally, question: &Question, to: MacAddr, cx: &mut Cx) {
        let ether = Ethernet::new(to, self.eth, ether_type::ARP);
        let message = Arp::request((self.eth, self.ip), question.dst);
        let mut bytes = [0; Ethernet::LEN + Arp::LEN];
        let (front, back) = bytes.split_at_mut(Ethernet::LEN);
        front.copy_from_slice(ether.bytes());
        back.copy_from_slice(message.bytes());
        let Some(mut query) = cx.copy_in(&bytes) else { return };
        query.set_mac_header(0);
        query.set_network_header(Ethernet::LEN as isize, Arp::LEN);
        if question.timestamp != 0 {
            query.set_timestamp(question.timestamp);
        }
        if question.vlan != 0 {
            query.set_anno_u16(anno::VLAN_TCI, question.vlan);
        }
        tally.queries += 1;
        cx.emit(if self.queries_apart { Exit::Query } else { Exit::Frame }, query);
    }

    /// Learns from ARP replies, and sends what has waited for them.
    pub(crate) fn learn(&self, cache: &mut Cache, tally: &mut Tally, frames: Batch, cx: &mut Cx) {
        for frame in frames {
            tally.responses += u64::from(frame.len() >= Ethernet::LEN + Arp::LEN);
            let Some((ip, mac)) = reply_of(&frame) else {
                cx.emit(Exit::NoReply, frame);
                continue;
            };
            let waited = cache.table.insert(ip.to_bits(), mac.octets(), cache.now);
            self.fetched(waited.len(), cx);
            for mut packet in waited {
                encapsulate(&mut packet, mac, self.eth);
                cx.emit(Exit::Frame, packet);
            }
            cx.consume(frame.into());
        }
    }

    /// Sends what a handler has released, and accounts for what its own table has dropped.
    pub(crate) fn settle(&self, cache: &mut Cache, tally: &mut Tally, cx: &mut Cx) {
        if !cache.released.is_empty() {
            let released = std::mem::take(&mut cache.released);
            self.fetched(released.len(), cx);
            self.send(cache, tally, released.into_iter().collect(), cx);
        }
        if self.table.is_none() {
            let dropped = cache.account();
            tally.killed += dropped as u64;
            if dropped > 0 {
                cx.dropped(Exit::Unanswered, dropped);
            }
        }
    }
}

/// Puts the link's header before an IPv4 packet.
#[inline(always)]
fn encapsulate(packet: &mut Packet, dst: MacAddr, src: MacAddr) {
    if let Some((header, _)) = Ethernet::from_prefix_mut(packet.push_front(Ethernet::LEN)) {
        *header = Ethernet::new(dst, src, ether_type::IPV4);
    }
    packet.set_mac_header(0);
}

/// Who a frame says has what IPv4 address, if it is an ARP reply that can be believed.
fn reply_of(frame: &Packet) -> Option<(Ipv4Addr, MacAddr)> {
    let (ether, rest) = Ethernet::from_prefix(frame.bytes())?;
    let (message, _) = Arp::from_prefix(rest)?;
    let is_reply = ether.ether_type() == ether_type::ARP
        && message.is_ethernet_ipv4()
        && message.operation() == arp::REPLY
        && message.sender_mac().is_unicast();
    is_reply.then(|| (message.sender_ip(), message.sender_mac()))
}
