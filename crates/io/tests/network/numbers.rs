//! Tests that extreme numbers in arguments of devices end no process, in a network of its own.

use castanet_bench::example::{Numbers, without_waits};
use castanet_io::{dpdk, elements::CLASSES};
use std::path::Path;

/// Examples, by class, of elements that need an interface, a socket or a file of the test's network
/// namespace and folder. The port of DPDK returns packets that are sent to it.
const EXAMPLES: &[(&str, &str)] = &[
    ("ChatterSocket", "ChatterSocket(UNIX, chatter); c :: ChatterSocket(TCP, 7001)"),
    ("ControlSocket", "c :: ControlSocket(TCP, 7777)"),
    (
        "DeviceBalancer",
        "f :: FromDevice(eth0, RSS_AGGREGATE true) -> a :: AggregateCounterVector(127) -> out
         DeviceBalancer(rsspp, DEV f, RSSCOUNTER a, TIMER 10, TIMER_MAX 20, CPUS 2, STARTCPU 1, RETA_SIZE 64, VERBOSE 2)",
    ),
    (
        "DPDKInfo",
        "DPDKInfo(2048, MBUF_SIZE 2176); in -> EnsureDPDKBuffer -> out\n> in 1.0.0.1 > 2.0.0.2 udp",
    ),
    ("EnsureDPDKBuffer", "in -> e :: EnsureDPDKBuffer -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("FromDevice", "f :: FromDevice(eth0) -> out"),
    (
        "FromDPDKDevice",
        "in -> ToDPDKDevice(0); f :: FromDPDKDevice(0, 0) -> out\n> in eth 1.0.0.1 > 2.0.0.2 udp",
    ),
    (
        "FromDPDKRing",
        "in -> ToDPDKRing(0, near, far); f :: FromDPDKRing(0, near, far) -> out\n> in 1.0.0.1 > 2.0.0.2 udp",
    ),
    ("FromDump", "f :: FromDump(from.pcap) -> out"),
    ("FromHost", "f :: FromHost(fake0, 10.77.0.1/24) -> out"),
    ("FromSlots", "in -> ToSlots(slots); f :: FromSlots(slots) -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("KernelHandlerProxy", "k :: KernelHandlerProxy"),
    ("KernelTap", "in -> k :: KernelTap(10.78.0.1/24) -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("KernelTun", "in -> k :: KernelTun(10.79.0.1/24) -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    (
        "McastSocket",
        "in -> m :: McastSocket(239.0.0.1, 1234, 127.0.0.1) -> out\n> in 1.0.0.1 > 2.0.0.2 udp",
    ),
    ("RawSocket", "in -> r :: RawSocket(UDP, 53) -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("Socket", "in -> s :: Socket(UDP, 127.0.0.1, 4000) -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("Socket", "in -> s :: Socket(TCP, 127.0.0.1, 4001) -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("Socket", "in -> s :: Socket(UNIX, stream) -> out\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("ToDevice", "in -> t :: ToDevice(eth0)\n> in eth 1.0.0.1 > 2.0.0.2 udp"),
    ("ToDPDKDevice", "in -> t :: ToDPDKDevice(0, 0)\n> in eth 1.0.0.1 > 2.0.0.2 udp"),
    ("ToDPDKRing", "in -> t :: ToDPDKRing(0, near, far)\n> in 1.0.0.1 > 2.0.0.2 udp"),
    ("ToDump", "in -> t :: ToDump(to.pcap)\n> in 1.0.0.1 > 2.0.0.2 udp"),
    (
        "ToHost",
        "FromHost(fake0, 10.77.0.1/24) -> out; in -> t :: ToHost(fake0)\n> in eth 1.0.0.1 > 2.0.0.2 udp",
    ),
    ("ToSlots", "in -> t :: ToSlots(slots)\n> in 1.0.0.1 > 2.0.0.2 udp"),
];

/// A shell script that makes the network and a capture and executes its arguments.
const PREPARE: &str = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 &&
    ip link set lo up multicast on && ip link add eth0 type veth peer name eth1 &&
    ip link set eth0 up && ip link set eth1 up &&
    printf '\\324\\303\\262\\241\\2\\0\\4\\0\\0\\0\\0\\0\\0\\0\\0\\0\\377\\377\\0\\0\\1\\0\\0\\0' > from.pcap &&
    printf '\\1\\0\\0\\0\\2\\0\\0\\0\\16\\0\\0\\0\\16\\0\\0\\0abcdefghijklmn' >> from.pcap &&
    exec \"$0\" \"$@\"";

#[test]
fn numbers_end_nothing() {
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    let mut examples = Vec::new();
    for class in CLASSES {
        let before = examples.len();
        let here = EXAMPLES.iter().filter(|(name, _)| *name == class.spec.class);
        examples.extend(here.map(|(_, text)| (class, format!("{text}\n"))));
        examples.extend(without_waits(class).map(|text| (class, text)));
        assert!(examples.len() > before, "no example of {}", class.spec.class);
    }
    let numbers = Numbers {
        test: "numbers::numbers_end_nothing",
        under: &["unshare", "--net", "sh", "-c", PREPARE],
        folder: &Path::new(env!("CARGO_TARGET_TMPDIR")).join("io-numbers"),
        library: &library,
        examples,
    };
    if numbers.is_child() && dpdk::is_built_in() {
        let options = "--no-huge -m 128 --no-pci --no-shconf --no-telemetry --log-level=1 \
                       --vdev net_ring0";
        dpdk::start(&dpdk::words(options)).unwrap();
    }
    numbers.end_nothing().unwrap_or_else(|error| panic!("{error}"));
}
