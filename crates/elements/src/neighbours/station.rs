//! What an `ARPQuerier` does with packets and replies.

use super::Neighbours;
use crate::basic::arp_querier::Exit;
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Arp, Ethernet, arp, ether_type};
use castanet_kit::arp::{Limits, Lookup, Wait};

/// One host on a link: its addresses, and how it asks for those of others.
#[derive(Clone)]
pub(crate) struct Station {
    pub(crate) name: String,
    pub(crate) eth: MacAddr,
    pub(crate) ip: Ipv4Addr,
    pub(crate) broadcast: Ipv4Addr,
    pub(crate) queries_apart: bool,
    pub(crate) limits: Limits,
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
    /// Sends a burst; where all neighbours are known no packet moves.
    pub(crate) fn send(&self, known: &mut Neighbours, mut batch: Batch, cx: &mut Cx) {
        if self.ip.is_unspecified() {
            known.killed += batch.len() as u64;
            return cx.emit_batch(Exit::Unconfigured, batch);
        }
        if self.address(known, &mut batch) {
            return cx.emit_batch(Exit::Frame, batch);
        }
        let found = std::mem::take(&mut known.found);
        for (packet, &found) in batch.into_iter().zip(&found) {
            self.send_as(known, packet, found, cx);
        }
        known.found = found;
    }

    /// Looks every packet's neighbour up, and encapsulates the packets for those that are
    /// known; answers whether these are all.
    fn address(&self, known: &mut Neighbours, batch: &mut Batch) -> bool {
        let (mut all_known, mut last) = (true, None);
        known.found.clear();
        for packet in batch.iter_mut() {
            let dst = packet.dst();
            let found = match last {
                Some((same, found)) if same == dst => found,
                _ => self.find(known, dst),
            };
            match found {
                Lookup::Known(mac) => {
                    encapsulate(packet, MacAddr(mac), self.eth);
                    last = Some((dst, found));
                }
                _ => all_known = false,
            }
            known.found.push(found);
        }
        all_known
    }

    /// What Ethernet address `dst` has.
    #[inline]
    fn find(&self, known: &mut Neighbours, dst: Ipv4Addr) -> Lookup {
        match known.table.lookup(dst.to_bits(), known.now, self.poll) {
            Lookup::Unknown if dst.is_broadcast() || dst == self.broadcast => {
                Lookup::Known(MacAddr::BROADCAST.octets())
            }
            Lookup::Unknown if dst.is_multicast() => {
                Lookup::Known(MacAddr::of_ipv4_group(dst).octets())
            }
            found => found,
        }
    }

    /// Sends a packet on, as far as its neighbour has been found.
    fn send_as(&self, known: &mut Neighbours, mut packet: Packet, found: Lookup, cx: &mut Cx) {
        match found {
            Lookup::Known(_) => cx.emit(Exit::Frame, packet),
            Lookup::Stale(mac) => {
                let to = if self.broadcast_poll { MacAddr::BROADCAST } else { MacAddr(mac) };
                self.ask(known, &Question::of(&packet), to, cx);
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                cx.emit(Exit::Frame, packet);
            }
            Lookup::Unknown if packet.dst().is_unspecified() => {
                if !std::mem::replace(&mut known.warned, true) {
                    let what = "would query for 0.0.0.0; missing dest IP addr annotation?";
                    cx.chatter(&format!("{} :: ARPQuerier: {what}", self.name));
                }
                known.killed += 1;
                cx.emit(Exit::NoDestination, packet);
            }
            Lookup::Unknown => self.wait(known, packet, cx),
        }
    }

    /// Keeps a packet until its neighbour answers, and asks for it if it is time to.
    fn wait(&self, known: &mut Neighbours, packet: Packet, cx: &mut Cx) {
        let question = Question::of(&packet);
        match known.table.wait(question.dst.to_bits(), packet, known.now) {
            Wait::Queued { query: true } => self.ask(known, &question, MacAddr::BROADCAST, cx),
            Wait::Queued { query: false } => {}
            Wait::Known(mac, mut packet) => {
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                cx.emit(Exit::Frame, packet);
            }
            // The table has counted it.
            Wait::Full(packet) => drop(packet),
        }
    }

    fn ask(&self, known: &mut Neighbours, question: &Question, to: MacAddr, cx: &mut Cx) {
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
        known.queries += 1;
        cx.emit(if self.queries_apart { Exit::Query } else { Exit::Frame }, query);
    }

    /// Learns from ARP replies, and sends what has waited for them.
    pub(crate) fn learn(&self, known: &mut Neighbours, frames: Batch, cx: &mut Cx) {
        for frame in frames {
            known.responses += u64::from(frame.len() >= Ethernet::LEN + Arp::LEN);
            let Some((ip, mac)) = reply_of(&frame) else {
                cx.emit(Exit::NoReply, frame);
                continue;
            };
            for mut packet in known.table.insert(ip.to_bits(), mac.octets(), known.now) {
                encapsulate(&mut packet, mac, self.eth);
                cx.emit(Exit::Frame, packet);
            }
            cx.consume(frame.into());
        }
    }

    /// Sends what a handler has released, and accounts for what the table has dropped.
    pub(crate) fn settle(&self, known: &mut Neighbours, cx: &mut Cx) {
        if !known.released.is_empty() {
            let released = std::mem::take(&mut known.released);
            self.send(known, released.into_iter().collect(), cx);
        }
        let dropped = known.account();
        if dropped > 0 {
            cx.dropped(Exit::Unanswered, dropped);
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
