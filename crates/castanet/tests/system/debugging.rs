//! Eight ways to break a router, and the command that finds each cause: `docs/debugging.md`.

use castanet_lab::{Command, Host, NetworkOptions, Router};
use std::time::{Duration, Instant};

use crate::testbed::{LATER, SOON, TestNetwork, conf, program};

/// Sends a frame, an expression of scapy, from a host; Debian puts scapy beside its own Python.
fn send(from: &Host, frame: &str) {
    let script = format!(
        "from scapy.all import *\n\
         gw = getmacbyip('{gateway}')\n\
         me = Ether(src=get_if_hwaddr('eth0'), dst=gw)\n\
         ip = IP(src='{address}', dst='10.0.2.2')\n\
         sendp({frame}, iface='eth0', verbose=0)",
        gateway = from.gateway,
        address = from.address,
    );
    from.command("/usr/bin/python3").args(["-c", &script]).timeout(LATER).check().unwrap();
}

/// A router with small limits between two hosts.
struct BrokenNetwork {
    testbed: TestNetwork,
}

impl BrokenNetwork {
    fn new() -> BrokenNetwork {
        let mut testbed = TestNetwork::idle("debugging", &NetworkOptions::default());
        let directory = testbed.network.lab().directory().to_owned();
        let command = testbed.network.router.command(program()).arg("run");
        let settings = ["dev0=lan1", "dev1=lan2", "mtu=1400", "queue=5", "rate=20000"];
        let command = command.arg(conf("two-networks.click")).args(settings);
        let mut process = command.env("RUNTIME_DIRECTORY", &directory).spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        assert!(process.stderr().contains("lan1: AF_XDP"), "{}", process.stderr());
        testbed.process = Some(process);
        BrokenNetwork { testbed }
    }

    fn hosts(&self) -> [&Host; 2] {
        let [h1, h2, _] = self.testbed.hosts();
        [h1, h2]
    }

    fn client(&self, words: &[&str]) -> Command {
        let program = Command::on_host(program()).timeout(LATER).args(words);
        program.env("RUNTIME_DIRECTORY", self.testbed.network.lab().directory())
    }

    /// The output of `castanet drops`, once it has all of these.
    fn drops(&self, wanted: &[&str]) {
        let began = Instant::now();
        loop {
            let told = self.client(&["drops", "--interval", "0"]).check().unwrap().stdout;
            if wanted.iter().all(|it| told.contains(it)) {
                return;
            }
            assert!(began.elapsed() < LATER, "{wanted:?} not in {told}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Pings without an answer.
    fn ping_in_vain(&self, words: &[&str], to: &str) {
        let output =
            self.testbed.ping(self.hosts()[0], &[&["-c", "1", "-W", "0.2"], words].concat(), to);
        assert!(output.contains("100% packet loss"), "{output}");
    }
}

#[test]
fn each_of_eight_causes_is_found_by_one_command() {
    let it = BrokenNetwork::new();
    it.testbed.reached();
    let [h1, h2] = it.hosts();

    // 1. Frames for another MAC address.
    send(h1, "Ether(dst='02:00:00:00:00:99')/ip/UDP(sport=5, dport=53)");
    it.drops(&[
        "port0/mac :: HostEtherFilter: filtered  1 packet",
        "> 02:00:00:00:00:99 10.0.1.2:5 > 10.0.2.2:53 udp",
        "compare their address with ETHER",
    ]);

    // 2. No route.
    it.ping_in_vain(&[], "10.77.0.1");
    it.drops(&["routes :: StaticIPLookup: unmatched", "10.0.1.2 > 10.77.0.1 icmp echo"]);

    // 3. A loop: the second host sends packets for the network behind it back.
    h2.namespace.sysctl("net/ipv4/ip_forward", "1").unwrap();
    it.ping_in_vain(&["-t", "63"], "10.9.0.1");
    it.drops(&[
        "port1/ttl :: DecIPTTL: expired",
        "10.0.1.2 > 10.9.0.1 icmp echo",
        "look for a routing loop",
    ]);

    // 4. A packet that is longer than the MTU of the next link, and may not be fragmented.
    it.ping_in_vain(&["-M", "do", "-s", "1450"], &h2.address);
    it.drops(&["port1/fragments :: IPFragmenter: large", "df len 1478", "Raise MTU"]);

    // 5. A wrong header checksum.
    send(h1, "me/IP(src='10.0.1.2', dst='10.0.2.2', chksum=0x1234)/UDP(sport=5, dport=53)");
    it.drops(&["port0/check :: CheckIPHeader: bad_checksum", "sum 0x1234"]);

    // 6. A neighbour that does not answer.
    it.ping_in_vain(&[], "10.0.2.99");
    it.drops(&[
        "port1/arp :: ARPQuerier: unanswered",
        "10.0.1.2 > 10.0.2.99 icmp echo",
        "Check that the next hop is up",
    ]);

    // 7. More packets at once than the queue takes.
    send(h1, "[me/ip/UDP(sport=5, dport=9)/(b'x' * 1000)] * 60");
    it.drops(&["port1/queue :: Queue: full", "10.0.1.2:5 > 10.0.2.2:9 udp", "Raise CAPACITY"]);

    // 8. A VLAN that is not the router's: its frames are discarded as configured, and a trace shows where.
    let words = ["trace", "-n", "1", "--tcpdump", "vlan"];
    let mut trace = it.client(&words).spawn().unwrap();
    let began = Instant::now();
    while trace.is_running() {
        send(h1, "Ether(src=me.src, dst=me.dst)/Dot1Q(vlan=20)/ip/UDP(sport=5, dport=53)");
        assert!(began.elapsed() < LATER, "no trace");
    }
    let told = trace.stdout();
    for wanted in ["vlan 20 10.0.1.2:5 > 10.0.2.2:53 udp", "[0] port0/wrong_vlan :: Discard"] {
        assert!(told.contains(wanted), "{wanted} not in {told}");
    }
    it.testbed.reached();
    let stopped = it.client(&["ctl", "stop"]).output().unwrap();
    assert!(stopped.success(), "{}", stopped.printed());
}
