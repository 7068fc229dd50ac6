//! Clients attach to a router that nobody has prepared for them, while it forwards by AF_XDP.

use castanet_lab::{Command, NetworkOptions, Process, Router};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

use crate::testbed::{LATER, SOON, TestNetwork, finish_pings, program, router_text, until};

/// Name of the instance: that of its file.
const NAME: &str = "router";

/// `castanet run` between the hosts, with a runtime directory of its own.
struct AttachNetwork {
    testbed: TestNetwork,
    config: PathBuf,
}

impl AttachNetwork {
    /// A router with the text of `conf/router.click`, as `change` alters it.
    fn new(name: &str, change: impl Fn(String) -> String) -> AttachNetwork {
        let mut testbed = TestNetwork::idle(name, &NetworkOptions::default());
        let config = testbed.network.lab().directory().join("router.click");
        std::fs::write(&config, change(router_text())).unwrap();
        let command = testbed.network.castanet(program(), &config);
        let command = command.env("RUNTIME_DIRECTORY", testbed.network.lab().directory());
        let mut process = command.spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        assert!(process.stderr().contains("lan1: AF_XDP"), "{}", process.stderr());
        testbed.process = Some(process);
        AttachNetwork { testbed, config }
    }

    /// `castanet` with these words, outside of all namespaces.
    fn client(&self, words: &[&str]) -> Command {
        let program = Command::on_host(program()).timeout(LATER).args(words);
        program.env("RUNTIME_DIRECTORY", self.testbed.network.lab().directory())
    }

    /// Its standard output as JSON.
    fn json(&self, words: &[&str]) -> Value {
        let text = self.client(words).check().unwrap_or_else(|error| panic!("{error}")).stdout;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Starts `ping` from the first host to the second.
    fn ping(&self, words: &[&str]) -> Process {
        let [h1, h2, _] = self.testbed.hosts();
        h1.command("ping").arg("-n").args(words).arg(&h2.address).timeout(LATER).spawn().unwrap()
    }

    /// Has the client end the router, which has to end well.
    fn stop(mut self) {
        let stopped = self.client(&["ctl", NAME, "stop"]).output().unwrap();
        assert!(stopped.success(), "{}", stopped.printed());
        let mut process = self.testbed.process.take().unwrap();
        let status = process.wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{status}: {}", process.stderr());
        assert!(!self.testbed.network.lab().directory().join("router.sock").exists());
    }
}

/// The elements of a class.
fn of_class<'v>(record: &'v Value, class: &str) -> Vec<&'v Value> {
    record["elements"].as_array().unwrap().iter().filter(|it| it["class"] == class).collect()
}

#[test]
fn top_shows_the_devices_of_a_router_under_load() {
    let it = AttachNetwork::new("attach-top", |text| text);
    it.testbed.reached();
    let list = it.json(&["ctl", "--json"]);
    assert_eq!((list.as_array().unwrap().len(), &list[0]["name"]), (1, &NAME.into()));
    let process = it.testbed.process.as_ref().unwrap().id();
    assert_eq!(list[0]["pid"], process);
    // `ping -f` sends as fast as it is answered.
    let mut flood = it.ping(&["-q", "-f", "-w", "30"]);
    let is_device = |device: &Value, interface: &str| {
        device["argument"] == interface && device["packets_per_second"].as_f64() > Some(100.0)
    };
    let mut last = Value::Null;
    until("the devices have no packets", || {
        last = it.json(&["top", NAME, "--once", "--json", "--interval", "0.5"]);
        ["FromDevice", "ToDevice"].iter().all(|class| {
            let devices = of_class(&last, class);
            ["lan1", "lan2"].iter().all(|lan| devices.iter().any(|it| is_device(it, lan)))
        })
    });
    assert!(last["workers"][0]["load"].as_f64() > Some(0.0), "{last}");
    let is_busy = |it: &Value| it["nanoseconds_per_packet"].as_f64() > Some(0.0);
    assert!(last["elements"].as_array().unwrap().iter().any(is_busy), "{last}");
    // The third interface has no packets but those about neighbours.
    let idle = of_class(&last, "FromDevice").into_iter().find(|it| it["argument"] == "lan3");
    assert!(idle.unwrap()["packets_per_second"].as_f64() < Some(100.0), "{last}");
    let table = it.client(&["top", NAME, "--once", "--fold"]).check().unwrap().stdout;
    assert!(table.contains("(lan1)") && table.contains("(compound)"), "{table}");
    assert!(flood.is_running());
    flood.interrupt();
    flood.wait(SOON).unwrap();
    // The client has changed nothing.
    it.testbed.reached();
    it.stop();
}

