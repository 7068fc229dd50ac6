//! `IP6NDSolicitor`: encapsulates IPv6 packets to addresses found by neighbour discovery.

use crate::arp::args::{QueueLimitArgs, nanos};
use crate::arp::neighbour_cache::NeighbourCache;
use crate::arp::resolver::{QueryContext, Resolver, ResolverProtocol};
use castanet_element::prelude::*;
use castanet_element::wire::icmp6::{self, LinkAddress, Neighbor};
use castanet_element::wire::{Ethernet, ether_type, nd};
use castanet_kit::arp::Lookup;

/// Encapsulates IPv6 packets in Ethernet frames to addresses found by neighbour discovery.
///
/// Input 0 takes IPv6 packets; the IPv6 destination annotation of a packet is
/// its next hop. While the Ethernet address of the next hop is unknown, the
/// element queues the packet and sends neighbour solicitations, at most ten
/// per second and address. Neighbour advertisements on input 1, with their
/// Ethernet header, release the queued packets (RFC 4861). Solicitations leave
/// by output 1 if it is connected, else by output 0. If no advertisement has
/// confirmed an address for POLL_TIMEOUT, the next packet to it triggers a new
/// solicitation. Packets to multicast groups need none (RFC 2464, 7).
///
/// ```click
/// in -> s :: IP6NDSolicitor(1::1, 0:0:0:0:0:1) -> out;  adv -> [1] s;  s[1] -> queries
/// > in      9::9 > 1::2 udp
/// < queries eth 0:0:0:0:0:1 > 33:33:ff:0:0:2 1::1 > ff02::1:ff00:2 icmp6 type 135 hop 255 data 000100000000000000000000000000020101000000000001
/// > in      9::9 > 7::7 udp ; dst6 1::2
/// = s.length 2
/// > adv     eth 0:0:0:0:0:2 > 0:0:0:0:0:1 1::2 > 1::1 icmp6 type 136 rest 0x60000000 hop 255 data 000100000000000000000000000000020201000000000002
/// < out     eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9::9 > 1::2 udp ; mac 0 network 14
/// < out     eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9::9 > 7::7 udp
/// > in      9::9 > ff02::5 udp
/// < out     eth 0:0:0:0:0:1 > 33:33:0:0:0:5 9::9 > ff02::5 udp
/// > in      9::9 > :: udp
/// = s.drops.no_destination 1
/// = s.table 1::2 1 00-00-00-00-00-02 0.000000
/// = s.stats 1 packets killed\n1 ND Solicitation Message sent
/// > adv     eth 0:0:0:0:0:3 > 0:0:0:0:0:1 1::3 > 1::1 icmp6 type 136 hop 255 data 000100000000000000000000000000030201000000000003
/// = s.count 1
/// > adv     eth 0:0:0:0:0:2 > 0:0:0:0:0:1 1::2 > 1::1 icmp6 type 136 hop 64 data 000100000000000000000000000000020201000000000002
/// = s.drops.no_advertisement 1
/// > adv     eth 0:0:0:0:0:4 > 0:0:0:0:0:1 1::2 > 1::1 icmp6 type 136 hop 255 data 000100000000000000000000000000020201000000000004
/// ~ s: IP6NDSolicitor overwriting an entry
/// ! s.delete 1::2
/// > in      9::9 > 1::2 udp
/// < queries eth 0:0:0:0:0:1 > 33:33:ff:0:0:2 1::1 > ff02::1:ff00:2 icmp6 type 135 hop 255 data 000100000000000000000000000000020101000000000001
/// + 130s
/// = s.drops.unanswered 1
/// = s.count 0
/// ```
/// ```click
/// in -> s :: IP6NDSolicitor(1::1, 0:0:0:0:0:1) -> out;  adv -> [1] s
/// > adv hex 00
/// ! s.insert 1::2 0:0:0:0:0:2
/// + 61s
/// > in  9::9 > 1::2 udp
/// < out eth 0:0:0:0:0:1 > 33:33:ff:0:0:2 1::1 > ff02::1:ff00:2 icmp6 type 135 hop 255 data 000100000000000000000000000000020101000000000001
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9::9 > 1::2 udp
/// ```
/// Packets to a next hop that does not answer are dropped after PACKET_TIMEOUT:
/// ```click
/// in -> s :: IP6NDSolicitor(1::1, 0:0:0:0:0:1, ENTRY_PACKET_CAPACITY 2) -> Discard;  Idle -> [1] s
/// > in 9::9 > 1::2 udp
/// > in 9::9 > 1::2 udp
/// > in 9::9 > 1::2 udp
/// = s.drops.unanswered 1
/// + 2s
/// = s.length 2
/// + 2s
/// = s.length 0
/// = s.drops.unanswered 3
/// = s.count 1
/// ```
#[derive(Clone, Element)]
#[element(room = "ip6", args = IP6NDSolicitorArgs, by = Resolver<IP6NDSolicitor>)]
#[element(ports = "2/1-2", processing = "h/h", gives = "ether", headers = Encapsulate)]
pub struct IP6NDSolicitor {
    ip: Ipv6Addr,
}

