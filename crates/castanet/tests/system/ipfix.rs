//! Flows between two hosts, as two independent programs decode their IPFIX records: `nfcapd`, which
//! collects them, and `tshark`, which reads a capture of the messages.
//!
//! ```text
//! left 10.9.0.1 ── middle ── 10.9.0.2 right
//!                    └────── 10.8.0.2 collector
//! ```

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::hot_swap::{ask, read};
use crate::testbed::{LATER, SOON, number, program, until};

const COLLECTOR: &str = "10.8.0.2:4739";

struct ExportNetwork {
    lab: Lab,
    left: Namespace,
    middle: Namespace,
    right: Namespace,
    collector: Namespace,
}

impl ExportNetwork {
    fn new(name: &str) -> ExportNetwork {
        require(&["ip", "nfcapd", "nfdump", "ping", "tcpdump", "tshark"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [left, middle, right, collector] =
            ["left", "middle", "right", "collector"].map(|name| lab.namespace(name).unwrap());
        for (host, n) in [(&left, 1), (&right, 2)] {
            let port = Port::new(host, "eth0").address(&format!("10.9.0.{n}/24"));
            lab.link(port, Port::new(&middle, &format!("side{n}"))).unwrap();
            for which in ["all", "eth0"] {
                host.sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0").unwrap();
            }
            host.ip(&format!("address add fd09::{n}/64 dev eth0 nodad")).unwrap();
        }
        let near = Port::new(&middle, "exports").address("10.8.0.1/24");
        lab.link(near, Port::new(&collector, "eth0").address("10.8.0.2/24")).unwrap();
        ExportNetwork { lab, left, middle, right, collector }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.directory().join(name)
    }

    /// A bridge of the hosts that exports the flows of either direction, from `left` on by `e`.
    fn bridge(&self, arguments: &str) -> String {
        let socket = self.path("control");
        let side = |n| format!("FromDevice(side{n}, PROMISC true, SNIFFER false)");
        format!(
            "ControlSocket(UNIX, {});
             {} -> e :: IPFIXExporter({arguments}) -> ToDevice(side2);
             {} -> back :: IPFIXExporter({arguments}, DOMAIN 100) -> ToDevice(side1);",
            socket.display(),
            side(1),
            side(2)
        )
    }

    fn start(&self, config: &str) -> (Process, UnixStream) {
        let mut process =
            self.middle.command(program()).args(["run", "-R", "-e", config]).spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        let control = UnixStream::connect(self.path("control")).unwrap();
        (process, control)
    }

    fn collect(&self) -> Collection<'_> {
        let (records, capture) = (self.path("records"), self.path("messages.pcap"));
        std::fs::create_dir_all(&records).unwrap();
        let tcpdump = self.collector.command("tcpdump");
        let tcpdump = tcpdump
            .args(["-i", "eth0", "--immediate-mode", "-U", "-w"])
            .arg(&capture)
            .arg("udp port 4739");
        let mut tcpdump = tcpdump.spawn().unwrap();
        tcpdump.wait_for("listening on", SOON).unwrap();
        let nfcapd = self.collector.command("nfcapd").args(["-b", "10.8.0.2", "-p", "4739"]);
        let nfcapd = nfcapd.args(["-t", "3600", "-w"]).arg(&records);
        let mut nfcapd = nfcapd.spawn().unwrap();
        nfcapd.wait_for("Startup nfcapd", SOON).unwrap();
        Collection { network: self, tcpdump, nfcapd, records, capture }
    }

    /// Insists that the right host answers a ping.
    fn ping(&self, address: &str) {
        until("no ping is answered", || {
            let ping = self.left.command("ping").args(["-n", "-c", "1", "-W", "2"]);
            ping.arg(address).output().unwrap().success()
        });
    }

    /// Sends datagrams of these lengths from the left host to the right one.
    fn send(&self, from: &str, to: &str, lengths: Vec<usize>) {
        let (from, to) = (from.to_owned(), to.to_owned());
        let sender = self.left.enter(move || {
            let socket = UdpSocket::bind(from).unwrap();
            lengths.iter().for_each(|len| _ = socket.send_to(&vec![b'x'; *len], &to).unwrap());
            Ok(())
        });
        sender.join().unwrap().unwrap();
    }

    /// Opens a TCP connection to port 80 of the right host, sends ten bytes, and closes it.
    fn connect(&self) {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server = self.right.enter(move || {
            let listener = TcpListener::bind("10.9.0.2:80").unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            Ok(received)
        });
        is_ready.recv().unwrap();
        let client = self.left.enter(|| {
            let mut stream = TcpStream::connect("10.9.0.2:80").unwrap();
            stream.write_all(b"ten bytes!").unwrap();
            Ok(())
        });
        client.join().unwrap().unwrap();
        assert_eq!(server.join().unwrap().unwrap(), b"ten bytes!");
    }
}

/// A collector, and a capture of the messages that it receives.
struct Collection<'n> {
    network: &'n ExportNetwork,
    tcpdump: Process,
    nfcapd: Process,
    records: PathBuf,
    capture: PathBuf,
}

