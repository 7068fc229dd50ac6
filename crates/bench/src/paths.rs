//! `castanet bench paths`: short paths for exact numbers of packets, for tools that count
//! instructions.

use super::measure::{is_selected, processor_time};
use super::router::{build_with, count, path};
use super::tenants::{Sharing, between, device_burst};
use super::traffic::{Rng, Traffic};
use castanet_element::class::Library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::Options;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Name of the path.
    pub case: &'static str,
    /// Packets that went along it.
    pub packets: u64,
    /// Nanoseconds of processor time a packet.
    pub ns_per_packet: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// The paths to run; all of them if it is empty.
    pub cases: Vec<String>,
    /// Packets for each path.
    pub packets: u64,
}

/// A path: its name, the kind of its packets, and its elements.
pub(crate) struct Path {
    pub(crate) name: &'static str,
    pub(crate) traffic: Traffic,
    elements: Elements,
    /// Virtual routers that share the ring.
    routers: usize,
}

/// The elements of a path.
enum Elements {
    /// A chain.
    Chain(&'static str),
    /// The same for IPv4 packets without Ethernet header, whose header has been checked.
    Ip(&'static str),
    /// A configuration between two elements of these names.
    Whole(fn(&str, &str) -> String),
    /// Elements to which the packets in use come again and again from a `ReplayUnqueue`.
    Replay(&'static str),
}

use Elements::{Chain, Ip, Replay, Whole};
use Traffic::{Arp, Plain, Tcp, Udp, Udp6};

/// Frames in use.
const FRAMES: u64 = 512;

/// The paths.
static PATHS: [Path; 33] = [
    path_of("forward", Plain, Chain("")),
    path_of("counter", Plain, Chain("Counter ->")),
    path_of("router", Plain, Whole(|from, to| path(0, 1, from, to))),
    path_of("router-4-ways", Plain, Whole(|from, to| path(0, 4, from, to))),
    path_of("router-arp", Plain, Whole(router_arp)),
    path_of("classifier-10", Plain, Whole(classifier)),
    path_of("ipfilter-10", Plain, Whole(|from, to| filter(10, from_host, from, to))),
    path_of("ipfilter-100", Plain, Whole(|from, to| filter(100, from_host, from, to))),
    path_of("ipfilter-100-ports", Plain, Whole(|from, to| filter(100, net_and_port, from, to))),
    path_of("hash-switch", Plain, Whole(hash_switch)),
    path_of("check-ip", Plain, Ip("Null ->")),
    path_of("check-udp", Udp, Ip("CheckUDPHeader ->")),
    path_of("check-udp-absent", Plain, Ip("CheckUDPHeader ->")),
    path_of("check-tcp", Tcp, Ip("CheckTCPHeader ->")),
    path_of("set-udp-checksum", Udp, Ip("SetUDPChecksum ->")),
    path_of("set-tcp-checksum", Tcp, Ip("SetTCPChecksum ->")),
    path_of("udp-encap", Udp, Ip(UDP_ENCAP)),
    path_of("aggregate-flows", Udp, Ip("AggregateIPFlows ->")),
    path_of("ip-mirror", Udp, Ip("IPMirror ->")),
    path_of("nat", Udp, Ip("IPRewriter(pattern 9.9.9.9 1024-65535# - - 0 0) ->")),
    path_of("middlebox", Udp, Ip("Middlebox(add ip-proto udp accept, all drop) ->")),
    path_of("middlebox-stateful", Udp, Ip(STATEFUL)),
    path_of("ether-mirror", Plain, Chain("EtherMirror ->")),
    path_of("vlan", Plain, Chain("VLANEncap(7) -> VLANDecap ->")),
    path_of("arp-responder", Arp, Chain("ARPResponder(0.0.0.0/0 2:0:0:0:0:1) ->")),
    path_of("queue", Plain, Chain("Queue(1024) -> Unqueue ->")),
    path_of("tee", Plain, Whole(tee)),
    path_of("replay-store", Plain, Replay("StoreData(0, abcd)")),
    path_of("router6", Udp6, Chain(ROUTER6)),
    path_of("tenant", Plain, Whole(|from, to| tenants(Sharing::Accounts, 1, from, to))),
    shared_path("tenants-10", 10, Whole(|from, to| tenants(Sharing::Accounts, 10, from, to))),
    path_of("tenant-vlan", Plain, Whole(|from, to| tenants(Sharing::Vlan, 1, from, to))),
    path_of("tenant-vxlan", Plain, Whole(|from, to| tenants(Sharing::Vxlan, 1, from, to))),
];

/// Into a tunnel and out of it.
const UDP_ENCAP: &str = "UDPIPEncap(1.0.0.1, 53, 2.0.0.2, 53) -> StripIPHeader -> Strip(8) ->";
/// A firewall that knows connections.
const STATEFUL: &str = "Middlebox(add-stateful ip-proto udp accept, all drop) ->";
/// The way of a packet through `conf/router6.click` from one network to another.
const ROUTER6: &str = "Strip(14) -> CheckIP6Header -> GetIP6Address(24)
    -> LookupIP6Route(ff00::/8 0, fe80::/10 0, ::/127 0, 2001:db8::/32 0, ::/0 0)
    -> DecIP6HLIM -> IP6Fragmenter(1500)
    -> EtherEncap(0x86dd, 02:00:00:00:01:02, 02:00:00:00:01:01) ->";

const fn path_of(name: &'static str, traffic: Traffic, elements: Elements) -> Path {
    Path { name, traffic, elements, routers: 1 }
}

/// That of packets which so many virtual routers share.
const fn shared_path(name: &'static str, routers: usize, elements: Elements) -> Path {
    Path { name, traffic: Plain, elements, routers }
}

/// Their names.
pub fn names() -> [&'static str; PATHS.len()] {
    let mut names = [""; PATHS.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = PATHS[n].name;
        n += 1;
    }
    names
}

/// Runs each path in simulated time with constant seeds; `on_record` gets each record as it is made.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    for path in PATHS.iter().filter(|path| is_selected(&plan.cases, path.name)) {
        let failed = |error: String| format!("{}: {error}", path.name);
        let mut options = Options::new(Arc::new(SilentConsole));
        (options.simulated, options.frames) = (true, Some(16384));
        let text = path.configuration(plan.packets);
        let mut router = build_with(&text, library, &options).map_err(failed)?;
        let before = processor_time();
        router.run(None);
        let spent = processor_time() - before;
        let packets = count(&mut router, path.counter());
        if packets < plan.packets {
            let drops = router.read("drops").unwrap_or_default();
            return Err(failed(format!("{packets} packets of {} arrived\n{drops}", plan.packets)));
        }
        on_record(Record { case: path.name, packets, ns_per_packet: spent * 1e9 / packets as f64 });
    }
    Ok(())
}

/// The path of this name.
pub(crate) fn find(name: &str) -> Option<&'static Path> {
    PATHS.iter().find(|path| path.name == name)
}

