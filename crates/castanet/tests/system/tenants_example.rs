//! The example of `castanet tenants` with real clients: VXLAN that Linux ends, Geneve and GRE that Open
//! vSwitch ends, VLANs, and an address on the network that carries them.
//!
//! ```text
//! routed  r0 10.0.1.2 ── VXLAN 10 ─┐   r1 10.0.2.2 ── VLAN 11 ─┐   r2 10.0.3.2 ── VLAN 12 ─┐
//! six     s0 2001:db8:1::2 ── VXLAN 20 ─┤  s1 2001:db8:2::2 ── Geneve 21 ──────────────────┤
//! home    c0 10.0.1.2 ── GRE 30 ────────┤  peer 10.9.0.2, with servers ────────────────────┤ box 10.9.0.1
//! host    u0 192.168.7.2 ── VXLAN 40 ───┘
//! ```

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::open_vswitch::Switch;

const SOON: Duration = Duration::from_secs(30);
const LATER: Duration = Duration::from_secs(90);
/// The third byte of routed networks and the VLAN that leads there.
const VLANS: [(u8, u32); 2] = [(2, 11), (3, 12)];
/// VXLAN networks, each with its host, the host's address and its gateway.
const VXLANS: [(u32, &str, &str, &str); 3] = [
    (10, "r0", "10.0.1.2/24", "10.0.0.0/16 via 10.0.1.1"),
    (20, "s0", "2001:db8:1::2/64", "2001:db8::/32 via 2001:db8:1::1"),
    (40, "u0", "192.168.7.2/24", ""),
];