impl Collection<'_> {
    /// Ends the collector; the records as `nfdump` lists them and the messages as `tshark` decodes
    /// them. Insists that sequence numbers have no gap, and that all was understood.
    fn end(self) -> (Vec<String>, String) {
        let Collection { network, tcpdump, nfcapd, records, capture } = self;
        nfcapd.interrupt();
        let said = nfcapd.finish(SOON).unwrap().printed();
        assert!(said.contains("Sequence Errors: 0, Bad Packets: 0"), "{said}");
        tcpdump.interrupt();
        tcpdump.finish(SOON).unwrap();
        let nfdump = network.collector.command("nfdump").arg("-R").arg(&records);
        let format = "fmt:%pr %sa:%sp %da:%dp %pkt %byt %flg";
        let nfdump = nfdump.args(["-q", "-6", "-o", format]).check().unwrap();
        let words = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            // Ports are padded.
            words.join(" ").replace(": ", ":")
        };
        let lines = nfdump.stdout.lines().map(words).filter(|line| !line.is_empty()).collect();
        let tshark = network.collector.command("tshark").arg("-r").arg(&capture);
        let tshark = tshark.args(["-d", "udp.port==4739,cflow", "-V"]).timeout(LATER);
        let decoded = tshark.check().unwrap().stdout;
        assert!(decoded.contains("Cisco NetFlow/IPFIX"), "{decoded}");
        for wrong in ["Malformed", "no template found", "Unexpected flow sequence"] {
            assert!(!decoded.contains(wrong), "{wrong}: {decoded}");
        }
        (lines, decoded)
    }
}

#[test]
fn collectors_decode_the_flows_of_hosts() {
    let network = ExportNetwork::new("ipfix");
    let collection = network.collect();
    let arguments = format!("COLLECTOR {COLLECTOR}, INACTIVE_TIMEOUT 1s, INGRESS 7");
    let (mut router, mut control) = network.start(&network.bridge(&arguments));
    network.ping("10.9.0.2");
    network.ping("fd09::2");
    network.send("10.9.0.1:1000", "10.9.0.2:5300", vec![100; 10]);
    network.send("[fd09::1]:1000", "[fd09::2]:5300", vec![52; 5]);
    network.send("10.9.0.1:1001", "10.9.0.2:5300", vec![3000]);
    network.connect();
    let is_done = |control: &mut UnixStream| {
        ["e", "back"].iter().all(|name| read(control, &format!("{name}.flows")).trim() == "0")
    };
    until("flows do not end", || is_done(&mut control));
    let [sent, ignored, lost] = ["exported_records", "ignored", "lost_records"].map(|handler| {
        let value = read(&mut control, &format!("e.{handler}"));
        value.trim().parse::<usize>().unwrap()
    });
    assert!(ignored > 0, "ARP belongs to no flow");
    assert_eq!(lost, 0);
    router.interrupt();
    router.wait(SOON).unwrap();
    let (flows, decoded) = collection.end();
    for expected in [
        "UDP 10.9.0.1:1000 10.9.0.2:5300 10 1280 ........",
        "UDP fd09::1:1000 fd09::2:5300 5 500 ........",
        // The first fragment has ports; later ones of the datagram have none.
        "UDP 10.9.0.1:1001 10.9.0.2:5300 1 1500 ........",
        "UDP 10.9.0.1:0 10.9.0.2:0 2 1568 ........",
        "ICMP 10.9.0.1:0 10.9.0.2:8.0 ",
        "ICMP 10.9.0.2:0 10.9.0.1:0.0 ",
        "ICMP6 fd09::1:0 fd09::2:128.0 ",
    ] {
        let is_there = flows.iter().any(|line| line.starts_with(expected));
        assert!(is_there, "no {expected} in {flows:#?}");
    }
    let is_tcp = |line: &&String| line.starts_with("TCP 10.9.0.1:") && line.contains(":80 ");
    let tcp: Vec<_> = flows.iter().filter(is_tcp).collect();
    assert!(tcp.len() == 1 && tcp[0].ends_with("...AP.SF"), "{flows:#?}");
    assert!(flows.len() >= sent, "{sent} were sent, and these came: {flows:#?}");
    for expected in [
        "Observation Domain Id: 1\n",
        "Observation Domain Id: 100\n",
        "InputInt: 7",
        "Flow End Reason: Idle timeout (1)",
        "Flow End Reason: End of Flow detected (3)",
    ] {
        assert!(decoded.contains(expected), "no {expected} in {decoded}");
    }
}

