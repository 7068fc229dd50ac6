//! `ARPQuerier`: encapsulates IPv4 packets in Ethernet frames to addresses found by ARP.

use super::args::ARPQuerierArgs;
use super::resolver::Resolver;
use castanet_element::prelude::*;

/// Encapsulates IPv4 packets in Ethernet frames to addresses found by ARP.
///
/// Input 0 takes IPv4 packets; the destination annotation of a packet is its
/// next hop. While the Ethernet address of the next hop is unknown, the
/// element queues the packet and sends ARP queries, at most ten per second and
/// address. ARP replies on input 1 release the queued packets. Queries leave
/// by output 1 if it is connected, else by output 0. If no reply has confirmed
/// an address for POLL_TIMEOUT, the next packet to it triggers a new query.
/// Broadcasts and multicasts need no query (RFC 1112, 6.4). For one address at
/// most ENTRY_PACKET_CAPACITY packets are queued. Queued packets are dropped
/// after PACKET_TIMEOUT, or when they are the oldest of more than CAPACITY.
///
/// With TABLE the element shares addresses and queued packets with other
/// queriers; the querier that receives a reply sends the packets queued for it.
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
/// The query that polls a stale address leaves before the packet to that address:
/// ```click
/// in -> a :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1) -> out;  a[1] -> out;  Idle -> [1] a
/// ! a.insert 1.0.0.2 0:0:0:0:0:2
/// + 61s
/// > in  9.0.0.9 > 1.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 9.0.0.9 > 1.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "arp", args = ARPQuerierArgs, by = Resolver<ARPQuerier>)]
#[element(ports = "2/1-2", processing = "h/h", gives = "ether", methods, headers = Encapsulate)]
pub struct ARPQuerier {
    pub(super) ip: Ipv4Addr,
    pub(super) broadcast: Ipv4Addr,
    pub(super) broadcast_poll: bool,
}

/// Exits.
#[derive(Fate)]
pub enum ARPQuerierExit {
    /// Ethernet frames with the packets, and queries if output 1 is not connected.
    Frame,
    /// ARP queries.
    #[optional]
    Query,
    /// Packets whose next hop did not answer in time, or that found the queue for it full. Check
    /// that the next hop is up and on this link.
    #[drop]
    Unanswered,
    /// Packets without a destination annotation. Put a GetIPAddress or a route lookup before this
    /// element.
    #[drop]
    NoDestination,
    /// Packets on input 1 that are not ARP replies.
    #[drop]
    NoReply,
    /// Packets that arrive while `ipaddr` is 0.0.0.0. Write the address of the interface to the
    /// handler `ipaddr`.
    #[drop]
    Unconfigured,
}

#[handlers]
impl Resolver<ARPQuerier> {
    /// IPv4 address of this host.
    #[read]
    fn ipaddr(&self) -> Ipv4Addr {
        self.protocol.ip
    }

    /// Sets the IPv4 address of this host.
    #[write(ipaddr)]
    fn set_ipaddr(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let ip = Ipv4Addr::from_arg(text, names)?;
        Ok(Resolver { protocol: ARPQuerier { ip, ..self.protocol }, ..self.clone() })
    }

    /// IPv4 broadcast address of the link.
    #[read]
    fn broadcast(&self) -> Ipv4Addr {
        self.protocol.broadcast
    }

    /// Sets the IPv4 broadcast address of the link.
    #[write(broadcast)]
    fn set_broadcast(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let broadcast = Ipv4Addr::from_arg(text, names)?;
        Ok(Resolver { protocol: ARPQuerier { broadcast, ..self.protocol }, ..self.clone() })
    }
}
