//! Interfaces whose MTU changes in mid-traffic: what fits passes on, and what does not is counted.

use castanet_lab::{Lab, Namespace, Port, Router, require};

use crate::testbed::{SOON, number, program};

/// Two hosts with the same network, and a forwarder between them.
struct Hosts {
    a: Namespace,
    middle: Namespace,
    b: Namespace,
    // Last, so that processes in the namespaces are gone before them.
    _lab: Lab,
}

impl Hosts {
    fn new(name: &str) -> Hosts {
        require(&["ip", "ping"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [a, middle, b] = ["a", "m", "b"].map(|it| lab.namespace(it).unwrap());
        for (host, address, device) in [(&a, "10.9.0.1/24", "m0"), (&b, "10.9.0.2/24", "m1")] {
            let here = Port::new(host, "eth0").address(address);
            lab.link(here, Port::new(&middle, device)).unwrap();
        }
        Hosts { a, middle, b, _lab: lab }
    }

    /// Sets the MTU of all interfaces.
    fn set_mtu(&self, mtu: u32) {
        let all =
            [(&self.a, "eth0"), (&self.b, "eth0"), (&self.middle, "m0"), (&self.middle, "m1")];
        for (namespace, device) in all {
            namespace.ip(&format!("link set {device} mtu {mtu}")).unwrap();
        }
    }

    /// Number of answers to three pings with `bytes` of payload. `ping` waits for the last answer no
    /// longer than the interval between two pings, however busy the machine is.
    fn answered(&self, bytes: u32) -> u32 {
        let ping = self.a.command("ping").args(["-q", "-c", "3", "-i", "0.5", "-W", "2", "-s"]);
        let output = ping.args([&bytes.to_string(), "10.9.0.2"]).output().unwrap().printed();
        let received = output.split(", ").find_map(|part| part.strip_suffix(" received"));
        received.unwrap_or_else(|| panic!("{output}")).parse().unwrap()
    }
}

/// Changes MTUs while small packets pass. In the end come three packets of 2542
/// bytes: how many are answered, and how many the kernel dropped.
fn changing(name: &str, method: &str, between: &str) -> (u32, u64) {
    let hosts = Hosts::new(name);
    let text = format!(
        "in :: FromDevice(m0, PROMISC true, METHOD {method}) {between}
             -> out :: ToDevice(m1, METHOD {method});
         from :: FromDevice(m1, PROMISC true, METHOD {method}) {between}
             -> back :: ToDevice(m0, METHOD {method})"
    );
    let ends = ["in.count", "out.count", "out.errors", "from.count", "back.count", "back.errors"];
    let handlers = ends.into_iter().chain(["in.kernel_drops"]);
    let shown = handlers.flat_map(|handler| ["--handler", handler]);
    let command = hosts.middle.command(program()).args(["run", "-e", &text]).args(shown);
    let mut router = command.spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    // Not from where the others ping: what answers a flood would fill their sockets, too.
    let flood = ["-q", "-f", "-w", "60", "10.9.0.1"];
    let mut flood = hosts.b.command("ping").args(flood).spawn().unwrap();
    assert_eq!(hosts.answered(1472), 3);
    hosts.middle.ip("link set m1 mtu 1000").unwrap();
    assert_eq!((hosts.answered(1472), hosts.answered(56)), (0, 3));
    hosts.middle.ip("link set m1 mtu 1500").unwrap();
    assert_eq!(hosts.answered(1472), 3);
    // More than when it began.
    hosts.set_mtu(1800);
    assert_eq!(hosts.answered(1700), 3);
    // More than a frame of AF_XDP has room for, as there was no need for several.
    hosts.set_mtu(3000);
    let long = hosts.answered(2500);
    assert_eq!(hosts.answered(56), 3);
    assert!(flood.is_running());
    flood.interrupt();
    flood.wait(SOON).unwrap();
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
    let output = router.stdout();
    let [came, went, refused, returned, gone, kept] = ends.map(|handler| number(&output, handler));
    assert_eq!((came, returned), (went + refused, gone + kept), "{output}");
    assert!(refused > 0, "{output}");
    (long, number(&output, "in.kernel_drops"))
}

#[test]
fn af_xdp_goes_on_whatever_the_mtu() {
    for (name, between) in [("mtu-xdp", "-> Null"), ("mtu-straight", "")] {
        let (answered, dropped) = changing(name, "AF_XDP", between);
        assert!(answered == 0 && dropped >= 3, "{answered} answered, {dropped} dropped");
    }
}

#[test]
fn packet_sockets_go_on_whatever_the_mtu() {
    assert_eq!(changing("mtu-packet", "AF_PACKET", "-> Null").0, 3);
}
