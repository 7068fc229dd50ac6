//! `WasmElement` in the program: real clients through a router whose TTL element is a module.
//!
//! Needs root, the feature `wasm` and the programs in `.ci/packages`.
#![cfg(feature = "wasm")]
#![allow(clippy::unwrap_used)] // In a test it is an assertion.

#[path = "../system/open_vswitch.rs"]
mod open_vswitch;
#[path = "../system/tenants_example.rs"]
mod tenants_example;

use castanet_lab::{Command, Lab, Namespace, Port, Process, Router, are_answered, require};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A wait that should end at once.
const SOON: Duration = Duration::from_secs(20);
/// Ethernet addresses of the router's interfaces.
const ETHERS: [&str; 2] = ["02:00:00:00:01:01", "02:00:00:00:02:01"];

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_castanet"))
}

fn module(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/wasm/modules").join(name)
}

/// An IPv4 router between `m0` and `m1`, whose paths pass `ttl0` and `ttl1`.
fn router(ttl: [&str; 2]) -> String {
    let side = |n: usize| {
        let (gateway, ether, ttl) = (["10.9.1.1", "10.9.2.1"][n], ETHERS[n], ttl[n]);
        format!(
            "in{n} :: FromDevice(m{n}) -> c{n} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
             q{n} :: Queue(1000) -> ToDevice(m{n});
             c{n}[0] -> ARPResponder({gateway} {ether}) -> q{n};
             arp{n} :: ARPQuerier({gateway}, {ether}) -> q{n}; c{n}[1] -> [1]arp{n};
             c{n}[2] -> Strip(14) -> CheckIPHeader -> [0]rt;
             rt[{n}] -> ttl{n} :: {ttl} -> [0]arp{n};
             ttl{n}[1] -> ICMPError({gateway}, timeexceeded) -> [0]rt;\n"
        )
    };
    format!("rt :: StaticIPLookup(10.9.1.0/24 0, 10.9.2.0/24 1);\n{}{}", side(0), side(1))
}

/// Two hosts, and a router between them.
struct Network {
    lab: Lab,
    a: Namespace,
    b: Namespace,
    middle: Namespace,
}

