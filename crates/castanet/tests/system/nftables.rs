//! The translations of `docs/firewalls.md` beside nftables itself: the same packets, the same fates.

use castanet_lab::{Lab, Namespace, Port, Router, require};

use crate::testbed::{LATER, SOON, program, root};

/// The packets that hosts receive are for the script alone.
const GUARD: &str = "add table inet guard
add chain inet guard input { type filter hook input priority 0; policy drop; }
add rule inet guard input icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
";

/// A router or a bridge between two hosts: Linux at first.
struct Firewall {
    lab: Lab,
    left: Namespace,
    middle: Namespace,
    right: Namespace,
}

impl Firewall {
    fn new(name: &str) -> Firewall {
        require(&["ip", "nft", "python3", "scapy"]).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new(name).unwrap();
        let [left, middle, right] =
            ["left", "middle", "right"].map(|name| lab.namespace(name).unwrap());
        let guard = lab.directory().join("guard");
        std::fs::write(&guard, GUARD).unwrap();
        for (outer, name, inner, n) in [(&left, "left", "lan", 1), (&right, "right", "wan", 2)] {
            let port = Port::new(outer, name).mac(&format!("02:00:00:00:00:0{n}"));
            let to = Port::new(&middle, inner).mac(&format!("02:00:00:00:00:a{n}"));
            lab.link(port, to).unwrap();
            for (place, name) in [(outer, name), (&middle, inner)] {
                for which in ["all", name] {
                    let six = format!("net/ipv6/conf/{which}/disable_ipv6");
                    place.sysctl(&six, "0").unwrap();
                }
            }
            outer.command("nft").arg("-f").arg(&guard).check().unwrap();
        }
        Firewall { lab, left, middle, right }
    }

    /// Gives all interfaces the addresses of a routed network.
    fn add_addresses(&self) {
        let Firewall { left, middle, right, .. } = self;
        for (place, name, address) in [
            (left, "left", "10.0.0.1/8"),
            (left, "left", "10.0.0.5/8"),
            (left, "left", "fd00::1/64 nodad"),
            (right, "right", "198.51.100.2/24"),
            (right, "right", "fd09::2/64 nodad"),
            (middle, "lan", "10.255.255.254/8"),
            (middle, "lan", "fd00::fe/64 nodad"),
            (middle, "wan", "198.51.100.1/24"),
            (middle, "wan", "fd09::1/64 nodad"),
        ] {
            let (address, rest) = address.split_once(' ').unwrap_or((address, ""));
            place.ip(&format!("address add {address} dev {name} {rest}")).unwrap();
        }
        middle.ip("route add default via 198.51.100.2").unwrap();
    }

    /// Has Linux forward and report all errors, or neither.
    fn set_forwarding(&self, is_on: bool) {
        let on = if is_on { "1" } else { "0" };
        for (key, value) in [
            ("net/ipv4/ip_forward", on),
            ("net/ipv6/conf/all/forwarding", on),
            ("net/ipv4/conf/all/send_redirects", "0"),
            ("net/ipv4/conf/lan/send_redirects", "0"),
            ("net/ipv4/icmp_ratelimit", "0"),
            ("net/ipv6/icmp/ratelimit", "0"),
        ] {
            self.middle.sysctl(key, value).unwrap();
        }
    }

    /// Runs the script, beside a namespace in which nft loads rules, or beside the middlebox.
    fn run(&self, form: &str, middle: Option<&Namespace>) {
        let script = root().join("crates/castanet/tests/system/nftables.py");
        let path = |namespace: &Namespace| format!("/run/netns/{}", namespace.name());
        // Debian puts scapy beside its own Python.
        let run = self.left.command("/usr/bin/python3").arg("-B").arg(script).arg(program());
        let run = run.arg(self.lab.directory().join("control")).arg(path(&self.right));
        let run = run.arg(root().join("docs/firewalls.md")).arg(form);
        let run = run.arg(self.lab.directory().join("record.json")).args(middle.map(path));
        let output = run.timeout(LATER * 5).output().unwrap().printed();
        assert!(output.contains("packets are right"), "{output}");
    }

    /// The middlebox in Linux's place has the same packets come out.
    fn compare(&self, form: &str, interfaces: &[&str]) {
        self.middle.command("nft").args(["flush", "ruleset"]).check().unwrap();
        let command = self.middle.command(program()).arg("middlebox").args(interfaces);
        let command = command.arg("--control").arg(self.lab.directory().join("control"));
        let mut process = command.spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        self.run(form, None);
        process.interrupt();
        assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
    }
}

#[test]
fn translated_rules_do_to_routed_packets_what_nftables_does() {
    let firewall = Firewall::new("nftables");
    firewall.add_addresses();
    firewall.set_forwarding(true);
    firewall.run("route", Some(&firewall.middle));
    firewall.set_forwarding(false);
    let lan = ["-i", "lan=10.255.255.254/8,fd00::fe/64"];
    let wan = ["-i", "wan=198.51.100.1/24,fd09::1/64", "--gateway", "198.51.100.2"];
    firewall.compare("route", &[&lan[..], &wan].concat());
}

#[test]
fn translated_rules_do_to_bridged_frames_what_nftables_does() {
    let firewall = Firewall::new("nft-bridge");
    let Firewall { middle, .. } = &firewall;
    middle.ip("link add bridge type bridge").unwrap();
    for line in ["lan master bridge", "wan master bridge", "bridge up"] {
        middle.ip(&format!("link set {line}")).unwrap();
    }
    firewall.run("bridge", Some(middle));
    middle.ip("link delete bridge").unwrap();
    firewall.compare("bridge", &["-i", "lan", "-i", "wan"]);
}
