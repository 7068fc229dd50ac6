//! `ARPQuerier`: where on the link an IPv4 packet goes.

use super::neighbours::Neighbours;
use super::settings::Settings;
use super::station::Station;
use castanet_engine::prelude::*;

/// Encapsulates IPv4 packets in Ethernet frames to addresses found by ARP.
///
/// Packets on input 0 go where their destination annotation says. Where its
/// Ethernet address is not known they wait, and queries are sent for it, ten a
/// second at most; ARP replies on input 1 release them. Queries leave by
/// output 1 if it is connected. An address without news for POLL_TIMEOUT is
/// asked for again while it is still used. Broadcasts and multicasts need no
/// query (RFC 1112, 6.4). Of packets that wait for one address no more than
/// ENTRY_PACKET_CAPACITY are kept, and all of them go after PACKET_TIMEOUT, or
/// when they are the oldest of more than CAPACITY.
///
/// With TABLE it shares addresses and waiting packets with other queriers, and
/// the one that hears a reply sends what waited for it.
///
/// ```click
/// in -> a :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1, ENTRY_PACKET_CAPACITY 2) -> out;
/// replies -> [1] a;  a[1] -> queries
/// > in      9.0.0.9 > 1.0.0.2 udp
/// < queries eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1
/// > in      9.0.0.9 > 7.0.0.7 udp ; dst 1.0.0.2
/// > in      9.0.0.9 > 1.0.0.2 udp ttl 3
/// = a.length 2
/// > replies eth 0:0:0:0:0:2 > 0:0:0:0:0:1 arp reply 1.0.0.2 is-at 0:0:0:0:0:2 to 1.0.0.1 0:0:0:0:0:1
/// < out     eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp ; mac 0 network 14
/// < out     eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9.0.0.9 > 7.0.0.7 udp
/// > in      9.0.0.9 > 1.0.0.2 udp
/// > in      9.0.0.9 > 224.0.0.5 udp
/// > in      9.0.0.9 > 255.255.255.255 udp
/// > in      9.0.0.9 > 0.0.0.0 udp
/// < out     eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp
/// < out     eth 0:0:0:0:0:1 > 1:0:5e:0:0:5 9.0.0.9 > 224.0.0.5 udp
/// < out     eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff 9.0.0.9 > 255.255.255.255 udp
/// ~ a :: ARPQuerier: would query for 0.0.0.0; missing dest IP addr annotation?
/// > replies 9.0.0.9 > 1.0.0.1 udp
/// = a.drops.unanswered 1
/// = a.drops.no_destination 1
/// = a.drops.no_reply 1
/// = a.table 1.0.0.2 1 00-00-00-00-00-02 0.000000
/// = a.stats 2 packets killed\n1 ARP queries sent
/// ! a.ipaddr 0.0.0.0
/// > in      9.0.0.9 > 1.0.0.2 udp
/// = a.drops.unconfigured 1
/// = a.drops 3
/// ```
/// ```click
/// in -> a :: ARPQuerier(1.0.0.1/24, 0:0:0:0:0:1, TIMEOUT 2m) -> out;  idle -> [1] a
/// > idle eth 0:0:0:0:0:1 > 0:0:0:0:0:2 type 0x0900 hex 00
/// ! a.insert 1.0.0.2 0:0:0:0:0:2
/// = a.broadcast 1.0.0.255
/// + 61s
/// > in  9.0.0.9 > 1.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp
/// ! a.delete 1.0.0.2
/// > in  9.0.0.9 > 1.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1
/// ! a.insert 1.0.0.2 0:0:0:0:0:3
/// + 1s
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:3 9.0.0.9 > 1.0.0.2 udp
/// + 121s
/// = a.count 0
/// > in  9.0.0.9 > 1.0.0.4 udp
/// < out eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.4 tell 1.0.0.1 0:0:0:0:0:1
/// + 2s
/// = a.length 1
/// + 2s
/// = a.length 0
/// = a.drops.unanswered 1
/// ```
/// The query about an address that is getting old leaves before the packet for it:
/// ```click
/// in -> a :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1) -> out;  a[1] -> out;  Idle -> [1] a
/// ! a.insert 1.0.0.2 0:0:0:0:0:2
/// + 61s
/// > in  9.0.0.9 > 1.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "arp", args = Settings, ports = "2/1-2", processing = "h/h", gives = "ether", methods)]
pub struct ARPQuerier {
    station: Station,
}

/// Where packets go.
#[derive(Fate)]
pub enum Exit {
    /// Frames: the packets, and queries where those have no output of their own.
    Frame,
    /// Queries.
    #[optional]
    Query,
    /// Packets whose neighbour did not answer, or that found no room to wait.
    #[drop]
    Unanswered,
    /// Packets without a destination annotation.
    #[drop]
    NoDestination,
    /// Packets on input 1 that are no ARP replies.
    #[drop]
    NoReply,
    /// Packets while `ipaddr` is 0.0.0.0.
    #[drop]
    Unconfigured,
}

impl Build for ARPQuerier {
    type Args = Settings;
    fn build(settings: Settings, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ARPQuerier { station: settings.station(setup)? })
    }
}

#[handlers]
impl ARPQuerier {
    /// This host's address.
    #[read]
    fn ipaddr(&self) -> Ipv4Addr {
        self.station.ip
    }

    /// Gives this host another address.
    #[write(ipaddr)]
    fn set_ipaddr(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let ip = Ipv4Addr::from_arg(text, names)?;
        Ok(ARPQuerier { station: Station { ip, ..self.station.clone() } })
    }

    /// The address of all hosts on the link.
    #[read]
    fn broadcast(&self) -> Ipv4Addr {
        self.station.broadcast
    }

    /// Sets the address of all hosts on the link.
    #[write(broadcast)]
    fn set_broadcast(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let broadcast = Ipv4Addr::from_arg(text, names)?;
        Ok(ARPQuerier { station: Station { broadcast, ..self.station.clone() } })
    }
}

/// How often the table is looked through for what has expired.
const TICK: Duration = Duration::from_secs(1);

impl PerBatch for ARPQuerier {
    type On = on::Any;
    type Local = Neighbours;
    type Fate = Exit;
    // What one worker learns, all know.
    const SHARED: bool = true;

    fn continues(&self, _: &ARPQuerier) -> bool {
        true
    }

    fn resume(&self, known: &mut Neighbours, cx: &mut Cx) {
        known.own.table.set_limits(self.station.limits);
        known.share(self.station.table.as_ref(), cx);
    }

    fn start(&self, known: &mut Neighbours, cx: &mut Cx) -> Result<(), ArgError> {
        self.resume(known, cx);
        self.wake(known, cx);
        Ok(())
    }

    fn batch(&self, known: &mut Neighbours, port: usize, batch: Batch, cx: &mut Cx) {
        let station = &self.station;
        station.using(known, |cache, tally| {
            cache.tick(cx.now());
            match port {
                0 => station.send(cache, tally, batch, cx),
                _ => station.learn(cache, tally, batch, cx),
            }
            station.settle(cache, tally, cx);
        });
    }

    fn wake(&self, known: &mut Neighbours, cx: &mut Cx) {
        self.station.using(known, |cache, tally| {
            let now = cache.tick(cx.now());
            cache.table.expire(now);
            self.station.settle(cache, tally, cx);
        });
        cx.wake_at(cx.now() + TICK);
    }

    fn held(&self, known: &Neighbours) -> usize {
        known.held()
    }
}
