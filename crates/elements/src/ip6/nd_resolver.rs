//! Resolution of next hops by neighbour discovery for `IP6NDSolicitor` (RFC 4861).

use super::ip6_nd_solicitor::IP6NDSolicitorExit as Exit;
use crate::arp::neighbour_state::NeighbourState;
use castanet_element::prelude::*;
use castanet_element::wire::icmp6::{self, LinkAddress, Neighbor};
use castanet_element::wire::{Ethernet, ether_type, nd};
use castanet_kit::arp::{EnqueueResult, Limits, Lookup};

/// The addresses of this host on a link, and the parameters of its solicitations.
pub(crate) struct NdResolver {
    pub(crate) name: String,
    pub(crate) eth: MacAddr,
    pub(crate) ip: Ipv6Addr,
    /// Whether output 1 is connected; otherwise solicitations leave by output 0.
    pub(crate) has_query_output: bool,
    pub(crate) limits: Limits,
    /// Nanoseconds after which an unconfirmed address is solicited again; 0 for never.
    pub(crate) poll: u64,
}

impl NdResolver {
    /// Sends, queues or drops each packet according to the lookup of its next hop.
    pub(crate) fn send(&self, state: &mut NeighbourState<u128>, batch: Batch, cx: &mut Cx) {
        let now = state.own.tick(cx.now());
        let mut lookups = std::mem::take(&mut state.query_state.lookups);
        lookups.clear();
        for packet in batch.iter() {
            lookups.push(state.own.table.lookup(packet.dst6().to_bits(), now, self.poll));
        }
        for (mut packet, lookup) in batch.into_iter().zip(&lookups) {
            let dst = packet.dst6();
            match *lookup {
                Lookup::Known(mac) => {
                    encapsulate(&mut packet, MacAddr(mac), self.eth);
                    cx.emit(Exit::Frame, packet);
                }
                Lookup::Stale(mac) => {
                    self.send_query(state, dst, cx);
                    encapsulate(&mut packet, MacAddr(mac), self.eth);
                    cx.emit(Exit::Frame, packet);
                }
                Lookup::Unknown if dst.is_multicast() => {
                    encapsulate(&mut packet, MacAddr::from_ipv6_group(dst), self.eth);
                    cx.emit(Exit::Frame, packet);
                }
                Lookup::Unknown if dst.is_unspecified() => {
                    state.query_state.killed += 1;
                    cx.emit(Exit::NoDestination, packet);
                }
                Lookup::Unknown => self.enqueue(state, dst, packet, cx),
            }
        }
        state.query_state.lookups = lookups;
    }

    /// Queues a packet until its next hop answers, and sends a solicitation if one is due.
    fn enqueue(
        &self,
        state: &mut NeighbourState<u128>,
        dst: Ipv6Addr,
        packet: Packet,
        cx: &mut Cx,
    ) {
        let now = state.own.tick(cx.now());
        let waiting = state.own.table.queued();
        let Some(packet) = cx.keep_one(packet, || waiting) else { return };
        match state.own.table.enqueue(dst.to_bits(), packet, now) {
            EnqueueResult::Queued { query: true } => self.send_query(state, dst, cx),
            EnqueueResult::Queued { query: false } => {}
            EnqueueResult::Known(mac, mut packet) => {
                encapsulate(&mut packet, MacAddr(mac), self.eth);
                cx.emit(Exit::Frame, packet);
            }
            // The table has counted the drop.
            EnqueueResult::Full(packet) => drop(packet),
        }
    }

    /// Sends a solicitation for `target` to its solicited-node group (RFC 4861, 7.2.2).
    fn send_query(&self, state: &mut NeighbourState<u128>, target: Ipv6Addr, cx: &mut Cx) {
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
        state.query_state.queries += 1;
        let query_exit = if self.has_query_output { Exit::Query } else { Exit::Frame };
        cx.emit(query_exit, query);
    }

    /// Stores the addresses of advertisements and sends the packets queued for them.
    pub(crate) fn learn(&self, state: &mut NeighbourState<u128>, frames: Batch, cx: &mut Cx) {
        let now = state.own.tick(cx.now());
        for frame in frames {
            let Some((ip, advertised)) = parse_advertisement(&frame) else {
                cx.emit(Exit::NoAdvertisement, frame);
                continue;
            };
            state.query_state.responses += 1;
            let cached = match state.own.table.lookup(ip.to_bits(), now, 0) {
                Lookup::Known(mac) | Lookup::Stale(mac) => Some(MacAddr(mac)),
                Lookup::Unknown => None,
            };
            // An advertisement creates no entry (RFC 4861, 7.2.5).
            let mac = advertised.or(cached).filter(|_| state.own.table.contains(ip.to_bits()));
            if let Some(mac) = mac {
                if cached.is_some_and(|cached| cached != mac) {
                    cx.chatter(&format!("{}: IP6NDSolicitor overwriting an entry", self.name));
                }
                for mut packet in state.own.table.insert(ip.to_bits(), mac.octets(), now) {
                    encapsulate(&mut packet, mac, self.eth);
                    cx.emit(Exit::Frame, packet);
                }
            }
            cx.consume(frame.into());
        }
    }

    /// Sends the packets that a handler has released, and reports the drops of the table.
    pub(crate) fn flush(&self, state: &mut NeighbourState<u128>, cx: &mut Cx) {
        if !state.own.released.is_empty() {
            let released = std::mem::take(&mut state.own.released);
            self.send(state, released.into_iter().collect(), cx);
        }
        let dropped = state.own.take_unreported_drops();
        state.query_state.killed += dropped as u64;
        if dropped > 0 {
            cx.count_dropped(Exit::Unanswered, dropped);
        }
    }
}

/// Prepends the Ethernet header to an IPv6 packet.
#[inline(always)]
fn encapsulate(packet: &mut Packet, dst: MacAddr, src: MacAddr) {
    let header = Ethernet::new(dst, src, ether_type::IPV6);
    packet.push_mac_header(Ethernet::LEN).copy_from_slice(header.bytes());
}

/// The target and its Ethernet address, if the frame is a valid advertisement.
fn parse_advertisement(frame: &Packet) -> Option<(Ipv6Addr, Option<MacAddr>)> {
    let message = nd::parse(frame.bytes(), icmp6::NEIGHBOR_ADVERTISEMENT)?;
    let mac = message.link_address(icmp6::TARGET_LINK_ADDRESS).ok()?;
    mac.is_none_or(MacAddr::is_unicast).then(|| (message.message.target(), mac))
}
