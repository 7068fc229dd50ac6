//! `IP6NDSolicitor`: encapsulates IPv6 packets to addresses found by neighbour discovery.

use super::nd_resolver::NdResolver;
use crate::arp::neighbour_state::NeighbourState;
use castanet_element::prelude::*;
use castanet_kit::arp::Limits;

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
#[derive(Element)]
#[element(room = "ip6", args = IP6NDSolicitorArgs, ports = "2/1-2", processing = "h/h", gives = "ether")]
pub struct IP6NDSolicitor {
    resolver: NdResolver,
}

#[derive(Args)]
pub struct IP6NDSolicitorArgs {
    /// IPv6 address of this host.
    #[arg]
    ip: Ipv6Addr,
    /// Ethernet address of this host.
    #[arg]
    eth: MacAddr,
    /// Maximum number of queued packets; 0 means a million.
    #[arg(keyword, default = 2048)]
    capacity: u32,
    /// Maximum number of entries, including unresolved ones; 0 means a million. If there are
    /// more, the oldest unresolved entry is removed first.
    #[arg(keyword, default = Limits::ENTRIES)]
    entry_capacity: u32,
    /// Maximum number of packets queued for one address; further packets are dropped. 0 means no
    /// limit but CAPACITY.
    #[arg(keyword, default = Limits::ENTRY_PACKETS)]
    entry_packet_capacity: u32,
    /// Time after which the packets queued for an address are dropped, counted from the first of
    /// them; 0 keeps them as long as their entry.
    #[arg(keyword, default = Limits::PACKET_TIMEOUT)]
    packet_timeout: Duration,
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
    /// Packets whose next hop did not answer in time, or for which the queue was full.
    #[drop]
    Unanswered,
    /// Packets without a destination annotation.
    #[drop]
    NoDestination,
    /// Packets on input 1 that are not valid neighbour advertisements (RFC 4861, 7.1.2).
    #[drop]
    NoAdvertisement,
}

impl Build for IP6NDSolicitor {
    type Args = IP6NDSolicitorArgs;
    fn build(args: IP6NDSolicitorArgs, setup: &Setup) -> Result<Self, ArgError> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(0);
        let limits = Limits {
            capacity: args.capacity as usize,
            entry_capacity: args.entry_capacity as usize,
            entry_packet_capacity: args.entry_packet_capacity as usize,
            packet_timeout: nanos(args.packet_timeout),
            timeout: nanos(args.timeout),
            ..Limits::default()
        };
        let resolver = NdResolver {
            name: setup.name.to_owned(),
            eth: args.eth,
            ip: args.ip,
            has_query_output: setup.outputs > 1,
            limits,
            poll: nanos(args.poll_timeout),
        };
        Ok(IP6NDSolicitor { resolver })
    }
}

/// Interval at which the element removes expired entries and packets.
const TICK: Duration = Duration::from_secs(1);

impl PerBatch for IP6NDSolicitor {
    type On = on::Any;
    type Local = NeighbourState<u128>;
    type Fate = IP6NDSolicitorExit;
    // An address that one worker learns is known to all workers.
    const SHARED: bool = true;

    fn init(&self, state: &mut NeighbourState<u128>, cx: &mut Cx) -> Result<(), ArgError> {
        state.own.table.set_limits(self.resolver.limits);
        self.run_timer(state, cx);
        Ok(())
    }

    fn can_take_state(&self, _: &IP6NDSolicitor) -> bool {
        true
    }

    fn after_take_state(&self, state: &mut NeighbourState<u128>, _: &mut Cx) {
        state.own.table.set_limits(self.resolver.limits);
    }

    fn batch(&self, state: &mut NeighbourState<u128>, port: usize, batch: Batch, cx: &mut Cx) {
        match port {
            0 => self.resolver.send(state, batch, cx),
            _ => self.resolver.learn(state, batch, cx),
        }
        self.resolver.flush(state, cx);
    }

    fn run_timer(&self, state: &mut NeighbourState<u128>, cx: &mut Cx) {
        let now = state.own.tick(cx.now());
        state.own.table.expire(now);
        self.resolver.flush(state, cx);
        cx.set_timer(cx.now() + TICK);
    }

    fn held(&self, state: &NeighbourState<u128>) -> usize {
        state.held()
    }
}
