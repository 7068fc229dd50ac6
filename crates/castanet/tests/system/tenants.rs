//! `castanet tenants` between real hosts: VXLAN that Linux ends, a VLAN, hostile frames, and reloads.
//!
//! ```text
//! red  192.168.7.2 ── VXLAN 7 ──┐
//! blue 192.168.7.2 ── VXLAN 8 ──┤ peer 10.9.0.2 ── wan of the tenants' box 10.9.0.1
//! green 192.168.9.2 ── VLAN 100 ┘
//! ```

use castanet_lab::{Command, Lab, Namespace, Port, Process, Router, answered_pings, require};
use std::path::{Path, PathBuf};

use crate::open_vswitch::Switch;
use crate::tenants_example::{ExampleNetwork, example};
use crate::testbed::{LATER, SOON, finish_pings, ping_each, program, until};

/// The tenant of the repository that answers ARP and pings.
pub(crate) const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/tenants/host.click");
const VLAN_END: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/vlan_end.py");

/// Sends frames that are for no tenant: takes the interface.
const HOSTILE_FRAMES: &str = "
import sys
from scapy.all import Ether, IP, UDP, Raw, sendp

box = Ether(src='02:00:00:00:00:02', dst='02:00:00:00:00:01')
def vxlan(payload, **ip):
    return box / IP(src=ip.pop('src', '10.9.0.2'), dst='10.9.0.1', **ip) / UDP(sport=5, dport=4789) / Raw(payload)
header = bytes.fromhex('0800000000000700')
sendp([
    vxlan(header[:4]), vxlan(b''),
    vxlan(bytes.fromhex('0800000000000900') + bytes(60)),
    vxlan(header + bytes(60), frag=0, flags='MF'), vxlan(header + bytes(60), frag=9),
    vxlan(header + bytes(60), src='10.9.0.66'),
    vxlan(header + bytes(9)),
    vxlan(bytes.fromhex('0000000000000700') + bytes(60)),
], iface=sys.argv[1], verbose=False)
";

/// The box of the tenants, and hosts of three of them.
pub(crate) struct TenantsNetwork {
    pub(crate) lab: Lab,
    pub(crate) wan: Namespace,
    peer: Namespace,
    pub(crate) hosts: [Namespace; 3],
    pub(crate) system: PathBuf,
    pub(crate) process: Process,
    _vlan_end: Process,
}

/// The system file with a table for each of these tenants: name, variables and transport.
pub(crate) fn system_text(tenants: &[(&str, &str, &str)]) -> String {
    let mut text =
        "[device.wan]\nmac = \"02:00:00:00:00:01\"\naddress = \"10.9.0.1/24\"\n".to_owned();
    for (name, variables, transport) in tenants {
        text += &format!(
            "[tenant.{name}]\nfile = \"{HOST}\"\nvariables = {{ {variables} }}\n\
             [tenant.{name}.device.eth1]\non = \"wan\"\n{transport}\n"
        );
    }
    text
}

pub(crate) const RED: (&str, &str, &str) =
    ("red", "", "vxlan = { vni = 7, remote = \"10.9.0.2\" }");
pub(crate) const BLUE: (&str, &str, &str) =
    ("blue", "mac = \"02:00:00:00:07:02\"", "vxlan = { vni = 8, remote = \"10.9.0.2\" }");
pub(crate) const GREEN: (&str, &str, &str) = ("green", "ip = \"192.168.9.1\"", "vlan = 100");

impl TenantsNetwork {
    fn new(name: &str) -> TenantsNetwork {
        TenantsNetwork::of_system(name, &system_text(&[RED, BLUE, GREEN]))
    }