#[test]
fn drops_name_a_packet_whose_ttl_expires() {
    const ANSWERED: &str = "    ttl[1] -> ICMPError($ip, timeexceeded) -> [1] output;\n";
    let it = AttachNetwork::new("attach-drops", |text| {
        assert!(text.contains(ANSWERED));
        text.replace(ANSWERED, "")
    });
    it.testbed.reached();
    let [h1, h2, _] = it.testbed.hosts();
    // By AF_XDP, with other packets at the same time.
    let mut flood = it.ping(&["-q", "-f", "-w", "30"]);
    let words = ["drops", NAME, "--interval", "0", "--only", "expired", "--json"];
    assert_eq!(it.json(&words), Value::Array(Vec::new()));
    // The first packet is counted, and one behind a read is kept as an example.
    let mut last = Value::Null;
    until("no packet expires", || {
        it.testbed.ping(h1, &["-t", "1", "-c", "2", "-W", "0.2"], &h2.address);
        last = it.json(&words);
        !last[0]["example"].is_null()
    });
    let drop = &last[0];
    assert_eq!((&drop["element"], &drop["class"]), (&"side1/ttl".into(), &"DecIPTTL".into()));
    assert!(drop["packets"].as_u64() >= Some(1), "{drop}");
    let packet = drop["example"]["text"].as_str().unwrap();
    assert!(packet.contains("10.0.1.2 > 10.0.2.2 icmp") && packet.contains("ttl 1"), "{packet}");
    let told = it.client(&["drops", NAME, "--interval", "0"]).check().unwrap().stdout;
    assert!(told.contains("side1/ttl :: DecIPTTL: expired"), "{told}");
    assert!(told.contains("Packets whose TTL has expired"), "{told}");
    assert!(flood.is_running());
    flood.interrupt();
    flood.wait(SOON).unwrap();
    it.stop();
}

#[test]
fn sighup_under_a_hundred_pings_a_second_loses_none() {
    const RELOADS: usize = 8;
    let it = AttachNetwork::new("attach-hup", |text| text);
    it.testbed.reached();
    let mut ping = it.ping(&["-i", "0.01"]);
    let process = it.testbed.process.as_ref().unwrap();
    let said = format!("castanet: {} runs anew\n", it.config.display());
    let id = nix::unistd::Pid::from_raw(i32::try_from(process.id()).unwrap());
    for n in 1..=RELOADS {
        let extra = ["", "-> Null ", "-> Counter "][n % 3];
        let text = router_text().replace("-> FixIPSrc($ip)", &format!("{extra}-> FixIPSrc($ip)"));
        std::fs::write(&it.config, text).unwrap();
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGHUP).unwrap();
        until("SIGHUP does nothing", || process.stderr().matches(&said).count() == n);
        std::thread::sleep(Duration::from_millis(200));
    }
    // A broken file, too.
    std::fs::write(&it.config, router_text() + "FromDevice(lan1) -> Bluh;").unwrap();
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGHUP).unwrap();
    let stays = "castanet: the running configuration stays";
    until("SIGHUP does nothing", || process.stderr().contains(stays));
    assert!(process.stderr().contains("undeclared element 'Bluh'"), "{}", process.stderr());
    finish_pings(&mut ping, 500);
    assert_eq!(it.json(&["ctl", NAME, "info", "--json"])["replaced"], RELOADS);
    it.stop();
}