/// The paths whose packets a source can make, rather than take from a ring.
pub(crate) fn with_source() -> impl Iterator<Item = &'static Path> {
    PATHS.iter().filter(|path| !matches!(path.elements, Replay(_)))
}

impl Path {
    /// The path from an element to another.
    pub(crate) fn between(&self, from: &str, to: &str) -> String {
        match self.elements {
            Chain(chain) => format!("{from} -> {chain} {to};"),
            Ip(chain) => {
                format!("{from} -> Strip(14) -> CheckIPHeader -> {chain} Unstrip(14) -> {to};")
            }
            Whole(text) => text(from, to),
            Replay(text) => format!("{from} -> {text} -> {to};"),
        }
    }

    fn configuration(&self, packets: u64) -> String {
        if !matches!(self.elements, Replay(_)) {
            return self.ring(packets) + &self.between("ring", "ring");
        }
        let loops = packets.div_ceil(FRAMES);
        let source = format!(
            "Idle -> ring -> Queue({FRAMES}) -> again :: ReplayUnqueue(STOP {loops});
             end :: Discard;\n"
        );
        self.ring(FRAMES) + &source + &self.between("again", "end")
    }

    /// The handler that has the number of packets at the end of the path.
    fn counter(&self) -> &'static str {
        if matches!(self.elements, Replay(_)) { "end.count" } else { "ring.returned" }
    }

    /// The declaration of the ring, which sends so many packets.
    fn ring(&self, packets: u64) -> String {
        let (traffic, burst) = (self.traffic.name(), device_burst(self.routers));
        let frames = FRAMES * self.routers as u64;
        format!("ring :: BenchRing({frames}, LIMIT {packets}, TRAFFIC {traffic}{burst});\n")
    }
}