impl Network {
    fn new(name: &str) -> Network {
        require(&["curl", "ethtool", "ip", "ping", "python3"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [a, middle, b] = ["a", "m", "b"].map(|it| lab.namespace(it).unwrap());
        for (n, host, device) in [(1, &a, "m0"), (2, &b, "m1")] {
            let port = Port::new(host, "eth0").address(&format!("10.9.{n}.2/24"));
            let port = port.route(&format!("10.9.0.0/16 via 10.9.{n}.1"));
            lab.link(port, Port::new(&middle, device).mac(ETHERS[n - 1])).unwrap();
        }
        Network { lab, a, b, middle }
    }

    /// Writes the configuration, which runs or is to be read anew.
    fn write(&self, text: &str) -> PathBuf {
        let file = self.lab.directory().join("router.click");
        std::fs::write(&file, text).unwrap();
        file
    }

    fn run(&self, text: &str) -> Process {
        let file = self.write(text);
        let process =
            self.middle.command(program()).arg("run").arg("--control").arg(self.control());
        let mut process = process.arg(file).spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        process
    }

    /// The control socket of the router.
    fn control(&self) -> PathBuf {
        self.lab.directory().join("control")
    }

    /// A command of `castanet ctl`.
    fn client(&self, words: &[&str]) -> Command {
        let command = self.middle.command(program()).arg("ctl").arg(self.control());
        command.args(words)
    }

    /// Replaces the configuration, and waits until it is there.
    fn replace(&self, text: &str) {
        self.write(text);
        let done = self.client(&["reload"]).output().unwrap();
        assert!(done.success(), "{}", done.printed());
    }

    fn read(&self, handler: &str) -> String {
        let done = self.client(&["read", handler]).check().unwrap();
        done.stdout.trim().to_owned()
    }

    /// A web server in `b`, with a file of so many bytes.
    fn serve(&self, bytes: usize) -> Process {
        let content: Vec<u8> = (0..bytes as u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        std::fs::write(self.lab.directory().join("file"), content).unwrap();
        let server = self.b.command("python3").args(["-u", "-m", "http.server", "80"]);
        let mut server = server.current_dir(self.lab.directory()).spawn().unwrap();
        server.wait_for("Serving", SOON).unwrap();
        server
    }

    /// Downloads the file; it must be the same.
    fn download(&self, name: &str) {
        self.curl(name).check().unwrap();
        self.compare(name);
    }

    /// The command that downloads the file.
    fn curl(&self, name: &str) -> Command {
        let to = self.lab.directory().join(name);
        let curl = self.a.command("curl").args(["-sSf", "-m", "60", "-o"]).arg(&to);
        curl.arg("http://10.9.2.2/file").timeout(Duration::from_secs(90))
    }

    /// Checks that the file that came is the one that was sent.
    fn compare(&self, name: &str) {
        let [sent, came] =
            ["file", name].map(|name| std::fs::read(self.lab.directory().join(name)).unwrap());
        assert!(sent == came, "the file differs: {} and {} bytes", sent.len(), came.len());
    }

    /// Sends this many pings of so many bytes one after another; none may be lost.
    fn ping(&self, count: u32, bytes: &str) {
        for _ in 0..count {
            let words = ["-n", "-c", "1", "-W", "5", "-s", bytes, "10.9.2.2"];
            self.a.command("ping").args(words).check().unwrap();
        }
    }
}

fn ttl_module() -> String {
    format!("WasmElement({})", module("ttl.wasm").display())
}

#[test]
fn real_clients_reach_each_other_through_a_module() {
    let network = Network::new("wasm-clients");
    let ttl = ttl_module();
    let _process = network.run(&router([&ttl, &ttl]));
    let _server = network.serve(20_000_000);
    network.ping(20, "56");
    network.ping(5, "1400");
    network.download("copy");
    assert_eq!(network.read("ttl0.faults"), "0");
    let count: u64 = network.read("ttl1.decremented").parse().unwrap();
    assert!(count > 25, "{count}");
    // The last hop is the module's.
    let expired = network.a.command("ping").args(["-c", "1", "-t", "1", "10.9.2.2"]).output();
    assert!(expired.unwrap().stdout.contains("Time to live exceeded"));
}

#[test]
fn a_module_keeps_its_state_through_swaps_under_load() {
    let network = Network::new("wasm-swap");
    let ttl = ttl_module();
    let firewall =
        |ports: &str| format!("WasmElement({}, {ports})", module("firewall.wasm").display());
    let text = |n: usize| {
        let (ttl1, ports) = (["DecIPTTL", &ttl][n % 2], ["23", "23, 24"][n / 2 % 2]);
        let other = format!(
            "{{ input -> f :: {} -> {ttl} -> output; Idle -> [1]output }}",
            firewall(ports)
        );
        router([ttl1, &other])
    };
    let _process = network.run(&text(0));
    let _server = network.serve(40_000_000);
    // A denied connection, which the module counts: its state goes from one configuration to the next.
    let denied = network.a.command("curl").args(["-s", "-m", "1", "http://10.9.2.2:23/"]).output();
    assert!(!denied.unwrap().success());
    let before: u64 = network.read("ttl1/f.denied").parse().unwrap();
    assert!(before > 0);
    let curl = network.curl("copy").arg("--limit-rate").arg("15M").spawn().unwrap();
    let pings = network.a.pings(&["-i", "0.01", "-w", "30"], 400, "10.9.2.2").spawn().unwrap();
    for n in 1..=20 {
        network.replace(&text(n));
        std::thread::sleep(Duration::from_millis(100));
    }
    let [curl, pings] = [curl, pings].map(|it| it.finish(SOON).unwrap());
    assert!(curl.success(), "{}", curl.printed());
    network.compare("copy");
    assert!(are_answered(&pings.stdout, 400), "{}", pings.stdout);
    assert_eq!(network.read("ttl1/f.denied").parse::<u64>().unwrap(), before);
    assert_eq!(network.read("ttl1/f.faults"), "0");
    // A module of other bytes begins anew.
    let other =
        router(["DecIPTTL", &format!("{{ input -> f :: {ttl} -> output; f[1] -> [1]output }}")]);
    network.replace(&other);
    network.ping(3, "56");
}

#[test]
fn a_module_does_byte_by_byte_what_the_native_element_does() {
    let network = Network::new("wasm-bytes");
    let ttl = ttl_module();
    let [by_module, by_native] =
        ["module.pcap", "native.pcap"].map(|name| network.lab.directory().join(name));
    // Each packet goes both ways; those of the module go on.
    let both = format!(
        "{{ input -> t :: Tee(2); t[0] -> w :: {ttl} -> w2 :: Tee(2) -> output; w[1] -> [1]output;
            w2[1] -> ToDump({}); t[1] -> n :: DecIPTTL -> ToDump({}); n[1] -> Discard }}",
        by_module.display(),
        by_native.display()
    );
    let mut process = network.run(&router(["DecIPTTL", &both]));
    let _server = network.serve(3_000_000);
    network.ping(50, "600");
    network.download("copy");
    process.interrupt();
    process.wait(SOON).unwrap();
    let [module, native] = [by_module, by_native].map(|file| std::fs::read(file).unwrap());
    assert!(module.len() > 50_000, "{} bytes", module.len());
    assert!(module == native, "{} and {} bytes", module.len(), native.len());
}

#[test]
fn a_hostile_module_costs_its_own_packets_by_name() {
    let network = Network::new("wasm-hostile");
    // Paint 2 is an endless loop in this module: packets to the second network die of it.
    let hostile = format!(
        "{{ input -> IPClassifier(icmp)[0] -> Paint(2) -> f :: WasmElement({}) -> output; Idle -> [1]output }}",
        module("faulty.wasm").display()
    );
    let hostile = hostile.replace(
        "IPClassifier(icmp)[0]",
        "c :: IPClassifier(icmp, -); c[1] -> DecIPTTL -> output; c",
    );
    let _process = network.run(&router(["DecIPTTL", &hostile]));
    let _server = network.serve(3_000_000);
    let lost = network.a.command("ping").args(["-c", "10", "-i", "0.02", "-W", "1", "10.9.2.2"]);
    assert!(lost.output().unwrap().stdout.contains("100% packet loss"));
    network.download("copy");
    let drops = network.read("ttl1/f.drops");
    assert!(drops.contains("limit ") && drops.contains("cut_off "), "{drops}");
    let said = network.client(&["drops"]).check().unwrap().stdout;
    assert!(said.contains("cut_off") && said.contains("limit"), "{said}");
}

#[test]
fn a_tenant_may_bring_a_module() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/tenants");
    let untrusted = format!(
        "file = \"{}\"\nallow = [\"WasmElement\"]\nvariables = {{ module = \"{}\" }}",
        folder.join("untrusted.click").display(),
        module("firewall.wasm").display()
    );
    let host = format!("file = \"{}\"", folder.join("host.click").display());
    let lab = Lab::new("wasm-tenants").unwrap();
    let system = tenants_example::example(|text| text.replace(&host, &untrusted));
    assert!(system.contains("untrusted.click"), "{system}");
    let network = tenants_example::ExampleNetwork::new(&lab, program(), &system);
    let switch = open_vswitch::Switch::new(&lab, network.peer());
    network.add_tunnels(&switch);
    network.use_all();
    network.check_accounts(&["routed", "six", "home", "host"]);
    assert_eq!(network.read("host/filter.faults"), "0");
    assert_ne!(network.read("host/pings.count"), "0");
}
