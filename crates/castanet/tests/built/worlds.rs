//! Configurations of the system tests whose devices are captures, and the frames that arrive there.

use crate::builds;
use crate::large;
use castanet_wire::sketch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A configuration without devices.
pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// The `VAR=value` settings, but for those of the captures.
    pub(crate) settings: Vec<String>,
    /// A folder with the capture to read, for what its runs write; removed in the end.
    pub(crate) folder: PathBuf,
}

impl Drop for World {
    fn drop(&mut self) {
        // A file that cannot be removed does no harm.
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The router's interfaces of the first two networks: frames come by their sender's network.
const TWO_WIRES: &str = "
Script(wait 100, stop);
FromDump($in) -> wires :: Classifier(6/0200000001, -);
";

impl World {
    fn new(name: &'static str, text: String, settings: &[&str]) -> World {
        let folder = builds::folder().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("in.pcap"), capture()).unwrap();
        let settings = settings.iter().map(|&it| it.to_owned()).collect();
        World { name, text, settings, folder }
    }

    /// `conf/nat.click`. Hosts outside answer pings, and send all else back.
    pub(crate) fn nat() -> World {
        let text = without_devices("nat.click", 2)
            + TWO_WIRES
            + "wires[0] -> [0] inside [0] -> ToDump($out-0.pcap);
               wires[1] -> [0] outside [0] -> sent :: Tee -> ToDump($out-1.pcap);
               sent[1] -> kind :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader
                   -> GetIPAddress(16) -> host :: IPClassifier(icmp type echo, udp or tcp, -)
                   -> ICMPPingResponder -> back :: EtherEncap(0x0800, 2:0:0:0:2:2, $mac1)
                   -> [0] outside;
               kind[1] -> Discard; host[1] -> IPMirror -> back; host[2] -> Discard;";
        // In sequence: by default ports are chosen at random.
        World::new("nat", text, &["ports=1024-65535#"])
    }

    /// `conf/router6.click`. A host on each network can be found by neighbour discovery.
    pub(crate) fn router6() -> World {
        let text = without_devices("router6.click", 2)
            + HOST6
            + TWO_WIRES
            + "wires[0] -> [0] side0; side0[0] -> host0 :: Host6(2001:db8:1::2, 2:0:0:0:1:2, $out-0.pcap)
                   -> [0] side0;
               wires[1] -> [0] side1; side1[0] -> host1 :: Host6(2001:db8:2::2, 2:0:0:0:2:2, $out-1.pcap)
                   -> [0] side1;";
        World::new("router6", text, &["mtu1=1400"])
    }

    /// A middlebox that routes, with rules of both versions.
    pub(crate) fn middlebox() -> World {
        let rules = builds::folder().join("middlebox.rules");
        let lines = "add-stateful in lan1 ip-proto tcp map ip-saddr 10.0.2.1\n\
                     tcp-dport 9 drop\nudp-dport 53 mod ip-dscp 10\nip6-hop-limit < 5 drop\n";
        std::fs::write(&rules, lines).unwrap();
        let near = ["--in-address", "10.0.1.1/24", "--in-address", "2001:db8:1::1/64"];
        let far = ["--out-address", "10.0.2.1/24", "--out-address", "2001:db8:2::1/64"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_castanet"));
        command.args(["middlebox", "--in", "lan1", "--out", "lan2", "--mtu", "1400", "--show"]);
        let shown = command.args(near).args(far).arg(&rules).output().unwrap();
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        let mut text = String::from_utf8(shown.stdout).unwrap();
        text = text.replace(&format!("\"{}\"", rules.display()), "$rules");
        for device in [
            "from_in :: FromDevice(lan1, PROMISC true, SNIFFER false);",
            "from_out :: FromDevice(lan2, PROMISC true, SNIFFER false);",
            "to_in :: ToDevice(lan1);",
            "to_out :: ToDevice(lan2);",
        ] {
            assert_eq!(text.matches(device).count(), 1, "{device} in {text}");
            text = text.replace(device, "");
        }
        let hosts = "AddressInfo(lan1 2:0:0:0:1:1, lan2 2:0:0:0:2:1);
                     wires[0] -> from_in :: Null; wires[1] -> from_out :: Null;
                     to_in :: Host6(2001:db8:1::2, 2:0:0:0:1:2, $out-0.pcap) -> from_in;
                     to_out :: Host6(2001:db8:2::2, 2:0:0:0:2:2, $out-1.pcap) -> from_out;";
        let text = format!("{HOST6}{TWO_WIRES}{hosts}{text}");
        World::new("middlebox", text, &[&format!("rules={}", rules.display())])
    }

    /// The configuration of 2000 elements.
    pub(crate) fn large() -> World {
        let mut text = large::text();
        for n in 0..3 {
            for (device, other) in [
                (format!("FromDevice($dev{n})"), format!("wires[{n}]")),
                (format!("ToDevice($dev{n})"), format!("ToDump($out-{n}.pcap)")),
            ] {
                assert_eq!(text.matches(&device).count(), 1, "{device}");
                text = text.replace(&device, &other);
            }
        }
        let wires = "Script(wait 100, stop);
                     FromDump($in) -> wires :: Classifier(6/0200000001, 6/0200000002, 6/0200000003, -);
                     wires[3] -> Discard;";
        let text = format!("{wires}{text}");
        World::new("large", text, &[])
    }
}

/// A host that is found by neighbour discovery; what it receives is written.
const HOST6: &str = "
elementclass Host6 { $ip, $eth, $out |
    input -> sent :: Tee -> ToDump($out);
    sent[1] -> kind :: Classifier(12/86dd 20/3a 54/87, -) -> IP6NDAdvertiser($ip $eth) -> output;
    kind[1] -> Discard;
}";

/// A file of `conf` without the lines with its devices.
fn without_devices(name: &str, count: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let (before, devices) = text.split_once("FromDevice(").unwrap();
    assert_eq!(devices.matches("FromDevice(").count(), count - 1, "{name}");
    let rest = devices.split("side1[0] -> ToDevice($dev1);").nth(1).unwrap_or_default();
    format!("{before}{rest}")
}

/// Packets, each behind the number of its sender's network. HOST is the number of a host, PORT one of
/// fifty, LENGTH up to 1460.
const PACKETS: &[&str] = &[
    "1 10.0.1.HOST:PORT > 10.0.2.2:53 udp len LENGTH",
    "1 10.0.1.2:PORT > 10.0.2.2:80 tcp seq 9 syn",
    "1 10.0.1.2:PORT > 10.0.2.2:80 tcp seq 10 ack 1 psh len LENGTH",
    "2 10.0.2.HOST:PORT > 10.0.1.2:PORT udp len LENGTH",
    "3 10.0.3.HOST:PORT > 10.0.1.HOST:PORT tcp seq 1 ack 2 len LENGTH",
    "1 10.0.1.HOST > 10.0.2.2 icmp type 8 ident 9 seq 3 \"ping\"",
    "1 10.0.1.HOST > 10.0.2.1 icmp type 8 ident 9 seq 3 \"ping\"",
    "2 10.0.2.2 > 10.0.1.2 icmp type 3 code 1 [10.0.1.2:9 > 10.0.2.2:7 udp]",
    "1 10.0.1.2:PORT > 10.0.2.2:21 tcp seq 5 ack 6 \"PORT 10,0,1,2,4,5\\r\\n\"",
    "1 10.0.1.HOST:PORT > 10.0.2.2:PORT udp ttl 1",
    "1 10.0.1.HOST:PORT > 10.0.2.2:9 tcp seq 1 ttl 0",
    "2 10.0.2.HOST:PORT > 10.0.1.2:PORT udp len LENGTH df",
    "1 10.0.1.HOST:PORT > 10.0.2.2:PORT udp badsum",
    "1 10.0.1.HOST:PORT > 10.0.2.2:PORT udp badcheck",
    "1 10.0.1.HOST > 10.0.2.2 proto 17 frag 1480 len 60",
    "1 10.0.1.HOST > 10.0.2.2 proto 50 len LENGTH",
    "1 10.0.1.HOST:PORT > 10.9.9.9:PORT udp",
    "2 10.0.2.HOST:PORT > 10.0.2.1:PORT udp",
    "1 192.0.2.HOST:PORT > 10.0.2.2:PORT udp",
    "1 10.0.1.HOST:PORT > 10.0.2.2:PORT udp short 9",
    "1 [2001:db8:1::HOST]:PORT > [2001:db8:2::2]:80 tcp seq 1 ack 2 len LENGTH",
    "2 [2001:db8:2::HOST]:PORT > [2001:db8:1::2]:PORT udp len LENGTH",
    "1 2001:db8:1::2 > 2001:db8:2::2 icmp6 type 128 ident 3 seq 4 len LENGTH",
    "1 2001:db8:1::2 > 2001:db8:2::1 icmp6 type 128 ident 3 seq 4",
    "1 [2001:db8:1::2]:PORT > [2001:db8:2::2]:PORT udp hop 1",
    "1 [2001:db8:1::2]:PORT > [2001:db8:2::2]:PORT udp hop 4",
    "1 [2001:db8:1::2]:PORT > [2001:db8:9::2]:PORT udp",
    "2 [2001:db8:2::2]:PORT > [ff02::1]:PORT udp",
];

/// Number of frames of each kind, of ten in a row.
const TIMES: usize = 60;

/// The sample with the frames of three hosts, and after it packets of all kinds.
fn capture() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/sample.pcap");
    let mut file = std::fs::read(path).unwrap();
    for n in 0..PACKETS.len() * TIMES {
        let (from, packet) = PACKETS[n / 10 % PACKETS.len()].split_once(' ').unwrap();
        let packet = packet.replace("HOST", &(2 + n % 61).to_string());
        let packet = packet.replace("PORT", &(1000 + n % 50).to_string());
        let packet = packet.replace("LENGTH", &(60 + n % 11 * 140).to_string());
        let sketch = format!("eth 2:0:0:0:{from}:2 > 2:0:0:0:{from}:1 {packet}");
        let frame = sketch::build(&sketch).unwrap_or_else(|e| panic!("{sketch}: {e}")).bytes;
        let len = frame.len() as u32;
        for word in [1_700_001_000, n as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}
