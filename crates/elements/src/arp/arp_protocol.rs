//! ARP, as `ARPQuerier` resolves next hops by it: queries and replies.

use super::arp_querier::{ARPQuerier, ARPQuerierExit};
use super::neighbour_cache::NeighbourCache;
use super::resolver::{QueryContext, ResolverProtocol};
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::{Arp, Ethernet, arp, ether_type};

impl ResolverProtocol for ARPQuerier {
    type Address = u32;
    type Exit = ARPQuerierExit;
    const FRAME: ARPQuerierExit = ARPQuerierExit::Frame;
    const QUERY: ARPQuerierExit = ARPQuerierExit::Query;
    const UNANSWERED: ARPQuerierExit = ARPQuerierExit::Unanswered;
    const NO_DESTINATION: ARPQuerierExit = ARPQuerierExit::NoDestination;
    const NO_REPLY: ARPQuerierExit = ARPQuerierExit::NoReply;
    const ETHER_TYPE: u16 = ether_type::IPV4;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Writes;

    fn next_hop_of(destination: u32) -> Option<u32> {
        Some(destination)
    }

    #[inline]
    fn next_hop(packet: &Packet) -> u32 {
        packet.dst().to_bits()
    }

    fn group(&self, next_hop: u32) -> Option<MacAddr> {
        match Ipv4Addr::from_bits(next_hop) {
            dst if dst.is_broadcast() || dst == self.broadcast => Some(MacAddr::BROADCAST),
            dst if dst.is_multicast() => Some(MacAddr::from_ipv4_group(dst)),
            _ => None,
        }
    }

    fn unconfigured(&self) -> Option<ARPQuerierExit> {
        self.ip.is_unspecified().then_some(ARPQuerierExit::Unconfigured)
    }

    fn warn_no_destination(name: &str, cx: &mut Cx) {
        let what = "would query for 0.0.0.0; missing dest IP addr annotation?";
        cx.chatter(&format!("{name} :: ARPQuerier: {what}"));
    }

    fn query(
        &self,
        eth: MacAddr,
        context: &QueryContext<u32>,
        known: Option<MacAddr>,
        cx: &mut Cx,
    ) -> Option<Packet> {
        let to = known.filter(|_| !self.broadcast_poll).unwrap_or(MacAddr::BROADCAST);
        let ether = Ethernet::new(to, eth, ether_type::ARP);
        let message = Arp::request((eth, self.ip), Ipv4Addr::from_bits(context.next_hop));
        let mut bytes = [0; Ethernet::LEN + Arp::LEN];
        let (front, back) = bytes.split_at_mut(Ethernet::LEN);
        front.copy_from_slice(ether.bytes());
        back.copy_from_slice(message.bytes());
        let mut query = cx.copy_in(&bytes)?;
        query.set_mac_header(0);
        query.set_network_header(Ethernet::LEN as isize, Arp::LEN);
        if context.timestamp != 0 {
            query.set_timestamp(context.timestamp);
        }
        if context.vlan != 0 {
            query.set_anno_u16(anno::VLAN_TCI, context.vlan);
        }
        Some(query)
    }

    fn is_response(frame: &Packet, _: bool) -> bool {
        frame.len() >= Ethernet::LEN + Arp::LEN
    }

    fn reply(
        _: &str,
        _: &mut NeighbourCache,
        frame: &Packet,
        _: &mut Cx,
    ) -> Option<Option<(u32, MacAddr)>> {
        let (ether, rest) = Ethernet::from_prefix(frame.bytes())?;
        let (message, _) = Arp::from_prefix(rest)?;
        let is_reply = ether.ether_type() == ether_type::ARP
            && message.is_ethernet_ipv4()
            && message.operation() == arp::REPLY
            && message.sender_mac().is_unicast();
        is_reply.then(|| Some((message.sender_ip().to_bits(), message.sender_mac())))
    }
}
