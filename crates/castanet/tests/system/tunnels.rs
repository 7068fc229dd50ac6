//! Tunnels that end at independent programs: Linux's VXLAN, and `tshark` and `scapy` for all headers.
//!
//! ```text
//! host 192.168.7.1 ── lan router 10.9.0.1 ── peer 10.9.0.2 with a VXLAN of Linux, 192.168.7.2
//! ```

use castanet_lab::{Command, Lab, Port, Router, require};

use crate::testbed::{LATER, SOON, program, until};

/// The endpoint of the repository.
const ENDPOINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/vxlan.click");

#[test]
fn linux_ends_a_vxlan() {
    require(&["ethtool", "ip", "iperf3", "ping"]).unwrap();
    let lab = Lab::new("vxlan").unwrap();
    let [host, router, peer] = ["host", "router", "peer"].map(|it| lab.namespace(it).unwrap());
    // One host knows of the tunnel's MTU and the other does not: its packets are fragmented outside.
    let port = Port::new(&host, "eth0").address("192.168.7.1/24");
    lab.link(port, Port::new(&router, "lan")).unwrap();
    let near = Port::new(&router, "wan").mac("02:00:00:00:00:01");
    lab.link(near, Port::new(&peer, "eth0").address("10.9.0.2/24")).unwrap();
    let vxlan = "link add vx7 mtu 1450 type vxlan id 7 dstport 4789 local 10.9.0.2 remote 10.9.0.1";
    for words in [vxlan, "address add 192.168.7.2/24 dev vx7", "link set vx7 up"] {
        peer.ip(words).unwrap();
    }
    let settings = ["lan=lan", "wan=wan", "ip=10.9.0.1", "net=10.9.0.0/24", "remote=10.9.0.2"];
    let command = router.command(program()).args(["run", ENDPOINT]).args(settings);
    let mut process = command.args(["mtu=1500", "gw=10.9.0.2"]).spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();

    let ping = |count: usize, size: &str| {
        host.ping(&["-i", "0.05", "-s", size], count, "192.168.7.2").unwrap();
    };
    ping(20, "56");
    ping(5, "1400");
    ping(5, "4000");
    peer.ping(&[], 3, "10.9.0.1").unwrap();
    // The host leaves checksums to its device, and so they are made here. Those that the peer leaves inside of
    // the tunnel nobody would make between two interfaces without a wire.
    peer.command("ethtool").args(["-K", "vx7", "tx", "off"]).check().unwrap();
    let _server = peer.command("iperf3").args(["-s", "-1"]).spawn().unwrap();
    until("the server listens", || {
        peer.command("ss").args(["-ltn"]).check().unwrap().stdout.contains(":5201")
    });
    let client = host.command("iperf3").args(["-c", "192.168.7.2", "-n", "20M", "-J"]);
    let report = client.timeout(LATER).check().unwrap().stdout;
    assert!(report.contains("\"bytes\""), "{report}");
    // Another network is not this one's.
    peer.ip("link del vx7").unwrap();
    peer.ip(&vxlan.replace("id 7", "id 8")).unwrap();
    for words in ["address add 192.168.7.2/24 dev vx7", "link set vx7 up"] {
        peer.ip(words).unwrap();
    }
    let lost = host.command("ping").args(["-n", "-c", "2", "-W", "1", "192.168.7.2"]);
    assert!(lost.timeout(LATER).output().unwrap().stdout.contains("100% packet loss"));
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

/// Packets of each tunnel, one of each kind, as the elements make them.
const ENCAPSULATED: &str = "
    elementclass Inner { $n | RatedSource(LENGTH 20, LIMIT 1, RATE 100) -> UDPIPEncap(10.0.0.1, 1, 10.0.0.2, $n)
                              -> output }
    elementclass Frame { $n | Inner($n) -> EtherEncap(0x0800, 02:00:00:00:00:0a, 02:00:00:00:00:0b) -> output }
    d :: ToDump($file, ENCAP IP);
    Inner(11) -> GREEncap(ip, KEY 77, CHECKSUM true) -> IPEncap(gre, 10.9.0.1, 10.9.0.2) -> d;
    Frame(12) -> GREEncap(ethernet) -> IPEncap(gre, 10.9.0.1, 10.9.0.2) -> d;
    Frame(13) -> VXLANEncap(70000) -> UDPIPEncap(10.9.0.1, 49152, 10.9.0.2, 4789) -> d;
    Frame(14) -> GeneveEncap(80000) -> UDPIPEncap(10.9.0.1, 49152, 10.9.0.2, 6081) -> d;
    Inner(15) -> GeneveEncap(80001, PROTOCOL ip) -> UDPIPEncap(10.9.0.1, 49152, 10.9.0.2, 6081) -> d;
    DriverManager(wait 1s, stop);";

#[test]
fn tshark_reads_the_headers() {
    require(&["tshark"]).unwrap();
    let lab = Lab::new("tunnel-dump").unwrap();
    let file = lab.directory().join("tunnels.pcap");
    let run = Command::on_host(program()).args(["run", "-q", "-e", ENCAPSULATED]);
    run.arg(format!("file={}", file.display())).timeout(LATER).check().unwrap();
    let fields = [
        "udp.dstport",
        "gre.key",
        "gre.checksum.status",
        "vxlan.vni",
        "geneve.vni",
        "_ws.malformed",
    ];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    // Checksums are looked at, too.
    let tshark = Command::on_host("tshark").args(["-T", "fields", "-E", "separator=|", "-r"]);
    let said = tshark.arg(&file).args(fields).timeout(LATER).check().unwrap().stdout;
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "11|0x0000004d|1|||",
            "12|||||",
            "4789,13|||70000||",
            "6081,14||||0x013880|",
            "6081,15||||0x013881|",
        ],
        "{said}"
    );
}
