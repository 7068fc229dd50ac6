//! `castanet bench paths`: short paths for exact numbers of packets, for tools that count
//! instructions.

use super::measure::{is_selected, processor_time};
use super::router::{build_with, count, path};
use super::traffic::Rng;
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
struct Path {
    name: &'static str,
    traffic: &'static str,
    elements: Elements,
}

/// The elements of a path.
enum Elements {
    /// From the ring to the ring.
    Chain(&'static str),
    /// The same for IPv4 packets without Ethernet header, whose header has been checked.
    Ip(&'static str),
    /// A configuration, in which `ring` stands for the ring.
    Whole(fn() -> String),
    /// Elements to which the packets in use come again and again from a `ReplayUnqueue`.
    Replay(&'static str),
}

use Elements::{Chain, Ip, Replay, Whole};

/// Frames in use.
const FRAMES: u64 = 512;

/// The paths.
const PATHS: [Path; 28] = [
    path_of("forward", "plain", Chain("")),
    path_of("counter", "plain", Chain("Counter ->")),
    path_of("router", "plain", Whole(|| path(0, 1, "ring", "ring"))),
    path_of("router-4-ways", "plain", Whole(|| path(0, 4, "ring", "ring"))),
    path_of("classifier-10", "plain", Whole(classifier)),
    path_of("ipfilter-10", "plain", Whole(|| filter(10, |n| format!("src host {}", host(n))))),
    path_of("ipfilter-100", "plain", Whole(|| filter(100, |n| format!("src host {}", host(n))))),
    path_of("ipfilter-100-ports", "plain", Whole(|| filter(100, net_and_port))),
    path_of("hash-switch", "plain", Whole(hash_switch)),
    path_of("check-ip", "plain", Ip("Null ->")),
    path_of("check-udp", "udp", Ip("CheckUDPHeader ->")),
    path_of("check-udp-absent", "plain", Ip("CheckUDPHeader ->")),
    path_of("check-tcp", "tcp", Ip("CheckTCPHeader ->")),
    path_of("set-udp-checksum", "udp", Ip("SetUDPChecksum ->")),
    path_of("set-tcp-checksum", "tcp", Ip("SetTCPChecksum ->")),
    path_of("udp-encap", "udp", Ip(UDP_ENCAP)),
    path_of("aggregate-flows", "udp", Ip("AggregateIPFlows ->")),
    path_of("ip-mirror", "udp", Ip("IPMirror ->")),
    path_of("nat", "udp", Ip("IPRewriter(pattern 9.9.9.9 1024-65535# - - 0 0) ->")),
    path_of("middlebox", "udp", Ip("Middlebox(add ip-proto udp accept, all drop) ->")),
    path_of("middlebox-stateful", "udp", Ip(STATEFUL)),
    path_of("ether-mirror", "plain", Chain("EtherMirror ->")),
    path_of("vlan", "plain", Chain("VLANEncap(7) -> VLANDecap ->")),
    path_of("arp-responder", "arp", Chain("ARPResponder(0.0.0.0/0 2:0:0:0:0:1) ->")),
    path_of("queue", "plain", Chain("Queue(1024) -> Unqueue ->")),
    path_of("tee", "plain", Whole(|| "ring -> t :: Tee -> ring; t[1] -> Discard;".into())),
    path_of("replay-store", "plain", Replay("StoreData(0, abcd)")),
    path_of("router6", "udp6", Chain(ROUTER6)),
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

const fn path_of(name: &'static str, traffic: &'static str, elements: Elements) -> Path {
    Path { name, traffic, elements }
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

impl Path {
    fn configuration(&self, packets: u64) -> String {
        let ip;
        let chain = match self.elements {
            Chain(chain) => chain,
            Ip(chain) => {
                ip = format!("Strip(14) -> CheckIPHeader -> {chain} Unstrip(14) ->");
                &ip
            }
            Whole(text) => return self.ring(packets) + &text(),
            Replay(text) => {
                let loops = packets.div_ceil(FRAMES);
                return self.ring(FRAMES)
                    + &format!(
                        "Idle -> ring -> Queue({FRAMES}) -> ReplayUnqueue(STOP {loops})
                         -> {text} -> end :: Discard;"
                    );
            }
        };
        self.ring(packets) + &format!("ring -> {chain} ring;")
    }

    /// The handler that has the number of packets at the end of the path.
    fn counter(&self) -> &'static str {
        if matches!(self.elements, Replay(_)) { "end.count" } else { "ring.returned" }
    }

    /// The declaration of the ring, which sends so many packets.
    fn ring(&self, packets: u64) -> String {
        format!("ring :: BenchRing({FRAMES}, LIMIT {packets}, TRAFFIC {});\n", self.traffic)
    }
}

/// Ten patterns: eight parts of the Internet, ARP, and the rest.
fn classifier() -> String {
    let nets: String = (0..8).map(|n| format!("12/0800 30/{:02x}%e0, ", n << 5)).collect();
    let exits: String = (0..10).map(|n| format!("c[{n}] -> ring; ")).collect();
    format!("ring -> c :: Classifier(12/0806, {nets}-); {exits}")
}

fn hash_switch() -> String {
    let exits: String = (0..4).map(|n| format!("h[{n}] -> ring; ")).collect();
    format!("ring -> h :: HashSwitch(OFFSET 26, LENGTH 8); {exits}")
}

/// A filter that denies so many patterns, of which no packet fits one.
fn filter(count: u64, pattern: impl Fn(u64) -> String) -> String {
    let rules: String = (0..count).map(|n| format!("deny {}, ", pattern(n))).collect();
    format!(
        "ring -> Strip(14) -> CheckIPHeader -> IPFilter({rules}allow all) -> Unstrip(14) -> ring;"
    )
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