/// Sends frames that no host should, from an interface of the host: fragments, truncated and wrong
/// headers, and bytes without a meaning. Takes the interface and the router's Ethernet address.
const STRANGE_FRAMES: &str = "
import random, socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
own = s.getsockname()[4]
router = bytes.fromhex(sys.argv[2].replace(':', ''))
a, b = (socket.inet_aton(it) for it in ('10.0.1.2', '10.0.2.2'))
def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
def ip(payload, protocol=17, flags=0, ttl=64, first=0x45, length=None, options=b''):
    length = 20 + len(options) + len(payload) if length is None else length
    head = struct.pack('!BBHHHBBH4s4s', first, 0, length, 7, flags, ttl, protocol, 0, a, b) + options
    return head[:10] + struct.pack('!H', checksum(head)) + head[12:] + payload
def send(kind, data, to=router):
    frame = to + own + struct.pack('!H', kind) + data
    s.send(frame)
random.seed(7)
udp = struct.pack('!HHHH', 9, 9, 108, 0) + bytes(100)
whole = ip(udp)
for n in range(5):
    send(0x800, ip(udp[:64], flags=0x2000))                 # the first fragment
    send(0x800, ip(udp[64:], flags=8))                      # the last one
    send(0x800, ip(b'', flags=0x3fff))                      # an empty one beyond all
    for end in (0, 1, 4, 10, 19, 20, 27): send(0x800, whole[:end])
    send(0x800, whole[:2] + b'\\xff\\xff' + whole[4:])      # longer than it is
    send(0x800, b'\\x4f' + whole[1:])                       # a header beyond its options
    send(0x800, b'\\x41' + whole[1:])                       # a header shorter than a header
    send(0x800, b'\\x65' + whole[1:])                       # version 6 in IPv4
    send(0x800, whole[:10] + b'\\0\\0' + whole[12:])        # a wrong checksum
    send(0x800, ip(udp, ttl=0))
    send(0x800, ip(udp, ttl=1))
    send(0x800, ip(udp, first=0x46, options=b'\\x07\\x27\\x04\\0'))
    send(0x800, ip(udp, first=0x46, options=b'\\x44\\xff\\xff\\xff'))
    for kind in (0x806, 0x86dd, 0x8100, 0x88cc, 0x1234, 5): send(kind, bytes(random.randrange(256) for _ in range(random.randrange(80))))
    send(0x806, struct.pack('!HHBBH', 1, 0x800, 6, 4, 1) + b'\\xff' * 3)
    send(0x800, bytes(random.randrange(256) for _ in range(1500)))
    send(0x800, whole, to=b'\\xff' * 6)
    send(0x800, whole, to=b'\\x02' * 6)
";

/// The elements of a traced packet, in order, with all text between them.
#[track_caller]
fn stands_in_order(text: &str, words: &[&str]) {
    let mut at = 0;
    for word in words {
        let found = text[at..].find(word).unwrap_or_else(|| panic!("no {word:?} in {text}"));
        at += found + word.len();
    }
}