#[derive(Args)]
pub struct IP6NDSolicitorArgs {
    /// IPv6 address of this host.
    #[arg]
    ip: Ipv6Addr,
    /// Ethernet address of this host.
    #[arg]
    eth: MacAddr,
    #[arg(flatten)]
    queue: QueueLimitArgs,
    /// Time after which an unconfirmed entry is removed; 0 for never.
    #[arg(keyword, default = Duration::from_secs(120))]
    timeout: Duration,
    /// Time after which an unconfirmed address is solicited again when a packet uses it; 0 for
    /// never.
    #[arg(keyword, default = Duration::from_secs(60))]
    poll_timeout: Duration,
}

/// Exits.
#[derive(Fate)]
pub enum IP6NDSolicitorExit {
    /// Ethernet frames with the packets, and solicitations if output 1 is not connected.
    Frame,
    /// Neighbour solicitations.
    #[optional]
    Query,
    /// Packets whose next hop did not answer in time, or that found the queue for it full. Check
    /// that the next hop is up and on this link.
    #[drop]
    Unanswered,
    /// Packets without a destination annotation, which a GetIP6Address or a route lookup sets.
    #[drop]
    NoDestination,
    /// Packets on input 1 that are not valid neighbour advertisements (RFC 4861, 7.1.2).
    #[drop]
    NoAdvertisement,
}

impl Build for Resolver<IP6NDSolicitor> {
    type Args = IP6NDSolicitorArgs;

    fn build(args: IP6NDSolicitorArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(Resolver {
            protocol: IP6NDSolicitor { ip: args.ip },
            name: setup.name.to_owned(),
            eth: args.eth,
            has_query_output: setup.outputs > 1,
            limits: args.queue.limits(args.timeout),
            table: None,
            poll: nanos(args.poll_timeout),
        })
    }
}

impl ResolverProtocol for IP6NDSolicitor {
    type Address = u128;
    type Exit = IP6NDSolicitorExit;
    const FRAME: IP6NDSolicitorExit = IP6NDSolicitorExit::Frame;
    const QUERY: IP6NDSolicitorExit = IP6NDSolicitorExit::Query;
    const UNANSWERED: IP6NDSolicitorExit = IP6NDSolicitorExit::Unanswered;
    const NO_DESTINATION: IP6NDSolicitorExit = IP6NDSolicitorExit::NoDestination;
    const NO_REPLY: IP6NDSolicitorExit = IP6NDSolicitorExit::NoAdvertisement;
    const ETHER_TYPE: u16 = ether_type::IPV6;

    #[inline]
    fn next_hop(packet: &Packet) -> u128 {
        packet.dst6().to_bits()
    }

    fn group(&self, next_hop: u128) -> Option<MacAddr> {
        let dst = Ipv6Addr::from_bits(next_hop);
        dst.is_multicast().then(|| MacAddr::from_ipv6_group(dst))
    }

    /// Makes a solicitation to the next hop's solicited-node group (RFC 4861, 7.2.2).
    fn query(
        &self,
        eth: MacAddr,
        context: &QueryContext<u128>,
        _: Option<MacAddr>,
        cx: &mut Cx,
    ) -> Option<Packet> {
        let target = Ipv6Addr::from_bits(context.next_hop);
        let group = icmp6::solicited_node(target);
        let bytes = nd::frame(
            (eth, MacAddr::from_ipv6_group(group)),
            (self.ip, group),
            Neighbor::new(icmp6::NEIGHBOR_SOLICITATION, 0, target),
            LinkAddress::new(icmp6::SOURCE_LINK_ADDRESS, eth),
        );
        let mut query = cx.copy_in(&bytes)?;
        query.set_mac_header(0);
        query.set_network_header(Ethernet::LEN as isize, nd::HEADER_LEN);
        Some(query)
    }

    fn reply(
        name: &str,
        cache: &mut NeighbourCache<u128>,
        frame: &Packet,
        cx: &mut Cx,
    ) -> Option<Option<(u128, MacAddr)>> {
        let message = nd::parse(frame.bytes(), icmp6::NEIGHBOR_ADVERTISEMENT)?;
        let advertised = message.link_address(icmp6::TARGET_LINK_ADDRESS).ok()?;
        if advertised.is_some_and(|mac| !mac.is_unicast()) {
            return None;
        }
        let target = message.message.target().to_bits();
        let cached = match cache.table.lookup(target, cache.now, 0) {
            Lookup::Known(mac) | Lookup::Stale(mac) => Some(MacAddr(mac)),
            Lookup::Unknown => None,
        };
        // An advertisement creates no entry (RFC 4861, 7.2.5).
        let mac = advertised.or(cached).filter(|_| cache.table.contains(target));
        if mac.is_some() && cached.is_some_and(|cached| Some(cached) != mac) {
            cx.chatter(&format!("{name}: IP6NDSolicitor overwriting an entry"));
        }
        Some(mac.map(|mac| (target, mac)))
    }
}