#[test]
fn a_collector_that_is_not_there_loses_records_and_no_packets() {
    let network = ExportNetwork::new("ipfix-down");
    let arguments = format!("COLLECTOR {COLLECTOR}, INACTIVE_TIMEOUT 0.3s, TEMPLATE_INTERVAL 1s");
    let (mut router, mut control) = network.start(&network.bridge(&arguments));
    // The collector's host answers that nobody listens.
    let mut port = 2000;
    until("no record is lost", || {
        port += 1;
        network.send(&format!("10.9.0.1:{port}"), "10.9.0.2:5300", vec![100]);
        read(&mut control, "e.lost_records").trim() != "0"
    });
    network.ping("10.9.0.2");
    router
        .wait_for("e :: IPFIXExporter: collector 10.8.0.2:4739: Connection refused", SOON)
        .unwrap();
    // Nothing answers at all.
    network.collector.ip("link set eth0 down").unwrap();
    network.ping("10.9.0.2");
    network.collector.ip("link set eth0 up").unwrap();
    // It comes back, and knows the templates.
    let collection = network.collect();
    let before: u64 = read(&mut control, "e.exported_records").trim().parse().unwrap();
    let messages: u64 = read(&mut control, "e.exported_messages").trim().parse().unwrap();
    network.send("10.9.0.1:1999", "10.9.0.2:5300", vec![100; 3]);
    until("the record is not sent", || {
        let now: u64 = read(&mut control, "e.exported_records").trim().parse().unwrap();
        now > before && read(&mut control, "e.flows").trim() == "0"
    });
    let now: u64 = read(&mut control, "e.exported_messages").trim().parse().unwrap();
    assert!(now > messages, "{messages} messages before, {now} after");
    router.interrupt();
    router.wait(SOON).unwrap();
    let (flows, _) = collection.end();
    let expected = "UDP 10.9.0.1:1999 10.9.0.2:5300 3 384 ........";
    assert!(flows.iter().any(|line| line == expected), "{flows:#?}");
}

