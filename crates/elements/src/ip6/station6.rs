//! What an `IP6NDSolicitor` does with packets and advertisements.

use super::ip6_nd_solicitor::Exit;
use crate::arp::neighbours::Neighbours;
use castanet_engine::prelude::*;
use castanet_engine::wire::icmp6::{self, LinkAddress, Neighbor};
use castanet_engine::wire::{Ethernet, ether_type, nd};
use castanet_kit::arp::{Enqueued, Limits, Lookup};

/// One host on a link: its addresses, and how it asks for those of others.
pub(crate) struct Station6 {
    pub(crate) name: String,
    pub(crate) eth: MacAddr,
    pub(crate) ip: Ipv6Addr,
    pub(crate) queries_apart: bool,
    pub(crate) limits: Limits,
    pub(crate) poll: u64,
}

impl Station6 {
    /// Sends packets to their neighbours, as far as these are known.
    pub(crate) fn send(&self, known: &mut Neighbours<u128>, batch: Batch, cx: &mut Cx) {
        let now = known.own.tick(cx.now());
        let mut all = std::mem::take(&mut known.tally.found);
        all.clear();
        for packet in batch.iter() {
            all.push(known.own.table.lookup(packet.dst6().to_bits(), now, self.poll));
        }
        for (mut packet, found) in batch.into_iter().zip(&all) {
            let dst = packet.dst6();
            match *found {
                Lookup::Known(mac) => {
                    encapsulate(&mut packet, MacAddr(mac), self.eth);
                    cx.emit(Exit::Frame, packet);
                }
                Lookup::Stale(mac) => {
                    self.ask(known, dst, cx);
                    encapsulate(&mut packet, MacAddr(mac), self.eth);
                    cx.emit(Exit::Frame, packet);
                }
                Lookup::Unknown if dst.is_multicast() => {
                    encapsulate(&mut packet, MacAddr::from_ipv6_group(dst), self.eth);
                    cx.emit(Exit::Frame, packet);
                }
                Lookup::Unknown if dst.is_unspecified() => {
                    known.tally.killed += 1;
                    cx.emit(Exit::NoDestination, packet);
                }
                Lookup::Unknown => self.wait(known, dst, packet, cx),
            }
        }
        known.tally.found = all;
    }

    /// Keeps a packet until its neighbour answers, and asks for it if it is time to.
    fn wait(&self, known: &mut Neighbours<u128>, dst: Ipv6Addr, packet: Packet, cx: &mut Cx) {
        let now = known.own.tick(cx.now());
        let waiting = known.own.table.queued();
        let Some(packet) = cx.keep_one(packet, || waiting) else { return };
        match known.own.table.enqueue(dst.to_bits(), packet, now) {
            Enqueued::Queued { query: true } => self.ask(known, dst, cx),
            Enqueued::Queued { query: false } => {}
            Enqueued::Known(mac, mut packet) => {
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                cx.emit(Exit::Frame, packet);
            }
            // The table has counted it.
            Enqueued::Full(packet) => drop(packet),
        }
    }

    /// Asks all whose address may be `target` (RFC 4861, 7.2.2).
    fn ask(&self, known: &mut Neighbours<u128>, target: Ipv6Addr, cx: &mut Cx) {
        let group = icmp6::solicited_node(target);
        let bytes = nd::frame(
            (self.eth, MacAddr::from_ipv6_group(group)),
            (self.ip, group),
            Neighbor::new(icmp6::NEIGHBOR_SOLICITATION, 0, target),
            LinkAddress::new(icmp6::SOURCE_LINK_ADDRESS, self.eth),
        );
        let Some(mut query) = cx.copy_in(&bytes) else { return };
        query.set_mac_header(0);
        query.set_network_header(Ethernet::LEN as isize, nd::HEADER_LEN);
        known.tally.queries += 1;
        cx.emit(if self.queries_apart { Exit::Query } else { Exit::Frame }, query);
    }

    /// Learns from advertisements, and sends what has waited for them.
    pub(crate) fn learn(&self, known: &mut Neighbours<u128>, frames: Batch, cx: &mut Cx) {
        let now = known.own.tick(cx.now());
        for frame in frames {
            let Some((ip, told)) = advertised(&frame) else {
                cx.emit(Exit::NoAdvertisement, frame);
                continue;
            };
            known.tally.responses += 1;
            let before = match known.own.table.lookup(ip.to_bits(), now, 0) {
                Lookup::Known(mac) | Lookup::Stale(mac) => Some(MacAddr(mac)),
                Lookup::Unknown => None,
            };
            // Who was not asked for is not learnt (RFC 4861, 7.2.5).
            let mac = told.or(before).filter(|_| known.own.table.contains(ip.to_bits()));
            if let Some(mac) = mac {
                if before.is_some_and(|before| before != mac) {
                    cx.chatter(&format!("{}: IP6NDSolicitor overwriting an entry", self.name));
                }
                for mut packet in known.own.table.insert(ip.to_bits(), mac.octets(), now) {
                    encapsulate(&mut packet, mac, self.eth);
                    cx.emit(Exit::Frame, packet);
                }
            }
            cx.consume(frame.into());
        }
    }

    /// Sends what a handler has released, and accounts for what the table has dropped.
    pub(crate) fn settle(&self, known: &mut Neighbours<u128>, cx: &mut Cx) {
        if !known.own.released.is_empty() {
            let released = std::mem::take(&mut known.own.released);
            self.send(known, released.into_iter().collect(), cx);
        }
        let dropped = known.own.account();
        known.tally.killed += dropped as u64;
        if dropped > 0 {
            cx.dropped(Exit::Unanswered, dropped);
        }
    }
}

/// Puts the link's header before an IPv6 packet.
#[inline(always)]
fn encapsulate(packet: &mut Packet, dst: MacAddr, src: MacAddr) {
    let header = Ethernet::new(dst, src, ether_type::IPV6);
    packet.push_mac_header(Ethernet::LEN).copy_from_slice(header.bytes());
}

/// Whose Ethernet address a frame tells, if it is an advertisement that can be believed.
fn advertised(frame: &Packet) -> Option<(Ipv6Addr, Option<MacAddr>)> {
    let heard = nd::parse(frame.bytes(), icmp6::NEIGHBOR_ADVERTISEMENT)?;
    let mac = heard.link_address(icmp6::TARGET_LINK_ADDRESS).ok()?;
    mac.is_none_or(MacAddr::is_unicast).then(|| (heard.message.target(), mac))
}