/// A path of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The example with absolute paths, and `change` made to it.
pub(crate) fn example(change: impl Fn(String) -> String) -> String {
    let file = repository("conf/tenants/system.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let folder = repository("conf").display().to_string();
    let text = text.replace("\"../", &format!("\"{folder}/"));
    change(text.replace("\"host.click\"", &format!("\"{folder}/tenants/host.click\"")))
}

/// The box, its peer, and the hosts of all tenants.
pub(crate) struct ExampleNetwork<'a> {
    lab: &'a Lab,
    program: &'a Path,
    wan: Namespace,
    peer: Namespace,
    hosts: Vec<(&'static str, Namespace)>,
    processes: Vec<Process>,
}

impl<'a> ExampleNetwork<'a> {
    pub(crate) fn new(lab: &'a Lab, program: &'a Path, system: &str) -> ExampleNetwork<'a> {
        require(&["curl", "ethtool", "ip", "iperf3", "ping", "python3"]).unwrap();
        let [wan, peer] = ["box", "peer"].map(|it| lab.namespace(it).unwrap());
        let near = Port::new(&wan, "eth0").mac("02:00:00:00:00:01");
        lab.link(near, Port::new(&peer, "eth0")).unwrap();
        let hosts = ["r0", "r1", "r2", "s0", "s1", "c0", "u0"];
        let hosts: Vec<_> = hosts.map(|name| (name, lab.namespace(name).unwrap())).into();
        for host in ["s0", "s1"] {
            let (_, host) = hosts.iter().find(|(name, _)| *name == host).unwrap();
            for which in ["all", "default"] {
                host.sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0").unwrap();
            }
        }
        let file = lab.directory().join("system.toml");
        std::fs::write(&file, system).unwrap();
        let mut network = ExampleNetwork { lab, program, wan, peer, hosts, processes: Vec::new() };
        network.add_vlans();
        let command = network.wan.command(program).args(["tenants", "run"]).arg(&file);
        let mut process = command.env("RUNTIME_DIRECTORY", lab.directory()).spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        network.processes.push(process);
        network
    }

    fn host(&self, name: &str) -> &Namespace {
        &self.hosts.iter().find(|(it, _)| *it == name).unwrap().1
    }

    /// Links a host to an interface of the peer. The host's kernel computes all checksums, because what
    /// is behind the interface passes frames on as they are.
    fn link(&self, name: &str, interface: &str, address: &str, route: &str) {
        let port = Port::new(self.host(name), "eth0").address(address);
        let port = if route.is_empty() { port } else { port.route(route) };
        self.lab.link(port, Port::new(&self.peer, interface)).unwrap();
        let ethtool = self.host(name).command("ethtool").args(["-K", "eth0", "tx", "off"]);
        ethtool.check().unwrap();
        self.host(name).ip("link set eth0 mtu 1400").unwrap();
    }

    fn add_vlans(&mut self) {
        for (n, (net, vlan)) in VLANS.into_iter().enumerate() {
            let (name, access) = (["r1", "r2"][n], format!("access{n}"));
            let gateway = format!("10.0.0.0/16 via 10.0.{net}.1");
            self.link(name, &access, &format!("10.0.{net}.2/24"), &gateway);
            let end = repository("crates/castanet/tests/system/vlan_end.py");
            let end = self.peer.command("python3").arg(end).args(["eth0", &access]);
            let mut end = end.arg(vlan.to_string()).spawn().unwrap();
            end.wait_for("ready", SOON).unwrap();
            self.processes.push(end);
        }
    }

    /// Adds the tunnels that Linux ends, and those that the switch ends.
    pub(crate) fn add_tunnels(&self, switch: &Switch<'_>) {
        switch.bridge("phy", "eth0", &[]);
        switch.address("phy", "10.9.0.2/24", 1500);
        for (vni, name, address, route) in VXLANS {
            let device = format!("vx{vni}");
            self.peer
                .ip(&format!(
                    "link add {device} mtu 1400 type vxlan id {vni} dstport 4789 local 10.9.0.2 remote 10.9.0.1"
                ))
                .unwrap();
            self.peer
                .ip(&format!("link set {device} netns {name}", name = self.host(name).name()))
                .unwrap();
            let family = if address.contains("::") { "-6 " } else { "" };
            let nodad = if address.contains("::") { " nodad" } else { "" };
            self.host(name)
                .ip(&format!("{family}address add {address} dev {device}{nodad}"))
                .unwrap();
            self.host(name).ip(&format!("link set {device} up")).unwrap();
            if !route.is_empty() {
                self.host(name).ip(&format!("{family}route add {route}")).unwrap();
            }
        }
        for (kind, key, name, address, route) in [
            ("geneve", 21, "s1", "2001:db8:2::2/64", ""),
            ("gre", 30, "c0", "10.0.1.2/24", "default via 10.0.1.1"),
        ] {
            let (bridge, tunnel, port) =
                (format!("b{kind}"), format!("t{kind}"), format!("p{kind}"));
            let words = format!(
                "-- set interface {tunnel} type={kind} options:remote_ip=10.9.0.1 options:key={key}"
            );
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            switch.bridge(&bridge, &tunnel, &words);
            self.link(name, &port, address, route);
            switch.port(&bridge, &port);
        }
        self.host("s1").ip("-6 route add 2001:db8::/32 via 2001:db8:2::1").unwrap();
    }

    /// Sends pings, all of which have to be answered.
    pub(crate) fn ping(&self, host: &str, address: &str) {
        self.host(host).ping(&["-i", "0.05"], 10, address).unwrap();
    }

    /// Downloads a file, and runs iperf3 both ways.
    pub(crate) fn transfer(&self, client: &str, server: &Namespace, address: &str) {
        let content: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        std::fs::write(self.lab.directory().join("file"), &content).unwrap();
        let any = if address.contains(':') { "::" } else { "0.0.0.0" };
        let http = server.command("python3").args(["-u", "-m", "http.server", "80", "--bind", any]);
        let mut http = http.current_dir(self.lab.directory()).spawn().unwrap();
        http.wait_for("Serving", SOON).unwrap();
        let to = self.lab.directory().join("copy");
        let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
        let curl = self.host(client).command("curl").args(["-gsSf", "-m", "60", "-o"]).arg(&to);
        let curl = curl.arg(format!("http://{host}/file")).timeout(LATER);
        curl.check().unwrap_or_else(|error| panic!("{client} to {address}: {error}"));
        assert!(std::fs::read(&to).unwrap() == content, "{client} to {address}: the file differs");
        for way in [&[][..], &["-R"], &["-u", "-b", "5M", "-l", "1000"]] {
            let rate = self.host(client).iperf3(server, address, way);
            rate.unwrap_or_else(|error| panic!("{client} to {address}, {way:?}: {error}"));
        }
    }

    /// Pings, downloads and measures as the clients of all tenants.
    pub(crate) fn use_all(&self) {
        self.ping("r0", "10.0.2.2");
        self.ping("r2", "10.0.1.2");
        self.transfer("r0", self.host("r1"), "10.0.2.2");
        self.ping("s0", "2001:db8:2::2");
        self.transfer("s0", self.host("s1"), "2001:db8:2::2");
        self.ping("c0", "10.9.0.2");
        self.transfer("c0", &self.peer, "10.9.0.2");
        self.ping("u0", "192.168.7.1");
    }

    pub(crate) fn read(&self, handler: &str) -> String {
        let command = self.wan.command(self.program).args(["ctl", "system", "read", handler]);
        let command = command.env("RUNTIME_DIRECTORY", self.lab.directory());
        command.check().unwrap().stdout.trim().to_owned()
    }

    /// The peer, which is a server outside of the NAT.
    pub(crate) fn peer(&self) -> &Namespace {
        &self.peer
    }

    /// Checks that what comes from outside and is no reply is not forwarded to the NAT's client, and
    /// that each of these tenants has paid for what it did.
    pub(crate) fn check_accounts(&self, tenants: &[&str]) {
        let knock = self.peer.command("curl").args(["-m", "1", "http://10.9.0.30/"]);
        assert!(!knock.output().unwrap().success());
        let table = self.read("accounts");
        for tenant in tenants {
            let row = table.lines().find(|row| row.starts_with(&format!("{tenant}\t")));
            let runs = row.unwrap().split('\t').nth(6).unwrap();
            assert_ne!(runs, "0", "{table}");
        }
    }
}