#[test]
fn a_flood_of_flows_evicts_flows_and_loses_no_count() {
    const FLOWS: u64 = 3000;
    let network = ExportNetwork::new("ipfix-flood");
    let collection = network.collect();
    let config = format!(
        "FastUDPFlows(1000, {FLOWS}, 60, 0:0:0:0:0:1, 10.1.0.1, 0:0:0:0:0:2, 10.2.0.2, {FLOWS}, 1)
           -> e :: IPFIXExporter(COLLECTOR {COLLECTOR}, CAPACITY 100, MTU 1000) -> c :: Counter
           -> Discard;
         DriverManager(wait {}s, print \"count $(c.count) flows $(e.flows) evicted $(e.evicted)\",
           write e.flush, wait 1s,
           print \"left $(e.flows) records $(e.exported_records) lost $(e.lost_records)\", stop);",
        FLOWS / 1000 + 2
    );
    let run = network.middle.command(program()).args(["run", "--quiet", "-e", &config]);
    let printed = run.timeout(LATER).check().unwrap().printed();
    assert_eq!((number(&printed, "count"), number(&printed, "flows")), (FLOWS, 100), "{printed}");
    let (records, lost) = (number(&printed, "records"), number(&printed, "lost"));
    assert_eq!(records, number(&printed, "evicted") + 100, "{printed}");
    assert_eq!((number(&printed, "left"), lost), (0, 0), "{printed}");
    let (flows, decoded) = collection.end();
    assert_eq!(flows.len() as u64, records);
    let packets = |line: &String| line.split(' ').nth(3).unwrap().parse::<u64>().unwrap();
    assert_eq!(flows.iter().map(packets).sum::<u64>(), FLOWS);
    assert!(decoded.contains("Flow End Reason: Lack of resources (5)"));
    assert!(decoded.contains("Flow End Reason: Forced end (4)"));
    let lengths = decoded.lines().filter_map(|line| line.trim().strip_prefix("Total Length: "));
    assert!(lengths.map(|it| it.parse::<u32>().unwrap()).all(|length| length <= 1000));
}

#[test]
fn flows_go_on_in_a_hot_swap_and_end_with_their_collector() {
    let network = ExportNetwork::new("ipfix-swap");
    let collection = network.collect();
    let arguments = |rest: &str| format!("COLLECTOR {COLLECTOR}{rest}, INACTIVE_TIMEOUT 60s");
    let (mut router, mut control) = network.start(&network.bridge(&arguments("")));
    network.send("10.9.0.1:1000", "10.9.0.2:5300", vec![100; 2]);
    // Hosts send IPv6 packets of their own, which may be other flows.
    until("the datagrams do not arrive", || {
        read(&mut control, "e.flows").trim().parse::<u32>().unwrap() >= 1
    });
    let mut swap = |arguments: &str| {
        let next = network.bridge(arguments);
        let answer = ask(&mut control, &format!("WRITEDATA hotconfig {}\n{next}", next.len()));
        assert!(answer.starts_with("200 "), "{answer}");
    };
    // Other limits: the flow goes on, in the same session.
    swap(&arguments(", ACTIVE_TIMEOUT 50s, TEMPLATE_MESSAGES 7"));
    network.send("10.9.0.1:1000", "10.9.0.2:5300", vec![100; 3]);
    // Time is tested here: the datagrams pass meanwhile.
    std::thread::sleep(Duration::from_millis(300));
    // Another collector: the flow ends, and this one hears of it.
    swap(&arguments("").replace("4739", "4740"));
    network.send("10.9.0.1:1000", "10.9.0.2:5300", vec![100; 4]);
    router.interrupt();
    router.wait(SOON).unwrap();
    let (flows, decoded) = collection.end();
    let found: Vec<_> = flows.iter().filter(|line| line.contains("10.9.0.1:1000")).collect();
    assert_eq!(found, ["UDP 10.9.0.1:1000 10.9.0.2:5300 5 640 ........"], "{flows:#?}");
    assert!(decoded.contains("Flow End Reason: Forced end (4)"), "{decoded}");
}

#[test]
fn a_middlebox_exports_its_connections_with_their_translation() {
    let network = ExportNetwork::new("ipfix-middlebox");
    let collection = network.collect();
    let rules = network.path("rules.mmb");
    let lines = "add-stateful in side1 ip-proto udp map ip-saddr 10.9.0.77 map udp-sport 4000\n\
                 add-stateful ip-proto tcp accept\n";
    std::fs::write(&rules, lines).unwrap();
    let arp = "neigh add 10.9.0.77 lladdr 06:00:00:00:00:01 dev eth0";
    network.right.ip(arp).unwrap();
    let words = ["middlebox", "--in", "side1", "--out", "side2", "--collector", COLLECTOR];
    let timeout = ["--active-timeout", "1s"];
    let command = network.middle.command(program()).args(words).args(timeout).arg(&rules);
    let mut middlebox = command.spawn().unwrap();
    middlebox.wait_for(Router::READY, SOON).unwrap();
    network.send("10.9.0.1:1000", "10.9.0.2:5300", vec![100; 10]);
    network.connect();
    // Time is tested here: connections end meanwhile, and are exported.
    std::thread::sleep(Duration::from_secs(4));
    middlebox.interrupt();
    middlebox.wait(SOON).unwrap();
    let (flows, decoded) = collection.end();
    let udp = "UDP 10.9.0.1:1000 10.9.0.2:5300 10 1280 ........";
    assert!(flows.iter().any(|line| line == udp), "{flows:#?}");
    let is_tcp = |line: &String| line.starts_with("TCP 10.9.0.1:") && line.ends_with("...AP.SF");
    assert!(flows.iter().any(is_tcp), "{flows:#?}");
    for expected in [
        "Post NAT Source IPv4 Address: 10.9.0.77",
        "Post NAPT Source Transport Port: 4000",
        "Flow End Reason: Active timeout (2)",
        "Flow End Reason: End of Flow detected (3)",
    ] {
        assert!(decoded.contains(expected), "no {expected} in {decoded}");
    }
}