#[test]
fn a_trace_shows_the_way_of_a_ping_through_a_router_under_load() {
    let it = AttachNetwork::new("attach-trace", |text| text);
    it.testbed.reached();
    let [h1, _, h3] = it.testbed.hosts();
    let mut flood = it.ping(&["-q", "-f", "-w", "60"]);
    // And as much TCP as passes.
    let mut server = h3.command("iperf3").args(["-s", "-1"]).timeout(LATER).spawn().unwrap();
    until("iperf3 does not listen", || {
        h3.command("ss").args(["-ltn"]).output().unwrap().printed().contains(":5201")
    });
    let stream = h1.command("iperf3").args(["-c", &h3.address, "-t", "6"]).timeout(LATER);
    let stream = stream.spawn().unwrap();
    let words = ["trace", "-i", NAME, "-n", "3", "icmp"];
    let text = it.client(&words).check().unwrap_or_else(|error| panic!("{error}")).stdout;
    let packets: Vec<&str> = text.split("\n\n").filter(|it| !it.is_empty()).collect();
    assert_eq!(packets.len(), 3, "{text}");
    for packet in packets {
        let (from, to) = match packet.contains("10.0.1.2 > 10.0.2.2 icmp echo ") {
            true => ("side0", "side1"),
            false => ("side1", "side0"),
        };
        let names = [
            " :: FromDevice [0]\n".to_owned(),
            format!("{from}/frames :: Classifier -> [2]"),
            " :: CheckIPHeader -> [0]".to_owned(),
            "routes :: StaticIPLookup -> [".to_owned(),
            format!("{to}/ttl :: DecIPTTL -> [0]"),
            "ttl 63".to_owned(),
            format!("{to}/arp :: ARPQuerier -> [0]"),
            " :: ToDevice  ".to_owned(),
            "      ends here".to_owned(),
        ];
        stands_in_order(packet, &names.each_ref().map(|name| name.as_str()));
    }
    // As a file: with all frames that come and leave.
    let file = it.testbed.network.lab().directory().join("t.pcapng");
    let words = ["trace", "-n", "5", "-w", file.to_str().unwrap(), "tcp"];
    let done = it.client(&words).check().unwrap_or_else(|error| panic!("{error}"));
    assert!(done.stderr.contains("5 packets in "), "{}", done.stderr);
    let tshark = Command::on_host("tshark").args(["-n", "-r"]).arg(&file);
    let table = tshark.args(["-T", "fields", "-e", "frame.comment"]).check().unwrap().stdout;
    assert!(table.contains("ToDevice [0]") && table.contains("ends here"), "{table}");
    assert!(flood.is_running());
    stream.finish(LATER).unwrap();
    server.wait(LATER).unwrap();
    flood.interrupt();
    flood.wait(SOON).unwrap();
    it.testbed.reached();
    it.stop();
}

#[test]
fn a_capture_of_an_interface_is_read_by_tshark() {
    let it = AttachNetwork::new("attach-capture", |text| text);
    it.testbed.reached();
    let mut flood = it.ping(&["-q", "-f", "-w", "30"]);
    let folder = it.testbed.network.lab().directory();
    let pipe = |words: &str, reader: &str| {
        let script =
            format!("set -o pipefail; '{}' capture {words} | {reader}", program().display());
        let shell = Command::on_host("bash").timeout(LATER).env("RUNTIME_DIRECTORY", folder);
        let output = shell.args(["-c", &script]).check().unwrap_or_else(|error| panic!("{error}"));
        output.stdout
    };
    let lines = pipe("lan1 -n 20 -e icmp", "tshark -n -r -");
    assert_eq!(lines.lines().count(), 20, "{lines}");
    assert!(
        lines.lines().all(|line| line.contains("ICMP") && line.contains("Echo (ping)")),
        "{lines}"
    );
    // Both directions, with their Ethernet headers.
    let fields = "-e frame.interface_name -e frame.encap_type -e eth.dst -e ip.ttl";
    let table = pipe("lan1 -n 40 --tcpdump icmp", &format!("tshark -n -r - -T fields {fields}"));
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split('\t').collect()).collect();
    assert_eq!(rows.len(), 40, "{table}");
    for row in &rows {
        let [place, link, to, ttl] = row[..] else { panic!("{table}") };
        let leaves = place.starts_with("[0]");
        assert_eq!((link, ttl), ("1", if leaves { "63" } else { "64" }), "{table}");
        assert_eq!(to == "02:00:00:00:01:01", !leaves, "{table}");
    }
    let leaving = rows.iter().filter(|row| row[0].starts_with("[0]ToDevice"));
    assert!((10..=30).contains(&leaving.count()), "{table}");
    // The default: all interfaces.
    let text = it.client(&["capture", "--text", "-n", "100", "-e", "icmp"]).check().unwrap().stdout;
    let places: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(places.len(), 4, "{places:?}");
    assert!(flood.is_running());
    flood.interrupt();
    flood.wait(SOON).unwrap();
    it.testbed.reached();
    it.stop();
}

