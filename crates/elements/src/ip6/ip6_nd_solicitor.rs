//! `IP6NDSolicitor`: where on the link an IPv6 packet goes.

use super::station6::Station6;
use crate::arp::neighbours::Neighbours;
use castanet_engine::prelude::*;
use castanet_kit::arp::Limits;

/// Encapsulates IPv6 packets in Ethernet frames to addresses found by neighbour discovery.
///
/// Packets on input 0 go where their IPv6 destination annotation says. Where
/// its Ethernet address is not known they wait, and solicitations are sent for
/// it, ten a second at most; advertisements on input 1, Ethernet header
/// included, release them (RFC 4861). Solicitations leave by output 1 if it is
/// connected. An address without news for POLL_TIMEOUT is asked for again
/// while it is still used. Packets to groups need no question (RFC 2464, 7).
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
/// Packets for a neighbour that does not answer go after PACKET_TIMEOUT:
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
#[element(room = "ip6", args = Settings, ports = "2/1-2", processing = "h/h", gives = "ether")]
pub struct IP6NDSolicitor {
    station: Station6,
}

#[derive(Args)]
pub struct Settings {
    /// This host's address.
    #[arg]
    ip: Ipv6Addr,
    /// This host's Ethernet address.
    #[arg]
    eth: MacAddr,
    /// How many packets may wait; 0 for a million.
    #[arg(keyword, default = 2048)]
    capacity: u32,
    /// How many addresses to keep, those that were asked for included; 0 for a million. Where
    /// there are more, the oldest without an answer goes first.
    #[arg(keyword, default = Limits::ENTRIES)]
    entry_capacity: u32,
    /// How many packets may wait for one address, after which more are dropped; 0 for as many as
    /// may wait at all.
    #[arg(keyword, default = Limits::ENTRY_PACKETS)]
    entry_packet_capacity: u32,
    /// How long packets may wait for an address, from the first of them on; 0 for as long as
    /// their entry stays.
    #[arg(keyword, default = Limits::PACKET_TIMEOUT)]
    packet_timeout: Duration,
    /// How long an address is known without news; 0 for ever.
    #[arg(keyword, default = Duration::from_secs(120))]
    timeout: Duration,
    /// How long an address is used without news before it is asked for again; 0 for ever.
    #[arg(keyword, default = Duration::from_secs(60))]
    poll_timeout: Duration,
}

/// Where packets go.
#[derive(Fate)]
pub enum Exit {
    /// Frames: the packets, and solicitations where those have no output of their own.
    Frame,
    /// Solicitations.
    #[optional]
    Query,
    /// Packets whose neighbour did not answer, or that found no room to wait.
    #[drop]
    Unanswered,
    /// Packets without a destination annotation.
    #[drop]
    NoDestination,
    /// Packets on input 1 that are no advertisements, or not to be believed.
    #[drop]
    NoAdvertisement,
}

impl Build for IP6NDSolicitor {
    type Args = Settings;
    fn build(args: Settings, setup: &Setup) -> Result<Self, ArgError> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(0);
        let limits = Limits {
            capacity: args.capacity as usize,
            entry_capacity: args.entry_capacity as usize,
            entry_packet_capacity: args.entry_packet_capacity as usize,
            packet_timeout: nanos(args.packet_timeout),
            timeout: nanos(args.timeout),
            ..Limits::default()
        };
        let station = Station6 {
            name: setup.name.to_owned(),
            eth: args.eth,
            ip: args.ip,
            queries_apart: setup.outputs > 1,
            limits,
            poll: nanos(args.poll_timeout),
        };
        Ok(IP6NDSolicitor { station })
    }
}

/// How often the table is looked through for what has expired.
const TICK: Duration = Duration::from_secs(1);

impl PerBatch for IP6NDSolicitor {
    type On = on::Any;
    type Local = Neighbours<u128>;
    type Fate = Exit;
    // What one worker learns, all know.
    const SHARED: bool = true;

    fn begin(&self, known: &mut Neighbours<u128>, cx: &mut Cx) -> Result<(), ArgError> {
        known.own.table.set_limits(self.station.limits);
        self.wake(known, cx);
        Ok(())
    }

    fn continues(&self, _: &IP6NDSolicitor) -> bool {
        true
    }

    fn resume(&self, known: &mut Neighbours<u128>, _: &mut Cx) {
        known.own.table.set_limits(self.station.limits);
    }

    fn batch(&self, known: &mut Neighbours<u128>, port: usize, batch: Batch, cx: &mut Cx) {
        match port {
            0 => self.station.send(known, batch, cx),
            _ => self.station.learn(known, batch, cx),
        }
        self.station.settle(known, cx);
    }

    fn wake(&self, known: &mut Neighbours<u128>, cx: &mut Cx) {
        let now = known.own.tick(cx.now());
        known.own.table.expire(now);
        self.station.settle(known, cx);
        cx.wake_at(cx.now() + TICK);
    }

    fn held(&self, known: &Neighbours<u128>) -> usize {
        known.held()
    }
}