/// Ten patterns: eight parts of the Internet, ARP, and the rest.
fn classifier(from: &str, to: &str) -> String {
    let nets: String = (0..8).map(|n| format!("12/0800 30/{:02x}%e0, ", n << 5)).collect();
    let exits: String = (0..10).map(|n| format!("c[{n}] -> {to}; ")).collect();
    format!("{from} -> c :: Classifier(12/0806, {nets}-); {exits}")
}

/// A router as users of Click write it: the next hop is a gateway, whose Ethernet address an `ARPQuerier` knows. The
/// script ends simulated time, in which the timer of that element never ends.
fn router_arp(from: &str, to: &str) -> String {
    format!(
        "{from} -> c :: Classifier(12/0806 20/0002, 12/0800, -) -> [1] q :: ARPQuerier(10.0.0.1, 02:00:00:00:01:01,
             POLL_TIMEOUT 0); c[2] -> Discard;
         c[1] -> Paint(1) -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24) -> StaticIPLookup(0.0.0.0/0 10.0.0.2 0)
           -> DropBroadcasts -> same :: PaintTee(2) -> options :: IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1)
           -> ttl :: DecIPTTL -> fragments :: IPFragmenter(1500) -> q -> {to};
         same[1] -> Discard; options[1] -> Discard; ttl[1] -> Discard; fragments[1] -> Discard; q[1] -> Discard;
         Script(write q.insert 10.0.0.2 02:00:00:00:01:02, wait 10m, stop);"
    )
}

fn hash_switch(from: &str, to: &str) -> String {
    let exits: String = (0..4).map(|n| format!("h[{n}] -> {to}; ")).collect();
    format!("{from} -> h :: HashSwitch(OFFSET 26, LENGTH 8); {exits}")
}

/// Packets go on, and second ones end.
fn tee(from: &str, to: &str) -> String {
    format!("{from} -> t :: Tee -> {to}; t[1] -> Discard;")
}

/// A filter that denies so many patterns, of which no packet fits one.
fn filter(count: u64, pattern: impl Fn(u64) -> String, from: &str, to: &str) -> String {
    let rules: String = (0..count).map(|n| format!("deny {}, ", pattern(n))).collect();
    format!(
        "{from} -> Strip(14) -> CheckIPHeader -> IPFilter({rules}allow all)
            -> Unstrip(14) -> {to};"
    )
}

/// So many virtual routers behind a switch.
fn tenants(sharing: Sharing, routers: usize, from: &str, to: &str) -> String {
    between(sharing, routers, 64, from, to)
}

fn from_host(n: u64) -> String {
    format!("src host {}", host(n))
}

/// A host of network 10, which has no part in the traffic.
fn host(n: u64) -> Ipv4Addr {
    let mut numbers = Rng((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    numbers.next();
    Ipv4Addr::from(10 << 24 | numbers.next() as u32 >> 8)
}

/// Networks of many sizes, and ports that the traffic does not have.
fn net_and_port(n: u64) -> String {
    let length = 12 + n % 17;
    format!("src net {}/{length} and udp dst port {}", host(n), 100 + n % 7)
}