#[test]
fn strange_frames_are_traced_and_do_no_harm() {
    let it = AttachNetwork::new("attach-strange", |text| text);
    it.testbed.reached();
    let [h1, ..] = it.testbed.hosts();
    let spawn = |words: &[&str]| it.client(words).spawn().unwrap();
    let mut trace = spawn(&["trace", "-n", "100000", "--json"]);
    let mut drops = spawn(&["capture", "--dropped", "--text"]);
    let mut all = spawn(&["capture", "--json"]);
    // They are at work.
    let mut ping = it.ping(&["-q", "-i", "0.05", "-w", "60"]);
    trace.wait_for("\"finished\"", LATER).unwrap();
    all.wait_for("\"time\"", LATER).unwrap();
    let device = h1.command("ip").args(["-br", "link"]).check().unwrap().stdout;
    let mut device = device.lines().map(|it| it.split(['@', ' ']).next().unwrap());
    let device = device.rfind(|it| *it != "lo").unwrap().to_owned();
    for _ in 0..2 {
        let frames =
            h1.command("python3").args(["-c", STRANGE_FRAMES, &device, "02:00:00:00:01:01"]);
        frames.timeout(LATER).check().unwrap_or_else(|error| panic!("{error}"));
    }
    drops.wait_for("dropped: ", LATER).unwrap();
    until("a packet whose TTL has expired is not traced", || {
        let said = trace.stdout();
        said.contains("/ttl\"") && said.contains("\"class\":\"ICMPError\"")
    });
    it.testbed.reached();
    ping.interrupt();
    ping.wait(SOON).unwrap();
    for mut process in [trace, drops, all] {
        assert!(process.is_running(), "{}", process.stderr());
        process.interrupt();
        let said = process.finish(SOON).unwrap();
        assert!(said.success(), "{}", said.stderr);
        if said.stdout.contains("\"step\"") {
            // Each packet that entered has finished, but those that wait for ARP.
            let count = |word: &str| said.stdout.matches(word).count();
            let (entered, finished) =
                (count("\"step\":\"entered\""), count("\"step\":\"finished\""));
            assert!(entered > 100 && finished + 20 >= entered, "{entered}, {finished}");
            assert!(said.stdout.contains("\"result\":\"dropped\",\"reason\":\""));
        } else if said.stdout.contains(" dropped: ") {
            for line in said.stdout.lines() {
                assert!(line.contains(" dropped: ") && line.ends_with(" bytes)"), "{line}");
            }
            assert!(said.stdout.contains("CheckIPHeader"), "{}", said.stdout);
        }
    }
    let process = it.testbed.process.as_ref().unwrap();
    assert!(!process.stderr().contains("panic"), "{}", process.stderr());
    it.stop();
}

#[test]
fn traces_that_come_and_go_lose_no_ping_through_reloads() {
    let it = AttachNetwork::new("attach-traces", |text| text);
    it.testbed.reached();
    let mut ping = it.ping(&["-i", "0.01"]);
    let capture = it.client(&["capture", "--text", "-e", "icmp"]).spawn().unwrap();
    let process = it.testbed.process.as_ref().unwrap();
    let said = format!("castanet: {} runs anew\n", it.config.display());
    let id = nix::unistd::Pid::from_raw(i32::try_from(process.id()).unwrap());
    for round in 1..=20 {
        let text = it.client(&["trace", "-n", "3", "icmp"]).check().unwrap().stdout;
        assert_eq!(text.matches(" :: FromDevice [0]").count(), 3, "{text}");
        if round % 4 == 1 {
            let extra = ["", "-> Null ", "-> Counter "][round / 4 % 3];
            let text =
                router_text().replace("-> FixIPSrc($ip)", &format!("{extra}-> FixIPSrc($ip)"));
            std::fs::write(&it.config, text).unwrap();
            let before = process.stderr().matches(&said).count();
            nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGHUP).unwrap();
            until("SIGHUP does nothing", || process.stderr().matches(&said).count() > before);
        }
    }
    let sent = finish_pings(&mut ping, 500);
    capture.interrupt();
    let captured = capture.finish(SOON).unwrap();
    assert!(captured.success(), "{}", captured.stderr);
    // Each request and each answer comes in once and leaves once.
    let count = captured.stdout.lines().filter(|line| line.contains("icmp echo")).count();
    assert!(
        (3 * sent..=4 * sent).contains(&count) || captured.stderr.contains("too fast"),
        "{count}"
    );
    it.stop();
}