    /// The network with a box that runs a system file with this text.
    pub(crate) fn of_system(name: &str, text: &str) -> TenantsNetwork {
        require(&["ip", "ping", "python3", "scapy"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [wan, peer] = ["box", "peer"].map(|it| lab.namespace(it).unwrap());
        let hosts = ["red", "blue", "green"].map(|it| lab.namespace(it).unwrap());
        let near = Port::new(&wan, "wan").mac("02:00:00:00:00:01");
        let far = Port::new(&peer, "eth0").mac("02:00:00:00:00:02").address("10.9.0.2/24");
        lab.link(near, far).unwrap();
        for (host, vni) in hosts.iter().zip([7, 8]) {
            let device = format!("vx{vni}");
            peer.ip(&format!(
                "link add {device} mtu 1450 type vxlan id {vni} dstport 4789 local 10.9.0.2 remote 10.9.0.1"
            ))
            .unwrap();
            peer.ip(&format!("link set {device} netns {}", host.name())).unwrap();
            host.ip(&format!("address add 192.168.7.2/24 dev {device}")).unwrap();
            host.ip(&format!("link set {device} up")).unwrap();
        }
        let green = Port::new(&hosts[2], "eth0").address("192.168.9.2/24");
        lab.link(Port::new(&peer, "access"), green).unwrap();
        let end = peer.command("python3").args([VLAN_END, "eth0", "access", "100"]);
        let mut vlan_end = end.spawn().unwrap();
        vlan_end.wait_for("ready", SOON).unwrap();
        let system = lab.directory().join("system.toml");
        std::fs::write(&system, text).unwrap();
        let process = start(&lab, &wan, &system, &[]);
        TenantsNetwork { lab, wan, peer, hosts, system, process, _vlan_end: vlan_end }
    }

    /// Output of a client of the instance.
    pub(crate) fn client(&self, words: &[&str]) -> String {
        let command = self.wan.command(program()).args(words);
        let command = command.env("RUNTIME_DIRECTORY", self.lab.directory());
        command.check().unwrap_or_else(|error| panic!("{error}")).stdout.trim().to_owned()
    }

    pub(crate) fn read(&self, handler: &str) -> u64 {
        self.client(&["ctl", "read", handler]).parse().unwrap()
    }

    /// Sends this many pings from a host, all of which have to be answered.
    pub(crate) fn ping(&self, host: usize, address: &str, count: u32) {
        ping_each(&self.hosts[host], address, count);
    }

    /// Kills the box, and starts it again with these options.
    pub(crate) fn restart(&mut self, words: &[&str]) {
        self.process.kill();
        self.process.wait(SOON).unwrap();
        self.process = start(&self.lab, &self.wan, &self.system, words);
    }

    pub(crate) fn stop(mut self) {
        self.process.interrupt();
        let status = self.process.wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.process.stderr());
    }
}

/// A file of the host that the shell that starts the box has left open.
pub(crate) const STRAY_FILE: &str = "/etc/passwd";

fn start(lab: &Lab, wan: &Namespace, system: &Path, words: &[&str]) -> Process {
    let shell = format!("exec 9<{STRAY_FILE}; exec \"$@\"");
    let command = wan.command("sh").args(["-c", &shell, "sh"]).arg(program());
    let command = command.args(["tenants", "run"]).args(words).arg(system);
    let mut process = command.env("RUNTIME_DIRECTORY", lab.directory()).spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();
    process
}

#[test]
fn tenants_with_the_same_device_and_addresses_do_not_meet() {
    let it = TenantsNetwork::new("tenants");
    it.ping(0, "192.168.7.1", 11);
    it.ping(1, "192.168.7.1", 12);
    it.ping(2, "192.168.9.1", 13);
    let pings = ["red", "blue", "green"].map(|name| it.read(&format!("{name}/pings.count")));
    assert_eq!(pings, [11, 12, 13]);
    // The first tenant's host knows the first tenant's address.
    for (host, mac) in [(0, "02:00:00:00:07:01"), (1, "02:00:00:00:07:02")] {
        let neighbours = it.hosts[host].command("ip").args(["neighbour"]).check().unwrap().stdout;
        assert!(neighbours.contains(mac), "{neighbours}");
    }
    let frames = ["red", "blue"].map(|name| it.read(&format!("{name}/FromDevice@1.count")));
    assert!(frames[0] >= 11 && frames[1] >= 12, "{frames:?}");
    // The kernel's outer headers are plain: none of the frames went through all checks one after the other.
    assert_eq!(it.read("wan/check.count"), 0);
    it.stop();
}

#[test]
fn hostile_frames_are_dropped_by_name() {
    let it = TenantsNetwork::new("tenants-hostile");
    it.ping(0, "192.168.7.1", 3);
    let send = it.peer.command("/usr/bin/python3").args(["-c", HOSTILE_FRAMES, "eth0"]);
    send.timeout(LATER).check().unwrap();
    for (handler, count) in [
        ("wan/vxlan0/truncated.count", 2),
        ("wan/vxlan0/truncated.drops.truncated", 2),
        ("wan/vxlan0/unknown_network.count", 1),
        ("wan/fragments.count", 2),
        ("wan/red/eth1/decap.drops.no_frame_inside", 1),
        ("red/FromDevice@1.drops.short", 1),
        ("wan/other_packets.count", 1),
    ] {
        until(handler, || it.read(handler) == count);
    }
    // They are among the drops, with the reason and an example.
    let drops: serde_json::Value = serde_json::from_str(&it.client(&["drops", "--json"])).unwrap();
    for (element, reason, packets) in [
        ("wan/vxlan0/unknown_network", "unknown_network", 1),
        ("wan/fragments", "fragments", 2),
        ("wan/other_packets", "other_packets", 1),
    ] {
        let is_it = |it: &&serde_json::Value| it["element"] == element && it["reason"] == reason;
        let found = drops.as_array().unwrap().iter().find(is_it);
        assert!(found.is_some_and(|it| it["packets"] == packets), "{element}: {drops}");
    }
    let capture = it.wan.command(program()).args(["capture", "--dropped=fragments", "-n", "1"]);
    let capture = capture.env("RUNTIME_DIRECTORY", it.lab.directory()).timeout(LATER);
    let mut capture = capture.spawn().unwrap();
    until("a fragment is captured", || {
        let send = it.peer.command("/usr/bin/python3").args(["-c", HOSTILE_FRAMES, "eth0"]);
        send.timeout(LATER).check().unwrap();
        !capture.is_running()
    });
    assert!(capture.wait(SOON).unwrap().success(), "{}", capture.stderr());
    it.ping(0, "192.168.7.1", 3);
    it.ping(1, "192.168.7.1", 3);
    it.stop();
}

#[test]
fn tenants_come_and_go_while_a_neighbour_pings() {
    let it = TenantsNetwork::new("tenants-reload");
    it.ping(0, "192.168.7.1", 2);
    let ping = it.hosts[0].command("ping").args(["-n", "-i", "0.01", "192.168.7.1"]);
    let mut ping = ping.timeout(LATER).spawn().unwrap();
    let mut reloads = 0;
    while reloads < 3 || answered_pings(&ping.stdout()).len() < 400 {
        let tenants: &[_] = if reloads % 2 == 0 { &[RED, GREEN] } else { &[RED, BLUE, GREEN] };
        std::fs::write(&it.system, system_text(tenants)).unwrap();
        it.client(&["ctl", "reload"]);
        reloads += 1;
    }
    let sent = finish_pings(&mut ping, 400) as u64;
    until("not every ping is counted", || it.read("red/pings.count") >= sent + 2);
    assert_eq!(it.read("red/pings.count"), sent + 2);
    // A wrong system file changes nothing.
    std::fs::write(&it.system, "[tenant.red]").unwrap();
    let refused = it.wan.command(program()).args(["ctl", "reload"]);
    let said = refused.env("RUNTIME_DIRECTORY", it.lab.directory()).output().unwrap();
    assert!(said.printed().contains("tenant `red` has no configuration"), "{}", said.printed());
    it.ping(0, "192.168.7.1", 2);
    it.stop();
}

/// By a reply that nobody has asked for, by a request for its own address, and else when it is asked again.
#[test]
fn a_neighbour_with_another_ethernet_address_is_found_again() {
    let it = TenantsNetwork::new("tenants-neighbour");
    it.ping(0, "192.168.7.1", 2);
    let answers = || {
        let ping = it.hosts[0].command("ping").args(["-n", "-c", "1", "-W", "1", "192.168.7.1"]);
        ping.output().unwrap().success()
    };
    it.peer.ip("link set eth0 address 02:00:00:00:00:22").unwrap();
    let tell = "import sys
from scapy.all import ARP, Ether, sendp
mac, ip = '02:00:00:00:00:22', '10.9.0.2'
sendp(Ether(src=mac, dst='ff:ff:ff:ff:ff:ff') / ARP(op=2, hwsrc=mac, psrc=ip, hwdst=mac, pdst=ip), iface='eth0')";
    it.peer.command("/usr/bin/python3").args(["-c", tell]).check().unwrap();
    let table = || it.client(&["ctl", "read", "wan/querier.table"]);
    until("the reply is heard", || table().contains("02-00-00-00-00-22"));
    assert!(answers(), "{}", table());
    // By a request of the neighbour for its own address.
    it.peer.ip("link set eth0 address 02:00:00:00:00:44").unwrap();
    let ask = tell.replace(":22", ":44").replace("op=2", "op=1");
    it.peer.command("/usr/bin/python3").args(["-c", &ask]).check().unwrap();
    until("the request is heard", || table().contains("02-00-00-00-00-44"));
    assert!(answers(), "{}", table());
    // Requests of others for their own addresses, and those for others, are not: the next one is, behind them.
    let strange = ask.replace(":44", ":55");
    for ask in [
        strange.replace("10.9.0.2", "10.9.0.77"),
        strange.replace("pdst=ip", "pdst='10.9.0.9'"),
        ask.replace(":44", ":66"),
    ] {
        it.peer.command("/usr/bin/python3").args(["-c", &ask]).check().unwrap();
        assert!(!table().contains("02-00-00-00-00-55"), "{}", table());
    }
    until("the request is heard", || table().contains("02-00-00-00-00-66"));
    assert!(!table().contains("02-00-00-00-00-55"), "{}", table());
    it.peer.ip("link set eth0 address 02:00:00:00:00:33").unwrap();
    until("the neighbour is asked again", answers);
    assert!(table().contains("02-00-00-00-00-33"), "{}", table());
    it.stop();
}

#[test]
fn the_example_is_right() {
    let example = Path::new(HOST).with_file_name("system.toml");
    let said = Command::on_host(program()).args(["tenants", "check"]).arg(&example).check();
    let said = said.unwrap().stdout;
    assert!(said.starts_with("right: "), "{said}");
    let explained = Command::on_host(program()).args(["tenants", "explain", "--json"]).arg(example);
    let report: serde_json::Value =
        serde_json::from_str(&explained.check().unwrap().stdout).unwrap();
    assert_eq!(report["tenants"].as_array().unwrap().len(), 4);
    assert_eq!(report["devices"][0]["transport"], "gre 30 10.9.0.2");
}

#[test]
fn the_tenants_of_the_example_have_real_clients() {
    let lab = Lab::new("tenants-example").unwrap();
    let network = ExampleNetwork::new(&lab, program(), &example(|text| text));
    let switch = Switch::new(&lab, network.peer());
    network.add_tunnels(&switch);
    network.use_all();
    network.check_accounts(&["routed", "six", "home", "host"]);
}
